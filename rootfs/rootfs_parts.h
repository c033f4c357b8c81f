/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs_parts - what rootfs.c builds a jail's tree of: the scratch, /dev, the host's files and the
 * caller's binds.  All functions run in init.
 */
#pragma once

#include "rootfs/layers.h"
#include "rootfs/rootfs.h"

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

/* The tmpfs and its directories, detached.  Runs as the jail's user, who owns them, umask 0. */
int scratch_create(const struct rootfs_spec *spec, struct cj_error *err);

/* Attaches /box, /tmp and /dev/shm.  The scratch itself must be attached (open_tree(2)). */
int scratch_attach(int scratch_fd, const struct rootfs_spec *spec, int root_fd,
		   struct cj_error *err);

/* Makes the directory of each BIND_TMPFS in the attached scratch, and a detached mount of it. */
struct bind_sources;
int scratch_make_tmpfs(struct bind_sources *sources, const struct rootfs_spec *spec, int scratch_fd,
		       struct cj_error *err);

/*
 * devices.c: the jail's /dev.  It has harmless device nodes of the host, checked by number, and
 * terminals of its own (devpts).  No node is created: all other mounts have nodev.
 */

#define DEVICES_MAX 6

struct device_sources {
	int fds[DEVICES_MAX]; /* detached, in the table's order; -1 where not wanted */
};

/*
 * devices_open - clone the nodes below dev_fd, the host's /dev.
 * with_tty: /dev/tty too.  On failure nothing is open.
 */
int devices_open(struct device_sources *out, int dev_fd, bool with_tty, struct cj_error *err);
void devices_close(struct device_sources *sources);

/* Adds the mount points to the skeleton. */
int devices_add_places(const struct device_sources *sources, int skeleton_fd, struct cj_error *err);

/* Attaches the nodes and a new devpts beneath root_fd/dev. */
int devices_attach(const struct device_sources *sources, int root_fd, struct cj_error *err);

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

/* Absolute; the first one is "/usr". */
extern const char *const host_paths[];
extern const size_t host_paths_count;

#define HOST_NAMES_MAX 12

/* Paths below /etc with a version in the name: "/etc/PREFIX*SUFFIX", or each NAME below it. */
struct host_family {
	const char *prefix, *suffix;
	const char *names[HOST_NAMES_MAX + 1]; /* ends in a NULL; none: the path itself */
};
extern const struct host_family host_families[];
extern const size_t host_families_count;

struct host_entry {
	const char *path; /* the table's, or in the arena given */
	const char *link; /* the target, if the host has a link there; else NULL */
	const char *text; /* a small file's content, copied in place of a mount; else NULL */
	size_t size;      /* of the text, bytes */
	int fd;           /* detached tree; for "/usr" under an overlay the directory itself */
	bool is_dir;
};

struct host_view {
	struct host_entry *entries; /* rows that exist, "/usr" first; in the arena given */
	size_t count;
	size_t copied;   /* bytes of all texts */
	size_t copy_max; /* bytes of one text */
	int root_fd;     /* while it is filled: borrowed; else -1 */
};

/*
 * host_open - resolve and clone, or copy, every row that this host has and all users may read.
 *
 * usr_is_lower: /usr is not cloned, it will be the lower layer of an overlay.
 * Runs with the caller's ids.  On failure nothing is open.
 */
int host_open(struct host_view *view, bool usr_is_lower, struct arena *a, struct cj_error *err);
void host_close(struct host_view *view);

/* Adds links, copies and mount points of the view to the skeleton. */
int host_add_places(const struct host_view *view, int skeleton_fd, struct cj_error *err);

int host_attach(const struct host_view *view, int root_fd, struct cj_error *err);

/*
 * binds.c: host paths that the caller shows in the jail: --ro-bind, --bind, --overlay,
 * --connect unix:.
 *
 * The directory of an --overlay is the read-only lower layer of an overlayfs.  All changes go to an
 * upper layer on the jail's scratch, so they count in --disk and end with the jail.  overlayfs
 * copies a file with its owner before the first change, so the jail's user must own what the
 * program may change.
 */

struct bind_source {
	int fd; /* detached tree; of an overlay the directory below it until binds_mount_overlays */
	bool is_dir;
	bool is_detached; /* of an overlay: fd is a detached tree already */
};

struct bind_sources {
	struct bind_source *items; /* in the order of the spec; in the caller's arena */
	size_t count;
};

/*
 * binds_open - resolve each source once, without crossing a link, check what it is, clone it.
 *
 * `layers`: of the image, to refuse a target that goes through one of its links.
 * Runs with the caller's ids.  On failure nothing is open.
 */
int binds_open(struct bind_sources *out, const struct rootfs_spec *spec,
	       const struct layers *layers, struct arena *a, struct cj_error *err);
void binds_close(struct bind_sources *sources);

/* Replaces the sources of the overlays by `count` detached trees.  Takes each descriptor that it
 * uses (it becomes -1). */
int binds_adopt_lowers(struct bind_sources *sources, const struct rootfs_spec *spec, int *fds,
		       size_t count, struct cj_error *err);

/*
 * binds_mount_overlays - replace the source of each overlay by the overlay itself, detached.
 * Trees of the supervisor are parked at park_fd first: rootfs.c says why.  Runs as the jail's user.
 */
int binds_mount_overlays(struct bind_sources *sources, const struct rootfs_spec *spec,
			 int scratch_fd, int park_fd, struct cj_error *err);

/* Adds the mount points to the skeleton. */
int binds_add_places(const struct bind_sources *sources, const struct rootfs_spec *spec,
		     int skeleton_fd, struct cj_error *err);

/*
 * binds_attach - attach the binds in the given order, after all other mounts.
 *
 * A missing mount point on the scratch (scratch_fd) is made; one in a tree of the host must exist.
 */
int binds_attach(const struct bind_sources *sources, const struct rootfs_spec *spec, int scratch_fd,
		 int root_fd, struct cj_error *err);
