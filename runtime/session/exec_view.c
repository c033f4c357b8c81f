/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fork of the keeper, and in it one exec of a session: a view of the session's jail.
 *
 * The view has the session's plan, layers, limits and handles.  Where a run has init, it has the
 * reaper: link, init_pid and init_pidfd are the reaper's.  Its cgroup is the exec's own.  It has no
 * listener and no network: the keeper serves both.
 */
#include "runtime/session/session_state.h"

#include <assert.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/supervise/jail_network.h"
#include "runtime/jail/supervise/verdict.h"
#include "runtime/kernel/process/process_tree.h"
#include "runtime/kernel/process/spawn.h"

static struct session_row *row_of(const struct jail *view)
{
	return &view->exec->session->shared->rows[view->exec->slot];
}

static void starts(struct jail *view, pid_t main_pid)
{
	atomic_store(&row_of(view)->is_started, true);
	atomic_store(&row_of(view)->main_pid, main_pid);
}

/* By the kernel, or by the keeper: it used most of the session's memory. */
static bool was_oom_killed(const struct jail *view)
{
	return atomic_load(&row_of(view)->is_oom_killed) || verdict_was_oom_killed(view);
}

static bool interrupt(const struct jail *view)
{
	const struct session_row *row = row_of(view);
	pid_t main_pid = atomic_load(&row->main_pid);
	return main_pid > 0 && process_tree_signal(view->handles.proc_fd, main_pid,
						   atomic_load(&row->reaper_pid), SIGINT) == 0;
}

/* The whole session ended, or the reaper was killed. */
static void lose(struct jail *view, const struct ended *ended, struct outcome *out)
{
	(void)ended;
	const struct session_shared *shared = view->exec->session->shared;
	const unsigned how = atomic_load(&shared->end);
	if (was_oom_killed(view)) {
		out->signal = SIGKILL;
		outcome_decide(out, STATUS_OOM);
	} else if (how == SESSION_OOM) {
		jail_warn(view,
			  "all programs of the session together used more memory than it may");
		outcome_decide(out, STATUS_OOM);
	} else if (how == SESSION_LIVES && atomic_load(&shared->is_closing)) {
		outcome_decide(out, STATUS_CANCELLED);
	} else {
		if (how == SESSION_LIVES)
			jail_warn(view, "a program killed the reaper of this one, so its own end "
					"is not known");
		else
			jail_warn(
			    view, "the session ended (%s) before the program did",
			    session_ends[how < SESSION_END_COUNT ? how : SESSION_FAILED].name);
		out->signal = SIGKILL;
		outcome_decide(out, STATUS_SIGNALED);
	}
}

/* After false the keeper ends the session. */
static bool end(struct jail *view, const struct ended *ended, bool has_ended_itself)
{
	(void)ended;
	struct session *s = view->exec->session;
	const unsigned slot = view->exec->slot;
	const enum exec_state some = has_ended_itself ? EXEC_LEFT : EXEC_STUCK;
	atomic_store(&row_of(view)->main_pid, 0);
	enum session_left left = has_ended_itself ? session_look(s, slot)
						  : session_kill_all(s, slot);
	enum exec_state state = left == LEFT_NONE   ? EXEC_EMPTY
				: left == LEFT_SOME ? some
						    : EXEC_REAPER_KILLED;
	session_packets_settle(s, slot); /* while it still counts */
	atomic_store(&row_of(view)->state, state);
	if (state == EXEC_STUCK)
		jail_warn(view,
			  "a process of the program did not die within %d s: the session ends",
			  SESSION_KILL_MS / 1000);
	return state == EXEC_LEFT || state == EXEC_EMPTY;
}

static int report(struct jail *view, struct outcome *out, struct cj_error *err)
{
	const struct session_shared *shared = view->exec->session->shared;
	session_packets_settle(view->exec->session, view->exec->slot); /* a cell's end is no end */
	out->network.state = (enum network_state)atomic_load(&shared->network);
	if (out->network.state == NETWORK_FAILED)
		out->network.why = arena_strdup(&out->arena, shared->network_why);
	if (out->network.state != NETWORK_UNUSED)
		out->network.uplink = (enum uplink_kind)atomic_load(&shared->uplink);
	if (session_packets_read(row_of(view), out, err) < 0 ||
	    session_read_rules(view->exec->session, out, err) < 0 ||
	    jail_network_read_upstreams(view->exec->session->upstream, view->exec->upstreams, out,
					err) < 0)
		return -err->code;
	/* The events of a run come when a packet is denied.  Here the keeper knows it first. */
	const struct jail_io *io = &view->run.io;
	for (size_t i = 0; io->denied && i < out->network.ndenied; i++)
		io->denied(io->context, &(struct jail_denied){ .packet = &out->network.denied[i] });
	return session_denied_read(row_of(view), out, err);
}

static uint64_t growth(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Limits act on the jail's cgroup, above the exec's own: what was counted there since it began. */
static void count(const struct jail *view, struct cgroup_usage *cg)
{
	struct cgroup_usage all = { 0 };
	const struct cgroup_usage *before = &view->exec->before;
	cgroup_read_usage(&view->cgroup, cg);
	cgroup_read_usage(&view->exec->session->jail->cgroup, &all);
	cg->own_ooms = growth(before->own_ooms, all.own_ooms);
	/* A refused fork counts where the limit is, before Linux 6.11 in the exec's own cgroup. */
	cg->pids_max_hits =
	    larger(cg->pids_max_hits, growth(before->pids_max_hits, all.pids_max_hits));
	cg->throttled_us = larger(cg->throttled_us, growth(before->throttled_us, all.throttled_us));
}

/* Releases the view, not what it borrows from the session. */
static void destroy(struct jail **view)
{
	cj_close(&(*view)->init_pidfd);
	jail_state_free(view);
}

static const struct jail_ops exec_ops = {
	.starts = starts,
	.interrupt = interrupt,
	.was_oom_killed = was_oom_killed,
	.lose = lose,
	.end = end,
	.count = count,
	.report = report,
	.destroy = destroy,
};

static int meet_reaper(struct jail *view, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct reaper reaper;
	if (step_await(&view->link, STEP_REAPER, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(reaper))
		return cj_fail(err, EPROTO, "meet the reaper");
	memcpy(&reaper, msg.data, sizeof(reaper));
	/* The pid comes from the kernel.  The link is open after the pidfd is: so the reaper lived,
	 * and the number was still its own. */
	struct pollfd link = { .fd = view->link.sock_fd };
	view->init_pid = msg.sender.pid;
	view->init_pidfd = msg.sender.pid > 0 ? sys_pidfd_open(msg.sender.pid) : -1;
	if (msg.sender.pid <= 0 || view->init_pidfd < 0)
		return cj_fail(err, msg.sender.pid > 0 ? errno : ESRCH, "find the reaper");
	if (poll(&link, 1, 0) > 0 && (link.revents & POLLHUP))
		return cj_reject_as(err, ECHILD, "the reaper was killed");
	view->parent_pid = reaper.pid;
	atomic_store(&row_of(view)->reaper_pid, reaper.pid);
	atomic_store(&row_of(view)->reaper_host_pid, msg.sender.pid);

	/* Before it has a child: each process that it starts is born there. */
	int rc = view->cgroup.dir_fd >= 0 ? session_cgroup_join(&view->cgroup, msg.sender.pid) : 0;
	return rc < 0 ? cj_fail(err, -rc, "move the reaper into its cgroup") : 0;
}

static struct jail *create_view(struct session *s, unsigned slot, const char *id)
{
	struct jail *view = jail_state_create(s->jail->plan, id);
	if (!view)
		return NULL;
	view->exec = arena_array(&view->arena, 1, sizeof(*view->exec));
	if (!view->exec) {
		jail_state_free(&view);
		return NULL;
	}
	view->ops = &exec_ops;
	view->is_shared = true;
	*view->exec = (struct session_exec){ .session = s, .slot = slot };
	const struct jail *j = s->jail;
	view->root = j->root;
	view->endpoints = j->endpoints;
	view->handles = j->handles;
	view->signal_fd = j->signal_fd; /* signalfd(2) reads the signals of the reading process */
	view->old_signals = j->old_signals;
	memcpy(view->limits, j->limits, sizeof(view->limits));
	memcpy(view->layers, j->layers, sizeof(view->layers));
	for (size_t i = 0; i < j->warnings.count; i++)
		jail_warn(view, "%s", j->warnings.items[i]);
	cgroup_read_usage(&j->cgroup, &view->exec->before);
	if (s->upstream)
		view->exec->upstreams = http_upstream_read(s->upstream, NULL, &view->arena);
	view->cgroup = s->slots[slot].leaf;
	view->link = (struct step_link){ s->slots[slot].link_fd, "the reaper", step_names };
	return view;
}

int session_exec_open(struct session *s, unsigned slot, const char *id, struct jail **out,
		      struct cj_error *err)
{
	struct jail *view = create_view(s, slot, id);
	if (!view)
		return cj_fail(err, ENOMEM, "create a view of the session's jail");
	if (meet_reaper(view, err) < 0) {
		destroy(&view);
		cj_stage(err, "exec");
		return cj_wrap(err, "exec");
	}
	*out = view;
	return 0;
}

/* The standard streams, the caller's, the jail's handles, two cgroups, the link and a few more. */
#define KEPT_MAX (SESSION_FORK_FDS_MAX + OVERLAYS_MAX + 16)

struct kept {
	int fds[KEPT_MAX];
	size_t count;
};

static void keep(struct kept *k, int fd)
{
	assert(k->count < KEPT_MAX);
	k->fds[k->count++] = fd;
}

static void keep_cgroup(struct kept *k, const struct cgroup *cgroup)
{
	keep(k, cgroup->dir_fd);
	keep(k, cgroup->cpu_fd);
	keep(k, cgroup->parent_fd);
}

int session_fork_keep(struct session *s, unsigned slot, const int *fds, size_t nfds,
		      struct cj_error *err)
{
	struct kept kept = { .count = 0 };

	assert(nfds <= SESSION_FORK_FDS_MAX);
	/* So that no later clean-up closes a number that means something else by then. */
	struct jail *j = s->jail;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (i != slot)
			cj_close(&s->slots[i].link_fd);
	cj_close(&j->link.sock_fd);
	cj_close(&j->init_pidfd);
	cj_close(&s->packets_fds[0]);
	filter_watch_destroy(&j->watch);
	j->network = NULL; /* its memory stays: to release it would change the host */
	for (size_t i = 0; i < nfds; i++)
		keep(&kept, fds[i]);
	const struct rootfs_handles *h = &j->handles;
	keep(&kept, h->box_fd);
	keep(&kept, h->root_fd);
	keep(&kept, h->proc_fd);
	for (size_t i = 0; i < h->noverlays; i++)
		keep(&kept, h->overlay_fds[i]);
	keep(&kept, j->signal_fd);
	keep(&kept, s->packets_fds[1]);
	keep_cgroup(&kept, &j->cgroup);
	if (slot != SESSION_NO_SLOT) {
		keep(&kept, s->slots[slot].link_fd);
		keep_cgroup(&kept, &s->slots[slot].leaf);
	}
	if (fd_close_others(CHILD_FIRST_FD, kept.fds, kept.count) < 0)
		return cj_fail(err, errno, "close the keeper's descriptors");
	return 0;
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
