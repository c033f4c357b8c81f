/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_conn - the connection to a worker and the lines it sends (job.h).  Its owner is first the
 * pool, then a run: it stays where it is and its two callbacks change.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"
#include "runtime/front/serve/loop.h"
#include "runtime/front/serve/worker/spawner.h"

struct worker_conn {
	struct loop *loop;
	struct worker worker;
	struct watch watch;
	char *buffer; /* [0, size) is the beginning of a line that is not whole yet */
	size_t size, room, searched;
	size_t line_max; /* a longer line ends it */
	bool is_paused;

	void *owner;
	/* A line without its newline, with a NUL; must not close the wire. */
	void (*line)(struct worker_conn *w, const char *text, size_t size);
	/* There will be no more lines: closed, failed ("" or why).  May destroy the wire. */
	void (*ended)(struct worker_conn *w, const char *why);
};

/* Takes the worker, also when it fails. */
struct worker_conn *worker_conn_create(struct loop *loop, struct worker *worker,
				       struct cj_error *err);
void worker_conn_destroy(struct worker_conn **w);
/* Held, it isn't read, so the worker waits; what it has said when it ends is read all the same. */
void worker_conn_pause(struct worker_conn *w, bool is_paused);
/* Cancels its run, or ends a waiting worker; its lines still come. */
void worker_conn_close_control(struct worker_conn *w);

/* "start" of {"type":"start",...}; "" for what is no such line. */
void worker_conn_line_type(const char *line, char out[static 16]);
