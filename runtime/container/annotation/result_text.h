/* SPDX-License-Identifier: Apache-2.0 */
/* result_text - the result of a container as JSON.  Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "netns/firewall/denials.h"
#include "runtime/base/json/json.h"
#include "runtime/container/config/oci_value.h"

/* A number that is not set is not known: null in the result. */
struct result_facts {
	const char *id;
	uint64_t created_ms, ended_ms; /* since the epoch */
	bool has_wait_status;
	int wait_status; /* of the container's first process, as waitpid(2) has it */

	struct oci_u64 memory_max, memory_peak, oom_kills;
	struct oci_u64 pids_max, pids_peak, pids_refused;
	struct oci_u64 cpu_us;

	const struct denials *denials; /* NULL: no rules of ours */
};

/* The number in the line "KEY NUMBER" of a file of the cgroup; or with `key` NULL, the only one.
 * Not set: there is none, or it is "max". */
struct oci_u64 result_text_number(const char *text, const char *key);

/* The object, beginning with OCI_RESULT_BEGIN. */
void result_text_write(struct json_writer *w, const struct result_facts *f);
