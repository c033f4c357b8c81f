/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_user - USER of an image, looked up in the /etc/passwd that its layers have together.  Acts;
 * runs confined.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

/* Where the layers are: in the store or in the working directory. */
struct image_user_dirs {
	int layers_fd, work_fd;
	const struct strings *names; /* first on top */
};

/* The id that image_passwd_find() gives.  /etc and passwd must not be symbolic links. */
int image_user_find(const struct image_user_dirs *dirs, const char *user, uint32_t *out_uid,
		    struct cj_error *err);
