/* SPDX-License-Identifier: Apache-2.0 */
/* work_result - the summary and the result of a job, and what of an error the caller may see. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"
#include "runtime/service/worker/work.h"

/* Is it the caller's mistake: what it asked for, or input that did not fit? */
bool work_is_callers_own(const struct work *w, const struct cj_error *e);

/* Replaces the message of an error that is not the caller's own and may name the host. */
void work_hide_host(const struct work *w, struct cj_error *e);

/* Sends the summary and the result of w->outcome. */
int work_deliver(struct work *w, struct cj_error *err);
