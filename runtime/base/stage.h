/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage - a table of what is acquired, with its release: entered downwards, left upwards.
 *
 * A normal end and a failure leave it by the same loop, so no path forgets a release.
 */
#pragma once

#include "runtime/base/error.h"

struct jail;

struct stage {
	const char *name;                                   /* as the user reads it in messages */
	bool (*is_wanted)(const struct jail *j);            /* NULL: always */
	int (*enter)(struct jail *j, struct cj_error *err); /* on failure holds nothing */
	void (*leave)(struct jail *j);                      /* NULL: ends with the process */
};

/* Enters rows 0..n-1; if row k fails, leaves k-1..0 and names row k in *err. */
int stages_enter(struct jail *j, const struct stage *table, size_t n, struct cj_error *err);

/* Leaves rows n-1..0; a row that holds nothing does nothing. */
void stages_leave(struct jail *j, const struct stage *table, size_t n);
