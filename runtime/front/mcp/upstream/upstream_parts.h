/* SPDX-License-Identifier: Apache-2.0 */
/* upstream_parts - what upstream.c and upstream_take.c have of each other. */
#pragma once

#include "runtime/front/mcp/upstream/upstream.h"

#define UPSTREAM_LEGACY "2025-11-25" /* the newest of those with a handshake */
#define UPSTREAM_MODERN "2026-07-28"

/* They set step_id. */
void upstream_write_initialize(struct upstream *u);
void upstream_write_list(struct upstream *u, const char *cursor); /* NULL: the first page */

void upstream_write_call(struct upstream *u, struct upstream_call *c);
void upstream_write_cancelled(struct upstream *u, uint64_t id, const char *reason);

/* Empties the list that is being read. */
void upstream_list_begin(struct upstream *u);
/* The call ends, and is no longer in the list. */
void upstream_end_call(struct upstream_call *c, const struct json_node *value, const char *error);
