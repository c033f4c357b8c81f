/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracing - the spans of runs and execs, when they have ended: the key trace_file.
 */
#pragma once

#include "runtime/base/files/line_file.h"
#include "runtime/run/report/spans.h"
#include "runtime/service/worker/job.h"

/* Appends the span of a run that has ended, and those of its calls.  Without a file, or if nothing
 * was recorded, nothing happens.  A failure is logged, and the run's result does not change. */
void tracing_write(struct line_file *file, const struct spans *s, const struct run_order *run,
		   const struct summary *end);
