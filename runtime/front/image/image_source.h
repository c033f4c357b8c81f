/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_source - what is imported, and the files in it.  Acts; runs confined (image_confine.h).
 *
 * The files of an archive are copied to the working directory first, because a manifest may name
 * them in any order.
 */
#pragma once

#include "runtime/front/image/image_stream.h"

enum image_source_kind {
	IMAGE_SOURCE_OCI,    /* a layout: index.json and blobs */
	IMAGE_SOURCE_DOCKER, /* manifest.json, as docker save writes it */
	IMAGE_SOURCE_ROOT,   /* a root file system */
};

struct image_source {
	enum image_source_kind kind;
	int fd; /* a file or a directory; borrowed */
	bool is_dir;
	/* of an archive that is not a root: */
	int staged_fd; /* the directory with the files "0", "1", ...; -1: none */
	struct arena *arena;
	struct image_staged *files;
	size_t nfiles;
};

/*
 * image_source_open - find out what it is, and copy an archive's files into work_fd.
 *
 * Everything lives in the arena.  image_source_close() closes the descriptor.
 */
int image_source_open(int in_fd, int work_fd, struct image_budget *budget, struct arena *a,
		      struct image_source *out, struct cj_error *err);
void image_source_close(struct image_source *s);
#define auto_image_source __attribute__((cleanup(image_source_close)))

/* A file of the source by its path in it; regular, and not outside.  The caller closes it. */
int image_source_file(const struct image_source *s, const char *path, struct cj_error *err);
