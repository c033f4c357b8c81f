/* SPDX-License-Identifier: Apache-2.0 */
/* exec_view - an exec's view of the session's jail, with the operations of jail_ops.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/kernel/cgroup/cgroup.h"

struct jail;
struct outcome;
struct session;

/* The part of a struct jail that makes it a view. */
struct session_exec {
	struct session *session; /* borrowed */
	unsigned slot;
	bool is_empty;              /* the reaper said that it has no child left */
	struct cgroup_usage before; /* of the whole session, when this exec began */
};

/* A cell begins: what was counted until now is not its own. */
void session_exec_begin_cell(struct jail *view);
/* The cell whose code runs, for session_exec_cell(); 0: none. */
void session_exec_set_cell(const struct jail *view, uint32_t number);
