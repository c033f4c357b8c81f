/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_name - the name of the server in what a client sends: the SNI of a TLS ClientHello, or the
 * Host of each HTTP request.  No system calls.
 *
 * A program that is to be refused wrote these bytes.  So what two servers could read in two ways is
 * refused: a name that is there twice, two lengths of one body, lines without CR.  Nothing in TLS
 * is decrypted.  Of a ClientHello whose name is encrypted (ECH) the outer name counts.
 * Follows: RFC 8446 4.1.2 and 5.1, RFC 6066 3, RFC 9112.
 */
#pragma once

#define CLIENT_FIRST_MAX 16384 /* bytes of a ClientHello with its records, or of a request's head */
#define CLIENT_NAME_MAX  256   /* bytes of a name, with a NUL */

enum client_stage {
	CLIENT_BEGIN, /* nothing is known */
	CLIENT_TLS,   /* the name was allowed, and the rest is encrypted */
	CLIENT_HEAD,  /* HTTP, at the head of a request */
	CLIENT_BODY,  /* in a body with a length */
	CLIENT_CHUNK, /* at the size of a chunk */
	CLIENT_DATA,  /* in a chunk */
	CLIENT_DATA_END,
	CLIENT_LAST /* behind the last chunk */
};

/* All zero but for the callback: before the first byte. */
struct client_stream {
	/* May the client reach the server of this name?  In lower case, without the last dot. */
	bool (*may)(void *context, const char *name);
	void *context;
	enum client_stage stage;
	uint64_t left;              /* bytes of the body or chunk */
	char name[CLIENT_NAME_MAX]; /* the last one that was found; "" until then */
	bool is_denied;             /* may() has refused it */
};

/*
 * client_stream_read - how many of these leading bytes may be sent to the server.
 *
 * bytes: what follows those that were sent.  0: the name is not complete yet.
 * Returns -1 when the client may send nothing more: the name is refused (is_denied), or missing, or
 * longer than CLIENT_FIRST_MAX, or this is neither TLS nor HTTP.
 */
ssize_t client_stream_read(struct client_stream *s, const uint8_t *bytes, size_t size);
