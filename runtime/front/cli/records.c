/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail ps`, `kill`, `gc`: list, cancel and clean up the runs of this user, by their records
 * (runtime/jail/record.h).
 */
#include <time.h>

#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/cli/cli.h"
#include "runtime/jail/record.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/run/report/result.h"

#define PS_SCHEMA "cejail.ps/1"

static const char *age_of(const struct record *r, char *out, size_t size)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	uint64_t now_ms = (uint64_t)now.tv_sec * 1000;
	uint64_t age_s = now_ms > r->started_ms ? (now_ms - r->started_ms) / 1000 : 0;
	return age_s == 0 ? "0s" /* or the clock was set back since */
			  : text_format_duration(age_s * 1000, out, size);
}

static const char *state_of(const struct record_entry *e)
{
	if (!e->is_alive)
		return "left behind";
	return e->record.is_ready ? "ready" : "running";
}

static int print_entries(const struct record_entry *entries, size_t count, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_open_object(w);
	json_member_filled(w, "schema", PS_SCHEMA);
	json_member_array(w, "runs");
	for (size_t i = 0; i < count; i++) {
		const struct record *r = &entries[i].record;
		json_open_object(w);
		json_member_filled(w, "id", r->id);
		json_member_filled(w, "profile", r->profile);
		json_member_u64(w, "pid", (uint64_t)r->supervisor_pid);
		result_put_ms(w, "started_at", r->started_ms);
		json_member_filled(w, "state", state_of(&entries[i]));
		json_close_object(w);
	}
	json_close_array(w);
	json_close_object(w);
	return json_print(w, err);
}

int ps_verb(const struct cli *cli)
{
	auto_arena struct arena a = { 0 };
	struct record_entry *entries = NULL;
	struct cj_error err = { 0 };
	size_t count = 0;
	bool as_json = false;

	if (cli_take_only(cli, "--json", &as_json, &err) < 0 || cli_need_stdout(cli, &err) < 0)
		return cli_fail(&err);
	auto_fd int dir_fd = record_open_dir(&err);
	if (dir_fd < 0 || record_list(dir_fd, &a, &entries, &count, &err) < 0)
		return cli_fail(&err);
	if (as_json && print_entries(entries, count, &err) < 0)
		return cli_fail(&err);
	if (!as_json) {
		(void)printf("%-26s  %-10s  %7s  %-8s  %s\n", "ID", "PROFILE", "PID", "AGE",
			     "STATE");
		for (size_t i = 0; i < count; i++) {
			const struct record *r = &entries[i].record;
			char age[32];
			(void)printf("%-26s  %-10s  %7d  %-8s  %s%s\n", r->id, r->profile,
				     (int)r->supervisor_pid, age_of(r, age, sizeof(age)),
				     state_of(&entries[i]),
				     entries[i].is_alive ? "" : " (cejail gc)");
		}
	}
	return cli_finish(0);
}

int kill_verb(const struct cli *cli)
{
	struct cj_error err = { 0 };
	int status = 0;

	if (!cli->args[0]) {
		cj_refuse(&err, "'cejail kill' needs an ID");
		cj_hint(&err, "'cejail ps' lists the ids");
		return cli_fail(&err);
	}
	auto_fd int dir_fd = record_open_dir(&err);
	if (dir_fd < 0)
		return cli_fail(&err);
	for (const char *const *id = cli->args; *id; id++) {
		err = (struct cj_error){ 0 };
		if ((*id)[0] == '-') { /* kill(1) takes a signal here, this verb takes none */
			cj_refuse(&err, "unknown option '%s'", *id);
			cj_hint(&err, "see 'cejail kill --help'");
			return cli_fail(&err);
		}
		if (record_cancel(dir_fd, *id, &err) < 0)
			status = cli_fail(&err);
	}
	return status;
}

int gc_verb(const struct cli *cli)
{
	struct cj_error err = { 0 };

	if (cli_take_only(cli, NULL, NULL, &err) < 0 || cli_need_stdout(cli, &err) < 0)
		return cli_fail(&err);
	auto_fd int dir_fd = record_open_dir(&err);
	int removed = dir_fd < 0 ? dir_fd : record_sweep(dir_fd, &err);
	if (removed < 0)
		return cli_fail(&err);
	removed += (int)cgroup_sweep();
	(void)printf("removed %d\n", removed);
	return cli_finish(0);
}
