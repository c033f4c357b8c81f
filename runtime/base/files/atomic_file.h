/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic_file - a file that gets its name when it is whole.
 *
 * Until then it has none (O_TMPFILE), so that nothing is left of it when its writer is killed.
 * Where the file system has no such files (NFS, FUSE, overlayfs before Linux 6.3) its name is
 * removed as soon as it has been made, and atomic_file_publish copies it; a kill in just these
 * moments leaves a file ".cejail-...".
 */
#pragma once

struct atomic_file {
	int fd;         /* to write to; -1: none */
	bool is_copied; /* it can't be linked */
};

#define NEWFILE_NULL ((struct atomic_file){ .fd = -1 })

/* In dir_fd; `mode` under the umask.  0 or -errno, as all here. */
int atomic_file_open(int dir_fd, mode_t mode, struct atomic_file *out);

/*
 * atomic_file_publish - close it, and let it take the place of whatever has this name.
 *
 * What was there goes first, since linkat(2) replaces nothing: for an instant the name names
 * nothing.  -EISDIR: a directory has the name, and keeps it.
 */
int atomic_file_publish(struct atomic_file *f, int dir_fd, const char *name);

/* Leaves nothing unless it was published. */
void atomic_file_fini(struct atomic_file *f);
