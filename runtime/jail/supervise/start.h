/* SPDX-License-Identifier: Apache-2.0 */
/* start - jail_warm() and jail_start(): jail.h has their contracts. */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/jail_io.h"

struct cell_ops;
struct jail;
struct program;
struct session_cell;

int start_launcher(struct jail *j, const struct program *launcher, struct cj_error *err);
/* jail_warm_from() */
int start_launcher_from(struct jail *j, int zygote_fd, const struct program *launcher,
			struct cj_error *err);
int start_program(struct jail *j, const struct program *program, const struct jail_io *io,
		  struct cj_error *err);
/*
 * start_program() in two parts, for a caller that must not wait: start_await() does not block when
 * the link to init is readable.
 */
int start_send(struct jail *j, const struct program *program, const struct jail_io *io,
	       struct cj_error *err);
int start_await(struct jail *j, struct cj_error *err);
/* The last line that an interpreter printed, as a hint of why it failed. */
void start_take_last_line(struct jail *j, struct cj_error *err);
/* session_cell_start(): the interpreter runs already, and `cell` has what it is to be sent. */
void start_cell(struct jail *j, struct session_cell *cell, const struct cell_ops *ops,
		const struct program *program, const struct jail_io *io);
