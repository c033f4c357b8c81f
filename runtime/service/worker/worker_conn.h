/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_conn - the connection to a worker and the lines it sends (job.h).  The pool owns it first,
 * then a run: the new owner sets the two callbacks.
 */
#pragma once

#include <sys/queue.h>

#include "runtime/base/byte_queue.h"
#include "runtime/base/error.h"
#include "runtime/base/loop.h"
#include "runtime/service/worker/spawner.h"

struct worker_conn {
	struct loop *loop;
	struct worker worker;
	struct watch watch;
	struct byte_queue in; /* the beginning of an incomplete line */
	size_t searched;      /* of it */
	size_t line_max;      /* a longer line ends the connection */
	bool is_paused;
	const char *broken; /* why it ends, by its owner; NULL: it does not */

	TAILQ_ENTRY(worker_conn) link; /* both for its owner */
	uint64_t deadline_ms;

	void *owner;
	/* A line without its newline, with a NUL.  Must not destroy the connection. */
	void (*line)(struct worker_conn *w, const char *text, size_t size);
	/* No more lines will come; `why`: the error, or "".  May destroy the connection. */
	void (*ended)(struct worker_conn *w, const char *why);
};

TAILQ_HEAD(worker_conn_list, worker_conn);

/* Takes the worker, also when it fails. */
struct worker_conn *worker_conn_create(struct loop *loop, struct worker *worker,
				       struct cj_error *err);
void worker_conn_destroy(struct worker_conn **w);
/*
 * While paused it is not read, so the worker waits.  Its last lines are read even if it has ended.
 */
void worker_conn_pause(struct worker_conn *w, bool is_paused);
/* Cancels its run, or ends a waiting worker; its lines still come. */
void worker_conn_close_control(struct worker_conn *w);

/* From its `line`: no more lines are read, and it ends for this reason, a constant. */
void worker_conn_break(struct worker_conn *w, const char *why);

/* What a line says by its type, as job.h lists them. */
enum worker_line {
	WORKER_OTHER, /* of a session or of a file operation, or of nobody */
	WORKER_READY,
	WORKER_UNREADY,
	WORKER_STALE,
	WORKER_EVENT,
	WORKER_SUMMARY,
	WORKER_RESULT,
	WORKER_LINE_COUNT
};
enum worker_line worker_conn_line(const char *line);
/* "start" of {"type":"start",...}; "" for any other line. */
void worker_conn_line_type(const char *line, char out[static 16]);
/* 7 of {"type":"call","at_ms":M,"call":7,...}; 0: it has none. */
uint64_t worker_conn_line_call(const char *line);
