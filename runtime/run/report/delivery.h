/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery - the places where the caller wants the result: standard output, a file, descriptors.
 *
 * They are opened and checked before the jail is built, and written once at the end.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/run/report/events.h"
#include "runtime/run/report/result.h"
#include "runtime/run/report/result_file.h"

struct delivery {
	bool to_stdout; /* --json: the output is in the result and not passed through */
	int result_fd;  /* borrowed; -1: none */
	struct result_file file;
	struct events events;
};

void delivery_init(struct delivery *d);
void delivery_fini(struct delivery *d);

/* Fails: a descriptor that is not open for writing, or is a standard stream; a file that can't be
 * written. */
int delivery_open(struct delivery *d, const struct config *c, struct cj_error *err);

/* Is there a place for the result? */
bool delivery_is_wanted(const struct delivery *d);

/* The descriptor whose reader, when it goes away, cancels the run; -1: none.  The engine watches
 * the readers of output that is passed through. */
int delivery_hangup_fd(const struct delivery *d);

/* Writes the result to all places, and returns the first failure. */
int delivery_send(struct delivery *d, const struct outcome *o, const struct result_about *about,
		  struct cj_error *err);
/* The same for a result that is text already. */
int delivery_send_text(struct delivery *d, const char *text, size_t size, struct cj_error *err);
