/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake - `cejail serve --fake FILE`: workers that build no jail and answer from a file; for the
 * tests of programs that call the service.  All else is the service's own: sockets, callers,
 * queue, cancelling, audit.
 */
#pragma once

#include <stdbool.h>

#include "runtime/front/serve/worker/fake_file.h"
#include "runtime/front/serve/worker/job.h"

/* Reads the file.  *out is the caller's to end with arena_fini(&out->arena). */
int fake_open(const char *path, struct fake_file *out, struct cj_error *err);

/* worker_main()'s place.  Runs in: a child of the spawner.  Takes both descriptors. */
_Noreturn void fake_main(const struct fake_file *f, const char *profile, enum tier tier,
			 int sock_fd, int control_fd);
