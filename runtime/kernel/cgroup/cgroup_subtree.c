/* SPDX-License-Identifier: Apache-2.0 */
/* Enables controllers and moves processes to a leaf.  Acts. */
#include "runtime/kernel/cgroup/cgroup_subtree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define VACATE_ROUNDS 16  /* each finds processes forked since the last one */
#define VACATE_PIDS   512 /* in one round */

bool cgroup_subtree_read(int dir_fd, const char *name, char list[static SYSTEM_FILE_SMALL])
{
	return system_file_read(dir_fd, name, list, SYSTEM_FILE_SMALL) >= 0;
}

int cgroup_subtree_enable(int dir_fd)
{
	char available[SYSTEM_FILE_SMALL], enabled[SYSTEM_FILE_SMALL];
	if (!cgroup_subtree_read(dir_fd, "cgroup.controllers", available) ||
	    !cgroup_subtree_read(dir_fd, "cgroup.subtree_control", enabled))
		return 0;

	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
		const char *name = cgroup_controller_names[i];
		char word[32];
		if (!cgroup_text_has_word(available, name) || cgroup_text_has_word(enabled, name))
			continue;
		(void)snprintf(word, sizeof(word), "+%s", name);
		if (system_file_write(dir_fd, "cgroup.subtree_control", word) == -EBUSY)
			return -EBUSY;
	}
	return 0;
}

size_t cgroup_subtree_pids(int dir_fd, pid_t *out, size_t max)
{
	char text[SYSTEM_FILE_SMALL];
	auto_fd int fd = openat(dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : sys_read(fd, text, sizeof(text) - 1);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	return cgroup_text_pids(text, out, max);
}

int cgroup_subtree_vacate(int dir_fd)
{
	int made = system_file_make_dir(dir_fd, CGROUP_SUPERVISOR_LEAF);
	if (made < 0 && made != -EEXIST)
		return made;

	for (unsigned round = 0; round < VACATE_ROUNDS; round++) {
		pid_t pids[VACATE_PIDS];
		size_t count = cgroup_subtree_pids(dir_fd, pids, VACATE_PIDS);
		if (count == 0)
			return 0;
		for (size_t i = 0; i < count; i++) {
			char text[16];
			if (pids[i] == 0) /* not in our pid namespace; 0 would name ourselves */
				return -EXDEV;
			(void)snprintf(text, sizeof(text), "%d", (int)pids[i]);
			int rc =
			    system_file_write(dir_fd, CGROUP_SUPERVISOR_LEAF "/cgroup.procs", text);
			if (rc < 0 && rc != -ESRCH) /* ESRCH: it ended meanwhile */
				return rc;
		}
	}
	return -EBUSY;
}
