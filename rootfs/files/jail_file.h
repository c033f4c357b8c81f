/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail_file - opens what programs of a jail left: by descriptor, one name at a time, across no link
 * and no other mount, and never blocking.
 *
 * The payload chose every name and type.  Check an entry before it is opened, because opening a
 * device has effects, and again by its descriptor.
 */
#pragma once

#include <sys/stat.h>

#include "runtime/base/arena.h"

/* Why it is not read (a directory: entered); NULL: it may be. */
const char *jail_file_fault(const struct stat *st);

/* Opens an entry (O_PATH) to look at it, a symbolic link itself.  Returns: -1 and errno. */
int jail_file_look(int dir_fd, const char *name);

/* Opens an entry for reading.  Returns: -1 and errno. */
int jail_file_open(int dir_fd, const char *name, int more_flags);

/*
 * jail_file_parent - open the directory of the last component of `inside`, a path below dir_fd.
 * *out_name becomes that component.  Returns: -1 and errno.
 */
int jail_file_parent(int dir_fd, const char *inside, struct arena *a, const char **out_name);
