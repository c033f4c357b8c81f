/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_event - the event of a call at a service: {"type":"call",...,"arguments":OBJECT}.
 *
 * The arguments are parsed apart from the rest: together, they may be more values than json.h
 * reads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json_record.h"

struct call_event {
	uint64_t id;
	const char *name;      /* in the arena */
	struct blob head;      /* in the text: the event without its arguments, an object */
	struct blob arguments; /* in the text: one object, without line ends */
};

/* The line is a call to be answered: it has arguments. */
bool call_event_is(const char *text, size_t size);

/*
 * call_event_read - split the line, which it changes.
 *
 * Fails: it is no call that a program may have made, or has no number above `last_id`.
 */
int call_event_read(char *text, size_t size, uint64_t last_id, struct arena *a,
		    struct call_event *out, struct cj_error *err);
