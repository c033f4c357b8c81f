/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/files/fd.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define READ_FIRST 4096 /* most kernel files and profiles are smaller */
#define COPY_BYTES 65536

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3, not in glibc 2.36 */
#endif

void cj_reap_child(int *pidfd)
{
	int saved = errno;
	siginfo_t info;

	if (*pidfd >= 0)
		(void)TEMP_FAILURE_RETRY(waitid(P_PIDFD, (id_t)*pidfd, &info, WEXITED));
	cj_close(pidfd);
	errno = saved;
}

void cj_end_child(int *pidfd)
{
	int saved = errno;

	if (*pidfd >= 0)
		(void)sys_pidfd_send_signal(*pidfd, SIGKILL); /* ESRCH: it has ended already */
	cj_reap_child(pidfd);
	errno = saved;
}

int fd_claim_stdio(unsigned *out_were_open, struct cj_error *err)
{
	struct pollfd streams[] = { { .fd = 0 }, { .fd = 1 }, { .fd = 2 } };
	unsigned were_open = 0;

	if (TEMP_FAILURE_RETRY(poll(streams, 3, 0)) < 0)
		return cj_fail(err, errno, "look at the standard streams");
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* poll(2) calls one closed, too, that is open with O_PATH */
		if (!(streams[fd].revents & POLLNVAL) || fcntl(fd, F_GETFD) >= 0) {
			were_open |= 1u << fd;
			continue;
		}
		/* open(2) gives the lowest free number, which is this one: all below are taken */
		int got = open("/dev/null", O_RDWR); /* inherited like any standard stream */
		if (got < 0)
			return cj_fail(err, errno, "open '/dev/null' as descriptor %d", fd);
	}
	*out_were_open = were_open;
	return 0;
}

bool fd_has_trusted_owner(const struct stat *st)
{
	struct stat root;
	return st->st_uid == 0 || st->st_uid == geteuid() ||
	       (stat("/", &root) == 0 && st->st_uid == root.st_uid);
}

void fd_set_nonblocking(int fd)
{
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

bool fd_await(int fd, short events, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	return TEMP_FAILURE_RETRY(poll(&p, 1, timeout_ms)) > 0;
}

/* Another process with the same open file may have made it non-blocking: then poll. */
static bool wait_again(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (errno != EAGAIN)
		return false;
	return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

static ssize_t read_some(int fd, void *buf, size_t size)
{
	ssize_t got;

	do
		got = sys_read(fd, buf, size);
	while (got < 0 && wait_again(fd, POLLIN));
	return got;
}

int fd_flush_stdout(struct cj_error *err)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return cj_fail(err, errno ? errno : EIO, "write to standard output");
}

int fd_write_all(int fd, const void *buf, size_t size, const char *what, struct cj_error *err)
{
	const uint8_t *p = buf;

	while (size > 0) {
		ssize_t put = sys_write(fd, p, size);

		if (put < 0 && wait_again(fd, POLLOUT))
			continue;
		if (put < 0)
			return cj_fail(err, errno, "write '%s'", what);
		p += put;
		size -= (size_t)put;
	}
	return 0;
}

int fd_write_line(int fd, const char *text, size_t size, const char *what, struct cj_error *err)
{
	int rc = fd_write_all(fd, text, size, what, err);
	return rc < 0 ? rc : fd_write_all(fd, "\n", 1, what, err);
}

static int fail_too_large(const char *what, size_t max, struct cj_error *err)
{
	char limit[32];

	text_format_size(max, limit, sizeof(limit));
	return cj_fail(err, EFBIG, "read '%s', of which %s are allowed", what, limit);
}

int fd_read_all(int fd, size_t max, struct arena *a, char **out_text, size_t *out_size,
		const char *what, struct cj_error *err)
{
	struct stat st;
	const bool is_known = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
	return fd_read_sized(fd, is_known ? (uint64_t)st.st_size : 0, max, a, out_text, out_size,
			     what, err);
}

int fd_read_sized(int fd, uint64_t expected, size_t max, struct arena *a, char **out_text,
		  size_t *out_size, const char *what, struct cj_error *err)
{
	size_t used = 0, room = READ_FIRST;
	if (expected >= room) /* one byte more finds the end without growing */
		room = expected < max ? (size_t)expected + 1 : max + 1;
	auto_free char *buf = malloc(room);
	if (!buf)
		return cj_fail(err, ENOMEM, "read '%s'", what);

	for (;;) {
		if (used == room) {
			char *larger = realloc(buf, room *= 2);
			if (!larger)
				return cj_fail(err, ENOMEM, "read '%s'", what);
			buf = larger;
		}
		ssize_t got = read_some(fd, buf + used, room - used);
		if (got < 0)
			return cj_fail(err, errno, "read '%s'", what);
		if (got == 0)
			break;
		used += (size_t)got;
		if (used > max)
			return fail_too_large(what, max, err);
		if (used == expected && used < room)
			break; /* there was room for more, and it is a file of this size */
	}
	char *text = arena_strndup(a, buf, used);
	if (!text)
		return cj_fail(err, ENOMEM, "read '%s'", what);
	*out_text = text;
	*out_size = used;
	return 0;
}

/* dir_fd/path as the user would write it, for a message. */
struct fd_place {
	char text[256];
};

static struct fd_place place_of(int dir_fd, const char *path)
{
	struct fd_place place = { "" };
	char self[32], dir[sizeof(place.text) / 2];
	ssize_t size = -1;

	if (dir_fd >= 0 && path[0] != '/') {
		(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", dir_fd);
		size = readlink(self, dir, sizeof(dir));
	}
	if (size > 0)
		(void)snprintf(place.text, sizeof(place.text), "%.*s/%s", (int)size, dir, path);
	else
		(void)snprintf(place.text, sizeof(place.text), "%s", path);
	return place;
}

int fd_read_file(int dir_fd, const char *path, size_t max, struct arena *a, char **out_text,
		 size_t *out_size, struct cj_error *err)
{
	/* O_NONBLOCK: should it be a fifo after all, we don't wait for its writer */
	auto_fd int fd =
	    openat(dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", place_of(dir_fd, path).text);
	return fd_read_all(fd, max, a, out_text, out_size, path, err);
}

/* Returns the file, still open. */
static int put_text(int dir_fd, const char *path, const char *text, struct cj_error *err)
{
	size_t size = strlen(text);
	int shown = (int)strcspn(text, "\n");
	auto_fd int fd = openat(dir_fd, path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s' to write '%.*s'", place_of(dir_fd, path).text,
			       shown, text);

	ssize_t put = sys_write(fd, text, size);
	if (put < 0)
		return cj_fail(err, errno, "write '%.*s' to '%s'", shown, text,
			       place_of(dir_fd, path).text);
	if ((size_t)put != size) /* the rest would be taken as a value of its own */
		return cj_fail(err, EIO, "write '%.*s' to '%s': only %zd of %zu bytes", shown, text,
			       place_of(dir_fd, path).text, put, size);
	return take_fd(&fd);
}

int fd_put_files(int dir_fd, const struct fd_text *files, size_t count, struct cj_error *err)
{
	auto_fd_bag struct fd_bag written = { 0 };
	for (size_t i = 0; i < count; i++) {
		int fd = put_text(dir_fd, files[i].path, files[i].text, err);
		if (fd < 0)
			return fd;
		fd_bag_add(&written, fd);
	}
	return 0;
}

int fd_put_file(int dir_fd, const char *path, const char *text, struct cj_error *err)
{
	return fd_put_files(dir_fd, &(struct fd_text){ path, text }, 1, err);
}

static int memfd_open(const char *name, struct cj_error *err)
{
	/* Not executable: it is only read, and vm.memfd_noexec=2 refuses any other */
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* Linux before 6.3 */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return cj_fail(err, errno, "memfd_create '%s'", name);
	return fd;
}

static int memfd_seal(int fd, const char *name, struct cj_error *err)
{
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return cj_fail(err, errno, "seal memfd '%s'", name);
	return 0;
}

/* All parts behind the first `at` bytes; the offset of the file stays at 0. */
static int memfd_put(int fd, const struct iovec *parts, size_t count, off_t at, const char *what,
		     struct cj_error *err)
{
	for (size_t i = 0, done = 0; i < count;) {
		struct iovec rest = parts[i];
		if (done > 0)
			rest = (struct iovec){ (char *)rest.iov_base + done, rest.iov_len - done };
		ssize_t put = done > 0 ? pwritev(fd, &rest, 1, at)
				       : pwritev(fd, parts + i, (int)(count - i), at);
		if (put < 0 && errno != EINTR)
			return cj_fail(err, errno, "write '%s'", what);
		at += put > 0 ? put : 0;
		for (done += put > 0 ? (size_t)put : 0; i < count && done >= parts[i].iov_len; i++)
			done -= parts[i].iov_len;
	}
	return 0;
}

int fd_memfd_sealed_parts(const char *name, const struct iovec *parts, size_t count,
			  struct cj_error *err)
{
	auto_fd int fd = memfd_open(name, err);
	if (fd < 0)
		return fd;

	int rc = memfd_put(fd, parts, count, 0, name, err);
	if (rc == 0)
		rc = memfd_seal(fd, name, err);
	return rc < 0 ? rc : take_fd(&fd);
}

int fd_memfd_sealed(const char *name, const void *bytes, size_t size, struct cj_error *err)
{
	const struct iovec all = { (void *)bytes, size };
	return fd_memfd_sealed_parts(name, &all, 1, err);
}

int fd_memfd_copy(const char *name, int in_fd, size_t max, const char *what, struct cj_error *err)
{
	auto_fd int fd = memfd_open(name, err);
	auto_free char *buf = malloc(COPY_BYTES);
	if (fd < 0)
		return fd;
	if (!buf)
		return cj_fail(err, ENOMEM, "read '%s'", what);

	for (size_t left = max;;) {
		ssize_t got = read_some(in_fd, buf, COPY_BYTES);
		if (got < 0)
			return cj_fail(err, errno, "read '%s'", what);
		if (got == 0)
			break;
		if ((size_t)got > left)
			return fail_too_large(what, max, err);
		const struct iovec part = { buf, (size_t)got };
		if (memfd_put(fd, &part, 1, (off_t)(max - left), what, err) < 0)
			return -err->code;
		left -= (size_t)got;
	}
	int rc = memfd_seal(fd, name, err);
	return rc < 0 ? rc : take_fd(&fd);
}

const char *fd_kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "a regular file";
	case S_IFDIR:
		return "a directory";
	case S_IFIFO:
		return "a fifo";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	default:
		return "something else";
	}
}

static int check_regular(int path_fd, const char *path, struct cj_error *err)
{
	struct stat st;

	if (fstat(path_fd, &st) < 0)
		return cj_fail(err, errno, "fstat '%s'", path);
	if (S_ISREG(st.st_mode))
		return 0;
	if (S_ISLNK(st.st_mode)) {
		char target[256];
		ssize_t size = readlinkat(path_fd, "", target, sizeof(target) - 1);

		target[size > 0 ? size : 0] = '\0';
		int rc = cj_reject(err, "'%s' is a symbolic link to '%s'; name the file itself",
				   path, target);
		/* "/dev/stdin", "<(command)" of a shell */
		if (text_begins_with(path, "/dev/") || text_begins_with(path, "/proc/"))
			(void)cj_hint(err, "'-' stands for standard input");
		return rc;
	}
	return cj_reject(err, "'%s' is %s, not a regular file", path, fd_kind_name(st.st_mode));
}

/*
 * Looked at first (O_PATH opens nothing: a device would notice, a fifo would block), opened
 * after; the second open names the inode that was looked at, whatever the path means by now.
 */
static int open_looked_at(int path_fd, const char *path, struct cj_error *err)
{
	char self[32];
	int rc = check_regular(path_fd, path, err);
	if (rc < 0)
		return rc;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	/* O_NONBLOCK: its owner can't make us wait with a lease, fcntl(2) */
	auto_fd int fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	return take_fd(&fd);
}

int fd_open_regular(const char *path, struct cj_error *err)
{
	auto_fd int path_fd =
	    sys_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0, RESOLVE_NO_MAGICLINKS);
	if (path_fd < 0 && errno == ELOOP)
		return cj_reject(err, "'%s' leads through a link of /proc, or in circles", path);
	if (path_fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	return open_looked_at(path_fd, path, err);
}

int fd_open_linked(const char *path, struct cj_error *err)
{
	auto_fd int path_fd = sys_openat2(AT_FDCWD, path, O_PATH, 0, RESOLVE_NO_MAGICLINKS);
	/* one of /proc at its end, or one that leads nowhere: its own message says so */
	if (path_fd < 0)
		return fd_open_regular(path, err);
	return open_looked_at(path_fd, path, err);
}

/* struct dirent is the kernel's struct linux_dirent64: getdents(2). */
static_assert(sizeof(off_t) == 8 && offsetof(struct dirent, d_name) == 19, "getdents64(2)");

static const struct dirent *next_of_all(struct fd_dir *dir)
{
	if (dir->at == dir->size) {
		ssize_t size = getdents64(dir->fd, dir->buffer, sizeof(dir->buffer));
		if (size == 0 || (size < 0 && errno == ENOENT)) /* it was removed */
			errno = 0;
		if (size <= 0)
			return NULL;
		dir->at = 0;
		dir->size = (size_t)size;
	}
	const struct dirent *e = (const void *)(dir->buffer + dir->at);
	dir->at += e->d_reclen;
	dir->place = e->d_off;
	return e;
}

const struct dirent *fd_next_entry(struct fd_dir *dir)
{
	const struct dirent *e;
	do
		e = next_of_all(dir);
	while (e && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
	return e;
}

void fd_seek_dir(struct fd_dir *dir, off_t place)
{
	(void)lseek(dir->fd, place, SEEK_SET); /* else the next entries are those that follow */
	dir->at = dir->size = 0;
}

static int by_number(const void *one, const void *other)
{
	return *(const int *)one - *(const int *)other;
}

static void close_run(int first, int last)
{
	if (first < last && sys_close_range((unsigned)first, (unsigned)last, 0) == 0)
		return;
	for (int fd = first; fd <= last; fd++)
		(void)close(fd); /* as cj_close() */
}

void fd_bag_close(struct fd_bag *bag)
{
	const int saved = errno;
	qsort(bag->fds, bag->count, sizeof(bag->fds[0]), by_number);
	for (size_t i = 0, next; i < bag->count; i = next) {
		for (next = i + 1; next < bag->count && bag->fds[next] == bag->fds[next - 1] + 1;)
			next++;
		close_run(bag->fds[i], bag->fds[next - 1]);
	}
	bag->count = 0;
	errno = saved;
}

void fd_bag_add(struct fd_bag *bag, int fd)
{
	if (fd < 0)
		return;
	if (bag->count == FD_BAG_MAX)
		fd_bag_close(bag);
	bag->fds[bag->count++] = fd;
}

int fd_close_others(unsigned first, const int *kept, size_t count)
{
	for (unsigned from = first, next;; from = next + 1) {
		next = ~0u; /* the nearest one that is kept */
		for (size_t i = 0; i < count; i++)
			if (kept[i] >= 0 && (unsigned)kept[i] >= from && (unsigned)kept[i] < next)
				next = (unsigned)kept[i];
		if (next > from && sys_close_range(from, next - 1, 0) < 0)
			return -1;
		if (next == ~0u)
			return 0;
	}
}

struct fd_dir *fd_take_dir(int fd)
{
	auto_fd int taken = fd;
	struct fd_dir *dir = taken < 0 ? NULL : malloc(sizeof(*dir));
	if (!dir)
		return NULL;
	dir->fd = take_fd(&taken);
	dir->at = dir->size = 0;
	return dir;
}

struct fd_dir *fd_open_dir(int dir_fd, const char *name)
{
	return fd_take_dir(openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

void fd_close_dir(struct fd_dir **dir)
{
	if (*dir)
		cj_close(&(*dir)->fd);
	cj_free(dir);
}

const char *fd_real_path(int fd, char out[static PATH_MAX])
{
	char self[32];
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	ssize_t size = readlink(self, out, PATH_MAX - 1);
	out[size > 0 ? size : 0] = '\0';
	return size > 0 ? out : NULL;
}
