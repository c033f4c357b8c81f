/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail ps`, `kill`, `gc`: the runs of this user, through the records they leave
 * (runtime/jail/record.h).  Acts on other processes only by way of that module.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/cli/cli.h"
#include "runtime/jail/record.h"

static const char *age_of(const struct record *r, char *out, size_t size)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
	uint64_t now_ms = (uint64_t)now.tv_sec * 1000;
	uint64_t age_s = now_ms > r->started_ms ? (now_ms - r->started_ms) / 1000 : 0;
	if (age_s == 0)
		(void)snprintf(out, size, "0s"); /* the clock may have been set back, too */
	else
		text_format_duration(age_s * 1000, out, size);
	return out;
}

int ps_verb(const struct cli *cli)
{
	auto_arena struct arena a = { 0 };
	struct record_entry *entries = NULL;
	struct cj_error err = { 0 };
	size_t count = 0;

	if (cli_take_only(cli, NULL, NULL, &err) < 0 || cli_need_stdout(cli, &err) < 0)
		return cli_fail(&err);
	auto_fd int dir_fd = record_open_dir(&err);
	if (dir_fd < 0 || record_list(dir_fd, &a, &entries, &count, &err) < 0)
		return cli_fail(&err);

	(void)printf("%-26s  %-10s  %7s  %-8s  %s\n", "ID", "PROFILE", "PID", "AGE", "STATE");
	for (size_t i = 0; i < count; i++) {
		const struct record *r = &entries[i].record;
		char age[32];
		(void)printf("%-26s  %-10s  %7d  %-8s  %s\n", r->id, r->profile,
			     (int)r->supervisor_pid, age_of(r, age, sizeof(age)),
			     entries[i].is_alive ? "running" : "left behind (cejail gc)");
	}
	return cli_finish(0);
}

int kill_verb(const struct cli *cli)
{
	struct cj_error err = { 0 };
	int status = 0;

	if (!cli->args[0]) {
		(void)!cj_reject(&err, "'cejail kill' needs an ID");
		cj_hint(&err, "'cejail ps' lists them");
		return cli_fail(&err);
	}
	auto_fd int dir_fd = record_open_dir(&err);
	if (dir_fd < 0)
		return cli_fail(&err);
	for (const char *const *id = cli->args; *id; id++) {
		err = (struct cj_error){ 0 };
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
	(void)printf("removed %d\n", removed);
	return cli_finish(0);
}
