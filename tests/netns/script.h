/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script - the standard input of a program that a test runs.
 *
 * A file, not a pipe: a program that ends before it reads would end the writer by SIGPIPE.
 */
#pragma once

#include <sys/mman.h>

/* The descriptor to read `text` from; the caller closes it.  -1: errno says why. */
static inline int script_open(const char *text)
{
	const ssize_t size = (ssize_t)strlen(text);
	int fd = memfd_create("script", MFD_CLOEXEC);
	if (fd < 0 || (write(fd, text, (size_t)size) == size && lseek(fd, 0, SEEK_SET) == 0))
		return fd;
	close(fd);
	return -1;
}
