/* SPDX-License-Identifier: Apache-2.0 */
/* call_record - what the audit record has of one call of a tool. */
#pragma once

#include <stdint.h>

#include "profiles/plan/plan.h"
#include "runtime/base/files/sha256.h"
#include "runtime/jail/jail.h"

/* Of a refused call only the name, or "". */
struct call_record {
	uint64_t id; /* 0: it was refused */
	char name[TOOL_NAME_MAX + 1];
	uint64_t bytes; /* of its arguments */
	char sha256[SHA256_HEX_MAX];
	const char *arguments; /* their JSON; NULL: not asked for, or too long */
	enum call_end end;
	uint64_t ms;
};
