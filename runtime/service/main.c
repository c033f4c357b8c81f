/* SPDX-License-Identifier: Apache-2.0 */
/* libexec/cejail/serve: the service, as `cejail serve` executes it. */
#include <unistd.h>

#include "runtime/base/files/libexec_path.h"
#include "runtime/service/serve_main.h"
#include "runtime/service/keeper/session_keeper.h"
#include "runtime/service/worker/worker.h"
#include "runtime/service/worker/zygote_keeper.h"

#define FAKE_PROGRAM "serve-fake"

/* --fake needs another program, so that this one contains no made-up answers. */
static int become_fake(char **argv, struct cj_error *err)
{
	char path[PATH_MAX];

	if (libexec_path_find(FAKE_PROGRAM, path, err) < 0)
		return -err->code;
	(void)execv(path, argv);
	(void)!cj_fail(err, errno, "--fake: start '%s'", path);
	return cj_hint(err, "make install puts it there");
}

static int prepare(void *context, const struct serve_options *options, char **argv,
		   struct cj_error *err)
{
	(void)context;
	return options->fake ? become_fake(argv, err) : 0;
}

int main(int argc, char **argv)
{
	struct worker_context jobs = { .keep_session = session_keep };
	const struct serve_program program = { .prepare = prepare,
					       .worker = { .main = worker_main,
							   .keep_zygote = zygote_keeper_main,
							   .context = &jobs } };

	return serve_main(argc, argv, &program);
}
