/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawner - a small process that forks the workers.
 *
 * It is forked before the server has listened, read a token or linked a request into its memory, so
 * no worker, and so no init, is ever born with another caller's bytes or a secret in it; and
 * fork(2) pays for the size of the forker.  One thread, no HTTP library in use.  It dies with the
 * server, every worker with it (PDEATHSIG, and the sockets), every jail with its worker.
 */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/front/serve/worker/job.h"

#define SPAWNER_LINGER_S 15 /* a worker may take to end: its jail 10 at the worst, supervisor.c */
#define SPAWNER_END_MS   (1000 * (SPAWNER_LINGER_S + 1)) /* and spawner_end() with it */

struct spawner {
	int sock_fd; /* SEQPACKET, non-blocking; -1: none */
	int pidfd;
};
#define SPAWNER_NULL                                                                               \
	{                                                                                          \
		.sock_fd = -1, .pidfd = -1                                                         \
	}

/* What a worker does from its fork to its end: worker_main(), or that of --fake. */
struct worker_life {
	/* Runs in: a child of the spawner.  Takes both descriptors; never returns. */
	void (*main)(void *context, const char *profile, enum tier tier, int sock_fd,
		     int control_fd) __attribute__((noreturn));
	void *context; /* as it is when the spawner is forked */
};

/* Forks it.  Runs in: the server, before anything else is opened.  Borrows `life` for the call. */
int spawner_start(struct spawner *s, const struct worker_life *life, struct cj_error *err);
void spawner_end(struct spawner *s); /* with all its workers */

/* A worker, as the server holds it. */
struct worker {
	int sock_fd;    /* stream: the job down, lines up (job.h); non-blocking */
	int control_fd; /* closing it cancels the run, or ends a waiting worker */
};
#define WORKER_NULL                                                                                \
	{                                                                                          \
		.sock_fd = -1, .control_fd = -1                                                    \
	}

/*
 * spawner_ask - a worker for `profile`, prepared as far as `tier`.  Returns before it exists: its
 * lines tell, and end of file without a result is its death.
 */
int spawner_ask(struct spawner *s, const char *profile, enum tier tier, struct worker *out,
		struct cj_error *err);

/* Hands the job over; the worker does the rest. */
int worker_send_job(struct worker *w, const struct job *job, struct cj_error *err);
void worker_close(struct worker *w);
