/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adoption - init's part in a launcher that is a fork of a zygote (zygote/zygote.h).
 *
 * Init opens its namespaces and a socket pair while it may.  When the supervisor asks, it sends
 * them and closes its copies.  Then it waits for the launcher's byte.
 */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/base/step.h"
#include "runtime/jail/zygote/zygote_protocol.h"

struct adoption {
	int our_fd, its_fd; /* the launcher's socket pair */
	int namespace_fds[ZYGOTE_NAMESPACES];
	int ruleset_fd; /* init's Landlock ruleset; -1: none */
};
#define ADOPTION_NULL ((struct adoption){ -1, -1, { -1, -1, -1, -1, -1, -1, -1, -1 }, -1 })

/* All but the program's user namespace.  Runs in: init, before Landlock and the filter. */
int adoption_open(struct adoption *a, struct cj_error *err);
int adoption_open_program_user(struct adoption *a, struct cj_error *err); /* once it is init's */

/* STEP_ADOPTED: sends all of them.  *out_fd is init's end of the launcher's socket. */
int adoption_begin(struct adoption *a, const struct step_link *link, int *out_fd,
		   struct cj_error *err);

/*
 * The pid of the launcher that has sent its byte.
 * Fails: ECHILD when none has come; EPROTO when the sender is not a child of init.
 */
pid_t adoption_await(int fd, struct cj_error *err);
