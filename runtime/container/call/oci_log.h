/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_log - the messages of cejail-oci, where engines look for them.
 *
 * A failure goes to standard error and, with --log, to that file: a line of text, or with
 * --log-format=json an object {"level", "msg", "time"}.  The file is appended to, one write(2) for
 * each line.  Without --log, --log-format=json is the format of standard error.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/call/oci_options.h"

/*
 * What the function of a verb gets, and what it leaves for main().
 *
 * A verb prints only what is its output (state, list, ...).  Its failure goes to main(), which
 * reports it and exits with status 1.
 */
struct oci_call {
	const struct oci_options *options;
	struct arena *arena;
	int exit_status; /* on success; run and exec set the program's */
};

typedef int oci_verb(struct oci_call *call, struct cj_error *err);

/* Reports a failure.  Only main() calls it, once.  A log that can't be written is reported, too. */
void oci_log_error(const struct oci_options *o, const struct cj_error *err);

/*
 * The same for what does not make the command fail.  The standard error of create, and of run and
 * exec with --detach, is the container's alone: there a warning goes only to the log, and with
 * --debug to both.
 */
void oci_log_warning(const struct oci_options *o, const struct cj_error *err);

/* What is as asked, and yet worth a line: it goes only to the log. */
void oci_log_info(const struct oci_options *o, const struct cj_error *err);

/* With --debug: a line about what happens, in the log, or on standard error where there is none. */
void oci_log_debug(const struct oci_options *o, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A warning for each sentence. */
void oci_log_warnings(const struct oci_options *o, const struct strings *texts);
