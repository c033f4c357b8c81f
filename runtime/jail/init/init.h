/* SPDX-License-Identifier: Apache-2.0 */
/* init - pid 1 of the jail, until its end.  The reapers of a session share its later parts. */
#pragma once

#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/base/step.h"

struct adoption;
struct jail;

/* The whole life of init; never returns. */
_Noreturn void init_main(struct jail *j);

/*
 * init_adoption_open - open init's namespaces and a socket pair, while it may, for a launcher that
 * is a fork of a zygote (zygote/zygote.h).  When the supervisor asks, init sends them, closes its
 * copies and waits for the launcher's byte.
 *
 * All but the program's user namespace.  Runs in: init, before Landlock and the filter.
 */
int init_adoption_open(struct adoption *a, struct cj_error *err);
int init_adoption_open_program_user(struct adoption *a,
				    struct cj_error *err); /* once it is init's */

/* Instead of a pid: STEP_SESSION came, which init.serve carries out.  It is init's own pid. */
#define INIT_BECOMES_SESSION 1

/*
 * init_take_program - receive the inputs and the program, once sealed, and start it.
 *
 * Returns the pid of the main process; 0 when the program could not be executed;
 * INIT_BECOMES_SESSION.
 */
pid_t init_take_program(struct jail *j, struct cj_error *err);

/* Reaps every process that ends, until the main process has; then sends STEP_ENDED. */
int init_reap_until_ended(const struct step_link *link, pid_t main_pid, struct cj_error *err);

/* Reaps until this process has no child. */
void init_reap_all(void);
