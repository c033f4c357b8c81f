/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_options - which options of `cejail run` the verbs of `cejail session` take.  Pure.
 *
 * The jail belongs to the session: `create` takes the options that describe it.  `exec` takes those
 * that describe the program, its input and the delivery of its result.
 */
#pragma once

#include "profiles/settings.h"
#include "runtime/run/options/options.h"
#include "runtime/front/client/remote.h"

bool session_create_takes(const struct setting *s);
bool session_exec_takes(const struct setting *s);
bool session_wait_takes(const struct setting *s);
/* Any other verb. */
bool session_verb_takes(const struct setting *s);

/* Fails: an option that `exec` or `wait` does not take. */
int session_check_options(const struct options *o, const struct remote_exec *exec,
			  struct cj_error *err);
