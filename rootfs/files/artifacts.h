/* SPDX-License-Identifier: Apache-2.0 */
/*
 * artifacts - files copied out of /box/out, and of paths that the caller named, after the run: to a
 * directory or into memory.
 *
 * Runs in the supervisor when every process of the jail is dead, so nothing moves
 * while we look.  Everything below is still hostile: walked by descriptor from
 * held directories (openat2 beneath, no links of any kind), regular files only, one link
 * each, names that are UTF-8 without control characters or a leading dash, caps
 * on number, depth, name, bytes *read*.  What is passed over is a warning that
 * names it (escaped), never silent.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/files/sha256.h"

#define ARTIFACTS_FILES_MAX 1000
#define ARTIFACTS_DEPTH_MAX 16
#define ARTIFACTS_BYTES_MAX (256ull << 20)
#define ARTIFACT_NAME_MAX   255

/* A path of the caller's: `inside` dir_fd, a directory of the jail's. */
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
};

/*
 * A file of /box/out bears its path below that, another its path from the jail's root without the
 * first slash.  So that each name has one meaning, nothing of /box/out is copied whose first
 * component is that of such a path.
 */
struct artifact {
	const char *path; /* relative */
	uint64_t bytes;
	char sha256[SHA256_HEX_MAX];
	const char *type;    /* by file name: "image/png"; "application/octet-stream" */
	const void *content; /* `bytes` of it, in the arena; NULL: it lies in a directory */
};

struct artifacts {
	struct artifact *items;
	size_t count;
	struct strings skipped; /* one sentence each */
};

/*
 * artifacts_collect - copy into dest_fd, a directory of the caller's.
 *
 * Files are made 0644 under a temporary name and renamed when whole; an existing file of the
 * name is replaced, an existing link is not followed.  A full disk is an error that names the
 * file; what was copied before stays listed in *out.
 */
int artifacts_collect(const struct artifacts_from *from, int dest_fd, struct arena *a,
		      struct artifacts *out, struct cj_error *err);

/*
 * artifacts_keep - the same into memory, for a caller who is told and not given files: no
 * directory takes part.  All files together have at most max_bytes.
 */
int artifacts_keep(const struct artifacts_from *from, uint64_t max_bytes, struct arena *a,
		   struct artifacts *out, struct cj_error *err);
