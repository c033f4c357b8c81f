/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths - the texts "SRC[:DST]" and the two kinds of path in them.
 *
 * Results live in the arena.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/*
 * paths_split - take "SRC[:DST]" apart.  "\:" is a colon that belongs to a name, "\\" a
 * backslash; any other backslash is itself.  *out_target is NULL where none was given.
 */
int paths_split(const char *text, struct arena *a, const char **out_source, const char **out_target,
		struct cj_error *err);

/* Splits at every ':' that is not escaped; no part may be empty. */
int paths_split_all(const char *text, struct arena *a, struct strings *out, struct cj_error *err);

/*
 * paths_escape - `path` as a part of such a text.  Returns its size; writes no NUL.
 *
 * `out` has room for two characters for each of `path`.
 */
size_t paths_escape(const char *path, char *out);

/*
 * paths_inside - a place in the jail: absolute, or relative to /box; no "..", and without "."
 * and doubled or trailing slashes in the result.
 */
int paths_inside(const char *text, struct arena *a, const char **out, struct cj_error *err);

/*
 * paths_inside() for something that will be mounted or written there: not "/", and not in /proc,
 * /dev, /sys.  The links that every jail has, such as /var/tmp, are followed.
 */
int paths_target(const char *text, struct arena *a, const char **out, struct cj_error *err);

/*
 * paths_clean - the components of `text`, "/" before each: "." and empty ones are left out, ".."
 * takes the last one away, by the letters only.  "/" at least.  Returns NULL without memory, which
 * may have been missing for `text` itself.
 */
const char *paths_clean(const char *text, struct arena *a);

/* `path` made absolute with the current directory, "." and ".." taken out by their letters. */
int paths_absolute(const char *path, struct arena *a, const char **out, struct cj_error *err);

/*
 * paths_resolve - paths_absolute() of something that exists and has no symbolic link in it.
 *
 * A link could be turned elsewhere between this check and the mount, and the name the caller
 * wrote would then stand for something else.  Fails: names the real path to use instead.
 */
int paths_resolve(const char *path, struct arena *a, const char **out, struct cj_error *err);

/* Is `path` the same as `ancestor` or below it?  Both normalised. */
bool paths_is_below(const char *path, const char *ancestor);

/* What follows the last slash; the path itself if there is none. */
const char *paths_name(const char *path);
