/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a stream into a layer's directory.  Acts. */
#include "runtime/front/image/image_unpack.h"

#include <string.h>
#include <unistd.h>

#include "rootfs/image/image_store.h"
#include "runtime/base/arena.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/image/image_tree.h"

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
	image_tree_fini(&u->tree);
	arena_fini(&u->arena);
}

/* --- limits -------------------------------------------------------------------------- */

int image_budget_take(struct image_budget *budget, uint64_t bytes, struct cj_error *err)
{
	if (bytes <= budget->bytes_max - budget->unpacked_bytes) {
		budget->unpacked_bytes += bytes;
		return 0;
	}
	char most[32];
	text_format_size(budget->bytes_max, most, sizeof(most));
	int rc = cj_reject_as(err, EFBIG, "the image has more than %s", most);
	cj_hint(err, "allow more with --max-size");
	return rc;
}

int image_budget_count(struct image_budget *budget, uint64_t entries, struct cj_error *err)
{
	budget->entries += entries;
	if (budget->entries <= IMAGE_ENTRIES_MAX)
		return 0;
	return cj_reject_as(err, E2BIG, "the image has more than %u files", IMAGE_ENTRIES_MAX);
}

/* --- one entry ------------------------------------------------------------------------- */

static struct timespec mtime_of(struct archive_entry *e)
{
	struct timespec t = { 0 };
	if (archive_entry_mtime_is_set(e)) {
		long nsec = archive_entry_mtime_nsec(e);
		t.tv_sec = archive_entry_mtime(e);
		t.tv_nsec = nsec >= 0 && nsec < 1000000000 ? nsec : 0;
	}
	return t;
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
	auto_fd int fd = image_tree_make_file(&u->tree, f, err);
	if (fd < 0 || write_data(u, fd, (uint64_t)size, err) < 0)
		return -err->code;
	return image_tree_finish_file(fd, f, err);
}

static int unpack_link(struct unpacker *u, const struct image_file *f, struct archive_entry *e,
		       struct cj_error *err)
{
	const char *target = archive_entry_symlink(e);
	if (!target || target[0] == '\0' || strlen(target) > IMAGE_PATH_MAX)
		return cj_reject(err, "its link has no target, or one longer than %d bytes",
				 IMAGE_PATH_MAX);
	return image_tree_make_link(&u->tree, f, target, err);
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
	return image_tree_make_hard_link(&u->tree, f, dir, name, err);
}

static int note_time(struct unpacker *u, const char *path, struct timespec mtime,
		     struct cj_error *err)
{
	struct dir_time *times = arena_grow(&u->arena, u->times, u->ntimes, sizeof(*times));
	const char *kept = arena_strdup(&u->arena, path);
	if (!times || !kept)
		return cj_fail(err, ENOMEM, "keep the directory's time");
	u->times = times;
	times[u->ntimes++] = (struct dir_time){ kept, mtime };
	return 0;
}

static int unpack_plain(struct unpacker *u, const struct image_file *f, struct archive_entry *e,
			struct cj_error *err)
{
	const char *hard = archive_entry_hardlink(e);
	if (hard)
		return unpack_hard_link(u, f, hard, err);
	switch (archive_entry_filetype(e)) {
	case AE_IFREG:
		return unpack_file(u, f, e, err);
	case AE_IFDIR:
		return image_tree_make_dir(&u->tree, f, err);
	case AE_IFLNK:
		return unpack_link(u, f, e, err);
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

/* --- all entries ------------------------------------------------------------------------- */

static int unpack_at(struct unpacker *u, char *path, struct archive_entry *e, struct cj_error *err)
{
	struct image_file f = { .mode = archive_entry_mode(e), .mtime = mtime_of(e) };
	enum image_entry_kind kind;

	if (archive_entry_filetype(e) == AE_IFDIR && note_time(u, path, f.mtime, err) < 0)
		return -err->code;
	if (path[0] == '\0') /* the layer's own directory: its permissions are the store's */
		return archive_entry_filetype(e) == AE_IFDIR
			   ? 0
			   : cj_reject(err, "the root of a layer must be a directory");
	if (image_entry_split(path, &f.dir, &f.name, &kind, err) < 0)
		return -err->code;
	switch (kind) {
	case IMAGE_ENTRY_WHITEOUT:
		return image_tree_hide(&u->tree, &f, err);
	case IMAGE_ENTRY_OPAQUE:
		return image_tree_hide_all(&u->tree, f.dir, err);
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
	if (image_budget_count(u->budget, 1, err) < 0)
		return -err->code;
	if (image_path_clean(name, path, err) < 0 || unpack_at(u, path, e, err) < 0)
		return cj_wrap(err, "entry '%.200s'", name);
	return image_budget_count(u->budget, u->tree.made - made, err);
}

static int set_dir_times(struct unpacker *u, struct cj_error *err)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < u->ntimes; i++)
		rc = image_tree_set_time(&u->tree, u->times[i].path, u->times[i].mtime, err);
	return rc;
}

int image_unpack(struct image_stream *stream, int root_fd, struct image_budget *budget,
		 struct cj_error *err)
{
	__attribute__((cleanup(unpacker_fini))) struct unpacker u = { .stream = stream,
								      .budget = budget,
								      .tree = IMAGE_TREE_NULL };
	struct archive_entry *entry;
	int rc;

	u.tree.root_fd = root_fd;
	while ((rc = image_stream_next(stream, &entry, err)) > 0)
		if (unpack_entry(&u, entry, err) < 0)
			return -err->code;
	return rc < 0 ? rc : set_dir_times(&u, err);
}
