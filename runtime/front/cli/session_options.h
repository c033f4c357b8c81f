/* SPDX-License-Identifier: Apache-2.0 */
/* session_options - which options of `cejail run` a verb of `cejail session` takes. */
#pragma once

#include "profiles/settings.h"
#include "runtime/front/client/remote.h"
#include "runtime/run/options/options.h"

bool session_options_of_create(const struct setting *s);
bool session_options_of_exec(const struct setting *s);
bool session_options_of_wait(const struct setting *s);
/* Any other verb. */
bool session_options_of_verb(const struct setting *s);

/* Fails: an option that `exec` or `wait` does not take. */
int session_options_check(const struct options *o, const struct remote_exec *exec,
			  struct cj_error *err);
