/* SPDX-License-Identifier: Apache-2.0 */
/* oci_verbs - which function is which verb of cejail-oci. */
#pragma once

#include "runtime/front/oci/oci_call.h"

/* Runs the verb of call->options.  Fails also for a verb that this version does not have. */
int oci_verbs_run(struct oci_call *call, struct cj_error *err);
