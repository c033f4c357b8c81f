/* SPDX-License-Identifier: Apache-2.0 */
/* origin_client - a client's connection: origin_serve.c, and its transfer: origin_transfer.c. */
#pragma once

#include "runtime/base/http_chunks.h"
#include "runtime/base/loop.h"
#include "runtime/front/helpers/upstream/origin.h"

#define CLIENT_READ_MAX  16384
#define CLIENT_QUEUE_MAX (4 * CLIENT_READ_MAX) /* bytes that wait, in each direction */

enum client_phase {
	CLIENT_IDLE,     /* there is no whole head */
	CLIENT_TRANSFER, /* libcurl has the request */
	CLIENT_REPLY,    /* the rest of an answer waits for the client */
	CLIENT_LINGER    /* the answer is sent; input is dropped */
};

struct client {
	int fd; /* -1: a free place */
	struct watch watch;
	uint32_t events;
	struct origin *origin;
	enum client_phase phase;
	uint64_t moved_ms; /* when a byte of a body moved, or the wait for a head began */
	uint64_t dropped;  /* bytes, while it lingers */
	struct byte_queue in, out;
	size_t scanned;

	/* the request */
	bool is_1_1, is_head, asks_more;
	bool is_chunked;
	uint64_t body_left; /* if it is not chunked */
	struct http_chunks chunks;

	/* its transfer */
	CURL *easy;                             /* NULL: there is none */
	struct curl_slist *headers, *addresses; /* for libcurl */
	struct origin_mask mask;
	bool send_paused, recv_paused;
	bool has_given; /* some of the request's body */
	bool is_done;   /* with `result` */
	CURLcode result;
	unsigned broken; /* the status for a body that we do not pass on */
	const char *why; /* of `broken` */
	bool is_refused; /* by a rule of ours */

	/* the answer */
	struct byte_queue lines; /* of its head: names and values in turn, each with a NUL */
	bool has_status_line;
	bool is_answered; /* its head is in `out` */
	bool keeps_open, sends_chunks;
	unsigned status;
	curl_off_t announced; /* bytes of its body; -1: not known */
	uint64_t received;
};

bool client_body_ended(const struct client *c);

/* Fails: a secret can't be read, no memory.  client_end_transfer() follows in any case. */
int client_begin_transfer(struct client *c, const struct origin_set *set, CURLM *multi,
			  const struct origin_request *r, struct cj_error *err);
/* Continues what waits for the client, if the client has moved. */
void client_resume(struct client *c);
/*
 * Completes the answer after libcurl's result.  0: it is whole; otherwise the status and the
 * sentence for a client that has no answer yet.
 */
unsigned client_settle(struct client *c, struct cj_error *err);
void client_end_transfer(struct client *c, CURLM *multi);

/* An answer of our own, which ends the connection. */
void client_reply(struct client *c, unsigned status, const struct cj_error *err);
