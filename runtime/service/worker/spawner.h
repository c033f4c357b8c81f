/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawner - a small process that forks the workers.
 *
 * It is forked before the server listens, reads a token or receives a request.  So no worker, and
 * no init, starts with a secret or another caller's bytes in its memory; and fork(2) of a small
 * process is fast.  The spawner has one thread.  It ends with the server, every worker with the
 * spawner (PDEATHSIG, and the sockets), every jail with its worker.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/service/worker/job.h"

#define SPAWNER_LINGER_S 32 /* for workers to end: a step may be awaited, STEP_TIMEOUT_MS */
#define SPAWNER_END_MS   (1000 * (SPAWNER_LINGER_S + 1)) /* the longest spawner_end() */

struct spawner {
	int sock_fd; /* SEQPACKET, non-blocking; -1: none */
	int pidfd;
};
#define SPAWNER_NULL                                                                               \
	{                                                                                          \
		.sock_fd = -1, .pidfd = -1                                                         \
	}

/* The arguments of a new worker, or of the keeper of a zygote. */
struct worker_order {
	const char *profile;
	bool is_zygote; /* its keeper, and no worker: only the profile and the next two count */
	int sock_fd, control_fd; /* given by spawner_ask() */
	enum tier tier;
	int zygote_fd; /* the socket of the zygote to fork from; -1: none */
	bool has_job;  /* a job waits for it: if the zygote fails, it starts no other interpreter */
};

struct work;
/* What a worker does from its fork to its end. */
struct worker_life {
	/* Runs in: a child of the spawner.  Takes the descriptors; does not return. */
	void (*main)(const struct worker_life *life, const struct worker_order *order);
	void (*keep_zygote)(const struct worker_order *order); /* zygote_keeper.h; NULL: none */
	/* With a JOB_SESSION, and with TIER_REPL before its job: keeper_main(); NULL: none. */
	void (*keep_session)(struct work *w, int signal_fd, const struct cj_error *early);
};

/* Forks it.  Runs in: the server, before anything else is opened.  Borrows `life` for the call. */
int spawner_start(struct spawner *s, const struct worker_life *life, struct cj_error *err);
void spawner_end(struct spawner *s); /* and all its workers */

/* The server's ends of a worker's descriptors. */
struct worker {
	int sock_fd;    /* stream: the job to the worker, lines back (job.h); non-blocking */
	int control_fd; /* closing it cancels the run, or ends a waiting worker or a zygote */
};
#define WORKER_NULL                                                                                \
	{                                                                                          \
		.sock_fd = -1, .control_fd = -1                                                    \
	}

/*
 * Makes both ends of a worker's descriptors; `sends_descriptors`: over the control pipe, to the
 * server.  On failure the caller closes what is there.
 */
int worker_open_ends(struct worker *near, int *out_sock_fd, int *out_control_fd,
		     bool sends_descriptors, struct cj_error *err);

/*
 * spawner_ask - a worker, or the keeper of a zygote.  Borrows the order.
 *
 * It returns before the process exists.  The worker's lines report failures; end of file without a
 * result means that it died.
 */
int spawner_ask(struct spawner *s, const struct worker_order *wanted, struct worker *out,
		struct cj_error *err);

/* Sends the job; the worker does the rest. */
int worker_send_job(struct worker *w, const struct job *job, struct cj_error *err);
void worker_close(struct worker *w);
