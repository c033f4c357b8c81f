/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_job - one import, as the process that unpacks sees it.  Acts; runs confined.
 *
 * It leaves in work_fd a directory for each new layer, named by its SHA-256, and the record of the
 * image.  The importer moves them to their places.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/error.h"

#define IMAGE_JOB_RECORD "record.json"

struct image_job {
	const char *name;   /* of the image */
	const char *ref;    /* of one image among several in the source; NULL: there is one */
	uint64_t bytes_max; /* read, and unpacked */
	int source_fd;      /* a regular file or a directory, to read */
	int source_is_dir;
	int layers_fd; /* of the store: which layers there are */
	int work_fd;
};

/* Returns 0 when layers and record are complete. */
int image_job_run(const struct image_job *asked, struct cj_error *err);
