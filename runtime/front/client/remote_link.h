/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_link - a connection to a service's Unix socket, for one request.
 *
 * The answer of a run is a stream, which remote.h reads.  remote_fetch() and remote_post read all
 * others.
 */
#pragma once

#include <stddef.h>
#include <sys/un.h>

#include "runtime/base/byte_queue.h"
#include "runtime/base/json/json.h"
#include "runtime/front/client/http_answer.h"

#define REMOTE_PATIENCE_S 5           /* for the connection, and for each write */
#define REMOTE_URL_MAX    (13u << 10) /* a path of the jail, each byte as %XX, and more */

/* An HTTP request. */
struct remote_message {
	const char *method, *path;
	const char *accept;      /* the media type of the answer */
	const char *body;        /* NULL: none */
	size_t size;             /* of the body */
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

/* Returns the descriptor, the caller's to close.  Fails: no service listens. */
int remote_link_connect(const char *socket_path, struct cj_error *err);

/* Connects and sends the whole request.  Returns the descriptor, the caller's to close. */
int remote_link_ask(const char *socket_path, const struct remote_message *message,
		    struct cj_error *err);

/*
 * remote_url - append a part of a URL's path: unreserved characters and '/' unchanged, all other
 * bytes as %XX.  Fails: the URL would exceed REMOTE_URL_MAX.
 */
int remote_url(char url[static REMOTE_URL_MAX], const char *part, struct cj_error *err);

/* Bytes of an answer, with a NUL behind them. */
struct remote_buffer {
	struct byte_queue text;
	size_t max;
};
/* A sink whose context is a buffer.  Fails: it would be larger than its `max`. */
int remote_buffer_add(void *buffer, const char *bytes, size_t size, struct cj_error *err);

/* Reads once from the connection.  Returns: 1 when the answer is whole, 0 when more is to come. */
int remote_link_read(int fd, struct http_answer *answer, http_sink sink, void *context,
		     struct cj_error *err);

/*
 * remote_post - a request whose answer is awaited in a loop with poll(2).
 *
 * The body is kept until the request is forgotten, to send it again when the service has no room.
 */
struct remote_post {
	int answer_fd; /* -1: no answer is awaited */
	struct http_answer answer;
	char *body; /* NULL: there is no request */
	size_t size;
	uint64_t retry_at_ms; /* 0: never */
};
/* Takes the finished text as the body. */
int remote_post_take(struct remote_post *p, struct json_writer *w, struct cj_error *err);
int remote_post_send(struct remote_post *p, const char *socket_path, const char *url,
		     struct cj_error *err);
/* Returns: 1 when the answer is whole, 0 when more is to come. */
int remote_post_read(struct remote_post *p, struct cj_error *err);
void remote_post_retry(struct remote_post *p, uint64_t wait_ms);
void remote_post_forget(struct remote_post *p);

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
