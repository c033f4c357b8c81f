/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_call - what the function of a verb gets, and what it leaves for main().
 *
 * A verb prints only what is its output (state, list, ...).  Its failure goes to main(), which
 * reports it and exits with status 1.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/oci_options.h"

struct oci_call {
	const struct oci_options *options;
	struct arena *arena;
	int exit_status; /* on success; run and exec set the program's */
};

typedef int oci_verb(struct oci_call *call, struct cj_error *err);
