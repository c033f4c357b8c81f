/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slog - what the service says of itself, to standard error.
 *
 * Under systemd (JOURNAL_STREAM names our standard error) a line is "<N>" and a JSON object, else
 * "cejail: " and a sentence.  Here stand errno, paths and stages, under the request's id; what a
 * caller reads is api_error.c's.  Never code, output, arguments or the values of an environment.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

enum slog_level { SLOG_ERROR = 3, SLOG_WARNING = 4, SLOG_NOTICE = 5, SLOG_INFO = 6 };

/* Looks where standard error goes; once, in main(). */
void slog_init(void);
bool slog_is_journal(void);

/* `request_id` "" where no request is the cause. */
void slog(enum slog_level level, const char *request_id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "WHAT: err's message (hint)" with its errno and stage. */
void slog_failure(enum slog_level level, const char *request_id, const struct cj_error *err,
		  const char *what);
