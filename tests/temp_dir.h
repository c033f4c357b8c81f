/* SPDX-License-Identifier: Apache-2.0 */
/* temp_dir - an empty directory for a test or a group of tests, removed with all that is in it. */
#pragma once

#include <fcntl.h>
#include <ftw.h>

static char temp_dir[64];
static int temp_dir_fd = -1;

static inline int temp_dir_make(void **state)
{
	(void)state;
	(void)snprintf(temp_dir, sizeof(temp_dir), "/tmp/cejail-test.XXXXXX");
	if (!mkdtemp(temp_dir))
		return -1;
	temp_dir_fd = open(temp_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return temp_dir_fd < 0 ? -1 : 0;
}

static inline int temp_dir_remove_one(const char *path, const struct stat *st, int type,
				      struct FTW *place)
{
	(void)st, (void)type, (void)place;
	return remove(path);
}

static inline int temp_dir_remove(void **state)
{
	(void)state;
	(void)close(temp_dir_fd);
	temp_dir_fd = -1;
	return nftw(temp_dir, temp_dir_remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
