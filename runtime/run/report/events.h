/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events - `--events-fd`: JSON lines as things happen.
 *
 * The run must not wait for a slow reader.  So lines are queued up to a limit, and written as far
 * as the descriptor accepts them at once.  Beyond the limit, output events are dropped and counted,
 * and the next line has their number ({"type":"dropped","events":N}).  The last line is the result;
 * it is written with a timeout.  Each line before it has "at_ms", the time since the first event.
 */
#pragma once

#include "runtime/base/byte_queue.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"

#define EVENTS_QUEUE_MAX   (1u << 20)
#define EVENTS_PATIENCE_MS 5000 /* default of patience_ms */

/* What a line before the last one is; a new kind needs a word in event.json, too. */
enum event_type {
	EVENT_START,
	EVENT_STDOUT,
	EVENT_STDERR,
	EVENT_NETWORK,
	EVENT_DENIED,
	EVENT_CALL,
	EVENT_ANSWER,
	EVENT_DROPPED,
	EVENT_TYPE_COUNT
};
extern const char *const event_type_names[EVENT_TYPE_COUNT]; /* "start", ...: the member "type" */

struct events {
	int fd;          /* borrowed; -1: no events are written */
	int patience_ms; /* how long the last write waits without progress; -1: no limit */
	bool is_gone;    /* the reader closed its end */
	struct byte_queue queue;
	uint64_t dropped;
	uint64_t timeout_ms; /* of the run, for the event "start"; 0: none */
	uint64_t began_ms;   /* clock_ms() of the first event; 0: there was none */
	struct half_character {
		uint8_t bytes[4];
		size_t size;
	} carried[2]; /* stdout, stderr: an unfinished character */
};

void events_init(struct events *e, int fd);
void events_fini(struct events *e);

/* The following six never block. */
void events_add_start(struct events *e, const char *id);
/* `stream`: 0 for stdout, 1 for stderr. */
void events_add_output(struct events *e, size_t stream, const void *bytes, size_t size);
/* {"type":"denied","network":ROW}: the row of the result, with the count so far; or
 * {"type":"denied","syscall":NAME}. */
struct jail_denied;
void events_add_denied(struct events *e, const struct jail_denied *d);
/*
 * {"type":"call","call":ID,"name":NAME}, {"type":"answer", ...,"ms":N,"outcome":END}, or
 * {"type":"denied","call":NAME,"reason":TEXT}.  with_arguments: the first has them, too, and
 * is not dropped, because the reader is to answer it.  False: it is lost, for want of memory or of
 * a reader.
 */
struct jail_call;
bool events_add_call(struct events *e, const struct jail_call *call, bool with_arguments);
/* {"type":"network", ...}: the public network is ready, or has failed. */
struct network_outcome;
void events_add_network(struct events *e, const struct network_outcome *n);
/* An event that is a line of JSON already. */
void events_add_json(struct events *e, const char *line, size_t size);

/* Adds a line between the last event and the result, without checking the limit. */
int events_add_line(struct events *e, struct json_writer *w, struct cj_error *err);

/* For jail_io.has_room.  False: the reader is so far behind that events would be dropped. */
bool events_has_room(struct events *e);

/* The last line: {"type":"result","result":RESULT}.  Fails when it could not be delivered. */
int events_finish(struct events *e, const char *result, size_t size, struct cj_error *err);
