/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail profile list|show|check`: the profiles that exist, the settings of one, the errors in a
 * file.
 */

#include "profiles/profile.h"
#include "runtime/base/json/json.h"
#include "runtime/front/cli/cli.h"
#include "runtime/kernel/seccomp/policy.h"

static int list_profiles(const struct cli *cli)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct profile_entry *entries = NULL;
	size_t count = 0;
	bool only_names = false;
	int width = 0;

	if (cli_take_only(cli, "--names", &only_names, &err) < 0 ||
	    profile_list(&a, &entries, &count, &err) < 0)
		return cli_fail(&err);

	for (size_t i = 0; i < count; i++) {
		int size = (int)strlen(entries[i].name);
		width = size > width ? size : width;
	}
	for (size_t i = 0; i < count; i++) {
		const struct profile_entry *e = &entries[i];
		if (only_names && !e->problem)
			(void)printf("%s\n", e->name);
		else if (!only_names && e->problem)
			(void)printf("%-*s  (unusable: %s)\n", width, e->name, e->problem);
		else if (!only_names)
			(void)printf("%-*s  %s\n%*s  %s\n", width, e->name,
				     e->description ? e->description : "", width, "", e->path);
	}
	return cli_finish(0);
}

static int show_profile(const struct cli *cli)
{
	__attribute__((cleanup(config_fini))) struct config c;
	struct cj_error err = { 0 };

	config_init(&c);
	if (!cli->args[0] || cli->args[1]) {
		cj_refuse(&err, "'cejail profile show' takes one NAME or FILE");
		cj_hint(&err, "'cejail profile list' shows the names");
		return cli_fail(&err);
	}
	auto_json_writer struct json_writer *w = json_writer_create(true);
	if (profile_load(&c, cli->args[0], &err) < 0)
		return cli_fail(&err);
	profile_write(w, &c);
	return json_print(w, &err) < 0 ? cli_fail(&err) : cli_finish(0);
}

static int check_seccomp(struct config *c, const char *file, struct cj_error *err)
{
	const struct policy *policy = NULL;

	if (strcmp(c->seccomp, "default") == 0)
		return 0;
	if (policy_load(c->seccomp, &c->arena, &policy, err) < 0)
		return cj_wrap(err, "%s: seccomp", file);
	for (size_t i = 0; i < policy->notes.count; i++)
		(void)printf("note: %s\n", policy->notes.items[i]);
	return 0;
}

static int check_file(const char *file, struct cj_error *err)
{
	__attribute__((cleanup(config_fini))) struct config c;

	config_init(&c);
	/* "NAME.json" is a file in this directory, not the name of a profile */
	const char *path = strchr(file, '/') ? file : arena_printf(&c.arena, "./%s", file);
	if (!path)
		return cj_fail(err, ENOMEM, "check '%s'", file);
	if (profile_load(&c, path, err) < 0 || check_seccomp(&c, file, err) < 0)
		return -err->code;
	(void)printf("%s: ok\n", file);
	return 0;
}

static int check_profile(const struct cli *cli)
{
	int status = 0;

	if (!cli->args[0]) {
		struct cj_error err = { 0 };
		cj_refuse(&err, "'cejail profile check' needs a FILE");
		cj_hint(&err, "write 'cejail profile check ./NAME.json'");
		return cli_fail(&err);
	}
	for (const char *const *file = cli->args; *file; file++) {
		struct cj_error err = { 0 };
		if (check_file(*file, &err) < 0)
			status = cli_fail(&err);
	}
	return cli_finish(status);
}

static const struct profile_action {
	const char *name, *arguments;
	int (*run)(const struct cli *cli); /* cli->args begins after the action */
	const char *help;
} actions[] = {
	{ "list", "[--names]", list_profiles, "list all profiles: name, description, file" },
	{ "show", "NAME|FILE", show_profile,
	  "print all settings, including those of its parents, as JSON" },
	{ "check", "FILE...", check_profile,
	  "check profile files and the seccomp files that they name" },
};

static void print_usage(FILE *to)
{
	(void)fprintf(to, "Usage: cejail profile ACTION ...\n\n");
	for (size_t i = 0; i < COUNT_OF(actions); i++)
		(void)fprintf(to, "  %-5s %-10s %s\n", actions[i].name, actions[i].arguments,
			      actions[i].help);
}

int profile_verb(const struct cli *cli)
{
	const char *name = cli->args[0];
	struct cj_error err = { 0 };

	if (!name) {
		print_usage(stderr);
		return CLI_FAILED;
	}
	if (cli_is_help(name) || (cli->args[1] && cli_is_help(cli->args[1]))) {
		print_usage(stdout);
		return cli_finish(0);
	}
	for (size_t i = 0; i < COUNT_OF(actions); i++) {
		if (strcmp(name, actions[i].name) != 0)
			continue;
		struct cli rest = *cli;
		rest.args++;
		return cli_need_stdout(cli, &err) < 0 ? cli_fail(&err) : actions[i].run(&rest);
	}
	cj_refuse(&err, "unknown action '%s'", name);
	cj_hint(&err, "write list, show or check: see 'cejail profile --help'");
	return cli_fail(&err);
}
