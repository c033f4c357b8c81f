/* SPDX-License-Identifier: Apache-2.0 */
/* Detached mounts.  Acts. */
#include "rootfs/tree/tree_mount.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>

#include "rootfs/id_namespace.h"
#include "rootfs/tree/tree_overlay.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

int tree_mount_clone(int fd, bool is_recursive, const char *name, struct cj_error *err)
{
	unsigned flags = OPEN_TREE_CLONE | AT_NO_AUTOMOUNT | AT_EMPTY_PATH;
	int tree_fd = sys_open_tree(fd, "", flags | (is_recursive ? AT_RECURSIVE : 0));
	if (tree_fd >= 0)
		return tree_fd;
	int rc = cj_fail(err, errno, "clone the mount of '%s'", name);
	if (rc == -EINVAL && !is_recursive)
		cj_hint(err, "in a user namespace a directory with mounts below it can only be "
			     "bound with them: rbind");
	return rc;
}

static int set(int tree_fd, unsigned flags, uint64_t attrs, uint64_t clear,
	       unsigned long propagation, const char *name, struct cj_error *err)
{
	if (attrs == 0 && clear == 0 && propagation == 0)
		return 0;
	struct mount_attr wanted = {
		.attr_set = attrs,
		.attr_clr = clear,
		.propagation = propagation,
	};
	if (sys_mount_setattr(tree_fd, "", AT_EMPTY_PATH | flags, &wanted) == 0)
		return 0;
	int rc = cj_fail(err, errno, "set the mount options of '%s'", name);
	if (rc == -EPERM)
		cj_hint(err, "a user namespace can't take away nosuid, nodev, noexec, ro or the "
			     "time options of a mount that it inherited");
	return rc;
}

int tree_mount_restrict(int tree_fd, const struct tree_attrs *attrs, const char *name,
			struct cj_error *err)
{
	unsigned long kind = attrs->propagation ? attrs->propagation : MS_PRIVATE;
	bool is_below = attrs->propagation == 0 || attrs->propagates_below;
	int rc = set(tree_fd, AT_RECURSIVE, attrs->set_below, attrs->clear_below,
		     is_below ? kind : 0, name, err);
	if (rc < 0)
		return rc;
	return set(tree_fd, 0, attrs->set, attrs->clear, is_below ? 0 : kind, name, err);
}

static int set_ids(int tree_fd, const struct tree_op *op, struct cj_error *err)
{
	auto_fd int namespace_fd = id_namespace_open(op->ids.uid_map, op->ids.gid_map, err);
	if (namespace_fd < 0)
		return namespace_fd;
	struct mount_attr wanted = {
		.attr_set = MOUNT_ATTR_IDMAP,
		.userns_fd = (uint64_t)namespace_fd,
	};
	unsigned flags = AT_EMPTY_PATH | (op->ids.is_recursive ? AT_RECURSIVE : 0);
	if (sys_mount_setattr(tree_fd, "", flags, &wanted) == 0)
		return 0;
	int rc = cj_fail(err, errno, "map the ids of '%s'", op->source);
	cj_hint(err, "its file system or this kernel has no ID-mapped mounts for us "
		     "(mount_setattr(2), NOTES)");
	return rc;
}

int tree_mount_bind(const struct tree_op *op, int base_fd, struct cj_error *err)
{
	auto_fd int source_fd = openat(base_fd, op->source, O_PATH | O_CLOEXEC);
	if (source_fd < 0)
		return cj_fail(err, errno, "open '%s'", op->source);
	auto_fd int tree_fd = tree_mount_clone(source_fd, op->is_recursive, op->source, err);
	if (tree_fd < 0)
		return tree_fd;
	int rc = op->ids.uid_map ? set_ids(tree_fd, op, err) : 0;
	if (rc == 0)
		rc = tree_mount_restrict(tree_fd, &op->attrs, op->source, err);
	return rc < 0 ? rc : take_fd(&tree_fd);
}

static void add_hint(const struct tree_op *op, int rc, struct cj_error *err)
{
	static const struct {
		const char *type, *hint;
	} hints[] = {
		{ "proc", "a new procfs needs a pid namespace of the container's own, and a /proc "
			  "of the caller without masks" },
		{ "sysfs", "a new sysfs needs a network namespace of the container's own; without "
			   "one bind the host's /sys" },
		{ "mqueue", "a new mqueue needs an ipc namespace of the container's own" },
		{ "cgroup2", "a cgroup mount needs a cgroup namespace of the container's own" },
	};
	for (size_t i = 0; rc == -EPERM && i < sizeof(hints) / sizeof(hints[0]); i++)
		if (strcmp(op->type, hints[i].type) == 0)
			cj_hint(err, "%s", hints[i].hint);
}

/*
 * In a user namespace the kernel shows only the hierarchy of a cgroup namespace that belongs to it:
 * cgroup_namespaces(7).  So a container that was to stay in the caller's gets one of its own; init
 * is in its final cgroup by now.
 */
static bool may_retry(const struct tree_op *op, int rc)
{
	return rc == -EPERM && strcmp(op->type, "cgroup2") == 0 && unshare(CLONE_NEWCGROUP) == 0;
}

bool tree_mount_is_late(const struct tree_op *op)
{
	return op->kind == TREE_FS && strcmp(op->type, "tmpfs") == 0 &&
	       (op->attrs.set | op->attrs.set_below) & MOUNT_ATTR_RDONLY;
}

static int create(const struct tree_op *op, struct cj_error *err)
{
	uint64_t attrs = op->attrs.set | op->attrs.set_below;
	if (tree_mount_is_late(op))
		attrs &= ~(uint64_t)MOUNT_ATTR_RDONLY;
	return tree_overlay_is_long(op)
		   ? tree_overlay_create(op, attrs, err)
		   : mounts_create(op->type, op->options, op->noptions, attrs, err);
}

int tree_mount_create(const struct tree_op *op, struct cj_error *err)
{
	const struct tree_attrs *attrs = &op->attrs;
	auto_fd int tree_fd = create(op, err);
	if (tree_fd < 0 && may_retry(op, tree_fd)) {
		*err = (struct cj_error){ 0 };
		tree_fd = create(op, err);
	}
	if (tree_fd < 0) {
		add_hint(op, tree_fd, err);
		return tree_fd;
	}
	/* It is private, and has no mounts below it. */
	int rc = attrs->propagation == 0 || attrs->propagation == MS_PRIVATE
		     ? 0
		     : set(tree_fd, 0, 0, 0, attrs->propagation, op->path, err);
	return rc < 0 ? rc : take_fd(&tree_fd);
}
