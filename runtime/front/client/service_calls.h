/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_calls - calls of a program that runs at a service, to tools of its caller here.
 *
 *	service                                   here
 *	event "call" ---------------------------> call_event_read()
 *	POST .../calls/N <----------------------- call_answers_add()
 *	event "answer", of a call that timed
 *	out or was cancelled -------------------> call_answers_drop()
 */
#pragma once

#include <sys/queue.h>

#include "runtime/base/json/json_record.h"
#include "runtime/front/client/remote_link.h"

/* {"type":"call",...,"arguments":OBJECT}: the arguments are parsed apart from the rest, as together
 * they may be more values than json.h reads. */
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

/* The answers to the calls of one run.  One is under way at a time: while the service has no room
 * for it, the next ones wait. */
struct call_answers {
	struct remote_exchange post; /* of the first of them */
	const char *socket_path;     /* of the service; borrowed, as the others */
	const char *url;             /* of the run or the exec */
	const char *agent;           /* NULL: "cejail" */
	TAILQ_HEAD(, call_answer) list;
	size_t count;
	uint64_t retry_at_ms; /* it is to be sent again then; 0: it is under way */
	bool has_no_memory;   /* for an answer, which the program would wait for */
};

void call_answers_open(struct call_answers *c, struct loop *loop, const char *socket_path,
		       const char *url);
/* Nothing happens if it was not opened. */
void call_answers_close(struct call_answers *c);

/* {"result": ANY} or {"error": {"message": TEXT}}, copied; NULL: there was no memory for it. */
void call_answers_add(struct call_answers *c, uint64_t id, const char *text, size_t size);
void call_answers_add_error(struct call_answers *c, uint64_t id, const char *why);
/* The call has ended: nobody waits for its answer.  One that is under way stays. */
void call_answers_drop(struct call_answers *c, uint64_t id);

/* Returns the time in ms until there is more to do; -1: never. */
int call_answers_tick(struct call_answers *c, uint64_t now_ms);
