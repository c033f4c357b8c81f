/* SPDX-License-Identifier: Apache-2.0 */
/* A container's terminal; each file is checked by its descriptor. */
#include "runtime/container/process/console.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "rootfs/mounts.h"
#include "runtime/base/child.h"
#include "runtime/base/unix.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define PTMX        makedev(5, 2)
#define SLAVE_FIRST 136 /* the first major number of slaves, of eight: devices.txt */
#define SLAVE_LAST  143

void console_close(struct console *c)
{
	cj_close(&c->master_fd);
	cj_close(&c->slave_fd);
}

int console_connect(const char *socket_path, struct cj_error *err)
{
	int fd = unix_connect(socket_path, err);
	return fd < 0 ? cj_wrap(err, "--console-socket") : fd;
}

/* A character device of a devpts, and which.  A container may have mounted anything over it. */
static int check_device(int fd, const char *name, struct stat *out, struct cj_error *err)
{
	struct statfs fs;
	if (fstatfs(fd, &fs) < 0 || fstat(fd, out) < 0)
		return cj_fail(err, errno, "look at '%s' of the container", name);
	if (fs.f_type != DEVPTS_SUPER_MAGIC || !S_ISCHR(out->st_mode))
		return cj_reject_as(err, EPERM, "'%s' of the container is not a device of a devpts",
				    name);
	return 0;
}

static int open_master(int root_fd, struct cj_error *err)
{
	struct stat st = { 0 };
	auto_fd int pts_fd = mounts_resolve(root_fd, "/dev/pts", err);
	if (pts_fd < 0) {
		(void)cj_hint(err, "a terminal needs a mount of type devpts at /dev/pts");
		return -err->code;
	}
	/* Checked before it is opened for use: to open a device may have effects.  NO_XDEV: not
	 * what is mounted over it. */
	auto_fd int path_fd = sys_openat2(pts_fd, "ptmx", O_PATH, 0,
					  RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	if (path_fd < 0)
		return cj_fail(err, errno, "open '/dev/pts/ptmx' of the container");
	if (check_device(path_fd, "/dev/pts/ptmx", &st, err) < 0)
		return -err->code;
	if (st.st_rdev != PTMX)
		return cj_reject_as(err, EPERM,
				    "'/dev/pts/ptmx' of the container is another device");

	auto_fd int master_fd =
	    sys_openat2(pts_fd, "ptmx", O_RDWR | O_NOCTTY, 0,
			RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	if (master_fd < 0)
		return cj_fail(err, errno, "open '/dev/pts/ptmx' of the container");
	return check_device(master_fd, "/dev/pts/ptmx", &st, err) < 0 ? -err->code
								      : take_fd(&master_fd);
}

static int open_slave(int master_fd, struct cj_error *err)
{
	struct stat st = { 0 };
	int unlock = 0;
	if (ioctl(master_fd, TIOCSPTLCK, &unlock) < 0)
		return cj_fail(err, errno, "unlock the container's pty");
	/* Not by the path /dev/pts/N, which may lead to another file by now. */
	auto_fd int slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave_fd < 0)
		return cj_fail(err, errno, "open the other end of the container's pty");
	if (check_device(slave_fd, "/dev/pts/N", &st, err) < 0)
		return -err->code;
	if (major(st.st_rdev) < SLAVE_FIRST || major(st.st_rdev) > SLAVE_LAST)
		return cj_reject_as(err, EPERM,
				    "the container's pty has another device as its other end");
	return take_fd(&slave_fd);
}

int console_open(int root_fd, const struct oci_process *process, struct console *out,
		 struct cj_error *err)
{
	auto_fd int master_fd = open_master(root_fd, err);
	if (master_fd < 0)
		return -err->code;
	auto_fd int slave_fd = open_slave(master_fd, err);
	if (slave_fd < 0)
		return -err->code;
	const struct winsize size = { .ws_row = (unsigned short)process->console_height,
				      .ws_col = (unsigned short)process->console_width };
	if ((size.ws_row || size.ws_col) && ioctl(slave_fd, TIOCSWINSZ, &size) < 0)
		return cj_fail(err, errno, "set the size of the container's pty");
	/* The group stays the devpts' gid= option. */
	if (fchown(slave_fd, process->user.uid, (gid_t)-1) < 0)
		return cj_fail(err, errno, "give the container's pty to user %u",
			       process->user.uid);
	*out = (struct console){ .master_fd = take_fd(&master_fd), .slave_fd = take_fd(&slave_fd) };
	return 0;
}

/* The file to mount on: an existing one that is neither a link nor a directory, or a new one. */
static int open_place(int root_fd, struct cj_error *err)
{
	struct stat st;
	auto_fd int dev_fd = mounts_resolve(root_fd, "/dev", err);
	if (dev_fd < 0)
		return -err->code;
	auto_fd int made_fd =
	    openat(dev_fd, "console", O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (made_fd < 0 && errno != EEXIST && errno != EROFS)
		return cj_fail(err, errno, "create '/dev/console' of the container");

	auto_fd int place_fd = openat(dev_fd, "console", O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place_fd < 0 || fstat(place_fd, &st) < 0)
		return cj_fail(err, errno, "open '/dev/console' of the container");
	if (S_ISLNK(st.st_mode) || S_ISDIR(st.st_mode))
		return cj_reject_as(err, EPERM, "'/dev/console' of the container is a %s",
				    S_ISLNK(st.st_mode) ? "symbolic link" : "directory");
	return take_fd(&place_fd);
}

int console_mount(int root_fd, const struct console *c, struct cj_error *err)
{
	auto_fd int place_fd = open_place(root_fd, err);
	if (place_fd < 0)
		return -err->code;
	auto_fd int tree_fd = mounts_clone(c->slave_fd, "", 0, "the container's pty", err);
	if (tree_fd < 0)
		return -err->code;
	return mounts_attach(tree_fd, place_fd, "/dev/console", err);
}

int console_send(int socket_fd, struct console *c, struct cj_error *err)
{
	static const char any[1] = { 0 }; /* a message without a byte carries no descriptor */
	int why = unix_send(socket_fd, any, sizeof(any), c->master_fd);
	if (why != 0)
		return cj_fail(err, why, "--console-socket: send the terminal");
	cj_close(&c->master_fd);
	return 0;
}

int console_enter(const struct console *c, struct cj_error *err)
{
	if (child_start_session(err) < 0)
		return -err->code;
	if (ioctl(c->slave_fd, TIOCSCTTY, 0) < 0)
		return cj_fail(err, errno, "make the container's pty the controlling terminal");
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(c->slave_fd, fd) < 0)
			return cj_fail(err, errno, "put the container's pty on descriptor %d", fd);
	return 0;
}
