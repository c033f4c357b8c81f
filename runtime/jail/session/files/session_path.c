/* SPDX-License-Identifier: Apache-2.0 */
/* Opens paths below /box and /tmp of a jail in which programs run.  Acts. */
#include "runtime/jail/session/files/session_path.h"

#include <fcntl.h>
#include <string.h>

#include "profiles/paths.h"
#include "rootfs/files/jail_file.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"

#define RESOLVE_STRICTLY                                                                           \
	(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

static bool take_top(const char *path, const char *top, int fd, struct session_path *out)
{
	size_t length = strlen(top);
	if (!paths_is_below(path, top) || fd < 0)
		return false;
	*out = (struct session_path){ path, path[length] == '/' ? path + length + 1 : ".", fd };
	return true;
}

int session_path_parse(const struct jail *j, const char *path, struct arena *a,
		       struct session_path *out, struct cj_error *err)
{
	const char *clean;
	if (path[0] != '/')
		return cj_reject(err, "'%.64s' is no absolute path", path);
	if (paths_inside(path, a, &clean, err) < 0)
		return -err->code;
	if (take_top(clean, "/box", j->handles.box_fd, out) ||
	    take_top(clean, "/tmp", j->handles.tmp_fd, out))
		return 0;
	return cj_reject_as(err, EXDEV, "'%s' is not below /box or /tmp", clean);
}

int session_path_fail(const struct session_path *at, int code, const char *doing,
		      struct cj_error *err)
{
	int rc = cj_fail(err, code, "%s '%s'", doing, at->path);
	if (code == ELOOP)
		cj_hint(err, "a symbolic link is in the path: links are not followed");
	else if (code == EXDEV)
		cj_hint(err, "only files of the session's own /box and /tmp are accessible; this "
			     "is on another mount");
	else if (code == EBUSY)
		cj_hint(err, "a mount of the jail is there");
	return rc;
}

int session_path_open(const struct session_path *at, int flags, struct cj_error *err)
{
	int fd = sys_openat2(at->dir_fd, at->inside, flags, 0, RESOLVE_STRICTLY);
	return fd < 0 ? session_path_fail(at, errno, "open", err) : fd;
}

int session_path_open_parent(const struct session_path *at, struct arena *a, const char **out_name,
			     struct cj_error *err)
{
	int fd = jail_file_parent(at->dir_fd, at->inside, a, out_name);
	return fd < 0 ? session_path_fail(at, errno, "open the directory of", err) : fd;
}
