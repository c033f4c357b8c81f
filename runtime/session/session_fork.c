/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of a fork of the keeper. */
#include "runtime/session/session.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/child.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/spawn.h"
#include "runtime/session/session_state.h"

/* The standard streams, the caller's, the jail's handles, two cgroups, the link and a few more. */
#define KEPT_MAX (SESSION_FORK_FDS_MAX + OVERLAYS_MAX + 16)

struct kept {
	int fds[KEPT_MAX];
	size_t count;
};

static void keep(struct kept *k, int fd)
{
	assert(k->count < KEPT_MAX);
	if (fd >= CHILD_FIRST_FD)
		k->fds[k->count++] = fd;
}

static void keep_cgroup(struct kept *k, const struct cgroup *cgroup)
{
	keep(k, cgroup->dir_fd);
	keep(k, cgroup->cpu_fd);
	keep(k, cgroup->parent_fd);
}

static void keep_jail(struct kept *k, const struct session *s)
{
	const struct rootfs_handles *h = &s->jail->handles;

	keep(k, h->box_fd);
	keep(k, h->root_fd);
	keep(k, h->proc_fd);
	for (size_t i = 0; i < h->noverlays; i++)
		keep(k, h->overlay_fds[i]);
	keep(k, s->jail->signal_fd);
	keep(k, s->packets_fds[1]);
	keep_cgroup(k, &s->jail->cgroup);
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static int close_gaps(struct kept *k, struct cj_error *err)
{
	unsigned next = CHILD_FIRST_FD;

	qsort(k->fds, k->count, sizeof(k->fds[0]), by_number);
	for (size_t i = 0; i < k->count; i++) {
		unsigned fd = (unsigned)k->fds[i];
		if (fd > next && sys_close_range(next, fd - 1, 0) < 0)
			return cj_fail(err, errno, "close the keeper's descriptors");
		next = fd + 1;
	}
	if (sys_close_range(next, ~0u, 0) < 0)
		return cj_fail(err, errno, "close the keeper's descriptors");
	return 0;
}

/* So that no later clean-up closes a number that means something else by then. */
static void forget(struct session *s, unsigned slot)
{
	struct jail *j = s->jail;

	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (i != slot)
			cj_close(&s->slots[i].link_fd);
	cj_close(&j->link.sock_fd);
	cj_close(&j->init_pidfd);
	cj_close(&s->packets_fds[0]);
	filter_watch_destroy(&j->watch);
	j->network = NULL; /* its memory stays: to release it would change the host */
}

int session_fork_keep(struct session *s, unsigned slot, const int *fds, size_t nfds,
		      struct cj_error *err)
{
	struct kept kept = { .count = 0 };

	assert(nfds <= SESSION_FORK_FDS_MAX);
	forget(s, slot);
	for (size_t i = 0; i < nfds; i++)
		keep(&kept, fds[i]);
	keep_jail(&kept, s);
	if (slot != SESSION_NO_SLOT) {
		keep(&kept, s->slots[slot].link_fd);
		keep_cgroup(&kept, &s->slots[slot].leaf);
	}
	return close_gaps(&kept, err);
}

/* Into the cgroup, which takes no time; -1 with errno: it is full, or its births are killed. */
static pid_t fork_into(const struct session *s, int cgroup_fd, int *out_pidfd)
{
	const struct spawn_place place = { .cgroup_fd = cgroup_fd };
	if (cgroup_fd < 0 || s->jail->moves_init) {
		errno = ENOTSUP;
		return -1;
	}
	return spawn_process(&place, CLONE_PIDFD, SIGCHLD, out_pidfd);
}

/* A move is not refused for the limit on processes, as a birth is: cgroup(7). */
pid_t session_fork_charged(struct session *s, int *out_pidfd)
{
	int cgroup_fd = s->init_cgroup_fd >= 0 ? s->init_cgroup_fd : s->jail->cgroup.dir_fd;
	pid_t pid = fork_into(s, cgroup_fd, out_pidfd);
	if (pid >= 0)
		return pid;
	pid = child_fork(out_pidfd);
	if (pid > 0 && cgroup_fd >= 0)
		(void)cgroup_move(cgroup_fd, pid); /* else the scratch's own limit holds */
	return pid;
}
