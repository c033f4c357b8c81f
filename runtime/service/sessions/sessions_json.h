/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sessions_json - sessions and execs as callers read them: profiles/schema/session.json, exec.json.
 * Pure: time is an argument.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/service/sessions/sessions.h"

/* Both clocks at one moment: leases are monotonic, callers read the time of day. */
struct sessions_now {
	uint64_t mono_ms, epoch_ms;
};

void sessions_json_put(struct json_writer *w, const struct session_entry *e,
		       const struct sessions_now *now);
/* Without its result. */
void sessions_json_put_exec(struct json_writer *w, const struct exec_entry *x);
/* The whole, with the result and a newline; malloc'ed.  NULL: no memory. */
char *sessions_json_exec(const struct exec_entry *x, size_t *out_size);
