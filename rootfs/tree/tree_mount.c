/* SPDX-License-Identifier: Apache-2.0 */
/* Detached mounts. */
#include "rootfs/tree/tree_parts.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/xattr.h>

#include "rootfs/id_namespace.h"
#include "rootfs/layers.h"
#include "rootfs/mounts.h"
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
	(void)!cj_fail(err, errno, "set the mount options of '%s'", name);
	return cj_hint_for(err, EPERM,
			   "a user namespace can't take away nosuid, nodev, noexec, ro or the "
			   "time options of a mount that it inherited");
}

int tree_mount_restrict(int tree_fd, const struct tree_attrs *attrs, const char *name,
			struct cj_error *err)
{
	unsigned long kind = attrs->propagation ? attrs->propagation : MS_PRIVATE;
	bool is_below = attrs->propagation == 0 || attrs->propagates_below;
	if (set(tree_fd, AT_RECURSIVE, attrs->set_below, attrs->clear_below, is_below ? kind : 0,
		name, err) < 0)
		return -err->code;
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
	(void)!cj_fail(err, errno, "map the ids of '%s'", op->source);
	return cj_hint(err, "its file system or this kernel has no ID-mapped mounts for us "
			    "(mount_setattr(2), NOTES)");
}

int tree_mount_bind(const struct tree_op *op, int base_fd, struct cj_error *err)
{
	auto_fd int source_fd = openat(base_fd, op->source, O_PATH | O_CLOEXEC);
	if (source_fd < 0)
		return cj_fail(err, errno, "open '%s'", op->source);
	auto_fd int tree_fd = tree_mount_clone(source_fd, op->is_recursive, op->source, err);
	if (tree_fd < 0)
		return tree_fd;
	if ((op->ids.uid_map && set_ids(tree_fd, op, err) < 0) ||
	    tree_mount_restrict(tree_fd, &op->attrs, op->source, err) < 0)
		return -err->code;
	return take_fd(&tree_fd);
}

/*
 * The directories of an engine's store have long paths, and an image has many.  Each is opened, and
 * the kernel reads the number of its descriptor: rootfs/layers.c.
 * Follows: overlayfs.rst: ':' separates the paths of lowerdir, '\\' stands before a ':' of a path.
 */

/* With one digit and a ':' each, no more numbers than this fit into an option. */
#define PATHS_MAX (3 * (MOUNTS_OPTION_MAX + 1) / 2)

struct paths {
	struct arena arena; /* of texts and options */
	int fds[PATHS_MAX];
	size_t count;
};

static void paths_fini(struct paths *p)
{
	for (size_t i = 0; i < p->count; i++)
		cj_close(&p->fds[i]);
	arena_fini(&p->arena);
}
#define auto_paths __attribute__((cleanup(paths_fini)))

/* Of the options of an overlay, those with paths; *out_is_list: several, separated by ':'. */
static bool has_paths(const struct mounts_option *option, bool *out_is_list)
{
	*out_is_list = strcmp(option->key, "lowerdir") == 0;
	return option->value && (*out_is_list || strcmp(option->key, "upperdir") == 0 ||
				 strcmp(option->key, "workdir") == 0);
}

/* True for an overlay with an option of more than MOUNTS_OPTION_MAX bytes. */
static bool is_long_overlay(const struct tree_op *op)
{
	bool is_list, is_long = false;
	for (size_t i = 0; i < op->noptions && strcmp(op->type, "overlay") == 0; i++)
		is_long = is_long || (has_paths(&op->options[i], &is_list) &&
				      strlen(op->options[i].value) > MOUNTS_OPTION_MAX);
	return is_long;
}

/* The path that begins at *at, which is moved to its end. */
static int read_path(const char **at, bool is_list, char out[static PATH_MAX])
{
	size_t size = 0;
	for (; **at != '\0' && !(is_list && **at == ':'); (*at)++) {
		if (**at == '\\' && (*at)[1] != '\0')
			(*at)++;
		if (size + 1 >= PATH_MAX)
			return -ENAMETOOLONG;
		out[size++] = **at;
	}
	out[size] = '\0';
	return 0;
}

/* Adds the number of the opened directory to `text`. */
static int add_path(struct paths *p, const char *path, char text[static MOUNTS_OPTION_MAX + 1],
		    struct cj_error *err)
{
	size_t used = strlen(text), room = MOUNTS_OPTION_MAX + 1 - used;
	if (p->count == PATHS_MAX)
		return cj_fail(err, ENAMETOOLONG, "lay the directories over each other");
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	p->fds[p->count++] = fd;
	int size = snprintf(text + used, room, "%d", fd);
	return size < 0 || (size_t)size >= room
		   ? cj_fail(err, ENAMETOOLONG, "lay %zu directories over each other", p->count)
		   : 0;
}

/* "/a/b:/c" becomes "5:6".  An empty path stays: between two ':', it begins the layers that have
 * only data. */
static int shorten(struct paths *p, struct mounts_option *option, bool is_list,
		   struct cj_error *err)
{
	const char *at = option->value;
	char path[PATH_MAX], *text = arena_alloc(&p->arena, MOUNTS_OPTION_MAX + 2);
	if (!text)
		return cj_fail(err, ENOMEM, "option '%s'", option->key);
	for (;; at++) {
		int rc = read_path(&at, is_list, path);
		if (rc < 0)
			return cj_fail(err, -rc, "option '%s'", option->key);
		if (path[0] != '\0' && add_path(p, path, text, err) < 0)
			return cj_wrap(err, "option '%s'", option->key);
		if (*at == '\0')
			break;
		size_t used = strlen(text);
		if (used == MOUNTS_OPTION_MAX)
			return cj_fail(err, ENAMETOOLONG, "option '%s'", option->key);
		text[used] = ':';
	}
	option->value = text;
	return 0;
}

static int create_long_overlay(const struct tree_op *op, uint64_t attrs, struct cj_error *err)
{
	auto_paths struct paths p = { 0 };
	struct mounts_option *options = arena_array(&p.arena, op->noptions, sizeof(*options));
	bool is_list;
	if (!options)
		return cj_fail(err, ENOMEM, "list the options of an overlay");
	memcpy(options, op->options, op->noptions * sizeof(*options));
	for (size_t i = 0; i < op->noptions; i++)
		if (has_paths(&options[i], &is_list) && shorten(&p, &options[i], is_list, err) < 0)
			return -err->code;
	auto_fd int here_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (here_fd < 0)
		return cj_fail(err, errno, "open the working directory");
	auto_fd int fd = layers_create(options, op->noptions, attrs, op->path, err);
	if (fchdir(here_fd) < 0)
		return cj_fail(err, errno, "go back to the working directory");
	return fd < 0 ? fd : take_fd(&fd);
}

/* Why a new file system of this type is not permitted. */
static const struct {
	const char *type, *hint;
} hints[] = {
	{ "proc", "a new procfs needs a pid namespace of the container's own, and a /proc of the "
		  "caller without masks" },
	{ "sysfs", "a new sysfs needs a network namespace of the container's own; without one bind "
		   "the host's /sys" },
	{ "mqueue", "a new mqueue needs an ipc namespace of the container's own" },
	{ "cgroup2", "a cgroup mount needs a cgroup namespace of the container's own" },
};

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
	return is_long_overlay(op) ? create_long_overlay(op, attrs, err)
				   : mounts_create(op->type, op->options, op->noptions, attrs, err);
}

/* Through procfs, because no call takes an attribute of an O_PATH descriptor: setxattr(2). */
static int label_root(int tree_fd, const char *label, const char *name, struct cj_error *err)
{
	char path[32];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", tree_fd);
	if (setxattr(path, "security.selinux", label, strlen(label) + 1, 0) < 0)
		return cj_fail(err, errno, "give '%s' the label '%s'", name, label);
	return 0;
}

int tree_mount_create(const struct tree_op *op, struct cj_error *err)
{
	unsigned long propagation = op->attrs.propagation;
	auto_fd int tree_fd = create(op, err);
	if (tree_fd < 0 && may_retry(op, tree_fd)) {
		*err = (struct cj_error){ 0 };
		tree_fd = create(op, err);
	}
	for (size_t i = 0; tree_fd == -EPERM && i < COUNT_OF(hints); i++)
		if (strcmp(op->type, hints[i].type) == 0)
			cj_hint(err, "%s", hints[i].hint);
	if (tree_fd < 0 || (op->label && label_root(tree_fd, op->label, op->path, err) < 0))
		return -err->code;
	/* It is private, and has no mounts below it. */
	if (propagation != 0 && propagation != MS_PRIVATE &&
	    set(tree_fd, 0, 0, 0, propagation, op->path, err) < 0)
		return -err->code;
	return take_fd(&tree_fd);
}
