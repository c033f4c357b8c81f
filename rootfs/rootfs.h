/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs - builds the file system tree of a jail from a struct rootfs_spec, and enters it.
 *
 * Runs in init (pid 1 inside), with full capabilities over its own user namespace and none over
 * the host, before init drops its privileges and reads untrusted data.  Each step is a stage of
 * init:
 *
 *	rootfs_open_sources  with the caller's ids: resolves every host path once and clones it
 *	                     by descriptor (open_tree(2)), so the checked object is mounted
 *	rootfs_build         as the jail's user: skeleton, views, /proc, /dev, scratch
 *	rootfs_enter         pivot_root(2), and detaches the old root
 *
 * "/" is a small tmpfs, the skeleton (ROOT_HOST), or an overlay of the skeleton over the layers
 * (ROOT_LAYERS).  So every mount point is a directory that cejail made, and no link in an image can
 * redirect a mount.  All writable directories are on one tmpfs, the scratch: /box, /tmp, /dev/shm,
 * --tmpfs, and the upper layer of --writable.  So --disk limits them together.
 */
#pragma once

#include "rootfs/guard.h"
#include "runtime/base/arena.h"
#include "runtime/base/error.h"

enum root_kind {
	ROOT_HOST,   /* this host's /usr, read-only, and a skeleton for the rest */
	ROOT_LAYERS, /* directories, first in the list on top */
};

enum bind_kind {
	BIND_READ_ONLY,
	BIND_WRITABLE,
	BIND_KEPT, /* writable, for this jail's programs alone: `cejail mcp wrap` */
	BIND_SOCKET,
	BIND_OVERLAY,
	BIND_TMPFS,
};

#define OVERLAYS_MAX 16 /* --overlay; their descriptors go to init in one message */

/* A host path that the caller shows in the jail. */
struct bind_spec {
	enum bind_kind kind;
	const char *source; /* absolute, no symbolic link in it (plan.c); BIND_TMPFS: none */
	const char *target; /* absolute, normalised, in the jail */
};

/* Root's jail gets it through a clone with other ids: rootfs_adopt_lowers(). */
static inline bool rootfs_bind_is_shifted(const struct bind_spec *bind)
{
	return bind->kind == BIND_OVERLAY || bind->kind == BIND_KEPT;
}

/* The program can change the host's own files in it. */
static inline bool rootfs_bind_is_writable(const struct bind_spec *bind)
{
	return bind->kind == BIND_WRITABLE || bind->kind == BIND_KEPT;
}

struct rootfs_spec {
	enum root_kind kind;
	struct strings layers; /* ROOT_LAYERS: absolute host paths */
	bool writable;         /* a temporary upper layer in the scratch */
	bool noexec_scratch;
	bool tty; /* the jail has /dev/tty and a controlling terminal */
	uint64_t scratch_bytes, scratch_inodes;
	const struct bind_spec *binds;
	size_t nbinds;
	struct guard guard;      /* where no writable bind may lead */
	const char *python;      /* python3 in the jail: /box gets a home for pip; NULL: none */
	const char *packages;    /* in that home: ".local/lib/python3.11/site-packages" */
	const char *hosts;       /* further lines of /etc/hosts; NULL: none */
	const char *resolv_conf; /* all of /etc/resolv.conf; NULL: empty */
	const char *hostname;    /* for /etc/hosts; set in the uts namespace by init */
	uid_t uid;               /* the jail's user, inside ids */
	gid_t gid;
};

/* What ROOT_HOST shows of the host, where it is public.  Absolute; the first one is "/usr". */
extern const char *const host_paths[];
extern const size_t host_paths_count;

/* Descriptors of detached trees, one per host path; -1 where not used.  Lives in init only. */
struct rootfs_sources;

/*
 * rootfs_open_sources - make the mount namespace private, open and clone every host path.
 *
 * Runs in:  init, with the caller's ids, in a mount namespace of its own.
 * Owns:     *out, until rootfs_build() consumes it; on failure nothing is open.
 */
int rootfs_open_sources(const struct rootfs_spec *spec, struct rootfs_sources **out,
			struct cj_error *err);

/*
 * rootfs_adopt_lowers - use these detached trees as the sources of the binds that are shifted, in
 * the order of the spec: clones that a privileged supervisor made, with other ids
 * (jail/prepare/jail_init.h).
 *
 * Takes each descriptor that it uses (it becomes -1).  Each must be the directory that was opened
 * before.
 */
int rootfs_adopt_lowers(struct rootfs_sources *sources, const struct rootfs_spec *spec, int *fds,
			size_t count, struct cj_error *err);

/*
 * rootfs_build - mount everything below a new root, attached on the old root's /dev meanwhile.
 *
 * Must not: run before init has the jail's ids (tmpfs files need a mapped owner).
 * Must not: be followed by anything but rootfs_enter(); the old /dev is covered.
 * Leaves:   the usual umask, 022.
 * Returns:  the root's descriptor, the caller's to close; consumes *sources, also on failure.
 * Follows:  fsopen(2), open_tree(2), move_mount(2), mount_setattr(2).
 */
int rootfs_build(const struct rootfs_spec *spec, struct rootfs_sources **sources,
		 struct cj_error *err);

/* Makes root_fd the root, detaches the old one, changes to "/" and checks that. */
int rootfs_enter(int root_fd, struct cj_error *err);
/* The check alone, after another way in. */
int rootfs_check_entered(struct cj_error *err);

/* Descriptors for the supervisor: they outlive init's processes. */
struct rootfs_handles {
	int box_fd;                    /* /box, to collect artefacts and to measure the scratch */
	int root_fd;                   /* of rootfs_build(), for the files of a session */
	int proc_fd;                   /* the jail's /proc, to sample its processes */
	int overlay_fds[OVERLAYS_MAX]; /* in the order of the spec's binds: to collect artefacts */
	size_t noverlays;
};
/* Takes root_fd, also when it fails. */
int rootfs_open_handles(const struct rootfs_spec *spec, int root_fd, struct rootfs_handles *out,
			struct cj_error *err);

/* After the sysctls that init writes: makes the settings in "/proc" (proc_fd) read-only and masks
 * information about the machine.  uid: the caller's. */
int rootfs_mask_proc(int proc_fd, uid_t uid, struct cj_error *err);

/* The places of the spec's binds that the program may change, besides those of every jail.  There
 * is room for `nbinds` of them; they are borrowed from the spec. */
size_t rootfs_list_writable(const struct rootfs_spec *spec, const char **out_places);

/* How many of the spec's binds are overlays. */
size_t rootfs_count_overlays(const struct rootfs_spec *spec);
