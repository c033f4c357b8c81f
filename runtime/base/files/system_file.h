/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system_file - small files of /proc, /sys and cgroupfs, whole, without the heap.
 *
 * Here a missing file is an answer (this kernel doesn't have it), so these return
 * a negative errno and no message; the caller reports what matters.
 */
#pragma once

#define SYSTEM_FILE_SMALL 4096

/*
 * Reads all of dir_fd/name into buf with a NUL behind; the number of bytes, or -errno.
 * -EFBIG when it doesn't fit (a cut file would be misread).  Follows no link at the end.
 * Not for a file with lines of 2048 bytes and more, which names paths.
 */
ssize_t system_file_read(int dir_fd, const char *name, char *buf, size_t size);

/* The same from an open descriptor, from its start. */
ssize_t system_file_reread(int fd, char *buf, size_t size);

/* One write(2) of `text` to an existing file, as kernel files want it. */
int system_file_write(int dir_fd, const char *name, const char *text);

/* The same, and reads what the file has then, as system_file_read() does: by one descriptor.
 * Returns -errno of the write, or 0: *out_size is the number of bytes, or -errno of the read. */
int system_file_write_back(int dir_fd, const char *name, const char *text, char *buf, size_t size,
			   ssize_t *out_size);

/*
 * A directory of cgroupfs, with mode 0755 whatever our umask is: the user's systemd, who has no
 * more rights than we, couldn't remove one that it may not open.  0 or -errno.
 */
int system_file_make_dir(int dir_fd, const char *name);
