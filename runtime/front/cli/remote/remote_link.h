/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_link - a connection to a service's Unix socket, for one request.
 */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

#define REMOTE_PATIENCE_S 5 /* for the connection, and for each write */

/* An HTTP request. */
struct remote_message {
	const char *method, *path;
	const char *accept; /* the media type of the answer */
	const char *body;   /* JSON; NULL: none */
	size_t size;        /* of the body */
};

/* Connects and sends the whole request.  Returns the descriptor, the caller's to close. */
int remote_link_ask(const char *socket_path, const struct remote_message *message,
		    struct cj_error *err);

/* DELETE /v1/runs/ID.  Fails: the service has no such run, or does not answer. */
int remote_link_cancel(const char *socket_path, const char *id, struct cj_error *err);
