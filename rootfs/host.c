/* SPDX-License-Identifier: Apache-2.0 */
/* The host's part of the tree.  Acts; what is shown is decided by the table alone. */
#include "rootfs/host.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rootfs/mounts.h"
#include "rootfs/skeleton.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/*
 * Programs and what they can't run without.  A row must be readable by every user of
 * the host, hold no secret on any distribution, and be needed by a common program:
 * no /etc/ssl/private, /etc/pki/tls/private, /etc/java-* (passwords of jmxremote),
 * /etc/gitconfig, pip.conf, npmrc (tokens), and nothing that names the host's users.
 */
static const char *const host_paths[] = {
	/* directories, or links into /usr that are made again */
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	/* ld.so(8) finds libraries outside its built-in directories */
	"/etc/ld.so.cache",
	/* what awk, cc, java, editor in /usr/bin point to: update-alternatives(1) */
	"/etc/alternatives",
	/* public certificates, and the defaults of TLS: Debian's, then Fedora's */
	"/etc/ssl/certs",
	"/etc/ssl/openssl.cnf",
	"/etc/pki/ca-trust/extracted",
	"/etc/pki/tls/certs",
	"/etc/pki/tls/openssl.cnf",
	"/etc/crypto-policies",
	/* local time; most often a link into /usr/share/zoneinfo */
	"/etc/localtime",
	"/etc/os-release",
	/* fontconfig: plots with text */
	"/etc/fonts",
	/* getservbyname(3), getprotobyname(3) */
	"/etc/services",
	"/etc/protocols",
};

#define HOST_PATHS (sizeof(host_paths) / sizeof(host_paths[0]))

/* Links on the host stay links: venvs, alternatives and node_modules/.bin are made of them.
 * They resolve inside the jail, so they can show nothing that isn't in it. */
#define HOST_ATTRS (MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

static const char *read_link(int fd, struct arena *a)
{
	char text[PATH_MAX];
	ssize_t size = readlinkat(fd, "", text, sizeof(text));
	if (size < 0)
		return NULL;
	if ((size_t)size == sizeof(text)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return arena_strndup(a, text, (size_t)size);
}

/* Fills *out from the place `fd`; out->fd is then open, or out->link set. */
static int open_entry(int fd, bool is_lower, struct arena *a, struct host_entry *out,
		      struct cj_error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", out->path);

	if (S_ISLNK(st.st_mode)) {
		out->link = read_link(fd, a);
		return out->link ? 0 : cj_fail(err, errno, "read the link '%s'", out->path);
	}
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return cj_reject(err, "'%s' is neither a directory nor a file", out->path);

	out->is_dir = S_ISDIR(st.st_mode);
	out->fd = is_lower ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
			   : mounts_clone(fd, "", HOST_ATTRS, out->path, err);
	if (is_lower && out->fd < 0)
		return cj_fail(err, errno, "keep '%s'", out->path);
	return out->fd < 0 ? out->fd : 0;
}

/* Not there, or behind a link of a distribution that keeps it elsewhere: the jail does without. */
static bool is_absent(int code)
{
	return code == ENOENT || code == ELOOP || code == ENOTDIR;
}

static int open_row(struct host_view *view, int root_fd, const char *path, bool is_lower,
		    struct arena *a, struct cj_error *err)
{
	auto_fd int fd = sys_openat2(root_fd, path + 1, O_PATH | O_NOFOLLOW, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0 && is_absent(errno) && strcmp(path, "/usr") != 0)
		return 0;
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);

	struct host_entry entry = { .path = path, .fd = -1 };
	int rc = open_entry(fd, is_lower, a, &entry, err);
	if (rc < 0)
		return rc;
	view->entries[view->count++] = entry;
	return 0;
}

int host_open(struct host_view *view, bool usr_is_lower, struct arena *a, struct cj_error *err)
{
	*view = (struct host_view){ .entries = arena_array(a, HOST_PATHS, sizeof(*view->entries)) };
	if (!view->entries)
		return cj_fail(err, errno, "list the host's directories");

	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return cj_fail(err, errno, "open '/'");

	for (size_t i = 0; i < HOST_PATHS; i++) {
		bool is_usr = strcmp(host_paths[i], "/usr") == 0;
		int rc = open_row(view, root_fd, host_paths[i], is_usr && usr_is_lower, a, err);
		if (rc < 0) {
			host_close(view);
			return rc;
		}
	}
	return 0;
}

void host_close(struct host_view *view)
{
	for (size_t i = 0; i < view->count; i++)
		cj_close(&view->entries[i].fd);
	view->count = 0;
}

struct host_entry *host_usr(struct host_view *view)
{
	return &view->entries[0]; /* the table's first row, which host_open insists on */
}

int host_sketch(const struct host_view *view, int skeleton_fd, struct cj_error *err)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct host_entry *entry = &view->entries[i];
		int rc = entry->link
			     ? skeleton_add_link(skeleton_fd, entry->path + 1, entry->link, err)
			     : skeleton_add_place(skeleton_fd, entry->path + 1, entry->is_dir, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int host_attach(const struct host_view *view, int root_fd, struct cj_error *err)
{
	for (size_t i = 0; i < view->count; i++) {
		const struct host_entry *entry = &view->entries[i];
		if (entry->link)
			continue;
		int rc = mounts_attach_at(entry->fd, root_fd, entry->path, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
