/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_main - main() of the service's two programs: libexec/cejail/serve, and serve-fake, which
 * has other workers and everything else from here.
 */
#pragma once

#include "runtime/service/api/api.h"
#include "runtime/service/config/serve_options.h"
#include "runtime/service/worker/spawner.h"

/* What the two programs do not share. */
struct serve_program {
	/* Called once, after the options and the configuration are read and before any fork. */
	int (*prepare)(void *context, const struct serve_options *options, char **argv,
		       struct cj_error *err);
	void *context;
	struct worker_life worker;
	struct api_filter filter;
};

/* Returns the exit status. */
int serve_main(int argc, char **argv, const struct serve_program *program);
