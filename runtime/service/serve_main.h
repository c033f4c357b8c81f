/* SPDX-License-Identifier: Apache-2.0 */
/* serve_main - main() of libexec/cejail/serve. */
#pragma once

#include "runtime/service/worker/spawner.h"

/* Returns the exit status. */
int serve_main(int argc, char **argv, const struct worker_life *worker);
