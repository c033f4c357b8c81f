/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit - one JSON line when a run is about to start, one when it has ended, one for each call of
 * a tool in between.
 *
 * Schema: profiles/schema/audit.json.  A line has hashes, counts and stages.  It never has code,
 * output, the environment, or an error message, which may quote them, and the arguments of a call
 * only if audit.arguments says so.  To a file
 * (O_APPEND, one write(2) a line, fdatasync(2) when asked) and to journald's socket with fields of
 * their own: MESSAGE_ID, CEJAIL_*, TRACE_ID; systemd.journal-fields(7).
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/base/files/line_file.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/worker/job.h"

/* journalctl MESSAGE_ID=... */
#define AUDIT_MESSAGE_SESSION_START "5a6d3c0f9be44f1c8d2a7e15b06c94d3"
#define AUDIT_MESSAGE_SESSION_END   "c1f0874e2d6b4a9b93e5f7a80c3d1b62"
#define AUDIT_MESSAGE_SESSION_RULES "4f0d9be21a6c4c7e9c35b8a2d7e6f013"
#define AUDIT_MESSAGE_START         "1b41698ec8044d88b5fa31b06e526685"
#define AUDIT_MESSAGE_END           "b028be82e496421eb109fc5ca2e86901"
#define AUDIT_MESSAGE_CALL          "7e0c4f7b1fd14a0e8f5b6a39d20c8e54"

struct audit {
	struct line_file file;
	int journal_fd; /* -1: not in use */
	bool sync;
	uint64_t arguments_max;
	uint64_t failures;
	char last_failure[512]; /* "": the last write succeeded */
};
#define AUDIT_NULL                                                                                 \
	{                                                                                          \
		.file = LINE_FILE_NULL, .journal_fd = -1                                           \
	}

/* Fails: a sink that does not accept a line now; *out is AUDIT_NULL then. */
int audit_open(const struct audit_config *c, struct audit *out, struct cj_error *err);
void audit_close(struct audit *a);
/* For log rotation: opens the path again.  If that fails, the old file stays in use. */
int audit_reopen(struct audit *a, struct cj_error *err);
bool audit_is_on(const struct audit *a);

/*
 * audit_run - the line of a run that is about to start (`end` is NULL), or has ended.
 *
 * False: the order requires the line, and a sink did not get the whole of it, or there is none: it
 * does not run then.  Failures are in the log, too.
 */
bool audit_run(struct audit *a, const struct run_order *run, enum tier tier,
	       const struct summary *end);

/* The line of a call that has ended, or was refused. */
bool audit_call(struct audit *a, const struct run_order *run, const struct call_record *call);

/* A session, whose execs are runs. */
struct audit_session {
	const struct run_order *order;
	const char *context; /* "none" or "repl" */
	const char *reason;  /* of the end; NULL: it is about to start */
	uint64_t execs, duration_ms, cpu_ms;
	const char
	    *network; /* about to be loaded: none, public, or a list; NULL: no change of it */
};
bool audit_session(struct audit *a, const struct audit_session *session);
