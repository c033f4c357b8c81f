/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail serve`: becomes the service, a program of its own (runtime/front/serve/), because its
 * HTTP library would cost every run of the launcher.
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/files/libexec_path.h"
#include "runtime/front/cli/cli.h"

#define SERVER "serve"

static int become_server(const struct cli *cli, struct cj_error *err)
{
	char path[PATH_MAX];
	size_t count = 0;

	while (cli->args[count])
		count++;
	const char **words = calloc(count + 2, sizeof(*words));
	if (!words)
		return cj_fail(err, ENOMEM, "start the service");
	words[0] = "cejail-serve";
	for (size_t i = 0; i < count; i++)
		words[i + 1] = cli->args[i];

	int rc = libexec_path_find(SERVER, path, err);
	if (rc == 0) {
		(void)signal(SIGXFSZ, SIG_DFL); /* execve(2) hands on what is ignored */
		(void)execv(path, (char *const *)words);
		rc = cj_fail(err, errno, "start the service '%s'", path);
		cj_hint(err, "make install puts it beside cejail");
	}
	free(words);
	return rc;
}

int serve_verb(const struct cli *cli)
{
	struct cj_error err = { 0 };

	(void)become_server(cli, &err);
	return cli_fail(&err);
}
