/* SPDX-License-Identifier: Apache-2.0 */
/* What is imported, and the files in it. */
#include "runtime/front/image/image_parts.h"

#include <fcntl.h>
#include <limits.h>

#include "runtime/base/arena.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define OCI_MARK    "oci-layout"
#define DOCKER_MARK "manifest.json"
#define STAGE       "archive"
#define LINKS_MAX   8 /* that lead to one another: docker save writes one for a layer twice there */

/* A file of an archive. */
struct image_staged {
	const char *path;
	const char *link; /* the path that it leads to; NULL: it is the file "NUMBER" */
	size_t number;
};

/* The names at the top of a layout or of what docker save writes. */
static bool is_of_layout(const char *path)
{
	static const char *const names[] = { "blobs", "index.json", "repositories", OCI_MARK,
					     DOCKER_MARK };
	size_t size = strcspn(path, "/");
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (strlen(names[i]) == size && strncmp(path, names[i], size) == 0)
			return true;
	/* "SHA256/layer.tar", "SHA256.tar", "SHA256.json", "sha256:SHA256" */
	const char *digest = text_after(path, "sha256:");
	return strspn(digest ? digest : path, "0123456789abcdef") == 64;
}

/* From the names at its start: a root file system has others. */
static int find_kind(int in_fd, struct image_budget *budget, enum image_source_kind *out,
		     struct cj_error *err)
{
	auto_image_stream struct image_stream *s = NULL;
	struct archive_entry *e;
	char path[PATH_MAX];
	bool has_manifest = false;
	int rc;

	if (image_stream_open(in_fd, budget, &s, err) < 0)
		return -err->code;
	*out = IMAGE_SOURCE_ROOT;
	for (unsigned i = 0; (rc = image_stream_next(s, &e, err)) > 0; i++) {
		const char *name = archive_entry_pathname(e);
		if (i >= IMAGE_BLOBS_MAX || !name || image_path_clean(name, path, err) < 0)
			return 0; /* a root, and what is wrong with the name is said later */
		if (path[0] == '\0')
			continue;
		if (!is_of_layout(path)) {
			*out = has_manifest ? IMAGE_SOURCE_DOCKER : IMAGE_SOURCE_ROOT;
			return 0;
		}
		if (strcmp(path, OCI_MARK) == 0) {
			*out = IMAGE_SOURCE_OCI;
			return 0;
		}
		has_manifest |= strcmp(path, DOCKER_MARK) == 0;
	}
	if (rc == 0 && has_manifest)
		*out = IMAGE_SOURCE_DOCKER;
	return rc;
}

static int kind_of_dir(int dir_fd, enum image_source_kind *out, struct cj_error *err)
{
	static const struct {
		const char *name;
		enum image_source_kind kind;
	} marks[] = { { OCI_MARK, IMAGE_SOURCE_OCI }, { DOCKER_MARK, IMAGE_SOURCE_DOCKER } };
	*out = IMAGE_SOURCE_ROOT;
	for (size_t i = 0; i < COUNT_OF(marks); i++) {
		struct stat st;
		if (fstatat(dir_fd, marks[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			*out = marks[i].kind;
			return 0;
		}
		if (errno != ENOENT)
			return cj_fail(err, errno, "look for '%s'", marks[i].name);
	}
	return 0;
}

static int stage_file(struct image_source *s, struct image_stream *stream, size_t number,
		      struct image_budget *budget, struct cj_error *err)
{
	char name[24];
	const void *bytes;
	size_t size;
	uint64_t offset;
	int rc;
	(void)snprintf(name, sizeof(name), "%zu", number);
	auto_fd int fd =
	    openat(s->staged_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return cj_fail(err, errno, "create a file in the working directory");
	while ((rc = image_stream_read(stream, &bytes, &size, &offset, err)) > 0) {
		if (offset != (uint64_t)lseek(fd, 0, SEEK_CUR))
			return cj_reject(err, "it is a sparse file");
		if (image_budget_take(budget, size, err) < 0 ||
		    fd_write_all(fd, bytes, size, "the working directory", err) < 0)
			return -err->code;
	}
	return rc;
}

/* "a/b" and "../c" are "c"; NULL: it leads outside, or there is no memory. */
static const char *resolve_link(const char *path, const char *target, struct arena *a)
{
	char out[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t used = slash ? (size_t)(slash - path) : 0;
	memcpy(out, path, used);
	for (const char *at = target; *at; at += strspn(at, "/")) {
		size_t size = strcspn(at, "/");
		if (size == 2 && strncmp(at, "..", 2) == 0) {
			if (used == 0)
				return NULL;
			while (used > 0 && out[--used] != '/')
				;
		} else if (size > 0 && !(size == 1 && at[0] == '.')) {
			if (used + size + 2 > sizeof(out))
				return NULL;
			if (used > 0)
				out[used++] = '/';
			memcpy(out + used, at, size);
			used += size;
		}
		at += size;
	}
	return arena_strndup(a, out, used);
}

static int add_staged(struct image_source *s, const struct image_staged *file, struct cj_error *err)
{
	if (s->nfiles >= IMAGE_BLOBS_MAX)
		return cj_reject_as(err, E2BIG, "the archive has more than %d files",
				    IMAGE_BLOBS_MAX);
	return arena_append(s->arena, s->files, s->nfiles, *file)
		   ? 0
		   : cj_fail(err, ENOMEM, "read the archive");
}

static int stage_entry(struct image_source *s, struct image_stream *stream, struct archive_entry *e,
		       struct image_budget *budget, struct cj_error *err)
{
	char path[PATH_MAX];
	const char *name = archive_entry_pathname(e), *hard = archive_entry_hardlink(e);
	struct image_staged file = { .number = s->nfiles };

	if (!name || image_path_clean(name, path, err) < 0)
		return name ? -err->code : cj_reject(err, "it has no name");
	file.path = arena_strdup(s->arena, path);
	if (!file.path)
		return cj_fail(err, ENOMEM, "read the archive");
	if (hard || archive_entry_filetype(e) == AE_IFLNK) {
		const char *target = hard ? hard : archive_entry_symlink(e);
		file.link = target ? resolve_link(hard ? "" : path, target, s->arena) : NULL;
		return file.link ? add_staged(s, &file, err)
				 : cj_reject(err, "its link leads out of the archive");
	}
	if (archive_entry_filetype(e) != AE_IFREG)
		return 0; /* a directory: paths have their own */
	if (add_staged(s, &file, err) < 0)
		return -err->code;
	return stage_file(s, stream, file.number, budget, err);
}

static int stage_all(struct image_source *s, int work_fd, struct image_budget *budget,
		     struct cj_error *err)
{
	auto_image_stream struct image_stream *stream = NULL;
	struct archive_entry *e;
	int rc;

	if (mkdirat(work_fd, STAGE, 0700) < 0)
		return cj_fail(err, errno, "create '" STAGE "' in the working directory");
	s->staged_fd = openat(work_fd, STAGE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->staged_fd < 0)
		return cj_fail(err, errno, "open '" STAGE "' in the working directory");
	if (image_stream_open(s->fd, budget, &stream, err) < 0)
		return -err->code;
	while ((rc = image_stream_next(stream, &e, err)) > 0)
		if (stage_entry(s, stream, e, budget, err) < 0)
			return cj_wrap(err, "entry '%.200s'",
				       archive_entry_pathname(e) ? archive_entry_pathname(e) : "");
	return rc;
}

int image_source_open(int in_fd, int work_fd, struct image_budget *budget, struct arena *a,
		      struct image_source *out, struct cj_error *err)
{
	/* each pass has the budget of its own: the same bytes are read again */
	struct image_budget look = { .bytes_max = budget->bytes_max,
				     .on_read = budget->on_read,
				     .context = budget->context };
	struct image_budget stage = look;
	struct stat st;

	*out = (struct image_source){ .fd = in_fd, .staged_fd = -1, .arena = a };
	if (fstat(in_fd, &st) < 0)
		return cj_fail(err, errno, "stat");
	out->is_dir = S_ISDIR(st.st_mode);
	if (out->is_dir)
		return kind_of_dir(in_fd, &out->kind, err);
	if (find_kind(in_fd, &look, &out->kind, err) < 0)
		return -err->code;
	return out->kind == IMAGE_SOURCE_ROOT ? 0 : stage_all(out, work_fd, &stage, err);
}

/* The last entry of a name counts, as when it is unpacked. */
static const struct image_staged *find_staged(const struct image_source *s, const char *path)
{
	for (size_t i = s->nfiles; i-- > 0;)
		if (strcmp(s->files[i].path, path) == 0)
			return &s->files[i];
	return NULL;
}

static int open_staged(const struct image_source *s, const char *path, struct cj_error *err)
{
	char name[24];
	const struct image_staged *file = find_staged(s, path);
	for (unsigned i = 0; file && file->link && i < LINKS_MAX; i++)
		file = find_staged(s, file->link);
	if (!file || file->link)
		return cj_reject_as(err, ENOENT, "there is no file '%s'", path);
	(void)snprintf(name, sizeof(name), "%zu", file->number);
	int fd = openat(s->staged_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "open '%s'", path) : fd;
}

static int open_in_dir(const struct image_source *s, const char *path, struct cj_error *err)
{
	struct stat st;
	auto_fd int fd = sys_openat2(s->fd, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
	if (fd < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return cj_reject(err, "'%s' is not a regular file", path);
	return take_fd(&fd);
}

int image_source_file(const struct image_source *s, const char *path, struct cj_error *err)
{
	char clean[PATH_MAX];
	if (image_path_clean(path, clean, err) < 0)
		return cj_wrap(err, "file '%.200s'", path);
	return s->is_dir ? open_in_dir(s, clean, err) : open_staged(s, clean, err);
}
