/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/service/operations/tracing.h"

#include "runtime/service/log/slog.h"

void tracing_write(struct line_file *file, const struct spans *s, const struct run_order *run,
		   const struct summary *end)
{
	const struct trace *trace = &run->job.trace;
	const struct run_span span = {
		.kind = run->session[0] != '\0' ? "exec" : "run",
		.traceparent = trace->traceparent,
		.parent = trace->parent,
		.id = run->job.id,
		.profile = run->profile,
		.session = run->session,
		.error_stage = end->error_stage,
		.status = end->status,
		.exit_code = end->exit_code,
		.signal = end->signal,
		.limits_hit = end->limits_hit,
		.usage = end->usage,
		.stdout_bytes = end->stdout_bytes,
		.stderr_bytes = end->stderr_bytes,
		.artifacts = end->artifacts,
		.denied_packets = end->denied_packets,
		.denied_syscalls = end->denied_syscalls,
	};
	struct cj_error err = { 0 };

	if (file->fd >= 0 && s->began_us > 0 && spans_write(s, &span, file, &err) < 0)
		slog_failure(SLOG_WARNING, trace->request_id, &err, "write the spans of a run");
}
