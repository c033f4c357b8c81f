/* SPDX-License-Identifier: Apache-2.0 */
/* http_parts - what http.c (connections, requests) and http_reply.c (replies) share. */
#pragma once

#include <microhttpd.h>

#include "runtime/front/serve/account.h"
#include "runtime/front/serve/http.h"

enum phase {
	PHASE_IDLE,    /* between two requests */
	PHASE_HEADERS, /* the request line is there */
	PHASE_BODY,
	PHASE_WHOLE, /* judged, held or answered */
};

struct stream {
	bool is_on, has_ended;
	char *bytes; /* [start, end) waits for the caller */
	size_t start, end, room;
	void (*taken)(void *holder);
};

struct exchange {
	struct http *http;
	struct exchange *next, *previous;
	struct MHD_Connection *mhd; /* NULL until MHD has told of it */
	struct http_caller caller;
	char token_name[CALLER_NAME_MAX]; /* whose TCP connection it is; "": a stranger's */
	bool is_ours;                     /* root's, or the service's own uid's */
	int fd;                           /* MHD's */
	enum phase phase;
	/* Of what is awaited from the caller: a request, or that it takes its reply; 0: nothing is.
	 */
	uint64_t deadline_ms;

	bool is_1_1;
	char method[16], path[HTTP_PATH_MAX];
	struct trace trace;
	char *body;
	size_t size, room;
	size_t most; /* of room: no more can come */
	/* What is in memory for it, beside stream.room; the body may be somebody else's by now. */
	size_t body_held, reply_held;
	uint64_t whole_us;

	void (*gone)(void *holder);
	void *holder;
	struct watch watch; /* while held: does the caller go away? */
	bool is_suspended, is_abandoned;

	struct MHD_Response *response; /* to be queued */
	unsigned status;
	bool is_answered, ends_after;
	struct stream stream;
};

struct http {
	struct loop *loop;
	struct http_ops ops;
	struct MHD_Daemon *daemon;
	struct watch watch;
	struct exchange *exchanges; /* newest first */
	struct exchange *adding;    /* the one MHD is being told of */
	size_t count;
	size_t body_max;
	uint64_t receive_ms, scan_at_ms;
	bool wants_run; /* something was resumed or added */
};

/* A whole reply by hand, for where libmicrohttpd can't take one any more, and the end. */
void http_answer_raw(int fd, enum api_code code, const char *request_id);

/* API_CODE_COUNT: one more connection, so many bytes more; http_share.c. */
enum api_code http_may_connect(const struct exchange *x);
enum api_code http_may_hold(const struct exchange *x, size_t more);
/* Who makes room for the next who shows no token; NULL: there is room. */
struct exchange *http_find_stranger(const struct http *h);

/* When all that waits for the caller must have been taken. */
void exchange_set_deadline(struct exchange *x);
void exchange_count(struct exchange *x, enum api_code code);
void exchange_resume(struct exchange *x);
void exchange_suspend(struct exchange *x);
/* What is left of a request when it is over. */
void exchange_clear(struct exchange *x);
