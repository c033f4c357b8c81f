/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans - a finished run and its calls as spans of OpenTelemetry: `--trace-file`.
 *
 * A run becomes one line in the OTLP JSON lines format, which the file receiver of an OpenTelemetry
 * collector reads (opentelemetry.io, "OpenTelemetry Protocol File Exporter").  A line has times,
 * status, counts and the names of tools.  It never has code, arguments, input, output, answers or
 * an error message, which may quote them.
 */
#pragma once

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/base/files/line_file.h"
#include "runtime/jail/jail.h"

/* Of one run; further ones are only counted.  A collector reads lines of up to 1 MiB. */
#define SPANS_CALLS_MAX 256
#define SPANS_FILE_MODE 0600

/* What is known before the run ends.  All of it 0: nothing is recorded. */
struct spans {
	uint64_t began_us;    /* clock_us() */
	uint64_t began_at_us; /* the same moment since 1970 */
	struct call_span *calls;
	size_t count;
	uint64_t left_out, refused;
};

/* The times of the line count from `began_us` of clock_us(), so that they never go backwards. */
void spans_begin(struct spans *s, uint64_t began_us);
void spans_fini(struct spans *s);

/* A call has ended now, after so many ms.  Of a refused one the name is not recorded: it is the
 * program's text. */
void spans_add_call(struct spans *s, const char *name, enum call_end end, uint64_t ms);

/* The span of the run.  The caller borrows all texts. */
struct run_span {
	const char *kind;        /* "run" or "exec" */
	const char *traceparent; /* with the id of this span: trace.h */
	const char *parent;      /* the id of the caller's span; "": none */
	const char *id, *profile;
	const char *session;     /* "": none */
	const char *error_stage; /* "": none */
	struct outcome_totals totals;
};

/* The run has ended now: appends its line. */
int spans_write(const struct spans *s, const struct run_span *run, struct line_file *file,
		struct cj_error *err);
