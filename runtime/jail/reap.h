/* SPDX-License-Identifier: Apache-2.0 */
/* reap - init and reapers wait for the program and for the orphans that become their children. */
#pragma once

#include <sys/types.h>

#include "runtime/base/step.h"

/* Reaps every process that ends, until the main process has; then sends STEP_ENDED. */
int reap_until_ended(const struct step_link *link, pid_t main_pid, struct cj_error *err);

/* Reaps until this process has no child. */
void reap_all(void);
