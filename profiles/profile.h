/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile - find, read and merge the JSON files that say what a jail is.
 *
 * A name is looked up in $XDG_CONFIG_HOME/cejail/profiles (default ~/.config),
 * /etc/cejail/profiles, then the shipped directory; a text with a '/' is a path.
 * Names are [a-z0-9_-]{1,32} and opened beneath the directory, so none leads out.
 * A file that others than its owner or root may write is refused.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"

struct setting;

#define PROFILE_BYTES_MAX   (64u << 10)
#define PROFILE_EXTENDS_MAX 8
#define PROFILE_BASE        "base" /* extended by the others */

/* Where the shipped profiles are: next to the program in a build tree, else CJ_DATADIR "/profiles".
 */
const char *profile_shipped_dir(void);

/* Reads `name` and its parents into *c (parents first); fills profile_name, profile_sha256. */
int profile_load(struct config *c, const char *name, struct cj_error *err);

/*
 * profile_read_text - one profile's own keys into *c; its parent is named, not followed.
 *
 * `path` is for messages and for files named beside the profile.  *out_extends is NULL
 * where there is none.
 */
int profile_read_text(struct config *c, const char *path, const char *text, size_t size,
		      const char **out_extends, struct cj_error *err);

/* The profile whose "extensions" name this file's; "base" for another executable file. */
int profile_for_file(struct config *c, const char *file, const char **out_name,
		     struct cj_error *err);

/* Does the command of a file begin with this interpreter: "python" for /usr/bin/python3? */
bool profile_runs(const struct config *c, const char *interpreter);

/*
 * profile_walk - an object's members by their dotted keys: {"network": {"mode": ..}} and its short
 * form "network": .. are both "network.mode".
 *
 * `s` is the key's row, or NULL when there is none; a failure ends the walk.
 */
typedef int (*profile_visitor)(void *context, const char *key, const struct setting *s,
			       const struct json_node *node, struct cj_error *err);
int profile_walk(const char *path, const struct json_node *root, profile_visitor visit,
		 void *context, struct cj_error *err);

/* One of them onto *c. */
int profile_apply(struct config *c, const char *path, const struct setting *s,
		  const struct json_node *node, struct cj_error *err);

struct profile_entry {
	const char *name, *path, *description;
	const char *problem; /* NULL: it reads well */
};
/* Every profile that can be named, overridden ones once; sorted by name. */
int profile_list(struct arena *a, struct profile_entry **out, size_t *out_count,
		 struct cj_error *err);

/* The effective settings of a config as a profile that would give the same (cejail profile show).
 */
void profile_write(struct json_writer *w, const struct config *c);

/* Its members, into an object that is open: all, or those of the rows of settings[] that are
 * `wanted`. */
void profile_put(struct json_writer *w, const struct config *c, const bool *wanted);

/* --- profile_dirs.c: where profiles lie on this host, and reading one file of them --- */

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
	/* A bit each: the directories that have been looked for, and those that are not there. */
	unsigned known_dirs, absent_dirs;
};

/*
 * profile_source_read - the bytes of profile `name`, or of the file when there is a '/' in it.
 * `first_dir`: 0, or next_dir of the profile that hides this one.
 * out->known_dirs, out->absent_dirs: 0, or those of a profile that was read before.
 * Fails: ENOENT in no directory; what the file is instead; others may write it; too large.
 */
int profile_source_read(const char *name, size_t first_dir, struct arena *a,
			struct profile_source *out, struct cj_error *err);

/* The names (files NAME.json) in one directory, unsorted; a missing directory has none. */
int profile_dir_names(const struct profile_dir *where, struct arena *a, struct strings *out,
		      struct cj_error *err);
