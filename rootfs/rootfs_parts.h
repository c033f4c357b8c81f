/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs_parts - what rootfs.c builds a jail's tree of: the scratch, /dev, the host's files and the
 * caller's binds.  All functions run in init.
 */
#pragma once

#include "rootfs/layers.h"
#include "rootfs/rootfs.h"
#include "runtime/base/files/fd.h"

/* Where a tree lies until it is the root, by path; what is parked last is on top: rootfs.c. */
#define ROOTFS_PARK "/dev"

/*
 * An entry of the tree that is opened before the tree is built: a mount of the host's, or a link or
 * small file that is made in the skeleton.
 */
struct rootfs_entry {
	const char *path; /* absolute, in the jail */
	const char *link; /* the target, if the host has a link there; else NULL */
	int fd;           /* of a bind a detached tree; else what is mounted, or copied */
	bool is_dir;
	bool is_copied;   /* fd is a small file, copied in place of a mount */
	size_t size;      /* of that file, bytes */
	bool is_detached; /* fd is a detached tree already */
};

/* Whoever opens entries leaves it to the owner of the list to close them, also after a failure. */
struct rootfs_entries {
	struct rootfs_entry *items;
	size_t count;
	struct arena *arena;
	struct fd_bag opened; /* other descriptors of the search, closed with the entries */
};

/* Takes the entry's descriptor, also when it fails. */
int rootfs_entries_add(struct rootfs_entries *list, const struct rootfs_entry *entry,
		       struct cj_error *err);

/*
 * scratch.c: all that a jail can write is one tmpfs, limited in bytes and in inodes.
 *
 * /box, /tmp, /dev/shm and --tmpfs are directories of it, and so are the upper layers of
 * --writable: --disk holds for all of them together.
 */

/* Names of the layers a --writable jail writes to, each with its work directory (overlayfs.rst). */
#define SCRATCH_ROOT_UPPER "root"
#define SCRATCH_ROOT_WORK  "root.work"
#define SCRATCH_USR_UPPER  "usr"
#define SCRATCH_USR_WORK   "usr.work"

/* The tmpfs and its directories, parked.  Runs as the jail's user, who owns them, umask 0. */
int scratch_create(const struct rootfs_spec *spec, struct cj_error *err);

/* Mounts /box, /tmp and /dev/shm of the tree that is parked last. */
int scratch_attach(int scratch_fd, struct cj_error *err);

/* Makes the directory of each BIND_TMPFS in the scratch, and a detached mount of it. */
int scratch_make_tmpfs(struct rootfs_entries *binds, const struct rootfs_spec *spec, int scratch_fd,
		       struct cj_error *err);

/*
 * devices.c: the jail's /dev.  It has harmless device nodes of the host, checked by number, and
 * terminals of its own (devpts).  No node is created: all other mounts have nodev.
 */

/* Clones the host's /dev, which gives all its nodes their attributes in one call, and opens them in
 * the clone; with_tty: /dev/tty too.  They can be mounted once the clone is attached. */
int devices_open(struct rootfs_entries *list, bool with_tty, int *out_dev_fd, struct cj_error *err);

/* Mounts a new devpts at /dev/pts of the tree that is parked last. */
int devices_attach_terminals(struct cj_error *err);

/*
 * host.c: the part of this host that a jail with the root "host" sees.
 *
 * A row of its two tables must be readable by every user of the host, hold no secret on any
 * distribution and not be the place where an administrator puts one, and a common program must need
 * it.  Deliberately absent: /etc/ssl/private, /etc/pki/tls/private; /etc/java-*-openjdk/management
 * (passwords of jmxremote); /etc/maven/settings.xml, /etc/gitconfig, pip.conf, npmrc, gemrc,
 * wgetrc, /etc/R/Renviron.site, /etc/php (tokens and passwords); /etc/ImageMagick-N/policy.xml (a
 * shared secret); all that names the host's users.
 */

/* Links of the host stay links: venvs, alternatives and node_modules/.bin consist of them.  They
 * resolve inside the jail, so they can lead only to files in it. */
#define HOST_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

#define HOST_NAMES_MAX 12

/* Paths below /etc with a version in the name: "/etc/PREFIX*SUFFIX", or each NAME below it. */
struct host_family {
	const char *prefix, *suffix;
	const char *names[HOST_NAMES_MAX + 1]; /* ends in a NULL; none: the path itself */
};
extern const struct host_family host_families[];
extern const size_t host_families_count;

/*
 * host_open - resolve and open every row that this host has and all users may read; "/usr" first.
 *
 * Whoever attaches them sets HOST_ATTRS for all of them at once.
 * Runs with the caller's ids.
 */
int host_open(struct rootfs_entries *list, struct cj_error *err);

/*
 * binds.c: host paths that the caller shows in the jail: --ro-bind, --bind, --overlay,
 * --connect unix:.
 *
 * The directory of an --overlay is the read-only lower layer of an overlayfs.  All changes go to an
 * upper layer on the jail's scratch, so they count in --disk and end with the jail.  overlayfs
 * copies a file with its owner before the first change, so the jail's user must own what the
 * program may change.
 */

/*
 * binds_open - resolve each source once, without crossing a link, check what it is, clone it: an
 * entry for each bind of the spec, in the same order.
 *
 * `layers`: of the image, to refuse a target that goes through one of its links.
 * Runs with the caller's ids.
 */
int binds_open(struct rootfs_entries *list, const struct rootfs_spec *spec,
	       const struct layers *layers, struct cj_error *err);

/* Replaces the sources of the overlays by `count` detached trees.  Takes each descriptor that it
 * uses (it becomes -1). */
int binds_adopt_lowers(struct rootfs_entries *list, const struct rootfs_spec *spec, int *fds,
		       size_t count, struct cj_error *err);

/*
 * binds_mount_overlays - replace the source of each overlay by the overlay itself, detached.
 * Trees of the supervisor are parked at park_fd first: rootfs.c says why.  Runs as the jail's user.
 */
int binds_mount_overlays(struct rootfs_entries *list, const struct rootfs_spec *spec,
			 int scratch_fd, int park_fd, struct cj_error *err);

/*
 * binds_attach - attach the binds in the given order, after all other mounts.
 *
 * A missing mount point on the scratch (scratch_fd) is made; one in a tree of the host must exist.
 */
int binds_attach(const struct rootfs_entries *list, const struct rootfs_spec *spec, int scratch_fd,
		 int root_fd, struct cj_error *err);
