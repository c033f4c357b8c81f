/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a layer beneath its directory, and the entries of a stream that become these.
 *
 * Each name is hostile.  A directory is opened by openat2(2) beneath the layer, without following
 * any link; what is created in it has one component as its name and replaces a file, never a
 * directory with files in it.
 *
 * Owner and permissions: a jail has one user, who stands for every user of the image.  Each file
 * belongs to the owner of the store, and group and others have the owner's permissions to read and
 * execute: in a jail of an ordinary user the owner's count, in one of root those for others.
 * There are no set-user-ID, set-group-ID and sticky bits and no extended attributes: in a jail they
 * have no effect, and on the host they must not.
 */
#include "runtime/front/image/image_parts.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "runtime/base/arena.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define BENEATH (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

struct image_tree {
	int root_fd;     /* the layer's directory; borrowed */
	uint64_t made;   /* directories that no entry named */
	char *last_path; /* of the directory that was used last; NULL: none */
	int last_fd;
};

/* What is created in a directory: */
struct image_file {
	const char *dir;  /* clean: image_path_clean() */
	const char *name; /* one component */
	mode_t mode;      /* in the image */
	struct timespec mtime;
};

static void tree_fini(struct image_tree *t)
{
	cj_free(&t->last_path);
	cj_close(&t->last_fd);
}

/* The permissions in the store of a file that has `mode` in the image. */
static mode_t tree_mode(mode_t mode, bool is_dir)
{
	mode_t owner = (mode >> 6 & 7) | (is_dir ? 7 : 4); /* the store's owner must reach it */
	mode_t others = owner & 5;
	return owner << 6 | others << 3 | others;
}

static int open_beneath(const struct image_tree *t, const char *path, int flags)
{
	return sys_openat2(t->root_fd, path[0] ? path : ".", flags | O_DIRECTORY, 0, BENEATH);
}

static int reject_parent(int code, const char *path, struct cj_error *err)
{
	if (code == ELOOP)
		return cj_reject(err, "it lies behind a symbolic link: '%s'", path);
	if (code == ENOTDIR)
		return cj_reject(err, "it lies below a file: '%s'", path);
	return cj_fail(err, code, "open its directory '%s'", path);
}

/* Creates what is missing, from the top.  Each component was checked: it is not "..". */
static int make_parents(struct image_tree *t, const char *path, struct cj_error *err)
{
	char part[PATH_MAX];
	for (const char *end = path; *end;) {
		end += strcspn(end + 1, "/") + 1;
		size_t size = (size_t)(end - path);
		memcpy(part, path, size);
		part[size] = '\0';

		auto_fd int fd = open_beneath(t, part, O_PATH);
		if (fd >= 0)
			continue;
		if (errno != ENOENT)
			return reject_parent(errno, part, err);
		char *slash = strrchr(part, '/');
		if (slash)
			*slash = '\0';
		auto_fd int parent_fd = open_beneath(t, slash ? part : "", O_PATH);
		if (parent_fd < 0 || mkdirat(parent_fd, slash ? slash + 1 : part, 0755) < 0)
			return cj_fail(err, errno, "create its directory '%s'", path);
		t->made++;
	}
	return 0;
}

/*
 * The directory `path` ("": the layer's own), made if it is missing.  Returns a descriptor that
 * stays the tree's, valid until the next call.  Fails: a component is a file or a symbolic link.
 */
static int tree_enter(struct image_tree *t, const char *path, struct cj_error *err)
{
	if (t->last_path && strcmp(t->last_path, path) == 0)
		return t->last_fd;

	tree_fini(t);
	int fd = open_beneath(t, path, O_PATH);
	if (fd < 0 && errno == ENOENT) {
		if (make_parents(t, path, err) < 0)
			return -err->code;
		fd = open_beneath(t, path, O_PATH);
	}
	if (fd < 0)
		return reject_parent(errno, path, err);
	t->last_fd = fd;
	t->last_path = strdup(path);
	return t->last_path ? fd : cj_fail(err, ENOMEM, "open its directory '%s'", path);
}

/* The later of two entries with one name counts, except that a directory keeps its files. */
static int remove_old(struct image_tree *t, int dir_fd, const char *name, struct cj_error *err)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno == EISDIR && unlinkat(dir_fd, name, AT_REMOVEDIR) == 0) {
		tree_fini(t); /* it may be that one */
		return 0;
	}
	if (errno == ENOTEMPTY)
		return cj_reject(err, "it would replace a directory that is not empty");
	return cj_fail(err, errno, "replace an earlier entry");
}

/* The parent, with the name free in it: remove_old() may have closed the descriptor. */
static int enter_free(struct image_tree *t, const struct image_file *f, struct cj_error *err)
{
	int dir_fd = tree_enter(t, f->dir, err);
	if (dir_fd < 0 || remove_old(t, dir_fd, f->name, err) < 0)
		return -err->code;
	return tree_enter(t, f->dir, err);
}

static int set_times(int fd, const char *name, int flags, struct timespec mtime)
{
	const struct timespec times[] = { mtime, mtime };
	return name ? utimensat(fd, name, times, flags) : futimens(fd, times);
}

static int make_opaque(int dir_fd, struct cj_error *err)
{
	if (fsetxattr(dir_fd, IMAGE_TREE_OPAQUE, "y", 1, 0) == 0)
		return 0;
	int rc = cj_fail(err, errno, "mark the directory as opaque");
	if (rc == -EOPNOTSUPP)
		cj_hint(err, "the file system of the store has no user.* attributes: xattr(7)");
	return rc;
}

static int tree_make_dir(struct image_tree *t, const struct image_file *f, struct cj_error *err)
{
	int parent_fd = tree_enter(t, f->dir, err);
	bool was_hidden = false;
	if (parent_fd < 0)
		return parent_fd;
	if (mkdirat(parent_fd, f->name, 0700) < 0) {
		struct stat st;
		if (errno != EEXIST || fstatat(parent_fd, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return cj_fail(err, errno, "create the directory");
		was_hidden = S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0); /* a whiteout */
		if (!S_ISDIR(st.st_mode) &&
		    (unlinkat(parent_fd, f->name, 0) < 0 || mkdirat(parent_fd, f->name, 0700) < 0))
			return cj_fail(err, errno, "replace an earlier entry");
	}
	auto_fd int fd =
	    openat(parent_fd, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, tree_mode(f->mode, true)) < 0)
		return cj_fail(err, errno, "set the directory's permissions");
	return was_hidden ? make_opaque(fd, err) : 0;
}

/* Returns a descriptor to write to, the caller's; tree_finish_file() follows. */
static int tree_make_file(struct image_tree *t, const struct image_file *f, struct cj_error *err)
{
	int dir_fd = enter_free(t, f, err);
	if (dir_fd < 0)
		return dir_fd;
	int fd =
	    openat(dir_fd, f->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? cj_fail(err, errno, "create the file") : fd;
}

static int tree_finish_file(int fd, const struct image_file *f, struct cj_error *err)
{
	if (fchmod(fd, tree_mode(f->mode, false)) < 0 || set_times(fd, NULL, 0, f->mtime) < 0)
		return cj_fail(err, errno, "set the file's permissions and time");
	return 0;
}

static int tree_make_link(struct image_tree *t, const struct image_file *f, const char *target,
			  struct cj_error *err)
{
	int dir_fd = enter_free(t, f, err);
	if (dir_fd < 0)
		return dir_fd;
	if (symlinkat(target, dir_fd, f->name) < 0 ||
	    set_times(dir_fd, f->name, AT_SYMLINK_NOFOLLOW, f->mtime) < 0)
		return cj_fail(err, errno, "create the symbolic link");
	return 0;
}

/* A further name of target_dir/target_name, which is a file of the same layer. */
static int tree_make_hard_link(struct image_tree *t, const struct image_file *f,
			       const char *target_dir, const char *target_name,
			       struct cj_error *err)
{
	struct stat st;
	if (strcmp(f->dir, target_dir) == 0 && strcmp(f->name, target_name) == 0)
		return cj_reject(err, "it is a hard link to itself");
	auto_fd int target_fd = open_beneath(t, target_dir, O_PATH);
	if (target_fd < 0) {
		(void)!reject_parent(errno, target_dir, err);
		return cj_wrap(err, "hard link to '%s/%s'", target_dir, target_name);
	}
	if (fstatat(target_fd, target_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "find '%s/%s' in this layer, to which it is a hard link",
			       target_dir, target_name);
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
		return cj_reject(err, "it is a hard link to '%s/%s', which is no file", target_dir,
				 target_name);
	int dir_fd = enter_free(t, f, err);
	if (dir_fd < 0)
		return dir_fd;
	if (linkat(target_fd, target_name, dir_fd, f->name, 0) < 0)
		return cj_fail(err, errno, "create the hard link to '%s/%s'", target_dir,
			       target_name);
	return 0;
}

/* Nothing of this directory exists in the layers below. */
static int tree_hide_all(struct image_tree *t, const char *dir, struct cj_error *err)
{
	if (dir[0] == '\0')
		return cj_reject(err,
				 "a layer that hides all of the layers below is not supported");
	if (tree_enter(t, dir, err) < 0)
		return -err->code;
	auto_fd int fd = open_beneath(t, dir, O_RDONLY);
	return fd < 0 ? reject_parent(errno, dir, err) : make_opaque(fd, err);
}

/* `name` of the layers below does not exist.  Follows: overlayfs.rst, "whiteouts". */
static int tree_hide(struct image_tree *t, const struct image_file *f, struct cj_error *err)
{
	int dir_fd = tree_enter(t, f->dir, err);
	if (dir_fd < 0)
		return dir_fd;
	if (mknodat(dir_fd, f->name, S_IFCHR, makedev(0, 0)) == 0)
		return 0;
	if (errno != EEXIST)
		return cj_fail(err, errno, "create the whiteout");
	/* A file of this layer hides what is below anyway; of a directory nothing below is seen. */
	auto_fd int fd = openat(dir_fd, f->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		return make_opaque(fd, err);
	return errno == ENOTDIR || errno == ELOOP ? 0 : cj_fail(err, errno, "open what it hides");
}

/* Sets the time of a directory, when nothing more is created in it. */
static int tree_set_time(struct image_tree *t, const char *path, struct timespec mtime,
			 struct cj_error *err)
{
	auto_fd int fd = open_beneath(t, path, O_RDONLY);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0; /* a later entry replaced it */
	if (fd < 0 || set_times(fd, NULL, 0, mtime) < 0)
		return cj_fail(err, errno, "set the time of the directory '%s'", path);
	return 0;
}

/* The time of a directory: set when all is in place. */
struct dir_time {
	const char *path;
	struct timespec mtime;
};

struct unpacker {
	struct image_stream *stream;
	struct image_budget *budget;
	struct image_tree tree;
	struct arena arena; /* of `times` */
	struct dir_time *times;
	size_t ntimes;
};

static void unpacker_fini(struct unpacker *u)
{
	tree_fini(&u->tree);
	arena_fini(&u->arena);
}

static int count_entries(struct image_budget *budget, uint64_t entries, struct cj_error *err)
{
	budget->entries += entries;
	if (budget->entries <= IMAGE_ENTRIES_MAX)
		return 0;
	return cj_reject_as(err, E2BIG, "the image has more than %u files", IMAGE_ENTRIES_MAX);
}

static int write_at(int fd, const uint8_t *bytes, size_t size, uint64_t offset,
		    struct cj_error *err)
{
	while (size > 0) {
		ssize_t put = pwrite(fd, bytes, size, (off_t)offset);
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return cj_fail(err, put < 0 ? errno : EIO, "write the file");
		bytes += put;
		size -= (size_t)put;
		offset += (uint64_t)put;
	}
	return 0;
}

/* `size` is taken from the budget before the first byte is written: a hole counts in full. */
static int write_data(struct unpacker *u, int fd, uint64_t size, struct cj_error *err)
{
	const void *bytes;
	size_t part;
	uint64_t offset;

	if (image_budget_take(u->budget, size, err) < 0)
		return -err->code;
	int rc;
	while ((rc = image_stream_read(u->stream, &bytes, &part, &offset, err)) > 0) {
		if (offset > size || part > size - offset)
			return cj_reject(err, "it has more data than its size says");
		if (write_at(fd, bytes, part, offset, err) < 0)
			return -err->code;
	}
	if (rc < 0)
		return rc;
	/* what remains behind the last piece is a hole */
	return ftruncate(fd, (off_t)size) < 0 ? cj_fail(err, errno, "set the file's size") : 0;
}

static int unpack_file(struct unpacker *u, const struct image_file *f, struct archive_entry *e,
		       struct cj_error *err)
{
	int64_t size = archive_entry_size_is_set(e) ? archive_entry_size(e) : 0;
	if (size < 0)
		return cj_reject(err, "its size is negative");
	auto_fd int fd = tree_make_file(&u->tree, f, err);
	if (fd < 0 || write_data(u, fd, (uint64_t)size, err) < 0)
		return -err->code;
	return tree_finish_file(fd, f, err);
}

static int unpack_hard_link(struct unpacker *u, const struct image_file *f, const char *target,
			    struct cj_error *err)
{
	char path[PATH_MAX];
	const char *dir, *name;
	enum image_entry_kind kind;
	if (image_path_clean(target, path, err) < 0)
		return cj_wrap(err, "the target of its hard link");
	if (path[0] == '\0' || image_entry_split(path, &dir, &name, &kind, err) < 0 ||
	    kind != IMAGE_ENTRY_PLAIN)
		return cj_reject(err, "the target of its hard link is no file");
	return tree_make_hard_link(&u->tree, f, dir, name, err);
}

static int unpack_plain(struct unpacker *u, const struct image_file *f, struct archive_entry *e,
			struct cj_error *err)
{
	const char *hard = archive_entry_hardlink(e), *target = archive_entry_symlink(e);
	if (hard)
		return unpack_hard_link(u, f, hard, err);
	switch (archive_entry_filetype(e)) {
	case AE_IFREG:
		return unpack_file(u, f, e, err);
	case AE_IFDIR:
		return tree_make_dir(&u->tree, f, err);
	case AE_IFLNK:
		if (!target || target[0] == '\0' || strlen(target) > IMAGE_PATH_MAX)
			return cj_reject(err, "its link has no target, or one longer than %d bytes",
					 IMAGE_PATH_MAX);
		return tree_make_link(&u->tree, f, target, err);
	case AE_IFCHR:
	case AE_IFBLK:
	case AE_IFIFO:
	case AE_IFSOCK:
		u->budget->left_out++;
		return 0;
	default:
		return cj_reject(err, "its type is not known");
	}
}

static int unpack_at(struct unpacker *u, char *path, struct archive_entry *e, struct cj_error *err)
{
	struct image_file f = { .mode = archive_entry_mode(e) };
	enum image_entry_kind kind;

	if (archive_entry_mtime_is_set(e)) {
		long nsec = archive_entry_mtime_nsec(e);
		f.mtime.tv_sec = archive_entry_mtime(e);
		f.mtime.tv_nsec = nsec >= 0 && nsec < 1000000000 ? nsec : 0;
	}
	if (archive_entry_filetype(e) == AE_IFDIR) {
		const struct dir_time time = { arena_strdup(&u->arena, path), f.mtime };
		if (!time.path || !arena_append(&u->arena, u->times, u->ntimes, time))
			return cj_fail(err, ENOMEM, "keep the directory's time");
	}
	if (path[0] == '\0') /* the layer's own directory: its permissions are the store's */
		return archive_entry_filetype(e) == AE_IFDIR
			   ? 0
			   : cj_reject(err, "the root of a layer must be a directory");
	if (image_entry_split(path, &f.dir, &f.name, &kind, err) < 0)
		return -err->code;
	switch (kind) {
	case IMAGE_ENTRY_WHITEOUT:
		return tree_hide(&u->tree, &f, err);
	case IMAGE_ENTRY_OPAQUE:
		return tree_hide_all(&u->tree, f.dir, err);
	case IMAGE_ENTRY_SKIPPED:
		return 0;
	default:
		return unpack_plain(u, &f, e, err);
	}
}

static int unpack_entry(struct unpacker *u, struct archive_entry *e, struct cj_error *err)
{
	char path[PATH_MAX];
	const char *name = archive_entry_pathname(e);
	if (!name)
		name = archive_entry_pathname_utf8(e);
	if (!name)
		return cj_reject(err, "an entry has a name that can't be read");

	uint64_t made = u->tree.made;
	if (count_entries(u->budget, 1, err) < 0)
		return -err->code;
	if (image_path_clean(name, path, err) < 0 || unpack_at(u, path, e, err) < 0)
		return cj_wrap(err, "entry '%.200s'", name);
	return count_entries(u->budget, u->tree.made - made, err);
}

int image_unpack(struct image_stream *stream, int root_fd, struct image_budget *budget,
		 struct cj_error *err)
{
	__attribute__((cleanup(unpacker_fini))) struct unpacker u = {
		.stream = stream, .budget = budget, .tree = { .root_fd = root_fd, .last_fd = -1 }
	};
	struct archive_entry *entry;
	int rc;

	while ((rc = image_stream_next(stream, &entry, err)) > 0)
		if (unpack_entry(&u, entry, err) < 0)
			return -err->code;
	for (size_t i = 0; rc == 0 && i < u.ntimes; i++)
		rc = tree_set_time(&u.tree, u.times[i].path, u.times[i].mtime, err);
	return rc;
}
