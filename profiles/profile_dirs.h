/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile_dirs - where profiles lie on this host, and reading one file of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define PROFILE_DIRS_MAX 3

/* The directories, first match wins: the user's, the administrator's, the shipped one. */
struct profile_dir {
	const char *path;
	bool is_users;
};
struct profile_dirs {
	struct profile_dir items[PROFILE_DIRS_MAX];
	size_t count;
};

int profile_dirs_find(struct arena *a, struct profile_dirs *out, struct cj_error *err);

struct profile_source {
	const char *name; /* as it was asked for */
	const char *path; /* as messages show it */
	char *text;
	size_t size;
	size_t next_dir; /* where the search for a profile of this name that it hides goes on */
};

/*
 * profile_source_read - the bytes of profile `name`, or of the file when there is a '/' in it.
 * `first_dir`: 0, or next_dir of the profile that hides this one.
 * Fails: ENOENT in no directory; what the file is instead; others may write it; too large.
 */
int profile_source_read(const char *name, size_t first_dir, struct arena *a,
			struct profile_source *out, struct cj_error *err);

/* The names (files NAME.json) in one directory, unsorted; a missing directory has none. */
int profile_dir_names(const struct profile_dir *where, struct arena *a, struct strings *out,
		      struct cj_error *err);
