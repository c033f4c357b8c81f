/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_parts - what the files of http.h share: http.c (connections, shares, requests without a
 * connection), http_receive.c (requests), http_reply.c (replies and their bytes).
 */
#pragma once

#include <sys/queue.h>

#include "runtime/base/http_chunks.h"
#include "runtime/run/request/rights.h"
#include "runtime/service/http/http.h"
#include "runtime/service/http/http_head.h"

#define HTTP_REPLY_HEAD_MAX 1024
#define HTTP_MORE_HEADERS   4
/* For Retry-After: when there is no room now, and when the service ends. */
#define HTTP_RETRY_MS         1000
#define HTTP_RETRY_RESTART_MS 5000

enum phase {
	PHASE_IDLE, /* between two requests */
	PHASE_HEAD, /* some bytes of it have arrived */
	PHASE_BODY,
	PHASE_WHOLE, /* held or answered */
	PHASE_LINGER /* the reply is sent; input is dropped */
};

struct stream {
	bool is_on, has_ended, has_tail;
	struct byte_queue queue; /* waits for the caller, framed as it is sent */
	void (*taken)(void *holder);
};

struct exchange {
	struct http *http;
	LIST_ENTRY(exchange) link;
	struct http_caller caller;
	char token_name[CALLER_NAME_MAX]; /* of a TCP connection; "": unauthenticated */
	bool is_ours;                     /* of root or the service's own uid */
	bool is_extra;         /* refused or lingering: it does not count as a connection */
	enum api_code no_room; /* why any request is refused; API_OK: none is */
	bool is_due;           /* http_tick() looks at it */
	bool is_late;          /* its request was too slow */
	bool is_abandoned;     /* it ends at once */
	int fd;                /* owned */
	struct watch watch;
	uint32_t watched; /* events */
	enum phase phase;
	/* for the caller to send its request, or to read its reply; 0: none */
	uint64_t deadline_ms;
	uint64_t dropped; /* bytes, while it lingers */

	struct byte_queue in; /* unparsed, at most HTTP_HEAD_MAX bytes */
	size_t scanned;
	bool has_ended; /* the caller has shut down its sending side */

	char *head_text; /* what `head` points into */
	struct http_head head;
	struct trace trace;
	struct http_chunks chunks;
	uint64_t body_left; /* when it isn't chunked */
	char *body;
	size_t size, room;
	size_t most; /* of room: the limit */
	/* Memory it counts for, beside stream.queue.room; the body may have been moved out. */
	size_t body_held, reply_held;
	uint64_t whole_us;

	void (*gone)(void *holder);
	void *holder;
	bool (*divert)(void *holder, const char *bytes, size_t size); /* NULL: the body is kept */
	size_t divert_max;
	bool is_paused; /* the holder takes no more of the body now, since paused_ms */
	uint64_t paused_ms;

	bool is_answered, ends_after;
	char reply_head[HTTP_REPLY_HEAD_MAX];
	size_t reply_head_size, reply_head_sent;
	char *reply_text; /* NULL: a stream, or nothing */
	char *reply;
	size_t reply_size, reply_sent;
	struct stream stream;
	struct http_field more[HTTP_MORE_HEADERS];
	size_t nmore;

	/* Of a request of the service's own: then there is no connection. */
	bool is_inner;
	struct http_inner inner;
	struct http_reply inner_reply;
};

LIST_HEAD(exchange_list, exchange);

struct http {
	struct loop *loop;
	struct http_ops ops;
	struct exchange_list exchanges; /* newest first */
	struct exchange_list inners;    /* of the service's own requests */
	size_t count;
	size_t body_max;
	uint64_t receive_ms, scan_at_ms;
	bool has_due;
};

/* API_OK: one more connection, or so many more bytes, are allowed. */
enum api_code http_may_connect(const struct exchange *x);
enum api_code http_may_hold(const struct exchange *x, size_t more);
/* The one to drop for the next unauthenticated client; NULL: there is room. */
struct exchange *http_find_unauthenticated(const struct http *h);
/* The one to drop for one more lingering connection; NULL: there is room. */
struct exchange *http_find_lingerer(const struct exchange *x);

/* Reads as much as there is; false: nothing more for now. */
bool exchange_receive(struct exchange *x);
/* A part of the announced body is still missing. */
bool exchange_awaits_body(const struct exchange *x);
/* Drops the input of a lingering connection. */
void exchange_drop_input(struct exchange *x);

/* Sends as much as the socket takes; true: the whole reply is sent. */
bool exchange_send(struct exchange *x);
bool exchange_has_output(const struct exchange *x);

/* The reply to such a request; takes its text. */
void exchange_keep_inner_reply(struct exchange *x, const struct http_reply *reply);

/* http_tick() continues it. */
void exchange_set_due(struct exchange *x);
/* Until when the caller must have read everything that is unsent. */
void exchange_set_deadline(struct exchange *x);
/* Frees what belongs to the request that is over. */
void exchange_clear(struct exchange *x);
