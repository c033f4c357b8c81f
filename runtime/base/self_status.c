/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/self_status.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/vfs.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* The first line is the process' name, in which the kernel escapes line ends. */
static bool read_mask(const char *text, struct self_mask *out)
{
	char heading[32], *end;
	(void)snprintf(heading, sizeof(heading), "\n%s:\t", out->name);
	const char *at = strstr(text, heading);
	if (!at)
		return false;
	at += strlen(heading);
	errno = 0;
	out->value = strtoull(at, &end, 16);
	return errno == 0 && end == at + 16 && *end == '\n';
}

/* An image may have put anything there: a device, or the status of another process. */
static int open_proc(void)
{
	struct statfs fs;
	auto_fd int fd = open("/proc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC ? take_fd(&fd)
										 : -1;
}

bool self_status_masks(int proc_fd, struct self_mask *masks, size_t count)
{
	char text[4096];
	auto_fd int opened_fd = proc_fd < 0 ? open_proc() : -1;
	auto_fd int fd = sys_openat2(proc_fd < 0 ? opened_fd : proc_fd, "self/status", O_RDONLY, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return false;
	ssize_t got = sys_read(fd, text, sizeof(text) - 1); /* all that fits: seq_file.rst */
	text[got < 0 ? 0 : got] = '\0';
	for (size_t i = 0; i < count; i++)
		if (!read_mask(text, &masks[i]))
			return false;
	return true;
}
