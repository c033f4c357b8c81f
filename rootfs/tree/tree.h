/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree - carries out a struct tree_spec: mounts on a root file system that may be hostile.
 *
 * The root's content may have been made by an attacker, and another container that shares it may
 * change it meanwhile.  The host paths in the spec are trusted.  So:
 *  - No path in the tree is ever given to mount(2).  Each is resolved once, inside the root, by
 *    openat2(2), and all that follows is done on the descriptor.
 *  - /dev, /proc, /sys and what is below them are resolved without following any link.
 *  - A missing mount point is made one component at a time, beneath a descriptor.
 *  - Only a procfs or sysfs is mounted at /proc or /sys.  In a procfs a closed list of files may
 *    be mount points; no link leads a mount into a procfs or sysfs.
 *  - A mount is complete (attributes, ids, propagation, copied files) before it is attached.
 *
 * The order, each in the process that it names:
 *
 *	tree_open_outside    runtime, before clone3(2)
 *	tree_open_sources    container's init, with the caller's ids, all namespaces new or joined
 *	tree_build           container's init, with the container's ids
 *	(hooks createContainer)
 *	tree_finish          masks, read-only paths
 *	sysctls_write        rootfs/tree/sysctls.h
 *	tree_enter           pivot_root(2); the old root is gone
 *	tree_seal            the root becomes read-only
 */
#pragma once

#include "rootfs/mounts.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

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
	const char *label; /* SELinux: of its root, where it has no TREE_LABEL_OPTION; NULL: none */
};

/* The option of a file system that gives all of its files one label of SELinux. */
#define TREE_LABEL_OPTION "context"

/* The plan of a tree: an ordered list of operations on a root that somebody else made, from which
 * nothing but its files is taken. */
struct tree_spec {
	const char *root; /* a directory of the host; relative to the working directory */
	const struct tree_op *ops;
	size_t nops;
	struct strings masked;     /* absolute paths in the tree: replaced by nothing */
	struct strings read_only;  /* absolute paths in the tree */
	const char *mount_label;   /* of SELinux, for the masks; NULL: none */
	bool is_read_only;         /* the root itself */
	unsigned long propagation; /* of the root: MS_PRIVATE, MS_SLAVE, MS_SHARED, MS_UNBINDABLE */
	/* Mounts stay peers of the host's: a bind is shared with it, or the root is. */
	bool keeps_peers;
};

/* Descriptors of the host's objects, and of the root. */
struct tree_sources;

/*
 * tree_open_outside - clone the sources of ID-mapped mounts: only a process that is privileged
 * over their file systems may do so, and the container's init is not, in a user namespace.
 *
 * Runs in:  the runtime; its child inherits memory and descriptors.  Makes short-lived children.
 *           A relative source begins at the directory `base`.
 * Owns:     *out, until tree_close().
 * Follows:  mount_setattr(2), MOUNT_ATTR_IDMAP.
 */
int tree_open_outside(const struct tree_spec *spec, const char *base, struct tree_sources **out,
		      struct cj_error *err);

/*
 * tree_open_sources - end or keep the propagation of this mount namespace's mounts to the host's,
 * open the root and the trusted devices, and clone every source.
 *
 * Runs in:  the container's init, in a new mount namespace and a cgroup namespace of the
 *           container; the working directory is the bundle.
 * Follows:  open_tree(2), mount_namespaces(7).
 */
int tree_open_sources(const struct tree_spec *spec, struct tree_sources *sources,
		      struct cj_error *err);

/*
 * tree_build - mount the root on itself, and carry out all operations in order.
 *
 * Runs in:  the container's init, with the ids that shall own what is made, in all its
 *           namespaces: a new procfs shows this pid namespace, an mqueue this ipc namespace, ...
 * Returns:  the root's descriptor (O_PATH), the caller's to close.  umask is as before.
 * Fails:    and then only the end of the mount namespace undoes the mounts.
 */
int tree_build(const struct tree_spec *spec, struct tree_sources *sources, struct cj_error *err);

/*
 * tree_finish - mask paths, make paths read-only, and each tmpfs that shall be; a path that does
 * not exist is skipped, as config-linux.md of the runtime specification says.  A file is masked by
 * the host's /dev/null, which tree_open_sources() checked, a directory by an empty, read-only
 * tmpfs.
 *
 * Must not: run before the hooks that may mount something below root_fd.
 */
int tree_finish(const struct tree_spec *spec, struct tree_sources *sources, int root_fd,
		struct cj_error *err);

/* Makes root_fd the root, detaches the old one without a trace on the host, checks that "/" is the
 * working directory.  pivot_root(2) */
int tree_enter(const struct tree_spec *spec, int root_fd, struct cj_error *err);

/* The last step: the root's propagation, and read-only if the spec says so.  "/" is the root. */
int tree_seal(const struct tree_spec *spec, struct cj_error *err);

/* Closes everything.  NULL is allowed. */
void tree_close(struct tree_sources **sources);
