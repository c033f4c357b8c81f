/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifacts - files copied out of /box/out, and of paths that the caller named, after the run: to
 * a directory or into memory.
 *
 * Runs in the supervisor when every process of the jail is dead, so nothing changes meanwhile.  The
 * content is still untrusted.  It is walked by descriptor (openat2 beneath, no links), and only
 * regular files with one link are copied, whose names are UTF-8 without control characters or a
 * leading dash.  Number, depth, length of names and bytes *read* are limited.  Each skipped file
 * is named (escaped) in a warning.
 */
#pragma once

#include <time.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/files/sha256.h"

#define ARTIFACTS_FILES_MAX 1000
#define ARTIFACTS_DEPTH_MAX 16
#define ARTIFACTS_BYTES_MAX (256ull << 20)
#define ARTIFACT_NAME_MAX   255
/* Of all that a result has in it. */
#define ARTIFACTS_INLINE_MAX (16u << 20)

/* A path that the caller named: `inside` dir_fd, a directory of the jail. */
struct artifact_place {
	int dir_fd;
	const char *inside;
	const char *path; /* the same from the jail's root: "/src/hello" */
};

/* Where to look; all borrowed. */
struct artifacts_from {
	int box_fd;
	const struct artifact_place *places;
	size_t nplaces;
	/* Files of /box/out that have not changed since then are left out.  0: none is. */
	struct timespec since;
};

/*
 * The path of a file of /box/out is relative to that; the path of another file is its path from the
 * jail's root without the first slash.  So that each path is unique, files of /box/out are not
 * copied if their first component is that of such a path.
 */
struct artifact {
	const char *path; /* relative */
	uint64_t bytes;
	char sha256[SHA256_HEX_MAX];
	const char *type;    /* types.h: "image/png"; "application/octet-stream" */
	const void *content; /* `bytes` of it, in the arena; NULL: it is in the directory */
};

struct artifacts {
	struct artifact *items;
	size_t count;
	struct strings skipped; /* one warning each */
};

/* Control characters of ASCII and of Latin-1: no name with one becomes a name outside. */
bool artifacts_has_control(const char *name);

/*
 * artifacts_collect - copy into dest_fd, a directory of the caller's.
 *
 * Files are created 0644 under a temporary name and renamed when complete.  An existing file of the
 * name is replaced, an existing link is not followed.  A full disk is an error that names the
 * file; the files copied before stay listed in *out.
 */
int artifacts_collect(const struct artifacts_from *from, int dest_fd, struct arena *a,
		      struct artifacts *out, struct cj_error *err);

/*
 * artifacts_keep - the same into memory, for a caller that has no directory.  All files together
 * have at most max_bytes.
 */
int artifacts_keep(const struct artifacts_from *from, uint64_t max_bytes, struct arena *a,
		   struct artifacts *out, struct cj_error *err);
