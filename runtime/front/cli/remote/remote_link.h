/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_link - a connection to a service's Unix socket, for one request.
 */
#pragma once

#include <stddef.h>
#include <sys/un.h>

#include "runtime/base/error.h"

#define REMOTE_PATIENCE_S 5 /* for the connection, and for each write */

/* An HTTP request. */
struct remote_message {
	const char *method, *path;
	const char *accept;      /* the media type of the answer */
	const char *body;        /* JSON; NULL: none */
	size_t size;             /* of the body */
	const char *agent;       /* NULL: "cejail" */
	const char *traceparent; /* NULL: none */
};

#define REMOTE_HEAD_MAX 512

/*
 * remote_link_write_head - write what comes before the body.  Returns its size.
 *
 * A traceparent that is too long, or has characters that none has, is left out: it could begin
 * another header.
 */
size_t remote_link_write_head(const struct remote_message *message,
			      char out[static REMOTE_HEAD_MAX]);

/* Fails: the path is too long for unix(7). */
int remote_link_address(const char *socket_path, struct sockaddr_un *out, struct cj_error *err);

/* Connects and sends the whole request.  Returns the descriptor, the caller's to close. */
int remote_link_ask(const char *socket_path, const struct remote_message *message,
		    struct cj_error *err);

/* DELETE /v1/runs/ID.  Fails: the service has no such run, or does not answer. */
int remote_link_cancel(const char *socket_path, const char *id, struct cj_error *err);
