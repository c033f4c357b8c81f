/* SPDX-License-Identifier: Apache-2.0 */
/* Opens paths of a jail in which programs run. */
#include "runtime/session/files/session_path.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "profiles/paths.h"
#include "rootfs/files/jail_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"

/* Other mounts of the jail are entered: a program enters them, too. */
#define RESOLVE_INSIDE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

#define MAKE_TRIES 16 /* of a directory that programs remove as fast as it is made */

/* Is it below a top?  *out_is_top: it is one. */
static bool find_top(const struct jail *j, const char *path, bool *out_is_top)
{
	static const char *const own[] = { "/box", "/tmp" };
	bool is_below = false;
	*out_is_top = false;
	for (size_t i = 0; i < COUNT_OF(own); i++) {
		is_below |= paths_is_below(path, own[i]);
		*out_is_top |= strcmp(path, own[i]) == 0;
	}
	for (size_t i = 0; i < j->root.nbinds; i++) {
		const struct bind_spec *bind = &j->root.binds[i];
		/* a socket of the host is no file */
		is_below |= bind->kind != BIND_SOCKET && paths_is_below(path, bind->target);
		*out_is_top |= strcmp(path, bind->target) == 0;
	}
	return is_below;
}

int session_path_parse(const struct jail *j, const char *path, struct arena *a,
		       struct session_path *out, struct cj_error *err)
{
	const char *clean;
	bool is_top;
	if (path[0] != '/')
		return cj_reject(err, "'%.64s' is no absolute path", path);
	if (paths_inside(path, a, &clean, err) < 0)
		return -err->code;
	if (!find_top(j, clean, &is_top)) {
		cj_refuse_as(err, EXDEV, "'%s' is not below /box or /tmp", clean);
		return cj_hint(err, "or below a destination of the session's bind, ro_bind, "
				    "overlay or tmpfs");
	}
	*out = (struct session_path){ clean, clean + 1, j->handles.root_fd, is_top };
	return 0;
}

int session_path_fail(const char *path, int code, const char *doing, struct cj_error *err)
{
	int rc = cj_fail(err, code, "%s '%s'", doing, path);
	if (code == ELOOP)
		cj_hint(err, "a symbolic link is in the path: links are not followed");
	else if (code == EXDEV)
		cj_hint(err, "it is on another mount of the jail");
	else if (code == EBUSY)
		cj_hint(err, "a mount of the jail is there, or below it");
	return rc;
}

int session_path_enter(int dir_fd, const char *inside, int flags)
{
	auto_fd int fd = sys_openat2(dir_fd, inside, flags | O_NOFOLLOW, 0, RESOLVE_INSIDE);
	struct statfs fs;
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	/* A bind of the host may contain a procfs.  We are no member of the jail's Landlock domain,
	 * so more of it is open to us than to a program. */
	return fs.f_type == PROC_SUPER_MAGIC ? -EXDEV : take_fd(&fd);
}

int session_path_open(const struct session_path *at, int flags, struct cj_error *err)
{
	int fd = session_path_enter(at->root_fd, at->inside, flags);
	return fd < 0 ? session_path_fail(at->path, -fd, "open", err) : fd;
}

/* O_PATH of `name` in dir_fd, made if it is missing.  Programs may make and remove it as well. */
static int enter(int dir_fd, const char *name, mode_t mode)
{
	int fd = -ENOENT;
	for (int i = 0; i < MAKE_TRIES && fd == -ENOENT; i++) {
		fd = session_path_enter(dir_fd, name, O_PATH | O_DIRECTORY);
		if (fd != -ENOENT || mode == 0)
			return fd;
		if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST)
			return -errno;
	}
	return fd;
}

int session_path_open_parent(const struct session_path *at, mode_t mode, struct arena *a,
			     const char **out_name, struct cj_error *err)
{
	char *parent = arena_strdup(a, at->inside);
	char *slash = parent ? strrchr(parent, '/') : NULL;
	if (!parent)
		return cj_fail(err, ENOMEM, "open the directory of '%s'", at->path);
	if (at->is_top || !slash)
		return cj_reject_as(err, EACCES, "'%s' itself can't be changed", at->path);
	*slash = '\0';
	*out_name = slash + 1;
	/* One component after the other, so that a missing one can be made. */
	char *rest = parent, *name;
	auto_fd int fd = session_path_enter(at->root_fd, ".", O_PATH | O_DIRECTORY);
	while (fd >= 0 && (name = strsep(&rest, "/")) != NULL) {
		int next_fd = enter(fd, name, mode);
		cj_close(&fd);
		fd = next_fd;
	}
	return fd < 0 ? session_path_fail(at->path, -fd, "open the directory of", err)
		      : take_fd(&fd);
}

bool session_path_is_mount(int dir_fd, const char *name)
{
	auto_fd int fd = jail_file_look(dir_fd, name);
	return fd < 0 && errno == EXDEV;
}

int session_path_check_free(const struct jail *j, const struct session_path *at, const char *doing,
			    struct cj_error *err)
{
	for (size_t i = 0; i < j->root.nbinds; i++)
		if (paths_is_below(j->root.binds[i].target, at->path))
			return session_path_fail(at->path, EBUSY, doing, err);
	return 0;
}
