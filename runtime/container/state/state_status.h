/* SPDX-License-Identifier: Apache-2.0 */
/* state_status - how a container is, found out each time, and its state as JSON. */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/container/config/oci_value.h"
#include "runtime/container/state/state.h"

enum state_status {
	STATE_CREATING,
	STATE_CREATED,
	STATE_RUNNING,
	STATE_PAUSED,
	STATE_STOPPED,
	STATE_STATUS_COUNT
};
/* As state and list print it: "creating", "paused". */
const char *state_status_name(enum state_status status);

enum state_status state_status_of(const struct state *s);

/*
 * state_status_write - the state as the specification has it, an object: of `state`, of an item of
 * list, and of the standard input of a hook.
 *
 * `with_owner`: list's objects have the owner's name, too.
 */
void state_status_write(struct json_writer *w, const struct state *s, enum state_status status,
			const struct oci_pairs *annotations, bool with_owner);

/* "2026-11-23T05:17:21.000123Z", in UTC: RFC 3339. */
#define STATE_TIME_MAX 40
void state_status_time(uint64_t epoch_ms, char out[static STATE_TIME_MAX]);
