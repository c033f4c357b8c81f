/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log - cejail's own messages to its terminal: one line each, the program's name in front.
 *
 * Only the process that owns the terminal calls these (front ends); lower layers
 * return a struct cj_error or add to a list of warnings.  Untrusted bytes
 * in a message are escaped, so a file name can't forge a second line.
 */
#pragma once

#include "runtime/base/error.h"

enum log_level { LOG_QUIET, LOG_NORMAL, LOG_VERBOSE };

void log_set_program(const char *name);   /* "cejail" without; borrowed, set once in main() */
void log_set_level(enum log_level level); /* the one process-wide setting; set once in main() */

/* Another process left a line of the terminal unfinished: the next message begins a new one. */
void log_on_fresh_line(void);

void log_error(const struct cj_error *err); /* always shown: "cejail: MSG (HINT)" */
void log_warning(const char *fmt, ...)
    __attribute__((format(printf, 1, 2))); /* LOG_NORMAL and above: "cejail: warning: ..." */
void log_note(const char *fmt, ...)
    __attribute__((format(printf, 1, 2))); /* LOG_NORMAL and above */
/* How a run ended and what was denied: also LOG_QUIET, unless log_hide_report() was called. */
void log_report(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_hide_report(void);
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* LOG_VERBOSE */
