/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delivery - every place a result was asked for: standard output, a file, descriptors.
 *
 * Opened and checked before anything is built, filled once at the end.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/front/report/events.h"
#include "runtime/front/report/result.h"
#include "runtime/front/cli/result_file.h"

struct delivery {
	bool to_stdout; /* --json: the program's output is in the object, nothing passes through */
	int result_fd;  /* borrowed; -1: none */
	struct result_file file;
	struct events events;
};

void delivery_init(struct delivery *d);
void delivery_fini(struct delivery *d);

/* Fails: a descriptor that is not open for writing, or is a standard stream; a file that can't be
 * written. */
int delivery_open(struct delivery *d, const struct config *c, struct cj_error *err);

/* Whose going away cancels the run; -1: nobody's (a reader of what passes through is the engine's).
 */
int delivery_hangup_fd(const struct delivery *d);

/* The result, everywhere.  All places are tried; the first failure is returned. */
int delivery_send(struct delivery *d, const struct outcome *o, const struct result_about *about,
		  struct cj_error *err);
/* The same with one that is text already. */
int delivery_send_text(struct delivery *d, const char *text, size_t size, struct cj_error *err);
