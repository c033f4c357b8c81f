/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - connections, requests, replies: HTTP/1.1 (RFC 9112), and HTTP/1.0 where a caller uses it.
 *
 * An exchange is a connection with at most one request on it.  The server gets two callbacks: when
 * the head has arrived, and when the request is whole.  It answers at once, or holds the exchange
 * and answers later; meanwhile the connection is not read.  A holder is notified when the caller
 * disconnects.
 *
 * A connection that ends with a reply lingers: what the caller still sends is read and dropped, for
 * a bounded time and size.  Closing at once would reset the connection and lose the reply.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/log/api_error.h"
#include "runtime/base/loop.h"
#include "runtime/run/report/trace.h"

#define HTTP_CONNECTIONS_MAX     1024
#define HTTP_UNAUTHENTICATED_MAX 64         /* TCP connections without a token so far */
#define HTTP_IDLE_MS             60000      /* between two requests on a connection */
#define HTTP_STREAM_MAX          (1u << 20) /* of events for a slow caller */
#define HTTP_STREAM_BEHIND       (HTTP_STREAM_MAX / 4)
#define HTTP_LINGER_MAX          1024 /* lingering connections, beside the others */
#define HTTP_LINGER_MS           10000
#define HTTP_LINGER_LATE_MS      1000         /* after a request that was too slow */
#define HTTP_LINGER_BYTES        (64u << 20)  /* dropped from one connection */
#define HTTP_BYTES_MAX           (512u << 20) /* of all requests and replies */
#define HTTP_SMALL               (32u << 10)  /* always accepted; HTTP_CONNECTIONS_MAX bounds it */
#define HTTP_SEND_RATE           (256u << 10) /* bytes a second; a slower reader is dropped */

struct http;
struct exchange;
struct json_writer;

struct http_caller {
	bool is_tcp;
	uid_t uid; /* of a Unix socket's peer */
};

struct http_reply {
	unsigned status;
	const char *content_type;
	char *text; /* malloc'ed, taken; the reply is its [skip, skip + size); NULL with 204 */
	size_t skip, size;
	uint64_t retry_after_ms; /* 0: none */
};

struct http_ops {
	/* The head has arrived.  A request that is refused now never sends its body. */
	void (*begun)(void *context, struct exchange *x);
	/* The request is whole: answer it or hold it. */
	void (*whole)(void *context, struct exchange *x);
	/* API_OK: the request was not refused.  Status 0: one of the service's own. */
	void (*replied)(void *context, unsigned status, enum api_code code);
	void *context;
};

int http_open(struct loop *loop, const struct http_ops *ops, struct http **out,
	      struct cj_error *err);
/* Ends every connection; the holders are notified. */
void http_close(struct http **h);

void http_set_limits(struct http *h, size_t body_max, uint64_t receive_ms);
/*
 * An accepted connection; takes fd.  One above the limit is kept until it has sent a request, which
 * is then refused.
 */
void http_add(struct http *h, int fd, bool is_tcp);
/* Handles what is due.  Returns the time in ms until there is more to do, or -1. */
int http_tick(struct http *h, uint64_t now_ms);
size_t http_connections(const struct http *h);
/* Connections with a reply that is not sent yet. */
size_t http_unfinished(const struct http *h);

/* --- a request of the service's own ---------------------------------------- */

/*
 * An exchange without a connection and without a head, for a protocol on top of the API, such as
 * MCP.  It belongs to the caller of the exchange that it is made for.
 */
struct http_inner {
	/* Its caller and request id; only read at the start.  NULL: this process' own. */
	const struct exchange *outer;
	const char *traceparent; /* NULL: that of the outer request */
	char *body;              /* malloc'ed, taken; NULL: none */
	size_t body_size;

	/* A piece of a stream, from within exchange_put(). */
	void (*piece)(void *context, const char *bytes, size_t size);
	/* The last callback, from http_tick().  Of a stream the text is empty. */
	void (*replied)(void *context, const struct http_reply *reply);
	void *context;
};

/* *out is gone after `replied`, or with http_drop_inner(): its holder is notified. */
int http_open_inner(struct http *h, const struct http_inner *ask, struct exchange **out,
		    struct cj_error *err);
/* After its handler: one that had no memory to answer or to hold it is an error. */
void http_settle_inner(struct exchange *x);
void http_drop_inner(struct exchange **x);
bool exchange_is_inner(const struct exchange *x);

/* --- the request ------------------------------------------------------------ */

const char *exchange_method(const struct exchange *x);
const char *exchange_path(const struct exchange *x);  /* decoded, without a query */
const char *exchange_query(const struct exchange *x); /* as it came; "": none */
const char *exchange_header(const struct exchange *x, const char *name); /* NULL: none */
struct http_caller exchange_caller(const struct exchange *x);
const struct trace *exchange_trace(const struct exchange *x);
uint64_t exchange_whole_us(const struct exchange *x); /* when it had arrived */
/* The TCP connection belongs to this token from now on.  False: the caller has too many. */
bool exchange_adopt(struct exchange *x, const char *token_name);
size_t exchange_body_size(const struct exchange *x);
/*
 * Moves the body out; free it.  Its size still counts for its sender until exchange_drop_body() or
 * the reply.
 */
char *exchange_take_body(struct exchange *x, size_t *out_size);
void exchange_drop_body(struct exchange *x);

/*
 * exchange_divert_body - from the first callback: the body, of at most `max` bytes, is not kept but
 * goes to `take` in pieces.
 *
 * The exchange is held at once.  `take` has a piece in any case; false: read no more before
 * exchange_resume_body(), and the holder limits that time.  If the request ends early or is
 * refused, `gone` is called.
 */
struct http_diversion {
	bool (*take)(void *holder, const char *bytes, size_t size);
	void (*gone)(void *holder);
	void *holder;
	size_t max;
};
void exchange_divert_body(struct exchange *x, const struct http_diversion *to);
void exchange_resume_body(struct exchange *x);
/* The holder of a diverted body, in the second callback; NULL: it is not diverted. */
void *exchange_diverted_to(const struct exchange *x);

/* --- the reply, once -------------------------------------------------------- */

/* If the caller has too much unread already, this refuses instead. */
void exchange_reply(struct exchange *x, const struct http_reply *reply);
/* A refusal with 429 or 503 says when to try again. */
void exchange_refuse(struct exchange *x, enum api_code code, const char *message, const char *hint);
/* The same, and the caller may try again after so long. */
void exchange_refuse_for(struct exchange *x, enum api_code code, uint64_t ms);
/* The writer's value as the reply; NULL, or a writer that failed, is an internal error. */
void exchange_reply_json(struct exchange *x, unsigned status, struct json_writer *w);
/* The connection ends after the next reply. */
void exchange_end_after(struct exchange *x);
/* One more line of the next reply's head.  Both live until then; few and short. */
void exchange_add_header(struct exchange *x, const char *name, const char *value);

/* It is held no longer; call it before the reply to a request whose body was diverted. */
void exchange_release(struct exchange *x);
/* `gone` is called if the caller disconnects before the reply; x must not be used afterwards. */
void exchange_hold(struct exchange *x, void (*gone)(void *holder), void *holder);

/*
 * 200, then pieces of this type until the end.  `taken` is called each time all of them are sent;
 * it may be NULL.
 */
#define HTTP_JSON_LINES "application/x-ndjson"
void exchange_begin_stream(struct exchange *x, const char *content_type,
			   void (*taken)(void *holder));
bool exchange_is_streaming(const struct exchange *x);
/* So much is unsent that the holder should wait for taken() before it puts more. */
bool exchange_is_behind(const struct exchange *x);
/*
 * False: the caller is too slow, and the bytes are dropped.  `must`: accept them beyond the limit
 * of a stream, up to the caller's share of memory.
 */
bool exchange_put(struct exchange *x, const char *bytes, size_t size, bool must);
void exchange_end_stream(struct exchange *x);
/* Ends it so that the caller sees that a part is missing. */
void exchange_break_stream(struct exchange *x);
