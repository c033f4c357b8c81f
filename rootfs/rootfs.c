/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, builds and enters the jail's tree.  Acts.
 *
 * Theory of operation.  Kernels before 6.15 attach mounts only beneath mounts of the
 * caller's namespace, and clone and overlay only such mounts.  So a new tree is first
 * parked: attached on the old root's /dev, whose nodes have been cloned by then.  All
 * further mounts go beneath the parked root, by descriptor.  Then pivot_root(2) makes it
 * the root, and the old root is detached with all that is parked.  Any directory would
 * do; /dev always exists.
 */
#include "rootfs/rootfs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rootfs/devices.h"
#include "rootfs/host/binds.h"
#include "rootfs/host/host.h"
#include "rootfs/host/layers.h"
#include "rootfs/host/overlays.h"
#include "rootfs/mounts.h"
#include "rootfs/proc.h"
#include "rootfs/scratch.h"
#include "rootfs/skeleton.h"
#include "rootfs/tmpdirs.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

struct rootfs_sources {
	struct arena arena;
	int park_fd; /* the old root's /dev */
	struct device_sources devices;
	struct host_view host; /* ROOT_HOST */
	struct layers layers;  /* ROOT_LAYERS */
	struct bind_sources binds;
};

static void sources_free(struct rootfs_sources **sources)
{
	struct rootfs_sources *s = *sources;
	if (!s)
		return;
	cj_close(&s->park_fd);
	devices_close(&s->devices);
	host_close(&s->host);
	layers_close(&s->layers);
	binds_close(&s->binds);
	arena_fini(&s->arena);
	free(s);
	*sources = NULL;
}

#define auto_sources __attribute__((cleanup(sources_free)))

static struct rootfs_sources *sources_new(void)
{
	struct rootfs_sources *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->park_fd = -1;
	for (size_t i = 0; i < DEVICES_MAX; i++)
		s->devices.fds[i] = -1;
	return s;
}

static int open_root(const struct rootfs_spec *spec, struct rootfs_sources *s, struct cj_error *err)
{
	if (spec->kind == ROOT_HOST)
		return host_open(&s->host, spec->writable, &s->arena, err);
	return layers_open(&s->layers, &spec->layers, &s->arena, err);
}

int rootfs_open_sources(const struct rootfs_spec *spec, struct rootfs_sources **out,
			struct cj_error *err)
{
	auto_sources struct rootfs_sources *s = sources_new();
	if (!s)
		return cj_fail(err, ENOMEM, "open the sources of the tree");

	/* Before anything is attached: no mount may propagate to the host's namespace. */
	int rc = mounts_make_private(err);
	if (rc < 0)
		return rc;

	s->park_fd = open("/dev", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->park_fd < 0)
		return cj_fail(err, errno, "open '/dev'");
	rc = devices_open(&s->devices, s->park_fd, spec->tty, err);
	if (rc == 0)
		rc = open_root(spec, s, err);
	if (rc == 0)
		rc = binds_open(&s->binds, spec, &s->layers, &s->arena, err);
	if (rc < 0)
		return rc;

	*out = take_ptr(s);
	return 0;
}

int rootfs_adopt_lowers(struct rootfs_sources *sources, const struct rootfs_spec *spec, int *fds,
			size_t count, struct cj_error *err)
{
	return overlays_adopt(&sources->binds, spec, fds, count, err);
}

static int make_skeleton(const struct rootfs_spec *spec, const struct rootfs_sources *s,
			 struct cj_error *err)
{
	auto_fd int skeleton_fd = skeleton_create(spec, err);
	if (skeleton_fd < 0)
		return skeleton_fd;

	int rc = devices_add_places(&s->devices, skeleton_fd, err);
	if (rc == 0)
		rc = host_add_places(&s->host, skeleton_fd, err);
	if (rc == 0)
		rc = binds_add_places(&s->binds, spec, skeleton_fd, err);
	if (rc == 0)
		rc = mounts_attach(skeleton_fd, s->park_fd, "skeleton", err);
	return rc < 0 ? rc : take_fd(&skeleton_fd);
}

static int open_scratch_dir(int scratch_fd, const char *name, struct cj_error *err)
{
	int fd = openat(scratch_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "open '%s' of the scratch", name) : fd;
}

/* Read-only if `upper` is NULL, else with `upper` and `work` of the scratch above it. */
static int join(struct overlay *overlay, int scratch_fd, const char *upper, const char *work,
		struct cj_error *err)
{
	auto_fd int upper_fd = upper ? open_scratch_dir(scratch_fd, upper, err) : -1;
	auto_fd int work_fd = upper ? open_scratch_dir(scratch_fd, work, err) : -1;
	if (upper && (upper_fd < 0 || work_fd < 0))
		return -err->code;

	overlay->upper_fd = upper_fd;
	overlay->work_fd = work_fd;
	return layers_join(overlay, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

/* The skeleton itself, or an overlay with it on top; parked, because mounts go beneath it. */
static int make_root(const struct rootfs_spec *spec, const struct rootfs_sources *s, int scratch_fd,
		     struct cj_error *err)
{
	auto_fd int skeleton_fd = make_skeleton(spec, s, err);
	if (skeleton_fd < 0)
		return skeleton_fd;
	if (spec->kind == ROOT_HOST && !spec->writable)
		return take_fd(&skeleton_fd);

	struct overlay overlay = { .name = "/", .top_fd = skeleton_fd, .below = s->layers };
	const char *upper = spec->writable ? SCRATCH_ROOT_UPPER : NULL;
	auto_fd int root_fd = join(&overlay, scratch_fd, upper, SCRATCH_ROOT_WORK, err);
	if (root_fd < 0)
		return root_fd;
	int rc = mounts_attach(root_fd, s->park_fd, "root", err);
	return rc < 0 ? rc : take_fd(&root_fd);
}

/* /usr was opened as a plain directory: put the overlay over it in its place. */
static int overlay_usr(struct rootfs_sources *s, int scratch_fd, struct cj_error *err)
{
	struct host_entry *usr = host_usr(&s->host);
	struct overlay overlay = { .name = "/usr", .top_fd = usr->fd };
	int fd = join(&overlay, scratch_fd, SCRATCH_USR_UPPER, SCRATCH_USR_WORK, err);
	if (fd < 0)
		return fd;
	cj_close(&usr->fd);
	usr->fd = fd;
	return 0;
}

static int attach_all(const struct rootfs_spec *spec, struct rootfs_sources *s, int scratch_fd,
		      int root_fd, struct cj_error *err)
{
	int rc = 0;
	if (spec->kind == ROOT_HOST && spec->writable)
		rc = overlay_usr(s, scratch_fd, err);
	if (rc == 0)
		rc = host_attach(&s->host, root_fd, err);
	if (rc == 0)
		rc = proc_attach(root_fd, err);
	if (rc == 0)
		rc = devices_attach(&s->devices, root_fd, err);
	if (rc == 0)
		rc = scratch_attach(scratch_fd, spec, root_fd, err);
	/* Last: a bind below /box or /tmp must lie on the scratch, not under it. */
	if (rc == 0)
		rc = binds_attach(&s->binds, spec, scratch_fd, root_fd, err);
	if (rc == 0 && !spec->writable)
		rc = mounts_restrict(root_fd, MOUNT_ATTR_RDONLY, "/", err);
	return rc;
}

static int build(const struct rootfs_spec *spec, struct rootfs_sources *s, struct cj_error *err)
{
	auto_fd int scratch_fd = scratch_create(spec, err);
	if (scratch_fd < 0)
		return scratch_fd;
	int rc = mounts_attach(scratch_fd, s->park_fd, "scratch", err);
	/* Before the root: what is parked after it would lie on top of it. */
	if (rc == 0)
		rc = overlays_mount(&s->binds, spec, scratch_fd, s->park_fd, err);
	if (rc == 0)
		rc = tmpdirs_make(&s->binds, spec, scratch_fd, err);
	if (rc < 0)
		return rc;

	auto_fd int root_fd = make_root(spec, s, scratch_fd, err);
	if (root_fd < 0)
		return root_fd;
	rc = attach_all(spec, s, scratch_fd, root_fd, err);
	return rc < 0 ? rc : take_fd(&root_fd);
}

int rootfs_build(const struct rootfs_spec *spec, struct rootfs_sources **sources,
		 struct cj_error *err)
{
	auto_sources struct rootfs_sources *s = take_ptr(*sources);

	mode_t saved = umask(0); /* modes here are exact */
	int root_fd = build(spec, s, err);
	(void)umask(saved);
	return root_fd;
}

int rootfs_check_entered(struct cj_error *err)
{
	char where[PATH_MAX];
	if (!getcwd(where, sizeof(where)))
		return cj_fail(err, errno, "get the working directory");
	if (strcmp(where, "/") != 0) /* "(unreachable)...": getcwd(2) */
		return cj_reject(err, "the new root is not '/' but '%s'", where);
	return 0;
}

int rootfs_enter(int root_fd, struct cj_error *err)
{
	int rc = mounts_pivot(root_fd, err);
	return rc < 0 ? rc : rootfs_check_entered(err);
}

int rootfs_mask_proc(struct cj_error *err)
{
	return proc_mask(err);
}

size_t rootfs_count_overlays(const struct rootfs_spec *spec)
{
	size_t count = 0;
	for (size_t i = 0; i < spec->nbinds; i++)
		count += spec->binds[i].kind == BIND_OVERLAY;
	return count;
}

static int open_overlays(const struct rootfs_spec *spec, struct rootfs_handles *out,
			 struct cj_error *err)
{
	for (size_t i = 0; i < spec->nbinds && out->noverlays < OVERLAYS_MAX; i++) {
		if (spec->binds[i].kind != BIND_OVERLAY)
			continue;
		int fd = sys_openat2(AT_FDCWD, spec->binds[i].target, O_PATH | O_DIRECTORY, 0,
				     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
		if (fd < 0)
			return cj_fail(err, errno, "open '%s'", spec->binds[i].target);
		out->overlay_fds[out->noverlays++] = fd;
	}
	return 0;
}

int rootfs_open_handles(const struct rootfs_spec *spec, struct rootfs_handles *out,
			struct cj_error *err)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	auto_fd int box_fd = open("/box", flags);
	if (box_fd < 0)
		return cj_fail(err, errno, "open '/box'");
	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return cj_fail(err, errno, "open '/'");
	auto_fd int proc_fd = open("/proc", flags);
	if (proc_fd < 0)
		return cj_fail(err, errno, "open '/proc'");

	struct rootfs_handles handles = { 0 };
	if (open_overlays(spec, &handles, err) < 0) {
		while (handles.noverlays > 0)
			cj_close(&handles.overlay_fds[--handles.noverlays]);
		return -err->code;
	}
	handles.box_fd = take_fd(&box_fd);
	handles.root_fd = take_fd(&root_fd);
	handles.proc_fd = take_fd(&proc_fd);
	*out = handles;
	return 0;
}
