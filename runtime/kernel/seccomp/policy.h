/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy - a seccomp profile in the OCI / Docker JSON format, read into plain data.
 *
 * No libseccomp here; runtime/kernel/seccomp/filter_compile.c compiles it.  Every key,
 * action and operator of the format is understood or refused with its place.  Names
 * stay names: which of them are system calls, the compiler finds out and reports.
 * Docker's "includes"/"excludes" are evaluated for a jail (no capabilities, this
 * architecture, this kernel).  Sub-architectures (i386, x32) stay closed whatever
 * the file says, and that is reported too.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/* By strictness, as the kernel orders the answers of several filters: seccomp(2). */
enum policy_action {
	POLICY_ALLOW,
	POLICY_LOG,
	POLICY_TRACE, /* only containers have this, NOTIFY and KILL_THREAD */
	POLICY_NOTIFY,
	POLICY_ERRNO,
	POLICY_TRAP,
	POLICY_KILL_THREAD,
	POLICY_KILL_PROCESS,
};

enum policy_op {
	POLICY_NE,
	POLICY_LT,
	POLICY_LE,
	POLICY_EQ,
	POLICY_GE,
	POLICY_GT,
	POLICY_MASKED_EQ,
	POLICY_LOW_GT /* the low half is above the value: only in lists of our own, call_list.h */
};
#define POLICY_OP_COUNT (POLICY_MASKED_EQ + 1)             /* in files */
extern const char *const policy_op_names[POLICY_OP_COUNT]; /* "SCMP_CMP_EQ" */

struct policy_arg {
	unsigned index; /* 0..5 */
	enum policy_op op;
	uint64_t value, value_two; /* MASKED_EQ: mask, then the datum (the OCI order) */
};

struct policy_rule {
	enum policy_action action;
	int errno_value; /* POLICY_ERRNO */
	struct strings names;
	const struct policy_arg *args; /* all must match */
	size_t nargs;
};

struct policy {
	const char *path;
	enum policy_action default_action;
	int default_errno;
	const struct policy_rule *rules;
	size_t nrules;
	struct strings notes; /* what the file asks for and does not get, a sentence each */
};

/* Parses `text`; everything lives in `a`. */
int policy_parse(const char *path, const char *text, size_t size, struct arena *a,
		 const struct policy **out, struct cj_error *err);

/* Opens, reads (at most JSON_BYTES_MAX) and parses. */
int policy_load(const char *path, struct arena *a, const struct policy **out, struct cj_error *err);
