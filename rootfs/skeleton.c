/* SPDX-License-Identifier: Apache-2.0 */
/* The generated part of the tree, on a tmpfs in a mount namespace that only init is in. */
#include "rootfs/skeleton.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "rootfs/mounts.h"
#include "rootfs/rootfs_parts.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

/* 4 MiB are 64 pages where they are largest: more than the files made here and the mount points
 * need; a limit against mistakes. */
#define SKELETON_OPTIONS "mode=0755,size=4M,nr_inodes=4096"

/* No /home, /root, /sys, /mnt, /opt: a jail has nothing there. */
static const char *const common_dirs[] = {
	"box", "dev", "dev/pts", "dev/shm", "etc", "proc", "run", "tmp", "var",
};

static const struct {
	const char *path, *target;
	const char *place; /* where `path` leads to; NULL: no bind may have a target below it */
} common_links[] = {
	{ "dev/fd", "/proc/self/fd", NULL },
	{ "dev/stdin", "/proc/self/fd/0", NULL },
	{ "dev/stdout", "/proc/self/fd/1", NULL },
	{ "dev/stderr", "/proc/self/fd/2", NULL },
	{ "dev/ptmx", "pts/ptmx", NULL }, /* of the jail's own devpts, never the host's */
	{ "etc/mtab", "../proc/self/mounts", "/proc/self/mounts" },
	{ "var/run", "../run", "/run" },
	{ "var/tmp", "../tmp", "/tmp" },
};

const char *skeleton_follow(const char *path, struct arena *a)
{
	for (size_t i = 0; i < COUNT_OF(common_links); i++) {
		const char *place = common_links[i].place;
		const char *below = text_path_below(path + 1, common_links[i].path);
		if (place && below)
			return arena_printf(a, "%s%s", place, below);
	}
	return path;
}

static bool is_deep(const char *path)
{
	const char *slash = strchr(path, '/');
	return slash && strchr(slash + 1, '/');
}

/* Beneath an existing parent.  Returns 0, also when it exists, or a negative errno. */
static int make_place(int skeleton_fd, const char *path, bool is_dir)
{
	int rc = is_dir ? mkdirat(skeleton_fd, path, 0755)
			: mknodat(skeleton_fd, path, S_IFREG | 0644, 0);
	return rc < 0 && errno != EEXIST ? -errno : 0;
}

/* The last one is tried first: most often it is the only one that is missing. */
static int make_parents(int skeleton_fd, const char *path)
{
	char parent[PATH_MAX];
	const char *last = strrchr(path, '/');
	size_t length = last ? (size_t)(last - path) : 0;
	if (length >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, length);
	parent[length] = '\0';
	int rc = length == 0 ? 0 : make_place(skeleton_fd, parent, true);
	for (char *slash = strchr(parent, '/'); rc == -ENOENT && slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		rc = make_place(skeleton_fd, parent, true);
		*slash = '/';
		if (rc == 0)
			rc = -ENOENT;
	}
	return rc == -ENOENT ? make_place(skeleton_fd, parent, true) : rc;
}

int skeleton_add_place(int skeleton_fd, const char *path, bool is_dir, struct cj_error *err)
{
	/* The parents of most places exist: to make them first would double the calls. */
	int rc = is_deep(path) ? -ENOENT : make_place(skeleton_fd, path, is_dir);
	if (rc == -ENOENT) {
		rc = make_parents(skeleton_fd, path);
		if (rc == 0)
			rc = make_place(skeleton_fd, path, is_dir);
	}
	return rc < 0 ? cj_fail(err, -rc, "make the mount point '/%s'", path) : 0;
}

int skeleton_add_link(int skeleton_fd, const char *path, const char *target, struct cj_error *err)
{
	int rc = symlinkat(target, skeleton_fd, path) < 0 ? -errno : 0;
	if (rc == -ENOENT) {
		rc = make_parents(skeleton_fd, path);
		if (rc == 0)
			rc = symlinkat(target, skeleton_fd, path) < 0 ? -errno : 0;
	}
	return rc < 0 ? cj_fail(err, -rc, "make the link '/%s'", path) : 0;
}

/* With the parents that are missing.  Returns its descriptor, which the skeleton closes. */
static int create_file(struct skeleton *s, const char *path, struct cj_error *err)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(s->fd, path, flags, 0644);
	if (fd < 0 && errno == ENOENT && make_parents(s->fd, path) == 0)
		fd = openat(s->fd, path, flags, 0644);
	if (fd < 0)
		return cj_fail(err, errno, "make the file '/%s'", path);
	fd_bag_add(&s->written, fd);
	return fd;
}

/*
 * In the kernel: each page of a buffer of ours would be a page fault of the run.  A file system
 * that cannot do that says EINVAL.
 */
static ssize_t copy_part(int fd, int from_fd, size_t size)
{
	char buffer[4096];
	ssize_t part = sendfile(fd, from_fd, NULL, size);
	if (part >= 0 || errno != EINVAL)
		return part;
	part = sys_read(from_fd, buffer, size < sizeof(buffer) ? size : sizeof(buffer));
	return part > 0 ? sys_write(fd, buffer, (size_t)part) : part;
}

int skeleton_add_copy(struct skeleton *s, const char *path, int from_fd, size_t size,
		      struct cj_error *err)
{
	int fd = create_file(s, path, err);
	if (fd < 0)
		return fd;
	while (size > 0) {
		ssize_t part = copy_part(fd, from_fd, size);
		if (part == 0) /* it became shorter meanwhile */
			return 0;
		if (part > 0)
			size -= (size_t)part;
		else if (errno != EINTR)
			return cj_fail(err, errno, "copy '/%s'", path);
	}
	return 0;
}

static int make_text(struct skeleton *s, const char *path, struct cj_error *err, const char *fmt,
		     ...) __attribute__((format(printf, 4, 5)));

static int make_text(struct skeleton *s, const char *path, struct cj_error *err, const char *fmt,
		     ...)
{
	auto_free char *text = NULL;
	va_list ap;
	va_start(ap, fmt);
	int size = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (size < 0) {
		text = NULL; /* undefined then: asprintf(3) */
		return cj_fail(err, ENOMEM, "write '/%s'", path);
	}
	int fd = create_file(s, path, err);
	if (fd < 0)
		return fd;
	if (size > 0 && sys_write(fd, text, (size_t)size) != size)
		return cj_fail(err, errno, "write '/%s'", path);
	return 0;
}

static int make_etc(struct skeleton *s, const struct rootfs_spec *spec, struct cj_error *err)
{
	const char *hostname = spec->hostname ? spec->hostname : "jail";
	unsigned uid = spec->uid, gid = spec->gid;

	/* The jail's user must have a name (getpwuid(3) in os.path.expanduser, git, ssh, npm). */
	if (make_text(s, "etc/passwd", err,
		      "root:x:0:0:root:/:/usr/sbin/nologin\n"
		      "jail:x:%u:%u:jail:/box:/bin/sh\n"
		      "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
		      uid, gid) < 0 ||
	    make_text(s, "etc/group", err,
		      "root:x:0:\n"
		      "jail:x:%u:\n"
		      "nogroup:x:65534:\n",
		      gid) < 0)
		return -err->code;

	if (make_text(s, "etc/hostname", err, "%s\n", hostname) < 0 ||
	    make_text(s, "etc/hosts", err,
		      "127.0.0.1\tlocalhost %s\n"
		      "::1\tlocalhost ip6-localhost ip6-loopback\n%s",
		      hostname, spec->hosts ? spec->hosts : "") < 0 ||
	    make_text(s, "etc/nsswitch.conf", err,
		      "passwd: files\n"
		      "group: files\n"
		      "hosts: files dns\n"
		      "services: files\n"
		      "protocols: files\n") < 0)
		return -err->code;
	/* Without it getaddrinfo(3) uses only the first line of a name: host.conf(5) */
	if (make_text(s, "etc/host.conf", err, "multi on\n") < 0)
		return -err->code;
	/* Empty, not absent: an image's own must not show through.  resolv.conf(5) then means
	 * the local machine, which refuses at once. */
	return make_text(s, "etc/resolv.conf", err, "%s",
			 spec->resolv_conf ? spec->resolv_conf : "");
}

/*
 * Python's text streams pass on whole lines, each in one write(2), so that lines of threads do not
 * mix.  Where Python does not read this, as in a virtual environment, the variable has its own
 * meaning: Python writes each string at once.  A .pth file can't hide a module of the program.
 */
static const char pth[] = "import os, sys; os.environ.get('PYTHONUNBUFFERED') == 'lines' and "
			  "'-u' not in getattr(sys, 'orig_argv', ()) and "
			  "[s.reconfigure(line_buffering=True, write_through=False) "
			  "for s in (sys.stdout, sys.stderr) if hasattr(s, 'reconfigure')]\n";

static int fill(struct skeleton *s, const struct rootfs_spec *spec, struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(common_dirs); i++) {
		if (skeleton_add_place(s->fd, common_dirs[i], true, err) < 0)
			return -err->code;
	}
	for (size_t i = 0; i < COUNT_OF(common_links); i++) {
		if (skeleton_add_link(s->fd, common_links[i].path, common_links[i].target, err) < 0)
			return -err->code;
	}
	if (spec->python && make_text(s, SKELETON_PTH, err, "%s", pth) < 0)
		return -err->code;
	return make_etc(s, spec, err);
}

int skeleton_create(struct skeleton *s, const struct rootfs_spec *spec, struct cj_error *err)
{
	s->fd = mounts_add_tmpfs(ROOTFS_PARK, MS_NOSUID | MS_NODEV, SKELETON_OPTIONS, err);
	if (s->fd < 0)
		return cj_wrap(err, "make the skeleton");
	return fill(s, spec, err) < 0 ? cj_wrap(err, "fill the skeleton") : 0;
}

void skeleton_fini(struct skeleton *s)
{
	fd_bag_close(&s->written);
	cj_close(&s->fd);
}
