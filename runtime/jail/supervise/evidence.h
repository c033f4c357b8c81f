/* SPDX-License-Identifier: Apache-2.0 */
/* evidence - what a run used, which limits it met, what it was refused. */
#pragma once

#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/jail/outcome.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/usage/process_usage.h"

struct jail;

/* What the supervisor observed while it watched. */
struct watched {
	struct process_usage peak; /* the highest seen where we sample */
	struct ended ended;        /* init's report; zero without one */
	bool has_ended;
	uint64_t wall_ms; /* until the first terminal event */
};

/* Copies what is known of the jail and its program: limits, layers, the code's hash, the start. */
void evidence_adopt(const struct jail *j, struct outcome *out);

/* The refused calls and packets of a run, and its network. */
int evidence_report_run(struct jail *j, struct outcome *out, struct cj_error *err);

/* Fills usage, limits, layers and the refused calls of *out, once its status is decided. */
int evidence_read(struct jail *j, const struct watched *seen, struct outcome *out,
		  struct cj_error *err);
