/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slog - the service's log, on standard error.
 *
 * Under systemd ($JOURNAL_STREAM names our standard error) a line is "<N>" and a JSON object, else
 * "cejail: " and a sentence.  The log has errno, paths and stages, with the request id; what
 * callers read is in api_error.c.  It never has code, output, arguments or values of the
 * environment.
 */
#pragma once

#include "runtime/base/error.h"

enum slog_level { SLOG_ERROR = 3, SLOG_WARNING = 4, SLOG_NOTICE = 5, SLOG_INFO = 6 };

/* Finds out where standard error goes; call it once, in main(). */
void slog_init(void);
/* From now on only what is at least so serious. */
void slog_limit(enum slog_level least);

/* `request_id`: "" if no request is the cause. */
void slog(enum slog_level level, const char *request_id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "WHAT: err's message (hint)" with its errno and stage. */
void slog_failure(enum slog_level level, const char *request_id, const struct cj_error *err,
		  const char *what);
