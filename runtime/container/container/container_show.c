/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs state and list.  Acts: reads state directories, prints. */
#include "runtime/container/container/container.h"

#include <stdio.h>

#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/container/container/container_config.h"
#include "runtime/container/state/state_status.h"

/* A container whose configuration is lost still has a state. */
static void write_state(struct json_writer *w, const struct state *s, struct arena *a,
			bool with_owner)
{
	struct cj_error lost = { 0 };
	struct oci_config config;
	bool is_known = container_config_stored(s, a, &config, &lost) == 0;

	state_status_write(w, s, state_status_of(s), is_known ? &config.annotations : NULL,
			   with_owner);
}

int container_state(struct oci_call *call, struct cj_error *err)
{
	auto_state struct state s = STATE_NULL;
	auto_json_writer struct json_writer *w = json_writer_create(true);

	if (!w)
		return cj_fail(err, ENOMEM, "print the state");
	if (state_open(call->options, false, call->arena, &s, err) < 0)
		return -err->code;
	write_state(w, &s, call->arena, false);
	return json_print(w, err);
}

/* --- list ------------------------------------------------------------------------------- */

static void print_row(const struct state *s)
{
	enum state_status status = state_status_of(s);
	char created[STATE_TIME_MAX];

	state_status_time(s->record.created_ms, created);
	(void)printf("%-24s %-8d %-9s %-24s %-40s %u\n", s->record.id,
		     status == STATE_STOPPED ? 0 : (int)s->record.pid, state_status_name(status),
		     created, s->record.bundle, (unsigned)s->record.owner_uid);
}

static void list_one(const struct oci_options *o, const char *id, struct json_writer *w)
{
	auto_arena struct arena arena = { 0 };
	auto_state struct state s = STATE_NULL;
	struct cj_error ended = { 0 };
	struct oci_options of_one = { .root = o->root, .id = id };

	if (o->is_quiet) {
		(void)printf("%s\n", id);
		return;
	}
	/* deleted meanwhile, or half made */
	if (state_open(&of_one, false, &arena, &s, &ended) < 0)
		return;
	if (o->is_json)
		write_state(w, &s, &arena, true);
	else
		print_row(&s);
}

int container_list(struct oci_call *call, struct cj_error *err)
{
	const struct oci_options *o = call->options;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct strings ids = { 0 };

	if (!w)
		return cj_fail(err, ENOMEM, "list the containers");
	if (state_list(o, call->arena, &ids, err) < 0)
		return -err->code;
	if (!o->is_json && !o->is_quiet)
		(void)printf("%-24s %-8s %-9s %-24s %-40s %s\n", "ID", "PID", "STATUS", "CREATED",
			     "BUNDLE", "OWNER");
	json_open_array(w);
	for (size_t i = 0; i < ids.count; i++)
		list_one(o, ids.items[i], w);
	json_close_array(w);
	return o->is_json && !o->is_quiet ? json_print(w, err) : 0;
}
