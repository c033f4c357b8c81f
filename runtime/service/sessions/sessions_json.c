/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of sessions and execs. */
#include "runtime/service/sessions/sessions.h"

#include "runtime/run/report/result.h"

static void put_until(struct json_writer *w, const char *key, uint64_t until_ms,
		      const struct sessions_now *now)
{
	uint64_t left_ms = until_ms > now->mono_ms ? until_ms - now->mono_ms : 0;
	result_put_ms(w, key, now->epoch_ms + left_ms);
}

void sessions_json_put(struct json_writer *w, const struct session_entry *e,
		       const struct sessions_now *now)
{
	json_open_object(w);
	json_member_text(w, "id", e->id);
	json_member_text(w, "profile", e->profile);
	json_member_text(w, "context", e->is_repl ? "repl" : "none");
	json_member_text(w, "state", entry_state_names[e->state]);
	if (e->state >= ENTRY_ENDING) {
		json_member_text(w, "reason", session_ends[e->reason].name);
		json_member_text(w, "message", e->message);
	}
	if (e->state == ENTRY_ENDED)
		result_put_ms(w, "ended_at", e->ended_ms);
	result_put_ms(w, "created_at", e->created_ms);
	if (e->state <= ENTRY_LIVE)
		put_until(w, "lease_until", e->lease_until_ms, now);
	if (e->state <= ENTRY_LIVE && e->unfinished == 0)
		put_until(w, "idle_until", e->idle_until_ms, now);
	json_member_u64(w, "lease_ms", e->lease_ms);
	json_member_u64(w, "idle_ms", e->idle_ms);
	json_member_u64(w, "memory_limit_bytes", e->memory_bytes);
	if (e->state != ENTRY_ENDED)
		json_member_u64(w, "memory_reserved_bytes", e->memory.bytes);
	if (e->state <= ENTRY_LIVE && e->network) {
		json_member_object(w, "network");
		result_put_lists(w, &e->network->rules);
		json_close_object(w);
	}
	json_member_u64(w, "execs", e->unfinished);
	if (e->state != ENTRY_STARTING)
		json_member_bool(w, "isolated", e->is_isolated);
	if (e->has_usage) {
		json_member_object(w, "usage");
		json_member_u64(w, "cpu_ms", e->usage.cpu_ms);
		json_member_u64(w, "memory_bytes", e->usage.memory_bytes);
		json_member_u64(w, "pids", e->usage.pids);
		json_member_u64(w, "denied_syscalls", e->usage.denied_syscalls);
		json_member_u64(w, "denied_packets", e->usage.denied_packets);
		json_close_object(w);
	}
	json_close_object(w);
}

void sessions_json_put_exec(struct json_writer *w, const struct exec_entry *x)
{
	enum run_state state = x->is_finished ? RUN_FINISHED : x->run ? x->run->state : RUN_QUEUED;

	json_open_object(w);
	json_member_text(w, "id", x->id);
	json_member_text(w, "session", x->session->id);
	json_member_text(w, "state", run_state_names[state]);
	json_member_bool(w, "detached", x->is_detached);
	uint64_t created_ms = x->is_finished ? x->created_ms : x->run->created_ms;
	uint64_t started_ms = x->is_finished ? x->started_ms : x->run->started_ms;
	result_put_ms(w, "created_at", created_ms);
	if (started_ms > 0)
		result_put_ms(w, "started_at", started_ms);
	if (x->is_finished) {
		result_put_ms(w, "ended_at", x->ended_ms);
		if (x->has_summary) {
			json_member_text(w, "status", status_names[x->status]);
			if (x->status == STATUS_EXITED)
				json_member_u64(w, "exit_code", (uint64_t)x->exit_code);
		}
		if (x->error != API_OK) {
			json_member_object(w, "error");
			json_member_text(w, "code", api_rows[x->error].code);
			json_member_text(w, "message",
					 x->error == API_SESSION_ENDED && x->session->message
					     ? x->session->message
					     : api_rows[x->error].message);
			json_close_object(w);
		} else if (x->is_detached && !x->result) {
			json_member_bool(w, "result_dropped", true);
		}
	}
	json_close_object(w);
}

char *sessions_json_exec(const struct exec_entry *x, size_t *out_size)
{
	static const char key[] = ",\"result\":";
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct byte_queue whole = { 0 };
	struct blob text;

	sessions_json_put_exec(w, x);
	if (json_writer_take(w, &text, &err) < 0)
		return NULL;
	/* the result is as the worker wrote it: JSON that the service does not read again */
	const struct blob parts[] = {
		{ text.bytes, text.size - 1 }, /* without its brace */
		{ key, x->result ? sizeof(key) - 1 : 0 },
		{ x->result ? x->result : "", x->result ? x->result_size : 0 },
		{ "}\n", 3 }, /* with the NUL */
	};
	if (byte_queue_add_all(&whole, parts, COUNT_OF(parts)) < 0)
		return NULL;
	*out_size = whole.end - 1;
	return whole.bytes;
}
