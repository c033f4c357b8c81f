/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_passwd - users of an image: whom USER means, and their home directories.
 */
#pragma once

#include <limits.h>

#include "runtime/base/error.h"

#define IMAGE_PASSWD_MAX (1u << 20) /* bytes of /etc/passwd in an image */

/*
 * image_passwd_find - the id of `user`: "NAME", "UID", "NAME:GROUP" or "UID:GROUP"; "" is 0.
 *
 * `passwd` is /etc/passwd of the image, with a NUL behind its bytes; NULL: it has none.  A name is
 * looked up there, a number needs no entry.  The group is not looked up: a jail has one group.
 * Fails: a name without an entry, an id above 2^32 - 2.
 * Follows: passwd(5); config.md of the OCI image specification, "User".
 */
int image_passwd_find(const char *user, const char *passwd, uint32_t *out_uid,
		      struct cj_error *err);

/* The home directory of `uid`; "/" without an entry that has an absolute path. */
void image_passwd_home(const char *passwd, uint32_t uid, char out[static PATH_MAX]);
