/* SPDX-License-Identifier: Apache-2.0 */
/* Every member exists and is null without a value, so that a reader need not check for it. */
#include "runtime/run/report/result.h"

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/session/repl/repl_channel.h"

/*
 * A command that does not exist, or cannot be executed, has no status of its own.  It is "exited"
 * with 127 or 126, as in a shell, and `error` has the stage "exec".
 */
static void put_status(struct json_writer *w, const struct outcome *o)
{
	json_member_filled(w, "status", status_names[o->status]);
	json_member_known(w, "exit_code", o->status == STATUS_EXITED,
			  (uint64_t)outcome_exit_status(o));
	json_member_known(w, "signal", o->status == STATUS_SIGNALED, (uint64_t)o->signal);
}

static void put_error(struct json_writer *w, const struct outcome *o)
{
	if (o->status != STATUS_SETUP_ERROR && o->exec_errno == 0) {
		json_member_text(w, "error", NULL);
		return;
	}
	json_member_object(w, "error");
	json_member_filled(w, "stage", o->error.stage);
	json_member_filled(w, "message", o->error.msg);
	json_member_filled(w, "hint", o->error.hint);
	json_close_object(w);
}

static int put_stream(struct json_writer *w, const char *key, const struct capture *c,
		      struct cj_error *err)
{
	size_t size = 0, kept = 0;
	auto_free char *text = capture_text(c, &size, &kept);
	if (!text)
		return cj_fail(err, ENOMEM, "write the result's %s", key);

	json_member_object(w, key);
	json_put_bytes(w, text, size);
	json_member_u64(w, "bytes", c->total);
	json_member_u64(w, "kept", kept);
	json_member_bool(w, "truncated", capture_is_truncated(c));
	json_close_object(w);
	return 0;
}

void result_put_usage(struct json_writer *w, const struct usage *u)
{
	json_member_object(w, "usage");
	json_member_u64(w, "wall_ms", u->wall_ms);
	json_member_u64(w, "cpu_user_ms", u->cpu_user_ms);
	json_member_u64(w, "cpu_system_ms", u->cpu_system_ms);
	json_member_known(w, "memory_peak_bytes", u->has_memory_peak, u->memory_peak_bytes);
	json_member_known(w, "pids_peak", u->has_pids_peak, u->pids_peak);
	json_close_object(w);
}

static int put_output(struct json_writer *w, const struct outcome *o, struct cj_error *err)
{
	if (put_stream(w, "stdout", &o->output[0], err) < 0 ||
	    put_stream(w, "stderr", &o->output[1], err) < 0)
		return -err->code;
	result_put_usage(w, &o->usage);
	return 0;
}

/* A limit that is not set has no value, and is not enforced. */
static void put_limit(struct json_writer *w, enum limit which, const struct limit_state *l)
{
	json_member_object(w, limit_names[which]);
	if (l->value > 0 && which == LIMIT_CPUS)
		json_member_milli(w, "value", l->value);
	else
		json_member_known(w, "value", l->value > 0, l->value);
	json_member_filled(w, "unit", limit_units[which]);
	json_member_filled(w, "by",
			   limit_enforcer_names[l->value == 0 ? NOT_ENFORCED : l->enforced_by]);
	if (l->hit == HIT_UNKNOWN)
		json_member_text(w, "hit", NULL);
	else
		json_member_bool(w, "hit", l->hit == HIT_YES);
	json_close_object(w);
}

void result_put_denial(struct json_writer *w, const struct denial *d)
{
	char address[IP_TEXT_MAX];
	bool is_told = d->address.family != 0;

	json_open_object(w);
	json_member_filled(w, "class", net_class_names[d->class]);
	json_member_filled(w, "protocol", is_told ? denial_protocol_name(d->protocol) : NULL);
	json_member_filled(w, "address", is_told ? ip_format(&d->address, address) : NULL);
	json_member_known(w, "port", d->port != 0, d->port);
	if (d->name[0] != '\0')
		json_member_text(w, "name", d->name);
	json_member_u64(w, "count", d->count);
	if (d->is_shared)
		json_member_bool(w, "shared", true);
	json_close_object(w);
}

void result_put_denials(struct json_writer *w, const struct denial *items, size_t count)
{
	json_member_array(w, "denied");
	for (size_t i = 0; i < count; i++)
		result_put_denial(w, &items[i]);
	json_close_array(w);
}

void result_put_network_state(struct json_writer *w, const struct network_outcome *n)
{
	json_member_filled(w, "state", network_state_names[n->state]);
	json_member_text(w, "reason", n->state == NETWORK_FAILED ? n->why : NULL);
	json_member_filled(w, "uplink", n->uplink != UPLINK_AUTO ? uplink_names[n->uplink] : NULL);
}

void result_put_lists(struct json_writer *w, const struct network_lists *n)
{
	const bool is_closed = n->is_list && n->allow.count == 0;

	json_member_text(w, "mode", network_mode_names[is_closed ? NETWORK_NONE : NETWORK_PUBLIC]);
	json_member_texts(w, "allow", n->allow.items, n->allow.count);
	if (!is_closed && n->deny.count > 0)
		json_member_texts(w, "deny", n->deny.items, n->deny.count);
}

void result_put_rules(struct json_writer *w, const struct network_rules *rules)
{
	json_member_object(w, "rules");
	json_member_bool(w, "changed", rules->has_changed);
	result_put_lists(w, &rules->lists);
	json_close_object(w);
}

static void put_network(struct json_writer *w, const struct network_outcome *n,
			enum network_mode mode)
{
	json_member_object(w, "network");
	json_member_text(w, "mode", mode < NETWORK_MODE_COUNT ? network_mode_names[mode] : NULL);
	if (mode != NETWORK_PUBLIC) {
		json_member_text(w, "state", NULL);
		json_member_text(w, "reason", NULL);
		json_member_text(w, "uplink", NULL);
	} else {
		result_put_network_state(w, n);
	}
	result_put_denials(w, n->denied, n->ndenied);
	if (n->rules)
		result_put_rules(w, n->rules);
	json_close_object(w);
}

static void put_upstreams(struct json_writer *w, const struct network_outcome *n)
{
	json_member_array(w, "upstreams");
	for (size_t i = 0; i < n->nupstreams; i++) {
		const struct http_upstream_use *u = &n->upstreams[i];
		json_open_object(w);
		json_member_filled(w, "name", u->name);
		json_member_u64(w, "requests", u->requests);
		json_member_u64(w, "failed", u->failed);
		json_member_u64(w, "refused", u->refused);
		json_member_u64(w, "sent_bytes", u->sent_bytes);
		json_member_u64(w, "received_bytes", u->received_bytes);
		json_member_array(w, "status"); /* 2xx is [2] */
		for (size_t k = 0; k < UPSTREAM_CLASSES; k++)
			json_put_u64(w, u->status[k]);
		json_close_array(w);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_denied(struct json_writer *w, const struct outcome *o)
{
	json_member_array(w, "denied_syscalls");
	for (size_t i = 0; i < o->ndenied; i++) {
		json_open_object(w);
		json_member_filled(w, "name", o->denied[i].name);
		json_member_u64(w, "count", o->denied[i].count);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_calls(struct json_writer *w, const struct outcome *o)
{
	json_member_array(w, "calls");
	for (size_t i = 0; i < o->ncalls; i++) {
		json_open_object(w);
		json_member_text(w, "name", o->calls[i].name);
		json_member_u64(w, "count", o->calls[i].count);
		json_member_u64(w, "failed", o->calls[i].failed);
		json_member_u64(w, "refused", o->calls[i].refused);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_displays(struct json_writer *w, const struct cell_outcome *cell)
{
	json_member_array(w, "displays");
	for (size_t i = 0; i < cell->ndisplays; i++) {
		const struct cell_display *d = &cell->displays[i];
		json_open_object(w);
		json_member_text(w, "type", d->type);
		json_put_bytes(w, d->bytes, d->size);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_exception(struct json_writer *w, const struct cell_outcome *cell)
{
	if (!cell->exception_type) {
		json_member_text(w, "exception", NULL);
		return;
	}
	json_member_object(w, "exception");
	json_member_text(w, "type", cell->exception_type);
	json_member_text(w, "message", cell->exception_message);
	json_member_text(w, "traceback", cell->traceback);
	json_close_object(w);
}

/* What a cell of a session showed.  All but the last three members comes from the program. */
static void put_cell(struct json_writer *w, const struct cell_outcome *cell)
{
	json_member_object(w, "cell");
	json_member_u64(w, "number", cell->number);
	json_member_text(w, "value", cell->value);
	put_displays(w, cell);
	json_member_u64(w, "displays_left_out", cell->left_out);
	put_exception(w, cell);
	json_member_bool(w, "restarted", cell->is_new);
	json_member_bool(w, "lost", cell->is_lost);
	json_member_bool(w, "claimed", cell->is_claimed);
	json_close_object(w);
}

void result_put_artifacts(struct json_writer *w, const struct artifacts *a)
{
	json_member_array(w, "artifacts");
	for (size_t i = 0; i < a->count; i++) {
		json_open_object(w);
		json_member_filled(w, "path", a->items[i].path);
		json_member_u64(w, "bytes", a->items[i].bytes);
		json_member_filled(w, "sha256", a->items[i].sha256);
		json_member_filled(w, "type", a->items[i].type);
		if (a->items[i].content)
			json_put_bytes(w, a->items[i].content, a->items[i].bytes);
		json_close_object(w);
	}
	json_close_array(w);
}

void result_put_warnings(struct json_writer *w, const struct strings *warnings)
{
	json_member_texts(w, "warnings", warnings->items, warnings->count);
}

void result_put_ms(struct json_writer *w, const char *key, int64_t epoch_ms)
{
	char text[CLOCK_TEXT_MAX];

	clock_text(epoch_ms, text);
	json_member_filled(w, key, text);
}

/* Of the command of --setup.  What was denied is the run's: the kernel counts it together. */
static int put_setup(struct json_writer *w, const struct outcome *setup, struct cj_error *err)
{
	json_member_object(w, "setup");
	put_status(w, setup);
	if (put_output(w, setup, err) < 0)
		return -err->code;
	json_close_object(w);
	return 0;
}

int result_write(struct json_writer *w, const struct outcome *o, const struct result_about *about,
		 struct cj_error *err)
{
	json_open_object(w);
	json_member_filled(w, "schema", RESULT_SCHEMA);
	json_member_filled(w, "id", o->id);
	json_member_object(w, "profile");
	json_member_filled(w, "name", about->profile_name);
	json_member_filled(w, "sha256", about->profile_sha256);
	json_close_object(w);
	json_member_filled(w, "code_sha256", o->code_sha256);
	put_status(w, o);
	put_error(w, o);
	if (put_output(w, o, err) < 0)
		return -err->code;
	json_member_object(w, "limits");
	for (enum limit i = 0; i < LIMIT_COUNT; i++)
		put_limit(w, i, &o->limits[i]);
	json_close_object(w);
	json_member_object(w, "layers");
	for (enum layer i = 0; i < LAYER_COUNT; i++)
		json_member_filled(w, layer_names[i], layer_state_names[o->layers[i]]);
	json_close_object(w);
	put_network(w, &o->network, about->network);
	if (o->network.nupstreams > 0)
		put_upstreams(w, &o->network);
	if (o->setup && put_setup(w, o->setup, err) < 0)
		return -err->code;
	put_denied(w, o);
	put_calls(w, o);
	if (o->value)
		json_member_node(w, "value", o->value);
	else
		json_member_text(w, "value", NULL); /* as if the program had written null */
	if (o->cell)
		put_cell(w, o->cell);
	result_put_artifacts(w, &o->artifacts);
	result_put_warnings(w, &o->warnings);
	result_put_ms(w, "started_at", o->started_epoch_ms);
	if (about->session)
		json_member_filled(w, "session", about->session);
	if (about->request_id)
		json_member_filled(w, "request_id", about->request_id);
	if (about->traceparent)
		json_member_filled(w, "traceparent", about->traceparent);
	json_close_object(w);
	return 0;
}

void result_explain_exec(struct outcome *o, const char *command)
{
	(void)!cj_fail(&o->error, o->exec_errno, "execute '%s'", command);
	cj_stage(&o->error, "exec");
	if (o->exec_errno == ENOENT)
		cj_hint(&o->error,
			"the jail has the /usr of this host, or the files of --rootfs and "
			"--ro-bind; for a script, its interpreter may be missing");
	else if (o->exec_errno == EACCES)
		cj_hint(&o->error, "it is not executable, or its directory is mounted noexec in "
				   "the jail");
	else if (o->exec_errno == ENOEXEC)
		cj_hint(&o->error, "it is neither a program for this machine nor a script with a "
				   "#! line");
}
