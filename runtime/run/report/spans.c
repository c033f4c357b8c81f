/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows opentelemetry.io, "OTLP Specification", JSON Protobuf Encoding: ids are in hexadecimal,
 * enums are numbers, 64-bit integers are strings.
 */
#include "runtime/run/report/spans.h"

#include <inttypes.h>
#include <sys/random.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/trace.h"

/* Of opentelemetry/proto/trace/v1/trace.proto */
enum { KIND_INTERNAL = 1, STATUS_CODE_OK = 1, STATUS_CODE_ERROR = 2 };

#define ROOM_STEP 16

struct call_span {
	char id[TRACE_SPAN_MAX];
	char name[TOOL_NAME_MAX + 1];
	enum call_end end;
	uint64_t from_us, to_us; /* after the beginning */
};

void spans_begin(struct spans *s, uint64_t began_us)
{
	const uint64_t since_us = clock_us() - began_us;

	*s = (struct spans){ .began_us = began_us,
			     .began_at_us = clock_epoch_ms() * 1000 - since_us };
}

void spans_fini(struct spans *s)
{
	free(s->calls);
	*s = (struct spans){ 0 };
}

/* False: there is no memory, or no random bytes. */
static bool make_room(struct spans *s, uint64_t *out_id)
{
	if (getrandom(out_id, sizeof(*out_id), 0) != (ssize_t)sizeof(*out_id))
		return false;
	*out_id |= 1; /* all zeros is not a valid id */
	if (s->count % ROOM_STEP != 0)
		return true;
	struct call_span *calls = realloc(s->calls, (s->count + ROOM_STEP) * sizeof(*calls));
	if (!calls)
		return false;
	s->calls = calls;
	return true;
}

void spans_add_call(struct spans *s, const char *name, enum call_end end, uint64_t ms)
{
	uint64_t id = 0;

	if (s->began_us == 0)
		return;
	if (end == CALL_REFUSED) {
		s->refused++;
		return;
	}
	if (s->count == SPANS_CALLS_MAX || !make_room(s, &id)) {
		s->left_out++;
		return;
	}
	struct call_span *c = &s->calls[s->count++];
	const uint64_t now_us = clock_us() - s->began_us;
	*c = (struct call_span){ .end = end, .to_us = now_us };
	c->from_us = ms * 1000 < now_us ? now_us - ms * 1000 : 0;
	(void)snprintf(c->id, sizeof(c->id), "%016" PRIx64, id);
	(void)snprintf(c->name, sizeof(c->name), "%s", name);
}

static void put_u64_text(struct json_writer *w, const char *key, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	json_member_text(w, key, text);
}

/* The next value belongs to this attribute. */
static void open_attribute(struct json_writer *w, const char *key)
{
	json_open_object(w);
	json_member_text(w, "key", key);
	json_member_object(w, "value");
}

static void close_attribute(struct json_writer *w)
{
	json_close_object(w);
	json_close_object(w);
}

/* One without a value is not there. */
static void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (!text || text[0] == '\0')
		return;
	open_attribute(w, key);
	json_member_text(w, "stringValue", text);
	close_attribute(w);
}

static void put_limits(struct json_writer *w, uint64_t limits_hit)
{
	open_attribute(w, "cejail.limits_hit");
	json_member_object(w, "arrayValue");
	json_member_array(w, "values");
	for (enum limit i = 0; i < LIMIT_COUNT; i++) {
		if (!(limits_hit >> i & 1))
			continue;
		json_open_object(w);
		json_member_text(w, "stringValue", limit_names[i]);
		json_close_object(w);
	}
	json_close_array(w);
	json_close_object(w);
	close_attribute(w);
}

/* Up to its attributes, which stay open. */
struct span_head {
	const char *id, *parent, *name, *detail;
	uint64_t from_us, to_us;
};

static void open_span(struct json_writer *w, const struct spans *s, const struct run_span *run,
		      const struct span_head *span)
{
	char trace[TRACE_ID_DIGITS + 1], name[TOOL_NAME_MAX + 32];

	(void)snprintf(trace, sizeof(trace), "%.*s", TRACE_ID_DIGITS,
		       run->traceparent + TRACE_ID_AT);
	(void)snprintf(name, sizeof(name), "%s %s", span->name, span->detail);
	json_open_object(w);
	json_member_text(w, "traceId", trace);
	json_member_text(w, "spanId", span->id);
	if (span->parent[0] != '\0')
		json_member_text(w, "parentSpanId", span->parent);
	json_member_text(w, "name", name);
	json_member_u64(w, "kind", KIND_INTERNAL);
	put_u64_text(w, "startTimeUnixNano", (s->began_at_us + span->from_us) * 1000);
	put_u64_text(w, "endTimeUnixNano", (s->began_at_us + span->to_us) * 1000);
	json_member_array(w, "attributes");
}

/* `failure` NULL: there was none. */
static void close_span(struct json_writer *w, const char *failure)
{
	json_close_array(w);
	json_member_object(w, "status");
	json_member_given(w, "message", failure);
	json_member_u64(w, "code", failure ? STATUS_CODE_ERROR : STATUS_CODE_OK);
	json_close_object(w);
	json_close_object(w);
}

static void put_counts(struct json_writer *w, const struct spans *s, const struct run_span *run)
{
	const struct usage *u = &run->totals.usage;
	const struct {
		const char *key;
		bool is_known;
		uint64_t value;
	} rows[] = {
		{ "cejail.exit_code", run->totals.exit_code >= 0, (uint64_t)run->totals.exit_code },
		{ "cejail.signal", run->totals.signal > 0, (uint64_t)run->totals.signal },
		{ "cejail.wall_ms", true, u->wall_ms },
		{ "cejail.cpu_user_ms", true, u->cpu_user_ms },
		{ "cejail.cpu_system_ms", true, u->cpu_system_ms },
		{ "cejail.memory_peak_bytes", u->has_memory_peak, u->memory_peak_bytes },
		{ "cejail.pids_peak", u->has_pids_peak, u->pids_peak },
		{ "cejail.stdout_bytes", true, run->totals.stdout_bytes },
		{ "cejail.stderr_bytes", true, run->totals.stderr_bytes },
		{ "cejail.artifacts", true, run->totals.artifacts },
		{ "cejail.denied_packets", true, run->totals.denied_packets },
		{ "cejail.denied_syscalls", true, run->totals.denied_syscalls },
		{ "cejail.calls", true, s->count + s->left_out },
		{ "cejail.calls_refused", true, s->refused },
		{ "cejail.calls_left_out", s->left_out > 0, s->left_out },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].is_known) {
			open_attribute(w, rows[i].key);
			put_u64_text(w, "intValue", rows[i].value);
			close_attribute(w);
		}
}

static void put_run(struct json_writer *w, const struct spans *s, const struct run_span *run,
		    const char *id)
{
	const bool is_good = run->totals.status == STATUS_EXITED && run->totals.exit_code == 0;

	open_span(w, s, run,
		  &(struct span_head){ .id = id,
				       .parent = run->parent,
				       .name = run->kind,
				       .detail = run->profile,
				       .to_us = clock_us() - s->began_us });
	put_text(w, "cejail.id", run->id);
	put_text(w, "cejail.profile", run->profile);
	put_text(w, "cejail.session", run->session);
	put_text(w, "cejail.status", status_names[run->totals.status]);
	put_text(w, "cejail.error_stage", run->error_stage);
	put_counts(w, s, run);
	put_limits(w, run->totals.limits_hit);
	close_span(w, is_good ? NULL : status_names[run->totals.status]);
}

static void put_call(struct json_writer *w, const struct spans *s, const struct run_span *run,
		     const struct call_span *c, const char *parent)
{
	open_span(w, s, run,
		  &(struct span_head){ .id = c->id,
				       .parent = parent,
				       .name = "call",
				       .detail = c->name,
				       .from_us = c->from_us,
				       .to_us = c->to_us });
	put_text(w, "cejail.tool", c->name);
	put_text(w, "cejail.outcome", call_end_names[c->end]);
	close_span(w, c->end == CALL_ANSWERED ? NULL : call_end_names[c->end]);
}

int spans_write(const struct spans *s, const struct run_span *run, struct line_file *file,
		struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	char id[TRACE_SPAN_MAX];
	struct blob text = { 0 };

	(void)snprintf(id, sizeof(id), "%.*s", SPAN_ID_DIGITS, run->traceparent + SPAN_ID_AT);
	json_open_object(w);
	json_member_array(w, "resourceSpans");
	json_open_object(w);
	json_member_object(w, "resource");
	json_member_array(w, "attributes");
	put_text(w, "service.name", "cejail");
	json_close_array(w);
	json_close_object(w);
	json_member_array(w, "scopeSpans");
	json_open_object(w);
	json_member_object(w, "scope");
	json_member_text(w, "name", "cejail");
	json_member_text(w, "version", CJ_VERSION);
	json_close_object(w);
	json_member_array(w, "spans");
	put_run(w, s, run, id);
	for (size_t i = 0; i < s->count; i++)
		put_call(w, s, run, &s->calls[i], id);
	for (int i = 0; i < 3; i++) { /* the three arrays, and the objects around them */
		json_close_array(w);
		json_close_object(w);
	}
	if (json_writer_take(w, &text, err) < 0)
		return cj_wrap(err, "write '%s'", file->path);
	return line_file_append(file, text.bytes, text.size, err);
}
