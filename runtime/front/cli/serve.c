/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail serve`, `cejail mcp` and `cejail image`: each executes a program of its own
 * (runtime/service/, runtime/front/mcp/, runtime/front/image/).  In this program, their code
 * and libraries would slow down the start of every run.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/files/libexec.h"
#include "runtime/front/cli/cli.h"

/* Executes libexec/cejail/NAME.  `first`: its arguments before those after the verb. */
static int exec_program(const struct cli *cli, const char *name, const char *const first[2],
			struct cj_error *err)
{
	char path[PATH_MAX];
	size_t count = 0, used = 0;

	while (cli->args[count])
		count++;
	const char **args = calloc(count + 3, sizeof(*args));
	if (!args)
		return cj_fail(err, ENOMEM, "start '%s'", name);
	for (size_t i = 0; i < 2 && first[i]; i++)
		args[used++] = first[i];
	memcpy(args + used, cli->args, count * sizeof(*args));

	int rc = libexec_find(name, path, err);
	if (rc == 0) {
		(void)signal(SIGXFSZ,
			     SIG_DFL); /* an ignored signal stays ignored across execve(2) */
		(void)execv(path, (char *const *)args);
		rc = cj_fail(err, errno, "start '%s'", path);
		cj_hint(err, "install it with 'make install'");
	}
	free(args);
	return rc;
}

int serve_verb(const struct cli *cli)
{
	static const char *const first[2] = { "cejail-serve" };
	struct cj_error err = { 0 };

	(void)exec_program(cli, "serve", first, &err);
	return cli_fail(&err);
}

/* Its name is our path, for --print-config. */
int mcp_verb(const struct cli *cli)
{
	char self[PATH_MAX];
	const char *const first[2] = { self, "mcp" };
	struct cj_error err = { 0 };
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (size < 0) {
		(void)!cj_fail(&err, errno, "read '/proc/self/exe'");
		return cli_fail(&err);
	}
	self[size] = '\0';
	(void)exec_program(cli, "mcp", first, &err);
	return cli_fail(&err);
}

int image_verb(const struct cli *cli)
{
	static const char *const first[2] = { "cejail-image" };
	struct cj_error err = { 0 };

	(void)exec_program(cli, "image", first, &err);
	return cli_fail(&err);
}
