/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --trace-file: the run as a span, with the one of TRACEPARENT as its parent.
 *
 * The variable is that of the caller's environment, as OpenTelemetry passes a trace between
 * processes.  A malformed one is ignored, as the Trace Context specification demands.
 */
#include "runtime/front/cli/run_state.h"

#include "profiles/plan/env_file.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"

int run_trace_begin(struct cli_run *r, struct cj_error *err)
{
	const char *path = r->config.trace_file;

	if (!path)
		return 0;
	if (trace_adopt(NULL, env_value(r->cli->environ, "TRACEPARENT"), &r->trace, err) < 0 ||
	    line_file_open(path, SPANS_FILE_MODE, &r->trace_file, err) < 0)
		return cj_wrap(err, "--trace-file");
	spans_begin(&r->spans, clock_us());
	return 0;
}

void run_trace_end(struct cli_run *r)
{
	const struct outcome *o = &r->outcome;
	struct run_span span = {
		.kind = "run",
		.traceparent = r->trace.traceparent,
		.parent = r->trace.parent,
		.id = o->id,
		.profile = r->config.profile_name,
		.error_stage = o->exec_errno ? "exec" : o->error.stage,
		.status = o->status,
		.exit_code = o->status == STATUS_EXITED ? outcome_exit_status(o) : -1,
		.signal = o->signal,
		.limits_hit = outcome_limits_hit(o),
		.usage = o->usage,
		.stdout_bytes = o->output[0].total,
		.stderr_bytes = o->output[1].total,
		.artifacts = o->artifacts.count,
		.denied_packets = outcome_denied_packets(o),
		.denied_syscalls = outcome_denied_syscalls(o),
	};
	struct cj_error err = { 0 };

	if (r->trace_file.fd >= 0 && spans_write(&r->spans, &span, &r->trace_file, &err) < 0)
		log_warning("--trace-file: %s", err.msg);
}
