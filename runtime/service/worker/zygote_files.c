/* SPDX-License-Identifier: Apache-2.0 */
/* One inotify(7) watch for each file.  Acts. */
#include "runtime/service/worker/zygote_files.h"

#include <string.h>
#include <sys/inotify.h>

#include "runtime/base/arena.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

/* IN_ATTRIB: also when another file takes its name, because the old one has a link less then. */
#define CHANGES (IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)

static int watch_one(int watch_fd, const char *path, struct cj_error *err)
{
	if (inotify_add_watch(watch_fd, path, CHANGES) >= 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	(void)!cj_fail(err, errno, "watch '%s'", path);
	return err->code == ENOSPC ? cj_hint(err, "raise the sysctl fs.inotify.max_user_watches")
				   : -err->code;
}

static int watch_all(int watch_fd, char *list, struct cj_error *err)
{
	char *rest = list;
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n"))
		if (line[0] == '/' && watch_one(watch_fd, line, err) < 0)
			return -err->code;
	return 0;
}

int zygote_files_watch(int scratch_fd, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *list = NULL;
	size_t size = 0;
	if (fd_read_file(scratch_fd, ZYGOTE_FILES_LIST, ZYGOTE_FILES_LIST_MAX, &a, &list, &size,
			 err) < 0) {
		if (err->code != ENOENT)
			return cj_wrap(err, "which files the zygote has loaded");
		*err = (struct cj_error){ 0 };
	}
	auto_fd int watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch_fd < 0) {
		int code = errno; /* EMFILE: not only for lack of descriptors */
		(void)!cj_reject_as(err, code, "watch the files that the zygote has loaded: %s",
				    code == EMFILE ? "too many inotify instances" : strerror(code));
		return cj_hint(err, "raise the sysctl fs.inotify.max_user_instances");
	}
	if (list && watch_all(watch_fd, list, err) < 0)
		return -err->code;
	return take_fd(&watch_fd);
}

void zygote_files_drain(int watch_fd)
{
	_Alignas(struct inotify_event) char events[4096];
	while (sys_read(watch_fd, events, sizeof(events)) > 0)
		;
}
