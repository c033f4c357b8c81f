/* SPDX-License-Identifier: Apache-2.0 */
/* libexec_program - how a helper of ours begins and ends: libexec_run.h starts it. */
#pragma once

#include "runtime/base/error.h"

/*
 * libexec_begin - from now on the program ends with its parent, and after so many seconds at the
 * latest: what it asks may never answer.
 */
void libexec_begin(unsigned life_seconds);

/* Writes the answer to standard output.  Returns the exit status. */
int libexec_answer(const void *bytes, size_t size);
/* Writes the error there.  Returns the exit status that goes with it. */
int libexec_fail(const struct cj_error *err);
