/* SPDX-License-Identifier: Apache-2.0 */
/* container_signal - names of signals.  Pure. */
#pragma once

#include "runtime/base/error.h"

/* "9", "KILL", "SIGKILL", "RTMIN+3"; any case.  Fails for 0 and for what is no signal. */
int container_signal_parse(const char *text, int *out, struct cj_error *err);
