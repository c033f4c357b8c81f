/* SPDX-License-Identifier: Apache-2.0 */
/* The writable tmpfs. */
#include "rootfs/rootfs_parts.h"

#include <inttypes.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "rootfs/mounts.h"
#include "rootfs/skeleton.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

/* clang-format off */
static const struct {
	const char *name;
	mode_t mode;
	const char *target; /* NULL: not shown */
	bool only_when_writable;
} scratch_dirs[] = {
	{ "box",              0755,  "/box",     false },
	{ "box/out",          0755,  NULL,       false }, /* artifacts; there for every program */
	{ "tmp",              01777, "/tmp",     false },
	{ "shm",              01777, "/dev/shm", false },
	{ SCRATCH_ROOT_UPPER, 0755,  NULL,       true },
	{ SCRATCH_ROOT_WORK,  0700,  NULL,       true },
	{ SCRATCH_USR_UPPER,  0755,  NULL,       true },
	{ SCRATCH_USR_WORK,   0700,  NULL,       true },
};
/* clang-format on */

#define TMPFS_MODE 01777 /* as of /tmp */

/*
 * The flags of every mount of it: a clone has those of the original.  noexec is best-effort:
 * memfd_create(2) gives executable memory in any case.
 */
static unsigned long scratch_flags(const struct rootfs_spec *spec)
{
	return MS_NOSUID | MS_NODEV | (spec->noexec_scratch ? MS_NOEXEC : 0);
}

/*
 * Python looks for the packages of its user once, when it starts, so pip's directory is there
 * before.  Debian has python3 without python.  The .pth file is a link, which a session does
 * not list among the files of its programs.
 */
static int make_python_home(int scratch_fd, const struct rootfs_spec *spec, struct cj_error *err)
{
	char path[PATH_MAX];
	int size = snprintf(path, sizeof(path), "box/%s/cejail.pth", spec->packages);
	if (size < 0 || (size_t)size >= sizeof(path))
		return cj_reject(err, "'%s' is too long", spec->packages);
	if (skeleton_add_link(scratch_fd, path, "/" SKELETON_PTH, err) < 0)
		return -err->code;
	return skeleton_add_link(scratch_fd, "box/.local/bin/python", spec->python, err);
}

int scratch_create(const struct rootfs_spec *spec, struct cj_error *err)
{
	/* For tmpfs(5) 0 means "no limit". */
	if (spec->scratch_bytes == 0 || spec->scratch_inodes == 0)
		return cj_reject(err, "the scratch needs a size and a number of inodes");

	char options[96];
	(void)snprintf(options, sizeof(options), "mode=0700,size=%" PRIu64 ",nr_inodes=%" PRIu64,
		       spec->scratch_bytes, spec->scratch_inodes);
	auto_fd int scratch_fd = mounts_add_tmpfs(ROOTFS_PARK, scratch_flags(spec), options, err);
	if (scratch_fd < 0)
		return cj_wrap(err, "make the scratch");

	int rc = 0;
	for (size_t i = 0; i < COUNT_OF(scratch_dirs) && rc == 0; i++)
		if ((spec->writable || !scratch_dirs[i].only_when_writable) &&
		    mkdirat(scratch_fd, scratch_dirs[i].name, scratch_dirs[i].mode) < 0)
			rc = cj_fail(err, errno, "make '%s'", scratch_dirs[i].name);
	if (rc == 0 && spec->python)
		rc = make_python_home(scratch_fd, spec, err);
	if (rc < 0)
		return cj_wrap(err, "fill the scratch");
	return take_fd(&scratch_fd);
}

int scratch_attach(int scratch_fd, struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(scratch_dirs); i++) {
		const char *target = scratch_dirs[i].target;
		char below[16], place[32];
		if (!target)
			continue;
		(void)snprintf(below, sizeof(below), "/%s", scratch_dirs[i].name);
		(void)snprintf(place, sizeof(place), ROOTFS_PARK "%s", target);
		if (mounts_bind(scratch_fd, below, place, target, err) < 0)
			return -err->code;
	}
	return 0;
}

int scratch_make_tmpfs(struct rootfs_entries *binds, const struct rootfs_spec *spec, int scratch_fd,
		       struct cj_error *err)
{
	for (size_t i = 0; i < binds->count; i++) {
		char name[32];
		if (spec->binds[i].kind != BIND_TMPFS)
			continue;
		(void)snprintf(name, sizeof(name), "tmpfs%zu", i);
		binds->items[i].fd = mkdirat(scratch_fd, name, TMPFS_MODE) < 0
					 ? cj_fail(err, errno, "make '%s' of the scratch", name)
					 : mounts_clone(scratch_fd, name, 0, name, err);
		if (binds->items[i].fd < 0)
			return cj_wrap(err, "--tmpfs '%s'", spec->binds[i].target);
	}
	return 0;
}
