/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_stat - the texts of memory.stat and io.stat as JSON.  Pure. */
#pragma once

#include "runtime/base/json/json.h"

/* Each line "KEY NUMBER" as a member of the open object.  Other lines are skipped. */
void cgroup_stat_write_raw(struct json_writer *w, const char *text);

enum cgroup_stat_kind { CGROUP_STAT_BYTES, CGROUP_STAT_REQUESTS };
/*
 * Lines "MAJOR:MINOR rbytes=N wbytes=N rios=N ..." as items of the open array: {"major", "minor",
 * "op": "Read"|"Write"|"Discard", "value"}.
 */
void cgroup_stat_write_io(struct json_writer *w, const char *text, enum cgroup_stat_kind kind);
