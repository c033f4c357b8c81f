/* SPDX-License-Identifier: Apache-2.0 */
/* libexec/cejail/serve-fake: what `cejail serve --fake FILE` becomes. */
#include "runtime/service/fake/fake.h"
#include "runtime/service/serve_main.h"

static int prepare(void *context, const struct serve_options *options, char **argv,
		   struct cj_error *err)
{
	(void)argv;
	if (!options->fake)
		return cj_reject(err, "--fake FILE is missing");
	return fake_open(options->fake, context, err);
}

int main(int argc, char **argv)
{
	struct fake_file file = { .count = 0 };
	const struct serve_program program = { .prepare = prepare,
					       .context = &file,
					       .worker = { .main = fake_main, .context = &file },
					       .filter = { fake_refuses, &file } };

	int status = serve_main(argc, argv, &program);
	arena_fini(&file.arena);
	return status;
}
