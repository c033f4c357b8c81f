/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an exec's processes. */
#include "runtime/session/session_state.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/step.h"
#include "runtime/jail/protocol.h"
#include "runtime/kernel/process/process_tree.h"

#define STUBBORN_MS 500

/* Before the program was sent, a reaper has no child, so its end leaves none. */
static bool has_begun(const struct session_target *t)
{
	return atomic_load(&t->row->is_started);
}

static enum session_left look_behind_end(const struct session_target *t, bool is_empty)
{
	if (is_empty || !has_begun(t))
		return LEFT_NONE;
	/* The kernel's OOM killer, or we, may have killed the reaper with all of its cgroup. */
	if (t->leaf->dir_fd >= 0)
		return cgroup_wait_empty(t->leaf, 0) ? LEFT_NONE : LEFT_SOME;
	return LEFT_UNKNOWN;
}

enum link_state { LINK_SILENT, LINK_HAS_MESSAGE, LINK_CLOSED };

/* An error that the reaper sent may have any code, EPIPE too: the end of the link is seen here. */
static enum link_state look_at_link(int link_fd)
{
	char first;
	ssize_t got;
	do /* unix(7) reports one ECONNRESET for messages of ours that were not read */
		got = recv(link_fd, &first, sizeof(first), MSG_PEEK | MSG_DONTWAIT);
	while (got < 0 && (errno == EINTR || errno == ECONNRESET));
	if (got < 0)
		return LINK_SILENT;
	return got == 0 ? LINK_CLOSED : LINK_HAS_MESSAGE;
}

enum session_left session_look(const struct session_target *t, bool *is_empty)
{
	const struct step_link link = { t->link_fd, "the reaper", step_names };
	for (;;) {
		auto_step_msg struct step_msg msg = { 0 };
		struct cj_error ignored = { 0 };
		enum link_state state = look_at_link(t->link_fd);
		if (state == LINK_CLOSED)
			return look_behind_end(t, *is_empty);
		if (state == LINK_SILENT)
			return *is_empty ? LEFT_NONE : LEFT_SOME;
		*is_empty |= step_next(&link, &msg, &ignored) == 0 && msg.step == STEP_EMPTY;
	}
}

/* The other programs of the session can't fork either while the limit is reached: only when needed,
 * and no longer than until none is seen alive. */
static void kill_below(const struct session_target *t, pid_t reaper_pid, uint64_t since_ms)
{
	bool is_stubborn = since_ms >= STUBBORN_MS;
	if (is_stubborn)
		(void)process_tree_signal(t->proc_fd, reaper_pid, INIT_PID, SIGSTOP);
	size_t living = process_tree_kill(t->proc_fd, reaper_pid);
	if (is_stubborn && living == 0)
		(void)process_tree_signal(t->proc_fd, reaper_pid, INIT_PID, SIGCONT);
}

void session_kill_round(const struct session_target *t, uint64_t since_ms)
{
	pid_t reaper_pid = atomic_load(&t->row->reaper_pid);
	(void)shutdown(t->link_fd, SHUT_WR); /* the reaper starts nothing more */
	if (t->leaf->dir_fd >= 0)
		cgroup_kill(t->leaf);
	if (!has_begun(t) && reaper_pid > 0) /* it may write an input, and wait for space */
		(void)process_tree_signal(t->proc_fd, reaper_pid, INIT_PID, SIGKILL);
	else if (t->leaf->dir_fd < 0 && reaper_pid > 0)
		kill_below(t, reaper_pid, since_ms);
}

enum session_left session_kill_all(const struct session_target *t, bool *is_empty)
{
	const uint64_t begin_ms = clock_ms();
	for (;;) {
		enum session_left left = session_look(t, is_empty);
		uint64_t since_ms = clock_ms() - begin_ms;
		if (left != LEFT_SOME || since_ms >= SESSION_KILL_MS)
			return left;
		session_kill_round(t, since_ms);
		struct pollfd p = { .fd = t->link_fd, .events = POLLIN };
		(void)poll(&p, 1, SESSION_ROUND_MS);
	}
}
