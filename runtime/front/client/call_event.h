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
#include "runtime/front/client/http_answer.h"

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

#define CALL_RETRY_MS 100 /* after which the service is asked again, unless it says when */

/* What the service says to the answer of a call.  One whose call has ended is taken, too. */
enum call_reply { CALL_REPLY_TAKEN, CALL_REPLY_REFUSED, CALL_REPLY_LATER };

/*
 * call_event_reply - `is_whole`: the service has replied; a service that can't be reached now may
 * be reached later: at the latest, the run ends.  *out_wait_ms: until it is to be sent again.
 */
enum call_reply call_event_reply(const struct http_answer *said, bool is_whole,
				 uint64_t *out_wait_ms);
