/* SPDX-License-Identifier: Apache-2.0 */
/* ID-mapped clones of host directories.  Acts. */
#include "runtime/jail/prepare/shift.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "rootfs/id_namespace.h"
#include "rootfs/mounts.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* A map from one owner to the jail's user. */
static int create_namespace(const struct stat *owner, const struct idmap *ids, struct cj_error *err)
{
	char uid_map[32], gid_map[32];
	(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", owner->st_uid, ids->uid);
	(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", owner->st_gid, ids->gid);
	return id_namespace_open(uid_map, gid_map, err);
}

static int set_ids(int tree_fd, const struct stat *owner, const struct idmap *ids,
		   struct cj_error *err)
{
	auto_fd int namespace_fd = create_namespace(owner, ids, err);
	if (namespace_fd < 0)
		return namespace_fd;
	struct mount_attr wanted = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV,
		.userns_fd = (uint64_t)namespace_fd,
	};
	if (sys_mount_setattr(tree_fd, "", AT_EMPTY_PATH, &wanted) == 0)
		return 0;
	int rc = cj_fail(err, errno, "give it the jail's ids");
	cj_hint(err, "its file system or this kernel has no ID-mapped mounts for us: start cejail "
		     "as the directory's owner, or copy it in with --file");
	return rc;
}

static int shift_one(const char *source, const struct idmap *ids, struct cj_error *err)
{
	auto_fd int dir_fd = sys_openat2(AT_FDCWD, source, O_PATH | O_DIRECTORY, 0,
					 RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	struct stat owner;
	if (dir_fd < 0 || fstat(dir_fd, &owner) < 0)
		return cj_fail(err, errno, "open it");
	auto_fd int tree_fd =
	    sys_open_tree(dir_fd, "", OPEN_TREE_CLONE | AT_NO_AUTOMOUNT | AT_EMPTY_PATH);
	if (tree_fd < 0)
		return cj_fail(err, errno, "clone its mount");
	int rc = set_ids(tree_fd, &owner, ids, err);
	return rc < 0 ? rc : take_fd(&tree_fd);
}

int shift_lowers(const struct rootfs_spec *root, const struct idmap *ids, int out_fds[OVERLAYS_MAX],
		 size_t *out_count, struct cj_error *err)
{
	*out_count = 0;
	for (size_t i = 0; ids->lock_fd >= 0 && i < root->nbinds; i++) {
		if (root->binds[i].kind != BIND_OVERLAY || *out_count == OVERLAYS_MAX)
			continue;
		int fd = shift_one(root->binds[i].source, ids, err);
		if (fd < 0) {
			while (*out_count > 0)
				cj_close(&out_fds[--*out_count]);
			return cj_wrap(err, "--overlay '%s'", root->binds[i].source);
		}
		out_fds[(*out_count)++] = fd;
	}
	return 0;
}
