/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_parts - what the files of http.h share: http.c (connections), http_receive.c (requests),
 * http_reply.c (replies), http_send.c (their bytes), http_share.c.
 */
#pragma once

#include "runtime/front/serve/access/account.h"
#include "runtime/front/serve/http/http.h"
#include "runtime/front/serve/http/http_chunks.h"
#include "runtime/front/serve/http/http_head.h"

#define HTTP_REPLY_HEAD_MAX 1024
#define HTTP_RETRY_MS       1000 /* for who is refused because there is no room just now */

enum phase {
	PHASE_IDLE, /* between two requests */
	PHASE_HEAD, /* some bytes of it are there */
	PHASE_BODY,
	PHASE_WHOLE, /* held or answered */
	PHASE_LINGER /* the reply is sent, and whatever comes is dropped */
};

struct stream {
	bool is_on, has_ended, has_tail;
	char *bytes; /* [start, end) waits for the caller, framed as it is sent */
	size_t start, end, room;
	void (*taken)(void *holder);
};

struct exchange {
	struct http *http;
	struct exchange *next, *previous;
	struct http_caller caller;
	char token_name[CALLER_NAME_MAX]; /* whose TCP connection it is; "": a stranger's */
	bool is_ours;                     /* root's, or the service's own uid's */
	bool is_extra;         /* refused or lingering: it has no share of the connections */
	enum api_code no_room; /* why it is refused whatever it asks; API_CODE_COUNT: it isn't */
	bool is_due;           /* http_tick() looks at it */
	bool is_late;          /* its request did not become whole in time */
	bool is_abandoned;     /* it ends at once */
	int fd;                /* owned */
	struct watch watch;
	uint32_t watched; /* events */
	enum phase phase;
	/* Of what is awaited from the caller: a request, or that it takes its reply; 0: nothing is.
	 */
	uint64_t deadline_ms;
	uint64_t dropped; /* bytes, while it lingers */

	/* What came and isn't read yet: [in_start, in_end) of HTTP_HEAD_MAX bytes, NULL: none is */
	char *in;
	size_t in_start, in_end, scanned;
	bool has_ended; /* the caller sends no more */

	char *head_text; /* what `head` points into */
	struct http_head head;
	struct trace trace;
	struct http_chunks chunks;
	uint64_t body_left; /* when it isn't chunked */
	char *body;
	size_t size, room;
	size_t most; /* of room: no more can come */
	/* What is in memory for it, beside stream.room; the body may be somebody else's by now. */
	size_t body_held, reply_held;
	uint64_t whole_us;

	void (*gone)(void *holder);
	void *holder;

	bool is_answered, ends_after;
	char reply_head[HTTP_REPLY_HEAD_MAX];
	size_t reply_head_size, reply_head_sent;
	char *reply_text; /* NULL: a stream, or nothing */
	char *reply;
	size_t reply_size, reply_sent;
	struct stream stream;
};

struct http {
	struct loop *loop;
	struct http_ops ops;
	struct exchange *exchanges; /* newest first */
	size_t count;
	size_t body_max;
	uint64_t receive_ms, scan_at_ms;
	bool has_due;
};

/* API_CODE_COUNT: one more connection, so many bytes more; http_share.c. */
enum api_code http_may_connect(const struct exchange *x);
enum api_code http_may_hold(const struct exchange *x, size_t more);
/* Who makes room for the next who shows no token; NULL: there is room. */
struct exchange *http_find_stranger(const struct http *h);
/* Who makes room for one more that lingers; NULL: there is room. */
struct exchange *http_find_lingerer(const struct exchange *x);

/* Reads what the caller sends, as far as it goes; false: nothing more is to be had now. */
bool exchange_receive(struct exchange *x);
/* Does a part of the body that was announced not have come? */
bool exchange_awaits_body(const struct exchange *x);
/* Drops what the caller sends, for as long as it lingers. */
void exchange_drop_input(struct exchange *x);

/* Sends what waits, as far as it goes; true: the whole reply is sent. */
bool exchange_send(struct exchange *x);
bool exchange_has_output(const struct exchange *x);

/* http_tick() goes on with it. */
void exchange_set_due(struct exchange *x);
/* When all that waits for the caller must have been taken. */
void exchange_set_deadline(struct exchange *x);
/* What is left of a request when it is over. */
void exchange_clear(struct exchange *x);
