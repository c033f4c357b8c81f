/* SPDX-License-Identifier: Apache-2.0 */
/* The host's part of the tree.  Acts; what is shown is decided by the tables of public.c alone. */
#include "rootfs/host.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rootfs/mounts.h"
#include "rootfs/public.h"
#include "rootfs/skeleton.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* Rows of the families together: more are a mistake, and left out. */
#define FAMILY_ROWS_MAX 64

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

/* Fills *out from the place `fd`; out->fd is then open. */
static int open_tree_at(int fd, bool is_lower, struct host_entry *out, struct cj_error *err)
{
	out->fd = is_lower ? fcntl(fd, F_DUPFD_CLOEXEC, 0)
			   : mounts_clone(fd, "", HOST_ATTRS, out->path, err);
	if (is_lower && out->fd < 0)
		return cj_fail(err, errno, "keep '%s'", out->path);
	return out->fd < 0 ? out->fd : 0;
}

/* Not there, or behind a link of a distribution that keeps it elsewhere: the jail does without. */
static bool is_absent(int code)
{
	return code == ENOENT || code == ELOOP || code == ENOTDIR || code == EACCES;
}

/* Public is what every user of the host may read. */
static bool is_public(mode_t mode)
{
	mode_t wanted = S_ISDIR(mode) ? S_IROTH | S_IXOTH : S_IROTH;
	return S_ISLNK(mode) || (mode & wanted) == wanted;
}

/* One path, if this host has it and it is public: a row of the view. */
static int open_row(struct host_view *view, const char *path, bool is_lower, struct arena *a,
		    struct cj_error *err)
{
	bool is_usr = strcmp(path, public_paths[0]) == 0;
	struct stat st;
	auto_fd int fd = sys_openat2(view->root_fd, path + 1, O_PATH | O_NOFOLLOW, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (fd < 0 && is_absent(errno) && !is_usr)
		return 0;
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "look at '%s'", path);
	if (!is_public(st.st_mode) && !is_usr)
		return 0;

	struct host_entry entry = { .path = path, .fd = -1, .is_dir = S_ISDIR(st.st_mode) };
	if (S_ISLNK(st.st_mode)) {
		entry.link = read_link(fd, a);
		if (!entry.link)
			return cj_fail(err, errno, "read the link '%s'", path);
	} else if (!entry.is_dir && !S_ISREG(st.st_mode)) {
		return cj_reject(err, "'%s' is neither a directory nor a file", path);
	} else if (open_tree_at(fd, is_lower, &entry, err) < 0) {
		return -err->code;
	}
	view->entries[view->count++] = entry;
	return 0;
}

static int open_paths(struct host_view *view, bool usr_is_lower, struct arena *a,
		      struct cj_error *err)
{
	for (size_t i = 0; i < public_paths_count; i++) {
		int rc = open_row(view, public_paths[i], i == 0 && usr_is_lower, a, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool is_of(const struct public_family *family, const char *name)
{
	size_t size = strlen(name), prefix = strlen(family->prefix),
	       suffix = strlen(family->suffix);
	return size > prefix + suffix && strncmp(name, family->prefix, prefix) == 0 &&
	       strcmp(name + size - suffix, family->suffix) == 0;
}

/* The family's rows at "/etc/NAME". */
static int open_member(struct host_view *view, const struct public_family *family, const char *name,
		       struct arena *a, struct cj_error *err)
{
	for (size_t i = 0; i == 0 || family->names[i]; i++) {
		const char *below = family->names[i];
		const char *path =
		    arena_printf(a, "/etc/%s%s%s", name, below ? "/" : "", below ? below : "");
		if (!path)
			return cj_fail(err, ENOMEM, "list the host's directories");
		if (view->count >= public_paths_count + FAMILY_ROWS_MAX)
			return 0;
		int rc = open_row(view, path, false, a, err);
		if (rc < 0 || !below)
			return rc;
	}
	return 0;
}

static int open_families(struct host_view *view, struct arena *a, struct cj_error *err)
{
	auto_fd int etc_fd =
	    openat(view->root_fd, "etc", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (etc_fd < 0 && is_absent(errno))
		return 0;
	auto_dir DIR *etc = etc_fd < 0 ? NULL : fdopendir(etc_fd);
	if (!etc)
		return cj_fail(err, errno, "list '/etc'");
	(void)take_fd(&etc_fd);

	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(etc);
		if (!entry)
			return errno == 0 ? 0 : cj_fail(err, errno, "list '/etc'");
		for (size_t i = 0; i < public_families_count; i++) {
			if (!is_of(&public_families[i], entry->d_name))
				continue;
			int rc = open_member(view, &public_families[i], entry->d_name, a, err);
			if (rc < 0)
				return rc;
		}
	}
}

int host_open(struct host_view *view, bool usr_is_lower, struct arena *a, struct cj_error *err)
{
	size_t most = public_paths_count + FAMILY_ROWS_MAX;
	*view = (struct host_view){ .entries = arena_array(a, most, sizeof(*view->entries)) };
	if (!view->entries)
		return cj_fail(err, errno, "list the host's directories");

	auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return cj_fail(err, errno, "open '/'");

	view->root_fd = root_fd;
	int rc = open_paths(view, usr_is_lower, a, err);
	if (rc == 0)
		rc = open_families(view, a, err);
	view->root_fd = -1;
	if (rc < 0)
		host_close(view);
	return rc;
}

void host_close(struct host_view *view)
{
	for (size_t i = 0; i < view->count; i++)
		cj_close(&view->entries[i].fd);
	view->count = 0;
}

struct host_entry *host_usr(struct host_view *view)
{
	return &view->entries[0]; /* the first row of public_paths, which host_open insists on */
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
