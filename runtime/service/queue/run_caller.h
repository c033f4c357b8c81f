/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_caller - what the caller of a run gets: its events as they come, and one answer at its end.
 */
#pragma once

#include "runtime/service/log/api_error.h"

struct run;

/* The worker's last line is this, the result, and a bracket. */
#define RUN_RESULT_BEFORE "{\"type\":\"result\",\"result\":"

/* The stream of events begins, if the caller asks for one and it has not begun. */
void run_caller_begin(struct run *run);
/*
 * run_caller_tell - pass the line of an event on.
 *
 * The worker waits for a slow caller, until the run's deadline or until it is cancelled.  A call is
 * not dropped for a slow caller, because that is to answer it.  One that cannot reach the caller
 * fails at once: nobody else would answer it.
 */
void run_caller_tell(struct run *run, const char *text, size_t size);
/*
 * `line` is the whole of the worker's last line: the reply is the result in it, verbatim.  NULL:
 * there is no result, because of `why`.
 */
void run_caller_answer(struct run *run, const char *line, size_t size, enum api_code why);
