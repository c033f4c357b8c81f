/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_place - where the annotation io.cejail.result may write.
 *
 * The annotation's author need not be the caller: a pod's author gives it to containerd, which runs
 * as root.  So root writes only below one directory, --result-dir.  For an ordinary user without
 * that option the author is the caller, and the user's own rights are the limit.
 *
 * In every case a file is replaced only if it is an earlier result.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define RESULT_DIR_DEFAULT "/var/lib/cejail-oci/results" /* root's */
#define OCI_RESULT_SCHEMA  "cejail.oci-result/1"
#define OCI_RESULT_BEGIN   "{\"schema\":\"" OCI_RESULT_SCHEMA "\""

struct result_place {
	int dir_fd; /* -1: none */
	const char *name;
};
#define RESULT_PLACE_NULL                                                                          \
	{                                                                                          \
		.dir_fd = -1                                                                       \
	}
void result_place_close(struct result_place *f);

/*
 * result_place_find - opens the directory of the file, and checks that the file can be made there.
 *
 * `wanted`: the annotation.  With a slash at its end the file is wanted/ID.json.
 * `result_dir`: --result-dir, NULL: not given.
 * Fails: EPERM outside of the directory; ENOENT; EEXIST for a file that is not a result.
 */
int result_place_find(const char *wanted, const char *result_dir, const char *id, struct arena *a,
		      struct result_place *out, struct cj_error *err);

/* Writes the file at once: nobody reads half of it. */
int result_place_write(const struct result_place *f, const char *text, size_t size,
		       struct cj_error *err);
