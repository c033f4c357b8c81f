/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail serve`, `mcp`, `image` and `bwrap`: each executes libexec/cejail/VERB (runtime/service/,
 * runtime/front/mcp/, runtime/front/image/, runtime/front/bwrap/).  In this program, their code and
 * libraries would slow down the start of every run.
 */
#include <signal.h>

#include "runtime/base/files/libexec.h"
#include "runtime/front/cli/cli.h"

static int exec_program(const struct cli *cli, struct cj_error *err)
{
	char path[PATH_MAX], self[PATH_MAX], name[64];
	size_t count = 0, used = 0;
	const bool is_mcp = strcmp(cli->verb, "mcp") == 0;

	if (libexec_self(self, err) < 0)
		return -err->code;
	while (cli->args[count])
		count++;
	const char **args = calloc(count + 3, sizeof(*args));
	if (!args)
		return cj_fail(err, ENOMEM, "start '%s'", cli->verb);
	(void)snprintf(name, sizeof(name), "cejail-%s", cli->verb);
	args[used++] = is_mcp ? self : name; /* for its --print-config */
	if (is_mcp)
		args[used++] = "mcp";
	memcpy(args + used, cli->args, count * sizeof(*args));

	if (libexec_find(cli->verb, path, err) == 0) {
		/* an ignored signal stays ignored across execve(2) */
		(void)signal(SIGXFSZ, SIG_DFL);
		if (strcmp(cli->verb, "bwrap") == 0) /* whose program would inherit it */
			(void)signal(SIGPIPE, SIG_DFL);
		(void)execv(path, (char *const *)args);
		(void)!cj_fail(err, errno, "start '%s'", path);
		cj_hint(err, "install it with 'make install'");
	}
	free(args);
	return -err->code;
}

int program_verb(const struct cli *cli)
{
	struct cj_error err = { 0 };

	(void)exec_program(cli, &err);
	return cli_fail(&err);
}
