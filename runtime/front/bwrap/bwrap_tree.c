/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root, one operation after the other.
 *
 * The order that the kernel forces: pivot_root(2) makes the base "/" first, with the host's root
 * below it.  So no mount of ours lies in the host's tree, which "--bind / /" clones, and each mount
 * is attached beneath one of this namespace (before 6.15 the kernel refuses all others).
 */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "rootfs/layers.h"
#include "rootfs/mounts.h"
#include "rootfs/tree_place.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/bwrap/bwrap.h"

#define NEW_ROOT   "newroot"
#define HOST_ROOT  "oldroot"
#define IN_ROOT    (RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
#define PROC_ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)
#define NUMBER_MAX 32

/* The place at `path`, or, with *out_is_root, the root itself where the path leads to it. */
static int open_any(const struct bwrap_tree *t, const char *path, enum tree_place place,
		    bool *out_is_root, struct cj_error *err)
{
	const struct tree_path at = { t->root_fd, path, path, true, NULL };
	int fd = tree_place_open(&at, place, err);
	*out_is_root = fd == -EBUSY;
	if (!*out_is_root)
		return fd;
	*err = (struct cj_error){ 0 };
	fd = fcntl(t->root_fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? cj_fail(err, errno, "open the root") : fd;
}

static int open_place(const struct bwrap_tree *t, const char *path, enum tree_place place,
		      struct cj_error *err)
{
	bool is_root = false;
	return open_any(t, path, place, &is_root, err);
}

/*
 * The directory of `path`, which is made if it is missing; *out_name is the last component.  As
 * bubblewrap, a made directory gives others no right that the operation's own mode withholds.
 */
static int open_parent(const struct bwrap_tree *t, const struct bwrap_op *op, char **out_name,
		       struct cj_error *err)
{
	auto_free char *path = strdup(op->dest);
	size_t size = path ? strlen(path) : 0;
	while (size > 1 && path[size - 1] == '/')
		path[--size] = '\0';
	char *slash = path ? strrchr(path, '/') : NULL;
	if (!slash || slash[1] == '\0' || strcmp(slash + 1, "..") == 0 ||
	    strcmp(slash + 1, ".") == 0)
		return cj_fail(err, path ? EEXIST : ENOMEM, "Can't make %s", op->dest);
	auto_free char *name = strdup(slash + 1);
	if (!name)
		return cj_fail(err, ENOMEM, "Can't make %s", op->dest);
	slash[slash == path] = '\0';
	mode_t mask = 0;
	if (op->perms >= 0 && op->kind != BWRAP_CHMOD)
		mask = (op->perms & 070 ? 0 : 070) | (op->perms & 07 ? 0 : 07);
	mode_t saved = umask(mask);
	int fd = open_place(t, path, TREE_PLACE_DIRECTORY, err);
	(void)umask(saved);
	if (fd < 0)
		return cj_fail(err, err->code, "Can't mkdir parents for %s", op->dest);
	*out_name = take_ptr(name);
	return fd;
}

/* Attaches a detached mount at the operation's path, which is made if it is missing. */
static int attach(struct bwrap_tree *t, const struct bwrap_op *op, int tree_fd,
		  struct cj_error *err)
{
	struct stat st;
	if (fstat(tree_fd, &st) < 0)
		return cj_fail(err, errno, "Can't stat the mount for %s", op->dest);
	bool is_dir = S_ISDIR(st.st_mode), is_root = false;
	auto_fd int place_fd =
	    open_any(t, op->dest, is_dir ? TREE_PLACE_DIRECTORY : TREE_PLACE_FILE, &is_root, err);
	if (place_fd < 0)
		return cj_fail(err, err->code,
			       is_dir ? "Can't mkdir %s" : "Can't create file at %s", op->dest);
	if (is_root && !is_dir)
		return cj_fail(err, ENOTDIR, "Can't create file at %s", op->dest);
	if (mounts_attach(tree_fd, place_fd, op->dest, err) < 0)
		return -err->code;
	if (!is_root)
		return 0;
	/* From here on the paths begin in the mount that covers the root. */
	int fd = fcntl(tree_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "keep the mount at %s", op->dest);
	cj_close(&t->root_fd);
	t->root_fd = fd;
	return 0;
}

/* Makes a file system and attaches it.  Returns its root. */
static int add_file_system(struct bwrap_tree *t, const struct bwrap_op *op, const char *type,
			   const struct mounts_option *options, size_t noptions, uint64_t attrs,
			   struct cj_error *err)
{
	auto_fd int tree_fd = mounts_create(type, options, noptions, attrs, err);
	if (tree_fd < 0)
		return cj_fail(err, err->code, "Can't mount %s on /" NEW_ROOT "%s", type, op->dest);
	if (attach(t, op, tree_fd, err) < 0)
		return -err->code;
	return take_fd(&tree_fd);
}

static int open_host(const struct bwrap_tree *t, const char *source, int flags,
		     struct cj_error *err)
{
	int fd = sys_openat2(t->host_fd, source, O_PATH | flags, 0, IN_ROOT);
	return fd < 0 ? cj_fail(err, errno, "Can't find source path %s", source) : fd;
}

/* A clone of the host's `source` and of all below it. */
static int clone_host(const struct bwrap_tree *t, const char *source, uint64_t attrs,
		      struct cj_error *err)
{
	auto_fd int fd = open_host(t, source, 0, err);
	return fd < 0 ? fd : mounts_clone(fd, "", attrs, source, err);
}

/* The clone that a descriptor of the caller stands for is made by its path, and compared. */
static int clone_fd(const struct bwrap_tree *t, const struct bwrap_op *op, uint64_t attrs,
		    struct cj_error *err)
{
	struct stat wanted, found;
	auto_fd int tree_fd = clone_host(t, op->source, attrs, err);
	if (tree_fd < 0)
		return tree_fd;
	if (fstat(op->fd, &wanted) < 0 || fstat(tree_fd, &found) < 0)
		return cj_fail(err, errno, "Can't get stat of fd %d", op->fd);
	if (wanted.st_dev != found.st_dev || wanted.st_ino != found.st_ino)
		return cj_reject(err, "Race condition binding dirfd: '%s' is another file now",
				 op->source);
	return take_fd(&tree_fd);
}

static int do_bind(struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	const uint64_t attrs = MOUNT_ATTR_NOSUID | (op->has_devices ? 0 : MOUNT_ATTR_NODEV) |
			       (op->is_read_only ? MOUNT_ATTR_RDONLY : 0);
	if (!op->source)
		return 0; /* it may be missing, and is */
	auto_fd int tree_fd = op->fd < 0 ? clone_host(t, op->source, attrs, err)
					 : clone_fd(t, op, attrs, err);
	if (tree_fd < 0 || attach(t, op, tree_fd, err) < 0)
		return cj_wrap(err, "Can't bind mount /" HOST_ROOT "%s on /" NEW_ROOT "%s",
			       op->source, op->dest);
	return 0;
}

/* A directory of the base, where nothing else reaches it. */
static int make_layer(const struct bwrap_tree *t, const struct bwrap_op *op, const char *use,
		      struct cj_error *err)
{
	char name[NUMBER_MAX];
	(void)snprintf(name, sizeof(name), "%s%zu", use, (size_t)(op - t->config->ops));
	int fd = mkdirat(t->base_fd, name, 0755) < 0
		     ? -1
		     : openat(t->base_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "Can't make directory %s of the base", name) : fd;
}

/* Opens all layers of the overlay; the caller closes what is open even if one is not. */
static int open_layers(const struct bwrap_tree *t, const struct bwrap_op *op, struct overlay *o,
		       struct cj_error *err)
{
	const struct strings *all = &op->layers;
	if (all->count > LAYERS_MAX)
		return cj_reject(err, "%zu --overlay-src are more than %d", all->count, LAYERS_MAX);
	for (; o->below.count < all->count; o->below.count++) {
		const char *source = all->items[all->count - 1 - o->below.count];
		int fd = open_host(t, source, O_DIRECTORY, err);
		if (fd < 0)
			return fd;
		o->below.fds[o->below.count] = fd;
	}
	if (op->is_read_only)
		return 0;
	o->upper_fd = op->source ? open_host(t, op->source, O_DIRECTORY, err)
				 : make_layer(t, op, "upper", err);
	if (o->upper_fd < 0)
		return -err->code;
	o->work_fd = op->source ? open_host(t, op->work, O_DIRECTORY, err)
				: make_layer(t, op, "work", err);
	return o->work_fd < 0 ? -err->code : 0;
}

static int do_overlay(struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	const uint64_t attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			       (op->is_read_only ? MOUNT_ATTR_RDONLY : 0);
	int fds[LAYERS_MAX] = { 0 };
	struct overlay overlay = {
		.name = op->dest, .top_fd = -1, .below = { fds, 0 }, .upper_fd = -1, .work_fd = -1
	};
	int rc = open_layers(t, op, &overlay, err);
	/* The names of descriptors are in "/proc", which is a link of the base to the host's. */
	if (rc == 0 && symlinkat(HOST_ROOT "/proc", t->base_fd, "proc") < 0 && errno != EEXIST)
		rc = cj_fail(err, errno, "Can't make symlink proc of the base");
	auto_fd int tree_fd = rc < 0 ? -1 : layers_join(&overlay, attrs, err);
	layers_close(&overlay.below);
	cj_close(&overlay.upper_fd);
	cj_close(&overlay.work_fd);
	if (tree_fd < 0 || attach(t, op, tree_fd, err) < 0)
		return cj_wrap(err, "Can't make overlay mount on /" NEW_ROOT "%s", op->dest);
	return chdir("/") < 0 ? cj_fail(err, errno, "chdir / (base path)") : 0;
}

/* What root could change of the machine by a procfs becomes read-only. */
static int cover_proc(int proc_fd, struct cj_error *err)
{
	static const char *const names[] = { "sys", "sysrq-trigger", "irq", "bus" };
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (faccessat(proc_fd, names[i], W_OK, 0) < 0) {
			if (errno == EACCES || errno == ENOENT || errno == EROFS)
				continue;
			return cj_fail(err, errno, "Can't access %s of the new procfs", names[i]);
		}
		auto_fd int tree_fd = mounts_clone(
		    proc_fd, names[i], MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY,
		    names[i], err);
		if (tree_fd < 0 || mounts_attach_in(tree_fd, proc_fd, names[i], names[i], err) < 0)
			return cj_wrap(err, "Can't make %s of the new procfs read-only", names[i]);
	}
	return 0;
}

static int do_proc(struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	static const struct mounts_option options[] = { { "source", "proc" } };
	auto_fd int fd = -1;
	if (t->has_new_proc) {
		fd = add_file_system(t, op, "proc", options, 1, PROC_ATTRS, err);
	} else {
		fd = clone_host(t, "/proc", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
		if (fd < 0 || attach(t, op, fd, err) < 0)
			return cj_fail(err, err->code, "Can't mount proc on /" NEW_ROOT "%s",
				       op->dest);
	}
	return fd < 0 ? fd : cover_proc(fd, err);
}

static int add_tmpfs(struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	char mode[NUMBER_MAX], size[NUMBER_MAX];
	(void)snprintf(mode, sizeof(mode), "%o", op->perms >= 0 ? (unsigned)op->perms : 0755U);
	(void)snprintf(size, sizeof(size), "%ju", (uintmax_t)op->size);
	const struct mounts_option options[] = { { "source", "tmpfs" },
						 { "mode", mode },
						 { "size", size } };
	return add_file_system(t, op, "tmpfs", options, op->size ? 3 : 2,
			       MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}

/* Binds the host's device `source` at `name` of the new /dev. */
static int add_device(const struct bwrap_tree *t, int dev_fd, const char *name, const char *source,
		      struct cj_error *err)
{
	auto_fd int tree_fd = clone_host(t, source, MOUNT_ATTR_NOSUID, err);
	if (tree_fd < 0)
		return tree_fd;
	auto_fd int file_fd =
	    openat(dev_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (file_fd < 0)
		return cj_fail(err, errno, "Can't create file %s of the new /dev", name);
	return mounts_attach_in(tree_fd, dev_fd, name, name, err);
}

static int add_links_of_dev(int dev_fd, struct cj_error *err)
{
	static const struct {
		const char *name, *target;
	} links[] = {
		{ "stdin", "/proc/self/fd/0" },  { "stdout", "/proc/self/fd/1" },
		{ "stderr", "/proc/self/fd/2" }, { "fd", "/proc/self/fd" },
		{ "core", "/proc/kcore" },       { "ptmx", "pts/ptmx" },
	};
	for (size_t i = 0; i < COUNT_OF(links); i++)
		if (symlinkat(links[i].target, dev_fd, links[i].name) < 0)
			return cj_fail(err, errno, "Can't create symlink %s of the new /dev",
				       links[i].name);
	return 0;
}

static int do_dev(struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	static const char *const nodes[] = { "/dev/null",   "/dev/zero",    "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty" };
	static const struct mounts_option options[] = { { "source", "devpts" },
							{ "ptmxmode", "0666" },
							{ "mode", "620" } };
	auto_fd int dev_fd = add_tmpfs(t, op, err);
	if (dev_fd < 0)
		return dev_fd;
	for (size_t i = 0; i < COUNT_OF(nodes); i++)
		if (add_device(t, dev_fd, nodes[i] + strlen("/dev/"), nodes[i], err) < 0)
			return -err->code;
	if (add_links_of_dev(dev_fd, err) < 0)
		return -err->code;
	if (mkdirat(dev_fd, "shm", 0755) < 0 || mkdirat(dev_fd, "pts", 0755) < 0)
		return cj_fail(err, errno, "Can't create a directory of the new /dev");
	auto_fd int pts_fd = mounts_create("devpts", options, COUNT_OF(options),
					   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
	if (pts_fd < 0 || mounts_attach_in(pts_fd, dev_fd, "pts", "pts", err) < 0)
		return cj_fail(err, err->code, "Can't mount devpts on /" NEW_ROOT "%s/pts",
			       op->dest);
	/* A program that may write to this terminal anyway: some look for the console. */
	return t->terminal ? add_device(t, dev_fd, "console", t->terminal, err) : 0;
}

static int do_mqueue(struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	static const struct mounts_option options[] = { { "source", "mqueue" } };
	auto_fd int fd = add_file_system(t, op, "mqueue", options, 1, 0, err);
	return fd < 0 ? fd : 0;
}

static int do_dir(const struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = open_place(t, op->dest, TREE_PLACE_GIVEN, err);
	if (fd >= 0) {
		bool is_dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
		return is_dir ? 0 : cj_fail(err, ENOTDIR, "Can't mkdir %s", op->dest);
	}
	if (fd != -ENOENT)
		return cj_fail(err, err->code, "Can't mkdir %s", op->dest);
	*err = (struct cj_error){ 0 };
	auto_free char *name = NULL;
	auto_fd int parent_fd = open_parent(t, op, &name, err);
	if (parent_fd < 0)
		return parent_fd;
	if (mkdirat(parent_fd, name, op->perms >= 0 ? (mode_t)op->perms : 0755) < 0)
		return cj_fail(err, errno, "Can't mkdir %s", op->dest);
	return 0;
}

/* Copies all that the operation's descriptor has. */
static int copy_data(const struct bwrap_op *op, int to_fd, struct cj_error *err)
{
	char bytes[16384];
	for (;;) {
		ssize_t size = sys_read(op->fd, bytes, sizeof(bytes));
		if (size < 0)
			return cj_fail(err, errno, "Can't write data to file %s: read fd %d",
				       op->dest, op->fd);
		if (size == 0)
			break;
		if (fd_write_all(to_fd, bytes, (size_t)size, op->dest, err) < 0)
			return cj_wrap(err, "Can't write data to file %s", op->dest);
	}
	(void)close(op->fd); /* the program does not inherit it */
	return 0;
}

/* A hostile tree may have a fifo there, on which an open would wait. */
static int do_file(const struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	auto_free char *name = NULL;
	auto_fd int parent_fd = open_parent(t, op, &name, err);
	if (parent_fd < 0)
		return parent_fd;
	auto_fd int fd = sys_openat2(t->root_fd, op->dest,
				     O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_NONBLOCK,
				     op->perms >= 0 ? (mode_t)op->perms : 0666, IN_ROOT);
	if (fd < 0)
		return cj_fail(err, errno, "Can't create file %s", op->dest);
	return copy_data(op, fd, err);
}

/* The file lies in the base, where nothing else reaches it; its name goes at once. */
static int do_bind_data(struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	char name[NUMBER_MAX];
	(void)snprintf(name, sizeof(name), "data%zu", t->ndata++);
	auto_fd int file_fd = openat(t->base_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				     op->perms >= 0 ? (mode_t)op->perms : 0600);
	if (file_fd < 0)
		return cj_fail(err, errno, "Can't create tmpfile for %s", op->dest);
	int rc = op->fd >= 0 ? copy_data(op, file_fd, err)
			     : fd_write_all(file_fd, op->source, strlen(op->source), op->dest, err);
	if (rc < 0)
		return rc;
	auto_fd int tree_fd = mounts_clone(t->base_fd, name,
					   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       (op->is_read_only ? MOUNT_ATTR_RDONLY : 0),
					   op->dest, err);
	if (tree_fd < 0 || attach(t, op, tree_fd, err) < 0)
		return cj_wrap(err, "Can't bind mount data on %s", op->dest);
	return unlinkat(t->base_fd, name, 0) < 0
		   ? cj_fail(err, errno, "Can't remove tmpfile for %s", op->dest)
		   : 0;
}

static int do_symlink(const struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	char found[PATH_MAX];
	auto_free char *name = NULL;
	auto_fd int parent_fd = open_parent(t, op, &name, err);
	if (parent_fd < 0)
		return parent_fd;
	if (symlinkat(op->source, parent_fd, name) == 0)
		return 0;
	int code = errno;
	ssize_t size = readlinkat(parent_fd, name, found, sizeof(found));
	if (code == EEXIST && size >= 0 && (size_t)size == strlen(op->source) &&
	    memcmp(found, op->source, (size_t)size) == 0)
		return 0;
	return cj_fail(err, code, "Can't make symlink at %s", op->dest);
}

/* chmod(2) takes no O_PATH descriptor; its name in the host's procfs is the file itself. */
static int do_chmod(const struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	char name[NUMBER_MAX];
	auto_fd int fd = open_place(t, op->dest, TREE_PLACE_GIVEN, err);
	int code = fd < 0 ? err->code : 0;
	(void)snprintf(name, sizeof(name), "self/fd/%d", fd);
	if (code == 0 && fchmodat(t->proc_fd, name, (mode_t)op->perms, 0) < 0)
		code = errno;
	return code ? cj_fail(err, code, "Can't chmod %#o %s", (unsigned)op->perms, op->dest) : 0;
}

static int do_remount(const struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	auto_fd int fd = open_place(t, op->dest, TREE_PLACE_GIVEN, err);
	if (fd < 0 || mounts_restrict(fd, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				      op->dest, err) < 0)
		return cj_fail(err, err->code, "Can't remount readonly on /" NEW_ROOT "%s",
			       op->dest);
	return 0;
}

static int do_operation(struct bwrap_tree *t, const struct bwrap_op *op, struct cj_error *err)
{
	auto_fd int tree_fd = -1;
	switch (op->kind) {
	case BWRAP_BIND:
		return do_bind(t, op, err);
	case BWRAP_OVERLAY:
		return do_overlay(t, op, err);
	case BWRAP_PROC:
		return do_proc(t, op, err);
	case BWRAP_DEV:
		return do_dev(t, op, err);
	case BWRAP_TMPFS:
		tree_fd = add_tmpfs(t, op, err);
		return tree_fd < 0 ? tree_fd : 0;
	case BWRAP_MQUEUE:
		return do_mqueue(t, op, err);
	case BWRAP_DIR:
		return do_dir(t, op, err);
	case BWRAP_FILE:
		return do_file(t, op, err);
	case BWRAP_BIND_DATA:
		return do_bind_data(t, op, err);
	case BWRAP_SYMLINK:
		return do_symlink(t, op, err);
	case BWRAP_CHMOD:
		return do_chmod(t, op, err);
	case BWRAP_REMOUNT_RO:
		return do_remount(t, op, err);
	}
	return cj_reject(err, "'%s': no such operation", op->dest);
}

/*
 * Puts a file of cejail's network over that of the root.  A missing one is made where the directory
 * is the sandbox's own: nothing is made on the host, and then what the options show stays.
 */
static int cover_file(struct bwrap_tree *t, const char *path, const char *text,
		      struct cj_error *err)
{
	struct stat base;
	const struct bwrap_op op = { .kind = BWRAP_BIND_DATA,
				     .source = text,
				     .dest = path,
				     .fd = -1,
				     .is_read_only = true,
				     .perms = 0644 };
	if (!text)
		return 0;
	if (fstat(t->base_fd, &base) < 0)
		return cj_fail(err, errno, "look at the base");
	const struct tree_path at = { t->root_fd, path, path, true, &base.st_dev };
	auto_fd int fd = tree_place_open(&at, TREE_PLACE_FILE, err);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -EISDIR || fd == -ELOOP || fd == -EBUSY ||
	    fd == -EROFS) {
		*err = (struct cj_error){ 0 };
		return 0;
	}
	int rc = fd < 0 ? fd : do_bind_data(t, &op, err);
	if (rc != -ENOENT)
		return rc;
	*err = (struct cj_error){ 0 }; /* nothing can be mounted on a file that has no name left */
	return 0;
}

static int make_base(struct bwrap_tree *t, struct cj_error *err)
{
	static const struct mounts_option options[] = { { "source", "tmpfs" } };
	if (mount(NULL, "/", NULL, MS_SILENT | MS_SLAVE | MS_REC, NULL) < 0)
		return cj_fail(err, errno, "Failed to make / slave");
	auto_fd int place_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	t->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place_fd < 0 || t->proc_fd < 0)
		return cj_fail(err, errno, "Can't open /proc");
	t->base_fd = mounts_create("tmpfs", options, 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
	if (t->base_fd < 0 || mounts_attach(t->base_fd, place_fd, "/", err) < 0)
		return cj_fail(err, err->code, "Failed to mount tmpfs");
	if (fchdir(t->base_fd) < 0 || mkdirat(t->base_fd, NEW_ROOT, 0755) < 0 ||
	    mkdirat(t->base_fd, HOST_ROOT, 0755) < 0)
		return cj_fail(err, errno, "Creating the directories of the base failed");
	if (sys_pivot_root(".", HOST_ROOT) < 0)
		return cj_fail(err, errno, "pivot_root");
	if (chdir("/") < 0)
		return cj_fail(err, errno, "chdir / (base path)");
	t->host_fd = open("/" HOST_ROOT, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return t->host_fd < 0 ? cj_fail(err, errno, "open the host's root") : 0;
}

int bwrap_tree_build(struct bwrap_tree *t, struct cj_error *err)
{
	mode_t saved = umask(0); /* modes here are exact */
	int rc = make_base(t, err);
	if (rc == 0) {
		t->root_fd = mounts_clone(t->base_fd, NEW_ROOT, 0, NEW_ROOT, err);
		rc = t->root_fd < 0
			 ? t->root_fd
			 : mounts_attach_in(t->root_fd, t->base_fd, NEW_ROOT, NEW_ROOT, err);
	}
	for (size_t i = 0; rc == 0 && i < t->config->nops; i++)
		rc = do_operation(t, &t->config->ops[i], err);
	if (rc == 0)
		rc = cover_file(t, "/etc/resolv.conf", t->resolv_conf, err);
	if (rc == 0)
		rc = cover_file(t, "/etc/hosts", t->hosts, err);
	(void)umask(saved);
	return rc;
}

int bwrap_tree_enter(struct bwrap_tree *t, struct cj_error *err)
{
	/* As slaves' masters the host's mounts stay: only ours go. */
	if (mount(NULL, HOST_ROOT, NULL, MS_SILENT | MS_REC | MS_PRIVATE, NULL) < 0)
		return cj_fail(err, errno, "Failed to make old root rprivate");
	if (umount2(HOST_ROOT, MNT_DETACH) < 0)
		return cj_fail(err, errno, "unmount old root");
	if (mounts_pivot(t->root_fd, err) < 0)
		return -err->code;
	cj_close(&t->host_fd);
	cj_close(&t->base_fd);
	cj_close(&t->root_fd);
	return 0;
}
