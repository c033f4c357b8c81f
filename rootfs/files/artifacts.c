/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files out of /box/out and of paths that the caller named.
 *
 * After a run the jail is dead and its tree no longer changes; in a session, other programs may
 * change it meanwhile.  The payload chose every name, type, mode and size in it.  So paths are
 * opened one component at a time by descriptor, across no link and no other mount.  Each entry is
 * checked before and after it is opened, and the bytes read are counted.  Others may use the
 * destination, too: no link in it is followed, and a name appears there only when its file is
 * complete.
 *
 * Into memory there is no destination; all else is the same.
 *
 * A fault of the payload's files skips the file with a warning.  A failure of the destination or
 * of memory is an error and ends the copying.
 */
#include "rootfs/files/artifacts.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "rootfs/files/autorun.h"
#include "rootfs/files/jail_file.h"
#include "rootfs/files/types.h"
#include "runtime/base/files/atomic_file.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define ENTRIES_MAX (ARTIFACTS_FILES_MAX * 10) /* entries of all kinds that are examined */
#define SKIPPED_MAX 100                        /* warnings; a payload could cause a million */
#define SHOWN_MAX   256                        /* bytes of a path in a warning */
#define PATH_BYTES  ((ARTIFACTS_DEPTH_MAX + 1) * (size_t)(ARTIFACT_NAME_MAX + 1))
#define COPY_BYTES  TYPE_HEAD_MAX /* the first piece decides the type */

/* A directory of the destination, made with its first file; NULL: memory. */
struct collected_place {
	struct collected_place *parent; /* NULL: the caller's directory, whose fd is borrowed */
	const char *name;
	int fd; /* -1: not yet opened */
};

struct collector {
	struct arena *arena;
	struct artifacts *out;
	uint64_t bytes, max_bytes; /* read so far, of all files */
	size_t entries, unnamed;
	const struct artifacts_from *from;
	bool is_named;         /* below a path that the caller named, else below /box/out */
	char path[PATH_BYTES]; /* of the current entry, as in struct artifact */
	char buf[COPY_BYTES];
};

enum { COPIED, SKIPPED }; /* or a negative errno */

static int collect_directory(struct collector *c, int fd, struct collected_place *place,
			     unsigned depth, struct cj_error *err);

static int add_warning(struct collector *c, const char *warning, struct cj_error *err)
{
	if (!warning || strings_add(&c->out->skipped, c->arena, warning) < 0)
		return cj_fail(err, ENOMEM, "list the files that are not copied");
	return 0;
}

/* "'PATH' in /box/out is not copied: WHY", or "'/PATH' is not copied: WHY".  Returns SKIPPED. */
static int skip(struct collector *c, struct cj_error *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static int skip(struct collector *c, struct cj_error *err, const char *fmt, ...)
{
	if (c->out->skipped.count >= SKIPPED_MAX) {
		c->unnamed++;
		return SKIPPED;
	}
	char shown[SHOWN_MAX], why[160];
	size_t length = strlen(c->path);
	size_t used = text_escape(c->path, length, false, shown, sizeof(shown));

	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	const char *warning =
	    arena_printf(c->arena, "'%s%s%s'%s is not copied: %s", c->is_named ? "/" : "", shown,
			 used < length ? "..." : "", c->is_named ? "" : " in /box/out", why);
	return add_warning(c, warning, err) < 0 ? -err->code : SKIPPED;
}

bool artifacts_has_control(const char *name)
{
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p < 0x20 || *p == 0x7f || (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0))
			return true;
	return false;
}

/* Why a file may not have that name outside; NULL: it may. */
static const char *name_fault(const char *name)
{
	if (!is_utf8(name, strlen(name)))
		return "its name is not UTF-8";
	if (artifacts_has_control(name))
		return "its name has control characters";
	if (name[0] == '-')
		return "its name begins with '-', like an option";
	return NULL;
}

static int fail_destination(const struct collector *c, int code, const char *doing,
			    struct cj_error *err)
{
	int rc = cj_fail(err, code, "%s '%s' in the artifacts directory", doing, c->path);
	if (code == ENOSPC || code == EDQUOT)
		cj_hint(err, "it is full; nothing after this file was copied");
	else
		cj_hint(err, "nothing after this file was copied");
	return rc;
}

/*
 * Opens `place` and makes missing directories.  Returns -1 and errno: ELOOP and ENOTDIR mean
 * that a link or a file of the destination is in its place.
 */
/* At most ARTIFACTS_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int place_open(struct collected_place *place)
{
	if (place->fd >= 0)
		return place->fd;
	int parent_fd = place_open(place->parent);
	if (parent_fd < 0)
		return -1;

	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	if (mkdirat(parent_fd, place->name, 0755) < 0 && errno != EEXIST)
		return -1;
	place->fd = openat(parent_fd, place->name, flags);
	return place->fd;
}

/* Where the bytes of one file go. */
struct target {
	int fd;      /* -1: to memory */
	char *bytes; /* as many as fstat(2) reported */
	uint64_t room;
};

static int put_bytes(struct collector *c, const struct target *to, uint64_t at, size_t size,
		     struct cj_error *err)
{
	struct cj_error why = { 0 };
	if (to->fd >= 0)
		return fd_write_all(to->fd, c->buf, size, c->path, &why) < 0
			   ? fail_destination(c, why.code, "write", err)
			   : COPIED;
	if (size > to->room - at)
		return skip(c, err, "it grew");
	memcpy(to->bytes + at, c->buf, size);
	return COPIED;
}

/* Copies until the end or until all files together are too large; *item gets size, hash and type.
 */
static int copy_bytes(struct collector *c, int from_fd, const struct target *to,
		      struct artifact *item, struct cj_error *err)
{
	struct sha256 hash;
	sha256_init(&hash);
	for (;;) {
		ssize_t got = sys_read(from_fd, c->buf, sizeof(c->buf));
		if (got < 0)
			return skip(c, err, "read: %s", strerror(errno));
		/* a file that is as large as a whole piece may go on: the rest does not decide */
		if (!item->type)
			item->type =
			    type_of(item->path, c->buf, (size_t)got, (size_t)got < sizeof(c->buf));
		if (got == 0)
			break;
		c->bytes += (uint64_t)got;
		if (c->bytes > c->max_bytes)
			return skip(c, err, "all files together are too large");
		int rc = put_bytes(c, to, item->bytes, (size_t)got, err);
		if (rc != COPIED)
			return rc;
		item->bytes += (uint64_t)got;
		sha256_update(&hash, c->buf, (size_t)got);
	}
	sha256_final(&hash, item->sha256);
	return COPIED;
}

/* Readable by all, under its own name. */
static int publish(struct collector *c, int dir_fd, struct atomic_file *to, const char *name,
		   struct cj_error *err)
{
	if (fchmod(to->fd, 0644) < 0)
		return fail_destination(c, errno, "set the mode of", err);
	int rc = atomic_file_publish(to, dir_fd, name);
	if (rc == 0)
		return COPIED;
	if (rc != -EISDIR && rc != -ENOTEMPTY && rc != -EEXIST)
		return fail_destination(c, -rc, "write", err);
	return skip(c, err, "a directory has its name in the artifacts directory");
}

/* dir_fd -1: into memory. */
static int copy_file(struct collector *c, int from_fd, int dir_fd, const char *name, uint64_t size,
		     struct cj_error *err)
{
	struct artifacts *out = c->out;
	struct artifact item = { .path = arena_strdup(c->arena, c->path) };
	struct atomic_file file = NEWFILE_NULL;
	struct target to = { .fd = -1, .room = size };
	if (dir_fd < 0) /* one byte more: an empty file has content, too */
		item.content = to.bytes = arena_alloc(c->arena, (size_t)size + 1);
	if (!item.path || (dir_fd < 0 && !to.bytes))
		return cj_fail(err, ENOMEM, "keep the artefacts");

	int rc = dir_fd < 0 ? 0 : atomic_file_open(dir_fd, 0600, &file);
	if (rc < 0)
		return fail_destination(c, -rc, "create", err);
	to.fd = file.fd;
	rc = copy_bytes(c, from_fd, &to, &item, err);
	if (rc == COPIED && dir_fd >= 0)
		rc = publish(c, dir_fd, &file, name, err);
	atomic_file_fini(&file);
	if (rc != COPIED)
		return rc;
	return arena_append(c->arena, out->items, out->count, item)
		   ? COPIED
		   : cj_fail(err, ENOMEM, "list the artefacts");
}

static int collect_file(struct collector *c, int fd, struct collected_place *place,
			const char *name, const struct stat *st, struct cj_error *err)
{
	if (c->out->count >= ARTIFACTS_FILES_MAX)
		return skip(c, err, "there are more than %d files", ARTIFACTS_FILES_MAX);
	uint64_t room = c->bytes < c->max_bytes ? c->max_bytes - c->bytes : 0;
	if ((uint64_t)st->st_size > room)
		return skip(c, err, "all files together may have %llu bytes",
			    (unsigned long long)c->max_bytes);
	int dir_fd = place ? place_open(place) : -1;
	if (place && dir_fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return skip(c, err, "the artifacts directory has a link or a file in its place");
	if (place && dir_fd < 0)
		return fail_destination(c, errno, "make the directory of", err);
	return copy_file(c, fd, dir_fd, name, (uint64_t)st->st_size, err);
}

/* True when a name directly below /box/out begins a path that the caller named. */
static bool is_reserved(const struct collector *c, const char *name)
{
	for (size_t i = 0; i < c->from->nplaces; i++)
		if (text_path_below(c->from->places[i].path + 1, name))
			return true;
	return false;
}

/* The inode's own time: a program can set st_mtime. */
static bool is_unchanged(const struct collector *c, int dir_fd, const char *name)
{
	const struct timespec *since = &c->from->since;
	struct stat st;

	if (c->is_named || since->tv_sec == 0 ||
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISDIR(st.st_mode))
		return false;
	return st.st_ctim.tv_sec != since->tv_sec ? st.st_ctim.tv_sec < since->tv_sec
						  : st.st_ctim.tv_nsec < since->tv_nsec;
}

/* At most ARTIFACTS_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int collect_entry(struct collector *c, int dir_fd, const char *name,
			 struct collected_place *place, unsigned depth, struct cj_error *err)
{
	struct stat st;
	if (is_unchanged(c, dir_fd, name))
		return 0;
	const char *fault = name_fault(name);
	if (!fault && !c->is_named && depth == 0 && is_reserved(c, name))
		fault = "its name is the first part of a path of --artifact-path";
	if (!fault && place && autorun_has_name(c->path))
		fault = AUTORUN_FAULT;
	if (!fault && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		fault = strerror(errno);
	if (!fault)
		fault = jail_file_fault(&st);
	if (fault)
		return skip(c, err, "%s", fault);

	bool is_dir = S_ISDIR(st.st_mode);
	if (is_dir && depth >= ARTIFACTS_DEPTH_MAX)
		return skip(c, err, "it lies more than %d directories deep", ARTIFACTS_DEPTH_MAX);

	auto_fd int fd = jail_file_open(dir_fd, name, is_dir ? O_DIRECTORY : 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return skip(c, err, "open: %s", strerror(errno));
	fault = jail_file_fault(&st);
	if (fault || is_dir != S_ISDIR(st.st_mode))
		return skip(c, err, "%s", fault ? fault : "it changed");
	if (!is_dir)
		return collect_file(c, fd, place, name, &st, err);

	struct collected_place below = { .parent = place, .name = name, .fd = -1 };
	int rc = collect_directory(c, take_fd(&fd), place ? &below : NULL, depth + 1, err);
	cj_close(&below.fd);
	return rc;
}

/* Appends "NAME" or "/NAME"; PATH_BYTES is room for every name at every depth. */
static void path_push(struct collector *c, const char *name)
{
	size_t used = strlen(c->path);
	(void)snprintf(c->path + used, sizeof(c->path) - used, "%s%s", used > 0 ? "/" : "", name);
}

/* Takes fd. */
/* At most ARTIFACTS_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int collect_directory(struct collector *c, int fd, struct collected_place *place,
			     unsigned depth, struct cj_error *err)
{
	auto_fd_dir struct fd_dir *dir = fd_take_dir(fd);
	if (!dir)
		return cj_fail(err, errno, "list '/box/out/%s'", c->path);
	size_t length = strlen(c->path);
	for (const struct dirent *entry; (entry = fd_next_entry(dir)) != NULL;) {
		path_push(c, entry->d_name);
		bool is_one_more = ++c->entries > ENTRIES_MAX;
		c->unnamed += is_one_more;
		if (!is_one_more && collect_entry(c, dir->fd, entry->d_name, place, depth, err) < 0)
			return -err->code;
		c->path[length] = '\0';
	}
	return errno == 0 ? 0 : cj_fail(err, errno, "list '/box/out/%s'", c->path);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct artifact *)a)->path, ((const struct artifact *)b)->path);
}

/*
 * Fills `chain` with the parent directories of `path` in the destination, below `top`; splits
 * `path` at its slashes.  Returns how many; ARTIFACTS_DEPTH_MAX: the file can't be copied.
 */
static unsigned make_chain(char *path, struct collected_place *top,
			   struct collected_place chain[static ARTIFACTS_DEPTH_MAX])
{
	unsigned depth = 0;
	for (char *slash = strchr(path, '/'); slash; slash = strchr(path, '/')) {
		*slash = '\0';
		if (depth == ARTIFACTS_DEPTH_MAX || name_fault(path))
			return ARTIFACTS_DEPTH_MAX;
		chain[depth] = (struct collected_place){
			.parent = depth > 0 ? &chain[depth - 1] : top, .name = path, .fd = -1
		};
		depth++;
		path = slash + 1;
	}
	return depth;
}

static int collect_named(struct collector *c, const struct artifact_place *from,
			 struct collected_place *top, struct cj_error *err)
{
	struct collected_place chain[ARTIFACTS_DEPTH_MAX];
	const char *name = NULL;
	char *path = arena_strdup(c->arena, from->path + 1);
	if (!path)
		return cj_fail(err, ENOMEM, "list the artefacts");

	(void)snprintf(c->path, sizeof(c->path), "%s", from->path + 1);
	unsigned depth = make_chain(path, top, chain);
	if (depth == ARTIFACTS_DEPTH_MAX)
		return skip(c, err, "its path is too deep, or has a name that is not copied");
	auto_fd int parent_fd = jail_file_parent(from->dir_fd, from->inside, c->arena, &name);
	if (parent_fd < 0)
		return skip(c, err, "%s", strerror(errno));
	struct collected_place *place = depth > 0 ? &chain[depth - 1] : top;
	int rc = collect_entry(c, parent_fd, name, top ? place : NULL, depth, err);
	while (depth > 0)
		cj_close(&chain[--depth].fd);
	return rc;
}

static int collect_all(struct collector *c, struct collected_place *place, struct cj_error *err)
{
	c->is_named = true;
	for (size_t i = 0; i < c->from->nplaces; i++)
		if (collect_named(c, &c->from->places[i], place, err) < 0)
			return -err->code;
	c->is_named = false;
	c->path[0] = '\0';

	int rc = 0, out_fd = jail_file_open(c->from->box_fd, "out", O_DIRECTORY);
	if (out_fd >= 0)
		rc = collect_directory(c, out_fd, place, 0, err);
	else if (errno != ENOENT) /* else the program made nothing of it */
		rc = add_warning(
		    c,
		    arena_printf(c->arena, "nothing is copied from /box/out: %s", strerror(errno)),
		    err);
	if (rc == 0 && c->unnamed > 0)
		rc = add_warning(c, arena_printf(c->arena, "%zu more are not copied", c->unnamed),
				 err);
	return rc;
}

static int collect(const struct artifacts_from *from, struct collected_place *place,
		   uint64_t max_bytes, struct arena *a, struct artifacts *out, struct cj_error *err)
{
	*out = (struct artifacts){ 0 };
	auto_free struct collector *c = malloc(sizeof(*c));
	if (!c)
		return cj_fail(err, ENOMEM, "copy artefacts");
	c->arena = a;
	c->out = out;
	c->bytes = 0;
	c->max_bytes = max_bytes < ARTIFACTS_BYTES_MAX ? max_bytes : ARTIFACTS_BYTES_MAX;
	c->entries = c->unnamed = 0;
	c->from = from;
	c->path[0] = '\0';

	int rc = collect_all(c, place, err);
	if (out->count > 1)
		qsort(out->items, out->count, sizeof(*out->items), by_path);
	return rc;
}

int artifacts_collect(const struct artifacts_from *from, int dest_fd, struct arena *a,
		      struct artifacts *out, struct cj_error *err)
{
	struct collected_place place = { .fd = dest_fd };
	return collect(from, &place, ARTIFACTS_BYTES_MAX, a, out, err);
}

int artifacts_keep(const struct artifacts_from *from, uint64_t max_bytes, struct arena *a,
		   struct artifacts *out, struct cj_error *err)
{
	return collect(from, NULL, max_bytes, a, out, err);
}
