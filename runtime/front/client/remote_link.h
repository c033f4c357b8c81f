/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_link - a connection to a service's Unix socket, for one request.
 *
 * remote_fetch() waits for the answer; a remote_exchange reads it in an event loop.
 */
#pragma once

#include <sys/un.h>

#include "runtime/base/byte_queue.h"
#include "runtime/base/json/json.h"
#include "runtime/base/loop.h"
#include "runtime/front/client/http_answer.h"

#define REMOTE_PATIENCE_S 5           /* for the connection, and for each write */
#define REMOTE_URL_MAX    (13u << 10) /* a path of the jail, each byte as %XX, and more */

/* An HTTP request. */
struct remote_message {
	const char *method, *path;
	const char *accept;      /* the media type of the answer; NULL: JSON */
	struct blob body;        /* bytes NULL: none */
	const char *type;        /* of the body; NULL: JSON */
	const char *agent;       /* NULL: "cejail" */
	const char *traceparent; /* NULL: none */
};

#define REMOTE_HEAD_MAX (REMOTE_URL_MAX + 512)

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

/*
 * Returns the descriptor, the caller's to close.  `flags`: SOCK_NONBLOCK, or 0.
 * Fails: no service listens.
 */
int remote_link_connect(const char *socket_path, int flags, struct cj_error *err);

/* Connects and sends the whole request.  Returns the descriptor, the caller's to close. */
int remote_link_ask(const char *socket_path, const struct remote_message *message,
		    struct cj_error *err);

/* Appends a part of the path, as text_put_url() does.  Fails: REMOTE_URL_MAX may be too little. */
int remote_url(char url[static REMOTE_URL_MAX], const char *part, struct cj_error *err);

/* Bytes of an answer, with a NUL behind them. */
struct remote_buffer {
	struct byte_queue text;
	size_t max;
};
/* A sink whose context is a buffer.  Fails: it would be larger than its `max`. */
int remote_buffer_add(void *buffer, const char *bytes, size_t size, struct cj_error *err);

#define REMOTE_JSON_MAX (64u << 20)

struct remote_fetch {
	const char *socket;
	struct remote_message message;
	unsigned patience_s; /* for each part of the answer; 0: waits for it without limit */
};

/*
 * remote_fetch - send the request, and pass the body of a 2xx answer to `sink`, if there is one.
 *
 * Fails: no service listens, it does not answer, the sink failed; or the status is not 2xx, and
 * *err is the error that the service sent.
 */
int remote_fetch(const struct remote_fetch *f, http_sink sink, void *context, struct cj_error *err);

/* The same for an answer that is a JSON object; it lives in the arena. */
int remote_fetch_json(const struct remote_fetch *f, struct arena *a, const struct json_node **out,
		      struct cj_error *err);

/*
 * remote_exchange - one request and its answer, in an event loop.  Closing it early makes the
 * service cancel what was asked for.
 *
 * The owner sets what is above `is_over`; the rest is as remote_exchange_close() leaves it.
 */
struct remote_exchange {
	struct loop *loop;
	/* A piece of the answer's body; NULL: it is not wanted. */
	int (*keep)(struct remote_exchange *q, const char *bytes, size_t size,
		    struct cj_error *err);
	/* The answer is whole, or keep() has set is_over, or err->code says why there is no more.
	 * May close the exchange, and free it. */
	void (*end)(struct remote_exchange *q, const struct cj_error *err);
	bool holds;   /* the answer waits at the service: remote_exchange_hold() */
	bool is_over; /* no more of the answer is wanted */
	struct watch watch;
	int fd;
	struct http_answer answer;
	char head[REMOTE_HEAD_MAX];
	const char *body;
	size_t head_size, size, sent;
};

/*
 * remote_exchange_start - send the request on the connected socket fd, and read the answer.
 *
 * Owns: takes fd, also when it fails; borrows the body.
 * `message` NULL: the request is sent already.
 */
int remote_exchange_start(struct remote_exchange *q, int fd, const struct remote_message *message,
			  struct cj_error *err);
void remote_exchange_hold(struct remote_exchange *q, bool holds);
/* Also of one that was never started, whose fd is -1. */
void remote_exchange_close(struct remote_exchange *q);
