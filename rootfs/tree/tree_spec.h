/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_spec - the plan of a tree that is built on a given root file system: plain data.
 *
 * Where struct rootfs_spec describes a jail of cejail run, this is an ordered list of operations on
 * a root that somebody else made: a hostile one, from which nothing but its files is taken.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rootfs/mounts.h"
#include "runtime/base/arena.h"

/* What an operation makes at its path. */
enum tree_kind {
	TREE_DIRECTORY, /* 0755; an existing one stays */
	TREE_FILE,      /* empty, 0644; an existing one stays */
	TREE_LINK,      /* a symbolic link to `source`; an equal one stays */
	TREE_DEVICE,    /* a device node or fifo; an equal one stays */
	TREE_BIND,      /* a clone of the host's `source` */
	TREE_FS,        /* a new file system of `type` */
	TREE_KIND_COUNT
};

/* Attributes are MOUNT_ATTR_* of <sys/mount.h>; a time attribute in `set` implies that
 * MOUNT_ATTR__ATIME is in `clear`: mount_setattr(2). */
struct tree_attrs {
	uint64_t set, clear;             /* of the mount itself: ro, nosuid, ... */
	uint64_t set_below, clear_below; /* of it and of the mounts below it: rro, rnosuid, ... */
	unsigned long propagation;       /* MS_SHARED, ...; 0: MS_PRIVATE with all mounts below */
	bool propagates_below;           /* rshared, ...: of the mounts below it, too */
};

/* Lines of uid_map and gid_map, user_namespaces(7); NULL: no ID-mapped mount. */
struct tree_ids {
	const char *uid_map, *gid_map;
	bool is_recursive; /* of the mounts below it, too */
};

struct tree_device {
	mode_t type; /* S_IFCHR, S_IFBLK or S_IFIFO */
	mode_t mode; /* permissions */
	unsigned major_number, minor_number;
	uid_t uid;
	gid_t gid;
	bool is_given; /* it must exist already: /dev is a directory of the host */
};

struct tree_op {
	enum tree_kind kind;
	const char *path;   /* in the tree: absolute, without "." and ".." */
	const char *source; /* bind: of the host; link: its target */
	const char *type;   /* of the file system */
	bool is_recursive;  /* bind: with the mounts below `source` */
	bool copies_up;     /* file system: begins with what is at `path` (tmpcopyup) */
	struct tree_attrs attrs;
	struct tree_ids ids;
	struct tree_device device;
	const struct mounts_option *options; /* of the file system */
	size_t noptions;
};

struct tree_spec {
	const char *root; /* a directory of the host; relative to the working directory */
	const struct tree_op *ops;
	size_t nops;
	struct strings masked;     /* absolute paths in the tree: replaced by nothing */
	struct strings read_only;  /* absolute paths in the tree */
	bool is_read_only;         /* the root itself */
	unsigned long propagation; /* of the root: MS_PRIVATE, MS_SLAVE, MS_SHARED, MS_UNBINDABLE */
	/* Mounts stay peers of the host's: a bind is shared with it, or the root is. */
	bool keeps_peers;
};
