/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - connections, requests, replies: HTTP/1.1 (RFC 9112), and HTTP/1.0 where a caller uses it.
 *
 * An exchange is a connection with at most one request on it.  It is told of twice: when its
 * headers are in, and when it is whole.  It is answered at once, or held (its connection is
 * not read meanwhile) until its holder answers; a holder is told when the caller goes away.
 *
 * A connection that ends with a reply lingers: what the caller still sends is read and dropped for
 * a bounded time and size, because closing at once would reset it and lose the reply.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/front/serve/api/api_error.h"
#include "runtime/front/serve/loop.h"
#include "runtime/front/serve/operations/trace.h"

#define HTTP_CONNECTIONS_MAX 1024
#define HTTP_STRANGERS_MAX   64         /* TCP connections that have shown no token */
#define HTTP_IDLE_MS         60000      /* between two requests on a connection */
#define HTTP_STREAM_MAX      (1u << 20) /* of events that wait for a slow caller */
#define HTTP_STREAM_BEHIND   (HTTP_STREAM_MAX / 4)
#define HTTP_LINGER_MAX      1024 /* connections that only linger, beside the others */
#define HTTP_LINGER_MS       10000
#define HTTP_LINGER_LATE_MS  1000         /* after a request that did not become whole in time */
#define HTTP_LINGER_BYTES    (64u << 20)  /* dropped of one connection */
#define HTTP_BYTES_MAX       (512u << 20) /* of all requests and replies; http_share.c */
#define HTTP_SMALL           (32u << 10)  /* finds room always: the connections bound it */
#define HTTP_SEND_RATE       (256u << 10) /* bytes a second; who reads slower isn't waited for */

struct http;
struct exchange;

struct http_caller {
	bool is_tcp;
	uid_t uid; /* of a Unix socket's peer */
};

struct http_reply {
	unsigned status;
	const char *content_type;
	char *text; /* malloc'ed, taken; the reply is its [skip, skip + size) */
	size_t skip, size;
	const char *allow;       /* 405's methods, or NULL */
	uint64_t retry_after_ms; /* 0: none */
};

struct http_ops {
	/* The headers are in: whoever refuses the request now doesn't receive its body. */
	void (*begun)(void *context, struct exchange *x);
	/* The request is whole: answer it or hold it. */
	void (*whole)(void *context, struct exchange *x);
	/* API_CODE_COUNT: it was no refusal. */
	void (*replied)(void *context, unsigned status, enum api_code code);
	void *context;
};

int http_open(struct loop *loop, const struct http_ops *ops, struct http **out,
	      struct cj_error *err);
/* Ends every connection; the holders are told. */
void http_close(struct http **h);

void http_set_limits(struct http *h, size_t body_max, uint64_t receive_ms);
/*
 * An accepted connection; takes fd.  One that is too many is answered, once it has begun to ask.
 */
void http_add(struct http *h, int fd, bool is_tcp);
/* What is due; at every turn of the loop.  Returns when it wants the next, in ms. */
int http_tick(struct http *h, uint64_t now_ms);
size_t http_connections(const struct http *h);
/* Replies that are still on their way. */
size_t http_unfinished(const struct http *h);

/* --- the request ------------------------------------------------------------ */

const char *exchange_method(const struct exchange *x);
const char *exchange_path(const struct exchange *x);                     /* without a query */
const char *exchange_header(const struct exchange *x, const char *name); /* NULL: none */
struct http_caller exchange_caller(const struct exchange *x);
const struct trace *exchange_trace(const struct exchange *x);
uint64_t exchange_whole_us(const struct exchange *x); /* when it was */
bool exchange_is_answered(const struct exchange *x);
/* Its TCP connection is a token's from now on.  False: refused, that caller has too many. */
bool exchange_adopt(struct exchange *x, const char *token_name);
size_t exchange_body_size(const struct exchange *x);
/*
 * The caller's to free; the exchange has none then.  It counts as held for who sent it until
 * exchange_drop_body(), at last until the answer.
 */
char *exchange_take_body(struct exchange *x, size_t *out_size);
void exchange_drop_body(struct exchange *x);

/* --- the reply, once -------------------------------------------------------- */

/* Refused instead, if it is more than may wait for its caller. */
void exchange_reply(struct exchange *x, const struct http_reply *reply);
void exchange_refuse(struct exchange *x, enum api_code code, const char *message, const char *hint,
		     uint64_t retry_after_ms);
/* The connection ends with the reply that is about to be given. */
void exchange_end_after(struct exchange *x);

/* `gone` is called if the caller goes away before it was answered; x is nobody's from then on. */
void exchange_hold(struct exchange *x, void (*gone)(void *holder), void *holder);

/* 200 and lines of JSON, to be put until the end; the holder is told each time all were taken. */
void exchange_begin_stream(struct exchange *x, void (*taken)(void *holder));
bool exchange_is_streaming(const struct exchange *x);
/* So much waits for the caller already that whoever puts should wait for taken(). */
bool exchange_is_behind(const struct exchange *x);
/*
 * False: the caller is too slow, and this is left out.  `must`: whatever waits already, as long as
 * its caller may hold so much.
 */
bool exchange_put(struct exchange *x, const char *bytes, size_t size, bool must);
void exchange_end_stream(struct exchange *x);
