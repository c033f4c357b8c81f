/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files copied in: the supervisor finds and opens them, init creates them.
 *
 * The first half walks a tree of the host with the caller's rights.  Each entry is checked before
 * it is opened (opening a device has effects), opened without following links, and checked again
 * by its descriptor.  The second half runs with the seccomp filter loaded, so it uses only calls
 * that every seccomp profile allows: openat, mkdirat, symlinkat, fchmod, utimensat, pread, write.
 */
#include "rootfs/files/inputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define COPY_BYTES (64u << 10)

/* Of a directory until it is complete; the sticky bit distinguishes it from existing ones. */
#define OPEN_MODE 01700

struct input_walk {
	struct input in;             /* the sink gets it; its path is that of the current entry */
	char source[INPUT_PATH_MAX]; /* the host path of the same entry, for messages */
	uint64_t max_bytes;
	size_t entries;
	input_sink sink;
	void *context;
};

static int walk_entry(struct input_walk *w, int dir_fd, const char *name, unsigned depth,
		      struct cj_error *err);

static int fail_too_big(const char *path, uint64_t max_bytes, struct cj_error *err)
{
	return cj_fail(err, EFBIG, "'%s' has more than %" PRIu64 " bytes", path, max_bytes);
}

static int emit(struct input_walk *w, enum input_kind kind, const struct stat *st, int fd,
		struct cj_error *err)
{
	if (kind != INPUT_DIRECTORY_END && ++w->entries > INPUT_FILES_MAX) {
		cj_refuse(err, "more than %d files and directories, the last of them '%s'",
			  INPUT_FILES_MAX, w->source);
		return cj_hint(err, "--overlay SRC shows a directory of any size, copy on write");
	}
	w->in.kind = kind;
	w->in.mode = st->st_mode & 0777;
	w->in.is_open = kind == INPUT_DIRECTORY;
	w->in.has_time = kind != INPUT_DIRECTORY;
	w->in.mtime = st->st_mtim;
	w->in.max_bytes = kind == INPUT_FILE ? w->max_bytes : 0;
	if (kind != INPUT_SYMLINK)
		w->in.target[0] = '\0';
	return w->sink(w->context, &w->in, fd, err);
}

static int walk_link(struct input_walk *w, int dir_fd, const char *name, const struct stat *st,
		     struct cj_error *err)
{
	ssize_t size = readlinkat(dir_fd, name, w->in.target, sizeof(w->in.target));
	if (size < 0)
		return cj_fail(err, errno, "read the link '%s'", w->source);
	if ((size_t)size >= sizeof(w->in.target))
		return cj_fail(err, ENAMETOOLONG, "read the link '%s'", w->source);
	w->in.target[size] = '\0';
	return emit(w, INPUT_SYMLINK, st, -1, err);
}

/* Appends "/name"; false, and unchanged, when there is no room. */
static bool path_push(char *path, size_t size, const char *name)
{
	size_t used = strlen(path);
	const char *slash = used > 0 && path[used - 1] == '/' ? "" : "/";
	int added = snprintf(path + used, size - used, "%s%s", slash, name);
	if (added >= 0 && (size_t)added < size - used)
		return true;
	path[used] = '\0';
	return false;
}

static bool is_dot(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Takes fd. */
/* At most INPUT_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int walk_children(struct input_walk *w, int fd, unsigned depth, struct cj_error *err)
{
	size_t source_length = strlen(w->source), path_length = strlen(w->in.path);
	auto_fd_dir struct fd_dir *dir = fd_take_dir(fd);
	if (!dir)
		return cj_fail(err, errno, "list '%s'", w->source);
	for (const struct dirent *entry; (entry = fd_next_entry(dir)) != NULL;) {
		if (!path_push(w->source, sizeof(w->source), entry->d_name) ||
		    !path_push(w->in.path, sizeof(w->in.path), entry->d_name))
			return cj_fail(err, ENAMETOOLONG, "copy '%s' of '%s'", entry->d_name,
				       w->source);
		int rc = walk_entry(w, dir->fd, entry->d_name, depth, err);
		w->source[source_length] = '\0';
		w->in.path[path_length] = '\0';
		if (rc != 0)
			return rc;
	}
	return errno == 0 ? 0 : cj_fail(err, errno, "list '%s'", w->source);
}

/* At most INPUT_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int walk_directory(struct input_walk *w, int *dir_fd, const struct stat *st, unsigned depth,
			  struct cj_error *err)
{
	if (depth >= INPUT_DEPTH_MAX)
		return cj_reject(err, "'%s' lies more than %d directories deep", w->source,
				 INPUT_DEPTH_MAX);

	int rc = emit(w, INPUT_DIRECTORY, st, -1, err);
	if (rc == 0)
		rc = walk_children(w, take_fd(dir_fd), depth + 1, err);
	return rc != 0 ? rc : emit(w, INPUT_DIRECTORY_END, st, -1, err);
}

static int open_entry(const struct input_walk *w, int dir_fd, const char *name, mode_t type,
		      struct stat *out_st, struct cj_error *err)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	auto_fd int fd = openat(dir_fd, name, flags);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", w->source);
	if (fstat(fd, out_st) < 0)
		return cj_fail(err, errno, "look at '%s'", w->source);
	if ((out_st->st_mode & S_IFMT) != type)
		return cj_reject(err, "'%s' became another kind of file while it was opened",
				 w->source);
	return take_fd(&fd);
}

/* At most INPUT_DEPTH_MAX deep; NOLINTNEXTLINE(misc-no-recursion) */
static int walk_entry(struct input_walk *w, int dir_fd, const char *name, unsigned depth,
		      struct cj_error *err)
{
	struct stat st;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "look at '%s'", w->source);
	if (S_ISLNK(st.st_mode))
		return walk_link(w, dir_fd, name, &st, err);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		cj_refuse(err, "'%s' is %s", w->source, fd_kind_name(st.st_mode));
		return cj_hint(err,
			       "directories, regular files and the links in them can be copied in");
	}

	auto_fd int fd = open_entry(w, dir_fd, name, st.st_mode & S_IFMT, &st, err);
	if (fd < 0)
		return fd;
	if (S_ISDIR(st.st_mode))
		return walk_directory(w, &fd, &st, depth, err);
	if ((uint64_t)st.st_size > w->max_bytes)
		return fail_too_big(w->source, w->max_bytes, err);
	return emit(w, INPUT_FILE, &st, fd, err);
}

int inputs_walk(const char *source, const char *target, uint64_t max_bytes, input_sink sink,
		void *context, struct cj_error *err)
{
	auto_free struct input_walk *w = calloc(1, sizeof(*w));
	if (!w)
		return cj_fail(err, ENOMEM, "copy '%s'", source);
	*w = (struct input_walk){ .max_bytes = max_bytes, .sink = sink, .context = context };

	int source_length = snprintf(w->source, sizeof(w->source), "%s", source);
	int target_length = snprintf(w->in.path, sizeof(w->in.path), "%s", target);
	if (source_length < 0 || (size_t)source_length >= sizeof(w->source) || target_length < 0 ||
	    (size_t)target_length >= sizeof(w->in.path))
		return cj_fail(err, ENAMETOOLONG, "copy '%s'", source);

	/* Links in a directory are copied; a named one is refused: its target may be meant. */
	struct stat st;
	if (fstatat(AT_FDCWD, source, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return cj_fail(err, errno, "look at '%s'", source);
	if (S_ISLNK(st.st_mode)) {
		cj_refuse(err, "'%s' is a symbolic link", source);
		return cj_hint(err, "name the file it points to");
	}
	return walk_entry(w, AT_FDCWD, source, 0, err);
}

static int fail_write(const struct input *in, int code, const char *doing, struct cj_error *err)
{
	(void)!cj_fail(err, code, "%s '%s'", doing, in->path);
	cj_hint_for(err, ENOSPC,
		    "the copied files do not fit: raise --disk, or see --overlay in cejail(1)");
	cj_hint_for(err, EROFS,
		    "/box, /tmp and /dev/shm can be written, all of '/' with --writable");
	cj_hint_for(err, EEXIST, "something of that name is in the jail already");
	return code == ELOOP || code == ENOTDIR
		   ? cj_hint(err, "a link or a file is where a directory should be")
		   : -code;
}

/* openat for a directory of the jail's: never through a link. */
static int open_dir(int dir_fd, const char *name)
{
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Returns the directory `name` below dir_fd, made 0755 if it is missing; -1 and errno. */
static int enter_dir(int dir_fd, const char *name)
{
	auto_fd int fd = open_dir(dir_fd, name);
	if (fd >= 0 || errno != ENOENT)
		return take_fd(&fd);
	if (mkdirat(dir_fd, name, 0755) < 0)
		return -1;
	fd = open_dir(dir_fd, name);
	if (fd >= 0 && fchmod(fd, 0755) < 0) /* whatever the umask is */
		return -1;
	return take_fd(&fd);
}

/* The next component of *rest into `name`; false at the end.  The path has no ".." (below). */
static bool next_name(const char **rest, char name[static NAME_MAX + 1])
{
	const char *begin = *rest + strspn(*rest, "/");
	size_t length = strcspn(begin, "/");
	if (length == 0 || length > NAME_MAX)
		return false;
	memcpy(name, begin, length);
	name[length] = '\0';
	*rest = begin + length;
	return true;
}

/* Absolute, at least one component, each of a valid length, none of them "." or "..". */
static bool is_plain_path(const char *path)
{
	char name[NAME_MAX + 1];
	const char *rest = path;
	size_t count = 0;
	for (; next_name(&rest, name); count++)
		if (is_dot(name))
			return false;
	return path[0] == '/' && count > 0 && rest[strspn(rest, "/")] == '\0';
}

/* The last name of a plain path into `name`.  Returns the length of what is before it. */
static size_t split_path(const char *path, char name[static NAME_MAX + 1])
{
	const char *last = path, *rest = path;
	while (rest += strspn(rest, "/"), *rest != '\0') {
		last = rest;
		(void)next_name(&rest, name);
	}
	return (size_t)(last - path);
}

/* Opens the directory of the first `length` bytes of in->path; makes missing ones. */
static int open_parent(int root_fd, const struct input *in, size_t length, struct cj_error *err)
{
	char name[NAME_MAX + 1];
	const char *rest = in->path, *end = in->path + length;
	auto_fd int dir_fd = -1;
	while (rest + strspn(rest, "/") < end && next_name(&rest, name)) {
		int next_fd = enter_dir(dir_fd < 0 ? root_fd : dir_fd, name);
		if (next_fd < 0)
			return fail_write(in, errno, "make a directory for", err);
		cj_close(&dir_fd);
		dir_fd = next_fd;
	}
	if (dir_fd < 0)
		dir_fd = open_dir(root_fd, ".");
	return dir_fd < 0 ? fail_write(in, errno, "open the root for", err) : take_fd(&dir_fd);
}

/* Where the bytes of a new file come from. */
struct source {
	int fd;
	struct blob pieces[2];
	bool is_packed; /* the pieces, not the descriptor */
};

static int write_bytes(const struct input *in, struct blob bytes, int to_fd, struct cj_error *err)
{
	for (size_t done = 0; done < bytes.size;) {
		ssize_t part = sys_write(to_fd, bytes.bytes + done, bytes.size - done);
		if (part < 0)
			return fail_write(in, errno, "write", err);
		done += (size_t)part;
	}
	return 0;
}

/* pread: the descriptor may share its offset with others, and its bytes begin at 0. */
static int copy_bytes(const struct input *in, int from_fd, int to_fd, struct cj_error *err)
{
	auto_free char *buf = malloc(COPY_BYTES);
	if (!buf)
		return cj_fail(err, ENOMEM, "copy '%s'", in->path);

	for (uint64_t done = 0;;) {
		ssize_t got = TEMP_FAILURE_RETRY(pread(from_fd, buf, COPY_BYTES, (off_t)done));
		if (got < 0)
			return fail_write(in, errno, "read the source of", err);
		if (got == 0)
			return 0;
		done += (uint64_t)got;
		if (done > in->max_bytes)
			return fail_too_big(in->path, in->max_bytes, err);

		if (write_bytes(in, (struct blob){ buf, (size_t)got }, to_fd, err) < 0)
			return -err->code;
	}
}

/* Sets mode (independent of the umask) and time of a complete file. */
static int finish(int fd, const struct input *in, struct cj_error *err)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, in->mtime };
	if (fchmod(fd, in->mode & 0777) < 0)
		return fail_write(in, errno, "set the mode of", err);
	if (in->has_time && futimens(fd, times) < 0)
		return fail_write(in, errno, "set the time of", err);
	return 0;
}

static int write_new_file(int dir_fd, const char *name, const struct input *in,
			  const struct source *from, struct cj_error *err)
{
	auto_fd int out_fd =
	    openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out_fd < 0)
		return fail_write(in, errno, "create", err);

	int rc = from->is_packed ? 0 : copy_bytes(in, from->fd, out_fd, err);
	for (size_t i = 0; rc == 0 && from->is_packed && i < 2; i++)
		rc = write_bytes(in, from->pieces[i], out_fd, err);
	return rc < 0 ? rc : finish(out_fd, in, err);
}

/* Programs may run meanwhile: they see the old file or the new one.  Our pid makes the name ours
 * among all that write inputs. */
static int write_over_file(int dir_fd, const char *name, const struct input *in,
			   const struct source *from, struct cj_error *err)
{
	char fresh[40];
	(void)snprintf(fresh, sizeof(fresh), ".cejail-input-%d", getpid());
	(void)unlinkat(dir_fd, fresh, 0); /* left by a reaper that was killed; ENOENT else */
	int rc = write_new_file(dir_fd, fresh, in, from, err);
	if (rc == 0 && renameat(dir_fd, fresh, dir_fd, name) < 0)
		rc = fail_write(in, errno, "replace", err);
	if (rc < 0)
		(void)unlinkat(dir_fd, fresh, 0);
	return rc;
}

/* An existing directory is not changed: --file DIR:/box adds to it. */
static int write_directory(int dir_fd, const char *name, const struct input *in,
			   struct cj_error *err)
{
	bool is_new = mkdirat(dir_fd, name, 0700) == 0;
	if (!is_new && errno != EEXIST)
		return fail_write(in, errno, "make", err);

	auto_fd int made_fd = open_dir(dir_fd, name);
	if (made_fd < 0)
		return fail_write(in, errno, "open", err);
	if (is_new && fchmod(made_fd, in->is_open ? OPEN_MODE : in->mode & 0777) < 0)
		return fail_write(in, errno, "set the mode of", err);
	return 0;
}

/* Only a directory that this copy made gets the mode and time of its source. */
static int end_directory(int dir_fd, const char *name, const struct input *in, struct cj_error *err)
{
	struct stat st;
	auto_fd int made_fd = open_dir(dir_fd, name);
	if (made_fd < 0 || fstat(made_fd, &st) < 0)
		return fail_write(in, errno, "open", err);
	return (st.st_mode & 07777) == OPEN_MODE ? finish(made_fd, in, err) : 0;
}

static int write_link(int dir_fd, const char *name, const struct input *in, struct cj_error *err)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, in->mtime };
	if (in->replaces)
		(void)unlinkat(dir_fd, name, 0); /* a directory stays: EEXIST below */
	if (symlinkat(in->target, dir_fd, name) < 0)
		return fail_write(in, errno, "make the link", err);
	/* EPERM: without namespaces the filter refuses it, and the link has another time. */
	if (in->has_time && utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != EPERM)
		return fail_write(in, errno, "set the time of", err);
	return 0;
}

static int write_file(int dir_fd, const char *name, const struct input *in,
		      const struct source *from, struct cj_error *err)
{
	return in->replaces ? write_over_file(dir_fd, name, in, from, err)
			    : write_new_file(dir_fd, name, in, from, err);
}

static int reject_path(const char *path, struct cj_error *err)
{
	return cj_reject(err, "'%s' is no absolute path without '.' and '..'", path);
}

bool input_pack_add(struct input_pack *pack, const struct packed_file *file, const char *path,
		    const void *bytes)
{
	size_t path_size = strlen(path) + 1, size = sizeof(*file) + path_size + file->size;
	if (pack->count == INPUT_PACK_FILES || path_size > INPUT_PATH_MAX ||
	    size > INPUT_PACK_MAX - pack->size)
		return false;
	struct packed_file *kept = &pack->files[pack->count];
	struct iovec *parts = &pack->parts[3 * pack->count++];
	*kept = *file;
	kept->path_size = (uint32_t)path_size;
	parts[0] = (struct iovec){ kept, sizeof(*kept) };
	parts[1] = (struct iovec){ (void *)path, path_size }; /* only read, as the next one */
	parts[2] = (struct iovec){ (void *)bytes, file->size };
	pack->size += size;
	return true;
}

/* Takes the next file off a pack, whose bytes are from *at to `end`; false: this is none. */
static bool next_packed(const char **at, const char *end, struct input *in, struct source *from)
{
	struct packed_file file;
	size_t left = (size_t)(end - *at);
	if (left < sizeof(file))
		return false;
	memcpy(&file, *at, sizeof(file));
	const char *path = *at + sizeof(file);
	left -= sizeof(file);
	if (file.path_size == 0 || file.path_size > sizeof(in->path) || file.path_size > left ||
	    path[file.path_size - 1] != '\0' || file.size > left - file.path_size)
		return false;
	memcpy(in->path, path, file.path_size);
	in->mode = file.mode;
	const struct blob rest = { path + file.path_size, file.size };
	*from = (struct source){ -1, { own_file_bytes((enum own_file)file.own), rest }, true };
	*at = rest.bytes + rest.size;
	return true;
}

int input_pack_write(int root_fd, const char *bytes, size_t size, bool replaces,
		     struct cj_error *err)
{
	struct input in = { .kind = INPUT_FILE, .replaces = replaces };
	struct source from;
	char parent[INPUT_PATH_MAX] = "", name[NAME_MAX + 1];
	const char *at = bytes, *end = bytes + size;
	auto_fd int dir_fd = -1; /* opened once for files that follow one another in it */
	while (at < end) {
		if (!next_packed(&at, end, &in, &from))
			return cj_fail(err, EPROTO, "read the files");
		if (!is_plain_path(in.path))
			return reject_path(in.path, err);
		size_t length = split_path(in.path, name);
		if (dir_fd < 0 || parent[length] != '\0' || memcmp(parent, in.path, length) != 0) {
			memcpy(parent, in.path, length);
			parent[length] = '\0';
			cj_close(&dir_fd);
			dir_fd = open_parent(root_fd, &in, length, err);
			if (dir_fd < 0)
				return dir_fd;
		}
		if (write_file(dir_fd, name, &in, &from, err) < 0)
			return -err->code;
	}
	return 0;
}

int input_write(int root_fd, const struct input *in, int fd, struct cj_error *err)
{
	if (!is_plain_path(in->path))
		return reject_path(in->path, err);

	char name[NAME_MAX + 1];
	size_t length = split_path(in->path, name);
	auto_fd int dir_fd = open_parent(root_fd, in, length, err);
	if (dir_fd < 0)
		return dir_fd;
	switch (in->kind) {
	case INPUT_FILE:
		return write_file(dir_fd, name, in, &(struct source){ .fd = fd }, err);
	case INPUT_DIRECTORY:
		return write_directory(dir_fd, name, in, err);
	case INPUT_SYMLINK:
		return write_link(dir_fd, name, in, err);
	case INPUT_DIRECTORY_END:
		return end_directory(dir_fd, name, in, err);
	}
	return cj_reject(err, "'%s' is an input of an unknown kind", in->path);
}
