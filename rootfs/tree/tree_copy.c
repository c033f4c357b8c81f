/* SPDX-License-Identifier: Apache-2.0 */
/* Copies a directory by descriptors. */
#include "rootfs/tree/tree_parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define CHUNK_BYTES (1u << 20)
#define LINKS_TRIES 100

/* Extended attributes that mean the same in a tmpfs.  Others belong to a security module or to the
 * file system that they lie in. */
static const char *const attributes[] = {
	"user.*",
	"security.capability",
	"system.posix_acl_access",
	"system.posix_acl_default",
};

struct copier {
	const char *name; /* for messages */
	unsigned entries;
	int from_fd, to_fd; /* where it began; borrowed */
	/* While it copies, a directory in the copy has a link to each file that has several, with
	 * its device and inode number as the name. */
	char links_name[32];
	int links_fd; /* -1: none yet */
	char names[XATTR_LIST_MAX], value[XATTR_SIZE_MAX];
};

static int copy_directory(struct copier *c, int from_fd, int to_fd, unsigned depth,
			  struct cj_error *err);

static bool is_copied(const char *attribute)
{
	for (size_t i = 0; i < COUNT_OF(attributes); i++) {
		size_t size = strcspn(attributes[i], "*");
		bool is_prefix = attributes[i][size] == '*';
		if (strncmp(attribute, attributes[i], size) == 0 &&
		    (is_prefix || attribute[size] == '\0'))
			return true;
	}
	return false;
}

/*
 * ENODATA: removed meanwhile.  EOVERFLOW: a capability for another user namespace, without effect
 * in this one.  EOPNOTSUPP: not in a tmpfs of this kernel, as user.* before Linux 6.6.
 */
static int copy_attribute(struct copier *c, int from_fd, int to_fd, const char *attribute,
			  struct cj_error *err)
{
	ssize_t size = fgetxattr(from_fd, attribute, c->value, sizeof(c->value));
	if (size < 0 && (errno == ENODATA || errno == EOVERFLOW))
		return 0;
	if (size < 0 ||
	    (fsetxattr(to_fd, attribute, c->value, (size_t)size, 0) < 0 && errno != EOPNOTSUPP))
		return cj_fail(err, errno, "copy the attribute '%.64s' below '%s'", attribute,
			       c->name);
	return 0;
}

static int copy_attributes(struct copier *c, int from_fd, int to_fd, struct cj_error *err)
{
	ssize_t size = flistxattr(from_fd, c->names, sizeof(c->names));
	if (size < 0 && errno != EOPNOTSUPP)
		return cj_fail(err, errno, "list the attributes of a file below '%s'", c->name);
	for (ssize_t at = 0; at < size; at += (ssize_t)strlen(c->names + at) + 1)
		if (is_copied(c->names + at) &&
		    copy_attribute(c, from_fd, to_fd, c->names + at, err) < 0)
			return -err->code;
	return 0;
}

/* Owner before mode and attributes: chown(2) clears the setuid bit and file capabilities. */
static int copy_owner(struct copier *c, int from_fd, int to_fd, const struct stat *st,
		      struct cj_error *err)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	if (fchown(to_fd, st->st_uid, st->st_gid) < 0 || fchmod(to_fd, st->st_mode & 07777) < 0)
		return cj_fail(err, errno, "copy the owner or mode of a file below '%s'", c->name);
	if (copy_attributes(c, from_fd, to_fd, err) < 0)
		return -err->code;
	if (futimens(to_fd, times) < 0)
		return cj_fail(err, errno, "copy the times of a file below '%s'", c->name);
	return 0;
}

/* Its name must be free in the source: that is copied into the same directory. */
static int make_links(struct copier *c, struct cj_error *err)
{
	struct stat st;
	for (unsigned i = 0; i < LINKS_TRIES; i++) {
		(void)snprintf(c->links_name, sizeof(c->links_name), ".cejail-links.%u", i);
		if (fstatat(c->from_fd, c->links_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (mkdirat(c->to_fd, c->links_name, 0700) < 0)
			break;
		c->links_fd = openat(c->to_fd, c->links_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return c->links_fd < 0 ? cj_fail(err, errno, "open '%s'", c->links_name) : 0;
	}
	return cj_fail(err, errno, "create a directory for hard links in '%s'", c->name);
}

static int remove_links(struct copier *c, struct cj_error *err)
{
	if (c->links_fd < 0)
		return 0;
	auto_fd_dir struct fd_dir *dir = fd_take_dir(take_fd(&c->links_fd));
	if (!dir)
		return cj_fail(err, errno, "list '%s'", c->links_name);
	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;)
		if (unlinkat(dir->fd, e->d_name, 0) < 0)
			return cj_fail(err, errno, "remove a link in '%s'", c->links_name);
	if (unlinkat(c->to_fd, c->links_name, AT_REMOVEDIR) < 0)
		return cj_fail(err, errno, "remove '%s'", c->links_name);
	return 0;
}

#define LINK_NAME_MAX 40 /* two numbers of 64 bits, in hexadecimal */

static void name_link(const struct stat *st, char out[static LINK_NAME_MAX])
{
	(void)snprintf(out, LINK_NAME_MAX, "%llx-%llx", (unsigned long long)st->st_dev,
		       (unsigned long long)st->st_ino);
}

/* *out_done: the file was copied before, and has one more name now. */
static int link_again(struct copier *c, int to_dir_fd, const char *entry, const struct stat *st,
		      bool *out_done, struct cj_error *err)
{
	char name[LINK_NAME_MAX];
	*out_done = false;
	if (st->st_nlink == 1)
		return 0;
	if (c->links_fd < 0 && make_links(c, err) < 0)
		return -err->code;
	name_link(st, name);
	*out_done = linkat(c->links_fd, name, to_dir_fd, entry, 0) == 0;
	if (*out_done || errno == ENOENT)
		return 0;
	return cj_fail(err, errno, "link '%s' below '%s'", entry, c->name);
}

static int copy_bytes(struct copier *c, int from_fd, int to_fd, struct cj_error *err)
{
	for (;;) {
		ssize_t size = sendfile(to_fd, from_fd, NULL, CHUNK_BYTES);
		if (size == 0)
			return 0;
		if (size < 0 && errno != EINTR)
			return cj_fail(err, errno, "copy a file below '%s'", c->name);
	}
}

/*
 * Opened for reading only after it is known to be a regular file: to open a device can act on it.
 * The descriptor of the object itself is opened again, not its name.  Without O_NONBLOCK, another
 * container's lease (F_SETLEASE in fcntl(2)) blocks the open for 45 seconds.
 */
static int copy_file(struct copier *c, int path_fd, int to_dir_fd, const char *entry,
		     const struct stat *st, struct cj_error *err)
{
	char again[32];
	bool is_done;
	if (link_again(c, to_dir_fd, entry, st, &is_done, err) < 0)
		return -err->code;
	if (is_done)
		return 0;
	(void)snprintf(again, sizeof(again), "/proc/self/fd/%d", path_fd);
	auto_fd int from_fd = open(again, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (from_fd < 0) {
		(void)!cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
		return cj_hint_for(err, EWOULDBLOCK,
				   "another process has a lease on the file: F_SETLEASE in "
				   "fcntl(2)");
	}
	auto_fd int to_fd = openat(to_dir_fd, entry, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to_fd < 0)
		return cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
	if (copy_bytes(c, from_fd, to_fd, err) < 0 || copy_owner(c, from_fd, to_fd, st, err) < 0)
		return -err->code;
	char name[LINK_NAME_MAX];
	name_link(st, name);
	if (st->st_nlink == 1 || linkat(to_dir_fd, entry, c->links_fd, name, 0) == 0)
		return 0;
	return cj_fail(err, errno, "link '%s' below '%s'", entry, c->name);
}

static int copy_link(struct copier *c, int path_fd, int to_dir_fd, const char *entry,
		     const struct stat *st, struct cj_error *err)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	char target[PATH_MAX];
	ssize_t size = readlinkat(path_fd, "", target, sizeof(target) - 1);
	if (size < 0)
		return cj_fail(err, errno, "copy the link '%s' below '%s'", entry, c->name);
	target[size] = '\0';
	if (symlinkat(target, to_dir_fd, entry) < 0 ||
	    fchownat(to_dir_fd, entry, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    utimensat(to_dir_fd, entry, times, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "copy the link '%s' below '%s'", entry, c->name);
	return 0;
}

/* At most TREE_COPY_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int copy_below(struct copier *c, int path_fd, int to_dir_fd, const char *entry,
		      unsigned depth, struct cj_error *err)
{
	if (depth >= TREE_COPY_DEPTH_MAX)
		return cj_reject_as(err, E2BIG, "copy '%s': more than %d directories deep", c->name,
				    TREE_COPY_DEPTH_MAX);
	if (mkdirat(to_dir_fd, entry, 0700) < 0)
		return cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
	auto_fd int from_fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_fd int to_fd =
	    openat(to_dir_fd, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from_fd < 0 || to_fd < 0)
		return cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
	return copy_directory(c, from_fd, to_fd, depth + 1, err);
}

/* At most TREE_COPY_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int copy_entry(struct copier *c, int from_dir_fd, int to_dir_fd, const char *entry,
		      unsigned depth, struct cj_error *err)
{
	if (++c->entries > TREE_COPY_ENTRIES_MAX)
		return cj_reject_as(err, E2BIG, "copy '%s': more than %d files", c->name,
				    TREE_COPY_ENTRIES_MAX);
	/* No mount is entered: procfs or a volume may lie below. */
	auto_fd int path_fd = sys_openat2(from_dir_fd, entry, O_PATH | O_NOFOLLOW, 0,
					  RESOLVE_BENEATH | RESOLVE_NO_XDEV);
	struct stat st;
	if (path_fd < 0 || fstat(path_fd, &st) < 0)
		return cj_fail(err, errno, "copy '%s' below '%s'", entry, c->name);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_file(c, path_fd, to_dir_fd, entry, &st, err);
	case S_IFLNK:
		return copy_link(c, path_fd, to_dir_fd, entry, &st, err);
	case S_IFDIR:
		return copy_below(c, path_fd, to_dir_fd, entry, depth, err);
	default:
		return cj_reject(err, "copy '%s': '%s' is a device, a fifo or a socket", c->name,
				 entry);
	}
}

/* At most TREE_COPY_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int copy_directory(struct copier *c, int from_fd, int to_fd, unsigned depth,
			  struct cj_error *err)
{
	struct stat st;
	auto_fd_dir struct fd_dir *dir = fd_open_dir(from_fd, ".");
	if (!dir || fstat(dir->fd, &st) < 0)
		return cj_fail(err, errno, "list '%s'", c->name);
	for (const struct dirent *entry; (entry = fd_next_entry(dir)) != NULL;)
		if (copy_entry(c, dir->fd, to_fd, entry->d_name, depth, err) < 0)
			return -err->code;
	if (errno != 0)
		return cj_fail(err, errno, "list '%s'", c->name);
	if (depth == 0 && remove_links(c, err) < 0)
		return -err->code;
	return copy_owner(c, from_fd, to_fd, &st, err);
}

int tree_copy(int from_fd, int to_fd, const char *name, struct cj_error *err)
{
	auto_free struct copier *c = calloc(1, sizeof(*c));
	if (!c)
		return cj_fail(err, ENOMEM, "copy '%s'", name);
	c->name = name;
	c->from_fd = from_fd;
	c->to_fd = to_fd;
	c->links_fd = -1;
	int rc = copy_directory(c, from_fd, to_fd, 0, err);
	cj_close(&c->links_fd);
	return rc;
}
