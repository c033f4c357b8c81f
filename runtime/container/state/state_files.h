/* SPDX-License-Identifier: Apache-2.0 */
/* state_files - files of a state directory, and the record among them.  Of use to state.c only. */
#pragma once

#include "runtime/container/state/state.h"

/*
 * state_files_root - the directory of all states; made, with its parents, if `make`.
 *
 * `root` NULL: /run/cejail-oci for root, else cejail-oci in XDG_RUNTIME_DIR.  In a user namespace
 * root counts as a user who has that variable, if it is set.  An empty variable is not set.
 * Refused: a directory of another user, and one that every user may write to.
 */
int state_files_root(const char *root, bool make, struct cj_error *err);

/* The record's text into *out, whose texts live in `a`.  EINVAL: it is not whole. */
int state_files_parse(const char *text, size_t size, struct arena *a, struct state_record *out,
		      struct cj_error *err);
/* record.json of dir_fd. */
int state_files_read(int dir_fd, struct arena *a, struct state_record *out, struct cj_error *err);
int state_files_write(int dir_fd, const struct state_record *r, struct cj_error *err);

/* A file that gets its name when it is whole. */
int state_files_put(int dir_fd, const char *name, const char *text, size_t size,
		    struct cj_error *err);
