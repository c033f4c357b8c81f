/* SPDX-License-Identifier: Apache-2.0 */
/* oci_verbs - which function is which verb of cejail-oci. */
#pragma once

#include "runtime/container/oci_call.h"

/* Runs the verb of call->options. */
int oci_verbs_run(struct oci_call *call, struct cj_error *err);
