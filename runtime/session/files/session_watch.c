/* SPDX-License-Identifier: Apache-2.0 */
/* Watches a directory of a jail in which programs run. */
#include "runtime/session/files/session_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/session/files/session_files.h"
#include "runtime/session/files/session_path.h"

#define ROOM 8192 /* of some 30 long names, or of 400 short ones */

const char *const session_change_names[SESSION_CHANGE_COUNT] = {
	[SESSION_CHANGE_CREATE] = "create", [SESSION_CHANGE_WRITE] = "write",
	[SESSION_CHANGE_CHMOD] = "chmod",   [SESSION_CHANGE_REMOVE] = "remove",
	[SESSION_CHANGE_RENAME] = "rename", [SESSION_CHANGE_OVERFLOW] = "overflow",
};

static const struct {
	uint32_t mask;
	enum session_change change;
} rows[] = {
	{ IN_CREATE | IN_MOVED_TO, SESSION_CHANGE_CREATE },
	{ IN_MODIFY, SESSION_CHANGE_WRITE },
	{ IN_ATTRIB, SESSION_CHANGE_CHMOD },
	{ IN_DELETE, SESSION_CHANGE_REMOVE },
	{ IN_MOVED_FROM, SESSION_CHANGE_RENAME },
	{ IN_Q_OVERFLOW, SESSION_CHANGE_OVERFLOW },
};
#define ROWS    (sizeof(rows) / sizeof(rows[0]))
#define ITS_END (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)

int session_watch_open(const struct jail *j, const char *path, struct arena *a,
		       struct session_watch *out, struct cj_error *err)
{
	struct session_path at;
	char name[32];
	uint32_t mask = IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	if (session_path_parse(j, path, a, &at, err) < 0)
		return -err->code;
	/* For reading: a program needs that right to watch it. */
	auto_fd int dir_fd = session_path_open(&at, O_RDONLY | O_DIRECTORY | O_NONBLOCK, err);
	if (dir_fd < 0)
		return dir_fd;
	auto_fd int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	for (size_t i = 0; i < ROWS; i++)
		mask |= rows[i].mask & IN_ALL_EVENTS;
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", dir_fd);
	if (fd < 0 || inotify_add_watch(fd, name, mask) < 0)
		return session_path_fail(&at, errno, "watch", err);
	*out = (struct session_watch){ at.path, take_fd(&fd) };
	return 0;
}

static int report(const struct session_watch *w, const struct inotify_event *e,
		  int (*see)(void *, enum session_change, const char *, struct cj_error *),
		  void *context, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	const char *path = e->len > 0 ? arena_printf(&a, "%s/%s", w->path, e->name) : w->path;
	const char *shown = path ? session_file_shown(path, &a) : NULL;
	if (!shown)
		return cj_fail(err, ENOMEM, "watch '%s'", w->path);
	for (size_t i = 0; i < ROWS; i++)
		if ((e->mask & rows[i].mask) && see(context, rows[i].change, shown, err) < 0)
			return -err->code;
	return 0;
}

int session_watch_read(const struct session_watch *w,
		       int (*see)(void *context, enum session_change change, const char *path,
				  struct cj_error *err),
		       void *context, struct cj_error *err)
{
	_Alignas(struct inotify_event) char room[ROOM];
	ssize_t got = sys_read(w->fd, room, sizeof(room));
	if (got < 0 && errno == EAGAIN)
		return 1;
	if (got < 0)
		return cj_fail(err, errno, "watch '%s'", w->path);
	for (ssize_t at = 0; at < got;) {
		const struct inotify_event *e = (const void *)(room + at);
		if (e->mask & ITS_END)
			return 0;
		if (report(w, e, see, context, err) < 0)
			return -err->code;
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	return 1;
}
