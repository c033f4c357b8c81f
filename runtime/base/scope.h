/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope - a resource is released where the scope of its variable ends.
 *
 *	auto_fd int fd = open(...);     closed on every way out
 *	return take_fd(&fd);            moves ownership to the caller
 *
 * A release accepts the null value (-1, NULL), leaves it behind, keeps errno
 * and cannot fail.
 */
#pragma once

#include <dirent.h>

#define auto_fd   __attribute__((cleanup(cj_close)))
#define auto_free __attribute__((cleanup(cj_free)))
#define auto_dir  __attribute__((cleanup(cj_closedir)))
#define auto_file __attribute__((cleanup(cj_fclose)))
/* A pidfd of a child of ours: killed and reaped if we leave early (fd.c). */
#define auto_child __attribute__((cleanup(cj_end_child)))

static inline void cj_close(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;
		(void)close(
		    *fd); /* nothing to be done: close(2) frees the slot even when it fails */
		errno = saved;
	}
	*fd = -1;
}

static inline void cj_free(void *pointer_to_pointer)
{
	void **slot = pointer_to_pointer;
	int saved = errno;
	free(*slot);
	*slot = NULL;
	errno = saved;
}

static inline void cj_closedir(DIR **dir)
{
	int saved = errno;
	if (*dir)
		(void)closedir(*dir); /* read-only: nothing can be lost */
	*dir = NULL;
	errno = saved;
}

static inline void cj_fclose(FILE **file)
{
	int saved = errno;
	if (*file)
		(void)fclose(*file); /* writers check fflush(3) before they leave */
	*file = NULL;
	errno = saved;
}

void cj_reap_child(int *pidfd); /* waits for its end, and closes */
void cj_end_child(int *pidfd);  /* the same, after SIGKILL */

static inline int take_fd(int *fd)
{
	int taken = *fd;
	*fd = -1;
	return taken;
}

#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})
