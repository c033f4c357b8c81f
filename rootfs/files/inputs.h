/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs - files copied in: the supervisor opens them once with the caller's rights, and init
 * writes them as the jail's user, with the seccomp filter loaded.
 *
 * An input is plain data plus a descriptor, so it is one message of the step link.  Files whose
 * bytes the supervisor has travel together, as a pack.  A directory
 * becomes one input per entry, parents first, and one more at its end.  Symbolic links inside a
 * copied directory stay links (they resolve inside the jail).  Devices, fifos and sockets are
 * refused by name.  Permissions and modification times are kept; owners, setuid, setgid and
 * sticky bits are not.
 */
#pragma once

#include <sys/uio.h>
#include <time.h>

#include "rootfs/files/own_file.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

#define INPUT_PATH_MAX  4096
#define INPUT_FILES_MAX 100000 /* entries of one --file directory */
#define INPUT_DEPTH_MAX 64
#define CODE_BYTES_MAX  (16u << 20)
#define ARGS_JSON_MAX   (1u << 20)

enum input_kind {
	INPUT_FILE,
	INPUT_DIRECTORY,
	INPUT_SYMLINK,
	INPUT_DIRECTORY_END, /* the directory is complete: it gets its mode and time now */
};

/* One thing to create.  Fixed layout: it is the data of a step message. */
struct input {
	enum input_kind kind;
	mode_t mode;   /* permission bits to give it */
	bool is_open;  /* INPUT_DIRECTORY: INPUT_DIRECTORY_END follows */
	bool has_time; /* `mtime` is set; else the copy keeps its own time */
	bool replaces; /* a file or link of that name is replaced; else it is an error */
	struct timespec mtime;
	uint64_t max_bytes;              /* INPUT_FILE: more than this is an error */
	char path[INPUT_PATH_MAX];       /* absolute, in the jail */
	char target[INPUT_PATH_MAX / 2]; /* INPUT_SYMLINK */
};

/* Called for each input; borrows in and fd (-1 unless INPUT_FILE).  Non-zero stops the walk. */
typedef int (*input_sink)(void *context, const struct input *in, int fd, struct cj_error *err);

/*
 * inputs_walk - turn the host path `source` into inputs at `target`, in order.
 * Runs in:  supervisor.  Never follows a link, never blocks on a fifo.
 */
int inputs_walk(const char *source, const char *target, uint64_t max_bytes, input_sink sink,
		void *context, struct cj_error *err);

#define INPUT_PACK_FILES 16
#define INPUT_PACK_MAX   (256u << 10) /* init has all of it in memory */

/* A file of a pack.  Fixed layout: its path with a NUL follows, then its bytes. */
struct packed_file {
	uint32_t mode;
	uint32_t own; /* enum own_file, whose bytes come before those of the pack */
	uint32_t size;
	uint32_t path_size; /* input_pack_add() sets it */
};

struct input_pack {
	struct packed_file files[INPUT_PACK_FILES];
	struct iovec
	    parts[3 * INPUT_PACK_FILES]; /* of each file: struct packed_file, path, bytes */
	size_t count, size;
};

/* false: it has no room left for this file.  Borrows path and bytes. */
bool input_pack_add(struct input_pack *pack, const struct packed_file *file, const char *path,
		    const void *bytes);

/* input_write() for the files of a pack, whose parts are in `bytes`.  Fails: EPROTO, too. */
int input_pack_write(int root_fd, const char *bytes, size_t size, bool replaces,
		     struct cj_error *err);

/*
 * input_write - create one input below `root_fd` and give it its bytes from `fd`.
 *
 * Runs in:  init, sealed, as the jail's user.  Missing parents are made.  With `replaces` a file
 * appears under its name when it is complete.  No link is followed, and a new file is O_EXCL.
 * Fails:    ENOSPC with the hint to raise --disk; EFBIG past max_bytes.
 */
int input_write(int root_fd, const struct input *in, int fd, struct cj_error *err);
