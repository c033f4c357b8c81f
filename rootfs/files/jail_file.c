/* SPDX-License-Identifier: Apache-2.0 */
#include "rootfs/files/jail_file.h"

#include <fcntl.h>

#include "runtime/base/sys.h"

#define RESOLVE_STRICTLY                                                                           \
	(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV)

const char *jail_file_fault(const struct stat *st)
{
	if (S_ISLNK(st->st_mode))
		return "it is a symbolic link";
	if (S_ISDIR(st->st_mode))
		return NULL;
	if (!S_ISREG(st->st_mode))
		return "it is neither a file nor a directory";
	if (st->st_nlink != 1)
		return "it has more than one hard link";
	return NULL;
}

int jail_file_look(int dir_fd, const char *name)
{
	return sys_openat2(dir_fd, name, O_PATH | O_NOFOLLOW, 0, RESOLVE_STRICTLY);
}

int jail_file_open(int dir_fd, const char *name, int more_flags)
{
	return sys_openat2(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | more_flags,
			   0, RESOLVE_STRICTLY);
}

int jail_file_parent(int dir_fd, const char *inside, struct arena *a, const char **out_name)
{
	const char *slash = strrchr(inside, '/');
	const char *parent = slash ? arena_printf(a, "%.*s", (int)(slash - inside), inside) : ".";
	if (!parent) {
		errno = ENOMEM;
		return -1;
	}
	*out_name = slash ? slash + 1 : inside;
	return sys_openat2(dir_fd, parent, O_PATH | O_DIRECTORY, 0, RESOLVE_STRICTLY);
}
