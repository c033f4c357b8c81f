/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd - small jobs on descriptors and whole files.
 */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stdalign.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct stat;

/*
 * fd_claim_stdio - make sure 0, 1 and 2 are open, /dev/null where they were not.
 *
 * The first thing main() does: otherwise the next open(2) lands on a standard
 * stream and is inherited by the child.  *out_were_open gets one bit per
 * stream that was open before (bit 0: stdin ...).
 */
int fd_claim_stdio(unsigned *out_were_open, struct cj_error *err);

/* What was printed must have arrived. */
int fd_flush_stdout(struct cj_error *err);

/* Writes all of buf or fails; `what` names the object in the message. */
int fd_write_all(int fd, const void *buf, size_t size, const char *what, struct cj_error *err);
/* The same, and a newline. */
int fd_write_line(int fd, const char *text, size_t size, const char *what, struct cj_error *err);

/*
 * fd_read_all - read to the end of file, at most `max` bytes.
 *
 * Owns:  the text lives in `a`, has a NUL behind it (not counted in *out_size).
 * Fails: EFBIG past `max`; what read(2) says.
 */
int fd_read_all(int fd, size_t max, struct arena *a, char **out_text, size_t *out_size,
		const char *what, struct cj_error *err);

/* The same of a regular file whose size the caller has looked up; 0: not known. */
int fd_read_sized(int fd, uint64_t expected, size_t max, struct arena *a, char **out_text,
		  size_t *out_size, const char *what, struct cj_error *err);

/* fd_read_all of dir_fd/path: small kernel files (/proc, /sys, cgroup). Follows no link at the end.
 */
int fd_read_file(int dir_fd, const char *path, size_t max, struct arena *a, char **out_text,
		 size_t *out_size, struct cj_error *err);

/*
 * fd_put_file - write `text` to an existing file in one write(2), as kernel files want it.
 * The message names dir_fd/path and the text.
 */
int fd_put_file(int dir_fd, const char *path, const char *text, struct cj_error *err);

/* The same for several files, in this order; they are closed together. */
struct fd_text {
	const char *path, *text;
};
int fd_put_files(int dir_fd, const struct fd_text *files, size_t count, struct cj_error *err);

/*
 * fd_memfd_sealed - a memfd with these bytes that can never change.
 *
 * Sealed against write, grow, shrink and further seals; the offset is at 0.
 * Returns the descriptor, the caller's to close.  Follows memfd_create(2).
 */
int fd_memfd_sealed(const char *name, const void *bytes, size_t size, struct cj_error *err);

/* The same of several pieces, one behind the other. */
struct iovec;
int fd_memfd_sealed_parts(const char *name, const struct iovec *parts, size_t count,
			  struct cj_error *err);

/*
 * fd_memfd_copy - as above, filled from `in_fd` to its end (at most `max` bytes, else EFBIG).
 */
int fd_memfd_copy(const char *name, int in_fd, size_t max, const char *what, struct cj_error *err);

/*
 * fd_open_regular - open a file somebody else may be changing, to read it once.
 *
 * No symbolic link at the end of the path, nothing but a regular file, never
 * blocks on a fifo; the message says what it is instead and what to do.
 */
int fd_open_regular(const char *path, struct cj_error *err);

/* The same, but a symbolic link at the end is followed, unless it is one of /proc. */
int fd_open_linked(const char *path, struct cj_error *err);

/* "a directory", "a fifo": what such a file is, for messages. */
const char *fd_kind_name(mode_t mode);

/* The kernel's name of the open file now; NULL: unknown.  Only for messages. */
const char *fd_real_path(int fd, char out[static PATH_MAX]);

/*
 * fd_await - wait until poll(2) has an event for the descriptor: one of `events`, an error or its
 * end.  timeout_ms: 0 only looks; a signal begins it anew.  False: there is none.
 */
bool fd_await(int fd, short events, int timeout_ms);

/* A directory that is listed; fdopendir(3) would make three system calls for each. */
struct fd_dir {
	int fd;
	size_t at, size; /* in the buffer: the next entry, and the end of the last one */
	off_t place;     /* behind the entry that was read last */
	alignas(struct dirent) char buffer[32768];
};
#define auto_fd_dir __attribute__((cleanup(fd_close_dir)))

/*
 * fd_open_dir - the directory dir_fd/name, or dir_fd itself by ".", to be listed: a new open file,
 * because the offset of dir_fd is shared.  Follows no link at the end.  NULL: errno says why.
 */
struct fd_dir *fd_open_dir(int dir_fd, const char *name);

/* The same of an open directory: takes the descriptor, also on failure. */
struct fd_dir *fd_take_dir(int fd);
void fd_close_dir(struct fd_dir **dir);

/* The next entry but "." and ".."; NULL: errno is 0 at the end, or says why. */
const struct dirent *fd_next_entry(struct fd_dir *dir);

/* Goes on at a `place`; 0: from the start. */
void fd_seek_dir(struct fd_dir *dir, off_t place);

/* Descriptors that are closed together: one call for each run of neighbouring numbers. */
#define FD_BAG_MAX 64
struct fd_bag {
	int fds[FD_BAG_MAX];
	size_t count;
};
#define auto_fd_bag __attribute__((cleanup(fd_bag_close)))

/* Takes the descriptor; -1 is none.  A full bag is closed first. */
void fd_bag_add(struct fd_bag *bag, int fd);
void fd_bag_close(struct fd_bag *bag);

/*
 * fd_close_others - close every descriptor from `first` on but those in kept[], in any order; what
 * is below `first` there, as -1, counts for nothing.  -1: errno of close_range(2).
 */
int fd_close_others(unsigned first, const int *kept, size_t count);

/*
 * fd_has_trusted_owner - does the file belong to root, to the caller, or to the owner of "/"?
 *
 * In a user namespace that does not map root, files of root belong to "nobody", and so does "/".
 */
bool fd_has_trusted_owner(const struct stat *st);

/* O_NONBLOCK on; cannot fail on the descriptors we make. */
void fd_set_nonblocking(int fd);
