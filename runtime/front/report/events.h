/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events - `--events-fd`: JSON lines as things happen.
 *
 * Whoever reads them may be slow or gone; the run must not wait for it.  So lines are
 * queued up to a cap and written as far as the descriptor takes them at once; past the
 * cap output events are left out, counted, and the next line says how many
 * ({"type":"dropped","events":N}).  The last line, the result, is waited for, but not
 * for ever.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netns/firewall/denials.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"

#define EVENTS_QUEUE_MAX   (1u << 20)
#define EVENTS_PATIENCE_MS 5000 /* the usual patience */

struct events {
	int fd;          /* borrowed; -1: nobody listens */
	int patience_ms; /* without progress, at the end; -1: for ever */
	bool is_gone;    /* the reader went away */
	char *queue;     /* [start, end) waits to be written */
	size_t start, end, room;
	uint64_t dropped;
	uint64_t timeout_ms; /* the run's, told at its start; 0: none */
	struct half_character {
		uint8_t bytes[4];
		size_t size;
	} carried[2]; /* stdout, stderr: a character that is not whole yet */
};

void events_init(struct events *e, int fd);
void events_fini(struct events *e);

/* A struct jail_io event: "start", "stdout", "stderr", "denied".  Never blocks. */
void events_add(struct events *e, const char *type, const void *bytes, size_t size);

/* {"type":"denied","network":ROW}: the row as in the result, counted so far.  Never blocks. */
void events_add_denial(struct events *e, const struct denial *d);

/* An event that is a line of JSON already, made elsewhere.  Never blocks. */
void events_add_json(struct events *e, const char *line, size_t size);

/* A line between the last event and the result, an object; whatever the cap. */
int events_add_line(struct events *e, struct json_writer *w, struct cj_error *err);

/* For jail_io.has_room: false while the reader is so far behind that events will be left out. */
bool events_has_room(struct events *e);

/* The last line: {"type":"result","result":RESULT}.  Fails when it could not be delivered. */
int events_finish(struct events *e, const char *result, size_t size, struct cj_error *err);
