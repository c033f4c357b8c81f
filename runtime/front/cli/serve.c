/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail serve`: executes the service, which is a separate program (runtime/front/serve/).  In
 * this program, its HTTP library would slow down the start of every run.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/files/libexec_path.h"
#include "runtime/front/cli/cli.h"

#define SERVER "serve"

static int exec_server(const struct cli *cli, struct cj_error *err)
{
	char path[PATH_MAX];
	size_t count = 0;

	while (cli->args[count])
		count++;
	const char **args = calloc(count + 2, sizeof(*args));
	if (!args)
		return cj_fail(err, ENOMEM, "start the service");
	args[0] = "cejail-serve";
	for (size_t i = 0; i < count; i++)
		args[i + 1] = cli->args[i];

	int rc = libexec_path_find(SERVER, path, err);
	if (rc == 0) {
		(void)signal(SIGXFSZ,
			     SIG_DFL); /* an ignored signal stays ignored across execve(2) */
		(void)execv(path, (char *const *)args);
		rc = cj_fail(err, errno, "start the service '%s'", path);
		cj_hint(err, "install it with 'make install'");
	}
	free(args);
	return rc;
}

int serve_verb(const struct cli *cli)
{
	struct cj_error err = { 0 };

	(void)exec_server(cli, &err);
	return cli_fail(&err);
}
