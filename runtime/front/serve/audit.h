/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit - one JSON line when a run is about to start, one when it ended.
 *
 * Schema: profiles/schema/audit.json.  Never code, output, arguments or environment: hashes and
 * counts.  To a file (O_APPEND, one write(2) a line, fdatasync(2) when asked) and to journald's
 * socket with fields of their own; conventions: MESSAGE_ID and CEJAIL_* names.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/front/serve/job.h"
#include "runtime/front/serve/service_config.h"

struct audit {
	int file_fd, journal_fd; /* -1: not in use */
	char path[256];
	bool sync;
	uint64_t failures;
	char last_failure[512]; /* "" while all is well */
};
#define AUDIT_NULL                                                                                 \
	{                                                                                          \
		.file_fd = -1, .journal_fd = -1                                                    \
	}

int audit_open(const struct audit_config *c, struct audit *out, struct cj_error *err);
void audit_close(struct audit *a);
/* For log rotation: the path is opened again. */
int audit_reopen(struct audit *a, struct cj_error *err);
bool audit_is_on(const struct audit *a);

struct audit_run {
	const char *id, *caller, *profile, *profile_sha256, *code_sha256; /* "" where unknown */
	uint64_t code_bytes;
	const struct trace *trace;
	enum tier tier;
};
/* Fails: the line is not written whole everywhere; a profile with "audit": "required" does not run.
 */
int audit_start(struct audit *a, const struct audit_run *run, struct cj_error *err);
int audit_end(struct audit *a, const struct audit_run *run, const struct summary *s,
	      struct cj_error *err);
