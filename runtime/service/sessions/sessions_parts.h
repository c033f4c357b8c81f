/* SPDX-License-Identifier: Apache-2.0 */
/* sessions_parts - shared by keeper_conn.c, sessions_execs.c, sessions_files.c and
 * sessions_pipe.c. */
#pragma once

#include <sys/queue.h>

#include "runtime/service/sessions/keeper_conn.h"
#include "runtime/service/worker/worker_conn.h"

struct keeper_conns;

/* A caller that waits for a session to live, or to end. */
struct session_waiter {
	TAILQ_ENTRY(session_waiter) link;
	struct keeper_conn *keeper;
	struct exchange *exchange;
	bool is_creator;
};
TAILQ_HEAD(session_waiters, session_waiter);

/* Bytes of a caller on their way into a pipe: of a put to its worker, or to a program's input. */
struct sessions_pipe {
	int fd; /* -1: not there yet, or closed */
	struct watch watch;
	char *bytes; /* [start, end) waits */
	size_t start, end, room;
	bool is_open; /* more may come from the caller */
};

enum sessions_pipe_state {
	SESSIONS_PIPE_WAITS, /* for room in the pipe; its watch calls then */
	SESSIONS_PIPE_EMPTY,
	SESSIONS_PIPE_GONE, /* its reader has closed it */
	SESSIONS_PIPE_LOST, /* bytes could not be written: its end must not look like that of all */
};

static inline size_t sessions_pipe_waiting(const struct sessions_pipe *p)
{
	return p->end - p->start;
}

/* Copies the bytes behind those that wait.  False: no memory. */
bool sessions_pipe_add(struct sessions_pipe *p, const char *bytes, size_t size);
/* Writes what the pipe takes.  fd is not -1. */
enum sessions_pipe_state sessions_pipe_flush(struct sessions_pipe *p, struct loop *loop,
					     size_t *out_written);
/* Bytes that wait are dropped. */
void sessions_pipe_close(struct sessions_pipe *p, struct loop *loop);

struct file_operation {
	TAILQ_ENTRY(file_operation) link;
	struct keeper_conn *keeper;
	struct exchange *exchange; /* NULL: answered */
	struct worker_conn *conn;
	enum file_op op;
	bool wants_head; /* of get: its caller wants no bytes */
	char *path;
	uint64_t deadline_ms; /* for the next sign of life; 0: none */
	bool is_over;
	struct sessions_pipe pipe;
	char *held; /* of get, for a caller without a connection */
	size_t held_size;
};
TAILQ_HEAD(file_operations, file_operation);

struct keeper_conn {
	TAILQ_ENTRY(keeper_conn) link;
	struct keeper_conns *all;
	struct session_entry *entry;
	struct worker_conn *conn; /* NULL: it has ended */
	struct config profile, config;
	struct arena arena;     /* of the texts in both */
	struct run_order order; /* without its body */
	bool is_callers_own;    /* the mistake that it failed of */
	uint64_t deadline_ms;   /* for the jail to be built, or to end; 0: none */
	uint64_t begun_ms, execs;
	struct session_waiters waiters;
	struct file_operations files;
	unsigned operations; /* how many these are */
};
TAILQ_HEAD(keeper_conn_list, keeper_conn);

struct keeper_conns {
	struct keeper_conns_context context;
	struct keeper_conn_list list;
};

/* Can its keeper be asked for something? */
static inline bool keeper_conn_is_live(const struct keeper_conn *k)
{
	return k && k->conn && k->entry->state == ENTRY_LIVE;
}

/* Fails the queued execs, and all others if the keeper is gone: sessions_execs.c. */
void keeper_conn_end_execs(struct keeper_conn *k, bool is_gone);
/* Answers callers that have waited long enough; lowers *wait_ms. */
void keeper_conn_tick_execs(struct keeper_conn *k, uint64_t now_ms, int *wait_ms);

/* Removes what is over or too late: sessions_files.c. */
void keeper_conn_tick_files(struct keeper_conn *k, uint64_t now_ms, int *wait_ms);
void keeper_conn_close_files(struct keeper_conn *k);
