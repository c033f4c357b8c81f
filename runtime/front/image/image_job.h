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

#define IMAGE_JOB_RECORD  "record.json"
#define IMAGE_PROGRESS_MS 100 /* at least, between two reports */

struct image_progress {
	unsigned layer, layers; /* from 1; layers 0: the archive is copied, or its kind is found */
	uint64_t read_bytes, total_bytes; /* of a layer or archive as a file; total 0: not known */
	uint64_t entries;                 /* unpacked, over all layers */
};

/*
 * The unpacker writes any number of reports to its pipe, and then how it ended.  Each is one piece:
 * PIPE_BUF, pipe(7).  It reads hostile data, so each member may have any value.
 */
struct image_answer {
	unsigned is_end; /* not 0: it has `err`, else `at` */
	struct image_progress at;
	struct cj_error err; /* code 0: layers and record are complete */
};

struct image_job {
	const char *name;   /* of the image */
	const char *ref;    /* of one image among several in the source; NULL: there is one */
	uint64_t bytes_max; /* read, and unpacked */
	int source_fd;      /* a regular file or a directory, to read */
	int source_is_dir;
	int layers_fd; /* of the store: which layers there are */
	int work_fd;
	int answer_fd; /* a pipe, for struct image_answer */
	int has_reports;
};

/* Returns 0 when layers and record are complete.  Sends reports, but not the end. */
int image_job_run(const struct image_job *asked, struct cj_error *err);
