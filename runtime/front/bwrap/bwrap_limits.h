/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bwrap_limits - what bubblewrap does not have: limits of the whole sandbox, and how it ended.
 *
 * They come from the command line, from the environment and from the administrator's file.  Each
 * one can only tighten: of several values the lowest is in force, in whatever order they come.
 */
#pragma once

#include "profiles/config.h"
#include "profiles/plan/plan.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/jail/outcome.h"

#define BWRAP_PREFIX     "--cejail-"
#define BWRAP_VARIABLE   "CEJAIL_BWRAP_OPTIONS"
#define BWRAP_ADMIN_FILE "/etc/cejail/bwrap.json"

enum bwrap_source { BWRAP_FROM_LINE, BWRAP_FROM_VARIABLE, BWRAP_FROM_FILE };

struct bwrap_limits {
	uint64_t values[LIMIT_COUNT]; /* memory, pids, wall, cpu_time; 0: none */
	enum bwrap_source sources[LIMIT_COUNT];
	int result_fd;             /* -1: none */
	bool has_filter;           /* --cejail-seccomp default */
	bool asks_network;         /* the command line itself has --cejail-network */
	enum network_mode network; /* NETWORK_MODE_COUNT: what the other options say */
	struct strings allow;      /* of NETWORK_PUBLIC: only these, as written; none: all */
	bool is_ordered;           /* the administrator's file has a limit */
};
#define BWRAP_LIMITS_NULL ((struct bwrap_limits){ .result_fd = -1, .network = NETWORK_MODE_COUNT })

/* Is there anything that the monitor has to watch? */
bool bwrap_limits_watch(const struct bwrap_limits *l);

/* One option, with its name and its value.  Copies what it keeps into `a`.  No system calls. */
int bwrap_limits_take(struct bwrap_limits *l, const char *option, const char *text,
		      enum bwrap_source source, struct arena *a, struct cj_error *err);

/*
 * bwrap_limits_read - the administrator's file, an object with the keys of cejail-profile(5).
 *
 * Without the file nothing changes.  Fails: it can't be read, is not root's, others may write it,
 * it is no such object.
 */
int bwrap_limits_read(struct bwrap_limits *l, struct arena *a, struct cj_error *err);

/* What limits require of the sandbox: namespaces, and a program that can't undo them. */
struct bwrap_config;
int bwrap_limits_check(struct bwrap_config *c, uid_t caller, struct cj_error *err);

/* Will the program have capabilities, over the host or, with a user namespace, over that? */
uint64_t bwrap_limits_caps(const struct bwrap_config *c, uid_t caller);

/* --- bwrap_watch.c: the limits while the sandbox exists --- */

struct bwrap_watch {
	struct config config; /* of the network alone; the plan points into it */
	struct plan plan;
	struct jail *jail; /* jail_hold(): the cgroup, the record */
	struct outcome outcome;
	size_t printed; /* of the jail's warnings */
	bool is_over;   /* its result was written */
};

struct bwrap_start;
/* Holds all that limits, before the child exists, and says what the child has to do. */
int bwrap_watch_begin(struct bwrap_watch *w, struct bwrap_start *s, struct cj_error *err);

/* As spawn_process() with SIGCHLD, into the cgroup.  The child begins with bwrap_watch_born(). */
pid_t bwrap_watch_spawn(struct bwrap_watch *w, uint64_t namespaces);
void bwrap_watch_born(struct bwrap_watch *w, int report_fd);

/*
 * The child runs, in its cgroup.  *out_again: it was killed at its birth (spawn.h); then a new one
 * is moved there.
 */
int bwrap_watch_adopt(struct bwrap_watch *w, int report_fd, bool *out_again, struct cj_error *err);

struct bwrap_fds;
void bwrap_watch_keep(const struct bwrap_watch *w, struct bwrap_fds *kept);

/*
 * bwrap_watch_end - waits for the program's end or for a limit, ends all processes, writes the
 * result.  Returns the exit status.
 */
int bwrap_watch_end(struct bwrap_watch *w, const struct bwrap_start *s, int report_fd,
		    struct cj_error *err);

/*
 * The same where nothing ran: with --cejail-result-fd there is a result in any case.  `w` may be
 * zeroed, where nothing is held yet, and `s` have the config alone.
 */
void bwrap_watch_fail(struct bwrap_watch *w, const struct bwrap_start *s,
		      const struct cj_error *why);

/* Releases all.  A signal that has cancelled the run then acts on this process. */
void bwrap_watch_fini(struct bwrap_watch *w);

/* --- bwrap_network.c: a public network --- */

/* As of a run that starts early.  Without one it does nothing, as the next two. */
int bwrap_network_plan(struct bwrap_watch *w, const struct bwrap_limits *l, struct cj_error *err);

/* The link to the child, and the files of the root. */
int bwrap_network_offer(struct bwrap_watch *w, struct bwrap_start *s, struct cj_error *err);

/* Builds it, and tells the child.  If the child has ended with a report, that is no failure. */
int bwrap_network_build(struct bwrap_watch *w, const struct bwrap_start *s, int report_fd,
			struct cj_error *err);

/* The members of the last status document. */
struct json_writer;
void bwrap_network_put(struct json_writer *w, const struct bwrap_limits *l,
		       const struct network_outcome *n);

/* --- in the child --- */

/* Makes each cgroup file system in the root read-only: the files of its own limits are there. */
int bwrap_limits_protect(int proc_fd, struct cj_error *err);
