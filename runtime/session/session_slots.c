/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The execs of a session, as their keeper has them: reserved, running, ended, killed.
 *
 * While an exec's worker lives, only the worker reads the reaper's link.  After that the keeper
 * does.  Nothing here waits in the keeper.
 *
 * A session has a *spare*: a slot with a cgroup and a reaper for the next exec.  The move of a
 * reaper into its cgroup takes 8 to 17 ms when the host's cgroups have been idle, and the next exec
 * need not wait for that.  When an exec takes the spare, the next one moves while the exec runs.
 * An exec that follows at once waits for what is left of that move.  The ones after it do not: for
 * about 10 ms after a move, the next one takes 0.2 ms.  Without the spare, an exec after a pause of
 * 100 ms takes 4.5 times as long.
 *
 * The limit on processes does not count the spare where a cgroup enforces it
 * (session_cgroup_make_room()).  Where setrlimit(2) does, it counts; if the limit is low, the
 * session has a spare only while no exec and no process of one lives.  The usage never counts it.
 *
 * A move locks all cgroups of the host.  So while a reaper moves, nothing here makes or removes a
 * cgroup unless an exec needs one: the keeper would wait.
 */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/jail/protocol.h"
#include "runtime/session/session_state.h"
#include "runtime/kernel/process/process_tree.h"

#define ROUND_MS       5 /* between two rounds of killing */
#define STUBBORN_MS    500
#define ORPHAN_LOOK_MS 100 /* at the cgroup of an exec whose reaper was killed */
#define MOVE_LOOK_MS   3   /* at the reaper of an exec that moves */

static unsigned find_free(const struct session *s)
{
	unsigned slot = 0;
	while (slot < SESSION_EXECS_MAX && s->slots[slot].state != SLOT_FREE)
		slot++;
	return slot;
}

/* The far end goes to init, which gives it to the reaper; nobody else has it. */
static int ask_for_reaper(struct session *s, const struct cgroup *leaf, int *out_near,
			  struct cj_error *err)
{
	int ends[2];
	if (step_pair(ends, STEP_TIMEOUT_MS, err) < 0)
		return -err->code;
	auto_fd int near_fd = ends[0], far_fd = ends[1], door_fd = session_cgroup_door(leaf);
	const int fds[] = { far_fd, door_fd };
	const struct step_link near = { near_fd, "the reaper", step_names };
	if (step_ask_sender(&near, err) < 0 ||
	    step_tell(&s->jail->link, STEP_EXEC, NULL, 0, fds, door_fd >= 0 ? 2 : 1, err) < 0)
		return -err->code;
	*out_near = take_fd(&near_fd);
	return 0;
}

static void free_slot(struct session_slot *slot)
{
	(void)cgroup_destroy(&slot->leaf); /* one that stays ends with the session's */
	cj_close(&slot->link_fd);
	*slot = (struct session_slot){ .link_fd = -1, .leaf = CGROUP_NULL };
}

/* As SLOT_RUNNING or SLOT_SPARE_MOVES. */
static int fill_slot(struct session *s, unsigned slot, enum slot_state state, struct cj_error *err)
{
	struct session_slot fresh = { .state = state, .link_fd = -1, .leaf = CGROUP_NULL };
	/* EXEC_RESERVED; session_exec_reserve() clears the packets, which are many. */
	memset(&s->shared->rows[slot], 0, offsetof(struct session_row, packets_state));
	s->execs_begun++;
	session_cgroup_add(s, &fresh.leaf);
	if (ask_for_reaper(s, &fresh.leaf, &fresh.link_fd, err) < 0) {
		free_slot(&fresh);
		return -err->code;
	}
	s->slots[slot] = fresh;
	return 0;
}

/* Its link has a message; *out_is_lost: and is closed, for the reaper was killed, or init could not
 * fork it. */
static bool has_moved(const struct session_slot *spare, bool *out_is_lost)
{
	struct pollfd link = { .fd = spare->link_fd, .events = POLLIN };
	bool has_event = poll(&link, 1, 0) > 0;
	*out_is_lost = has_event && (link.revents & ~POLLIN) != 0;
	return has_event;
}

/* The reaper's first message is not in its link yet, and its exec worker has not read it. */
static bool is_moving(const struct session *s, unsigned i)
{
	const struct session_slot *slot = &s->slots[i];
	bool is_lost;
	if (slot->leaf.dir_fd < 0)
		return false;
	if (slot->state == SLOT_RUNNING)
		return atomic_load(&s->shared->rows[i].reaper_pid) == 0 &&
		       !has_moved(slot, &is_lost);
	return slot->state == SLOT_SPARE_MOVES;
}

/* The link of a spare wakes the keeper, so one that never moves costs nothing.  The link of an exec
 * is its worker's, which waits no longer than STEP_TIMEOUT_MS. */
static bool must_wait(struct session *s)
{
	bool has_moving = false;
	s->tidy_at_ms = 0;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		if (!is_moving(s, i))
			continue;
		has_moving = true;
		if (s->slots[i].state == SLOT_RUNNING)
			s->tidy_at_ms = clock_ms() + MOVE_LOOK_MS;
	}
	return has_moving;
}

/* The message of one that has moved stays for the worker of its exec. */
static void look_at_spare(struct session *s)
{
	const unsigned i = session_find_spare(s);
	struct session_slot *slot = i < SESSION_EXECS_MAX ? &s->slots[i] : NULL;
	bool is_lost = false;
	if (!slot || !has_moved(slot, &is_lost) || (!is_lost && slot->state == SLOT_SPARE))
		return;
	s->tidy_at_ms = clock_ms();
	slot->state = is_lost ? SLOT_OVER : SLOT_SPARE;
	if (!is_lost)
		return;
	/* A program that can kill a spare shall not have cejail move one reaper after another. */
	s->has_lost_spare = true;
	session_cgroup_make_room(s, false);
	cj_close(&slot->link_fd);
}

static void free_over(struct session *s)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (s->slots[i].state == SLOT_OVER)
			free_slot(&s->slots[i]);
}

static bool may_have_spare(const struct session *s)
{
	if (s->init_cgroup_fd < 0 || s->has_lost_spare || session_has_spare(s))
		return false;
	if (session_cgroup_has_room(s))
		return true;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (s->slots[i].state != SLOT_FREE)
			return false;
	return true;
}

/* What needs the host's cgroups, and no exec waits for. */
static void tidy(struct session *s)
{
	struct cj_error ignored = { 0 };
	if (s->tidy_at_ms == 0 || clock_ms() < s->tidy_at_ms || must_wait(s))
		return;
	free_over(s);
	const unsigned slot = find_free(s);
	if (slot == SESSION_EXECS_MAX || !may_have_spare(s))
		return;
	session_cgroup_make_room(s, true);
	if (fill_slot(s, slot, SLOT_SPARE_MOVES, &ignored) < 0)
		session_cgroup_make_room(s, false);
}

static bool take_spare(struct session *s, unsigned *out_slot)
{
	const unsigned i = session_find_spare(s);
	bool is_lost = false;
	if (i == SESSION_EXECS_MAX)
		return false;
	(void)has_moved(&s->slots[i], &is_lost);
	session_cgroup_make_room(s, false);
	if (is_lost) {
		free_slot(&s->slots[i]);
		return false;
	}
	s->slots[i].state = SLOT_RUNNING;
	*out_slot = i;
	return true;
}

/* A failure to make a spare, and its loss, last until an exec begins or has ended. */
static void want_spare(struct session *s)
{
	s->has_lost_spare = false;
	s->tidy_at_ms = clock_ms();
}

int session_exec_reserve(struct session *s, const char *id, unsigned *out_slot,
			 struct cj_error *err)
{
	unsigned slot;
	session_packets_sync(s);
	bool is_filled = take_spare(s, &slot);
	if (!is_filled && find_free(s) == SESSION_EXECS_MAX)
		free_over(s);
	if (!is_filled && (slot = find_free(s)) == SESSION_EXECS_MAX)
		return cj_reject_as(err, EBUSY,
				    "%d programs of the session run or have left "
				    "processes behind",
				    SESSION_EXECS_MAX);
	if (!is_filled && fill_slot(s, slot, SLOT_RUNNING, err) < 0)
		return cj_wrap(err, "exec");
	(void)snprintf(s->slots[slot].id, sizeof(s->slots[slot].id), "%s", id);
	session_denied_clear(s, slot);
	want_spare(s);
	*out_slot = slot;
	return 0;
}

static int signal_rest(int proc_fd, pid_t reaper_pid, int signo)
{
	struct process_tree tree;
	int rc = -ESRCH;
	if (!process_tree_list(proc_fd, reaper_pid, &tree))
		return rc;
	for (size_t i = 0; i < tree.count; i++)
		if (process_tree_signal(proc_fd, tree.pids[i], reaper_pid, signo) == 0)
			rc = 0;
	return rc;
}

int session_exec_signal(struct session *s, unsigned slot, int signo, struct cj_error *err)
{
	if (signo <= 0 || signo > SIGRTMAX)
		return cj_reject(err, "%d is no signal", signo);
	const struct session_row *row = &s->shared->rows[slot];
	pid_t reaper_pid = atomic_load(&row->reaper_pid), main_pid = atomic_load(&row->main_pid);
	int proc_fd = s->jail->handles.proc_fd, rc = -ESRCH;
	if (session_slot_has_exec(&s->slots[slot]) && reaper_pid > 0 &&
	    atomic_load(&row->is_started))
		rc = main_pid > 0 ? process_tree_signal(proc_fd, main_pid, reaper_pid, signo)
				  : signal_rest(proc_fd, reaper_pid, signo);
	return rc < 0 ? cj_fail(err, -rc, "signal %d to the program", signo) : 0;
}

static enum session_left look_behind_end(const struct session *s, unsigned slot)
{
	const struct session_slot *it = &s->slots[slot];
	/* Before the program was sent, a reaper has no child, so its end leaves none. */
	if (it->is_empty || !atomic_load(&s->shared->rows[slot].is_started))
		return LEFT_NONE;
	/* The kernel's OOM killer, or we, may have killed the reaper with all of its cgroup. */
	if (it->leaf.dir_fd >= 0)
		return cgroup_wait_empty(&it->leaf, 0) ? LEFT_NONE : LEFT_SOME;
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

enum session_left session_look(struct session *s, unsigned slot)
{
	struct session_slot *it = &s->slots[slot];
	const struct step_link link = { it->link_fd, "the reaper", step_names };
	for (;;) {
		auto_step_msg struct step_msg msg = { 0 };
		struct cj_error ignored = { 0 };
		enum link_state state = look_at_link(it->link_fd);
		if (state == LINK_CLOSED)
			return look_behind_end(s, slot);
		if (state == LINK_SILENT)
			return it->is_empty ? LEFT_NONE : LEFT_SOME;
		it->is_empty |= step_next(&link, &msg, &ignored) == 0 && msg.step == STEP_EMPTY;
	}
}

/* The other programs of the session can't fork either while the limit is reached: only when needed,
 * and no longer than until none is seen alive. */
static void kill_below(int proc_fd, pid_t reaper_pid, uint64_t since_ms)
{
	bool is_stubborn = since_ms >= STUBBORN_MS;
	if (is_stubborn)
		(void)process_tree_signal(proc_fd, reaper_pid, INIT_PID, SIGSTOP);
	size_t living = process_tree_kill(proc_fd, reaper_pid);
	if (is_stubborn && living == 0)
		(void)process_tree_signal(proc_fd, reaper_pid, INIT_PID, SIGCONT);
}

/*
 * One round: kills what is there.  Never waits for a process.
 *
 * A chain of processes, each of which forks the next and ends, may be faster than a round.  When
 * STUBBORN_MS have passed since the first round, the reaper is stopped meanwhile: the dead are not
 * reaped then, and the limit of processes ends the chain.
 */
static void kill_round(const struct session *s, unsigned slot, uint64_t since_ms)
{
	const struct session_slot *it = &s->slots[slot];
	const int proc_fd = s->jail->handles.proc_fd;
	pid_t reaper_pid = atomic_load(&s->shared->rows[slot].reaper_pid);
	(void)shutdown(it->link_fd, SHUT_WR); /* the reaper starts nothing more */
	if (it->leaf.dir_fd >= 0)
		cgroup_kill(&it->leaf);
	if (reaper_pid <= 0)
		return;
	if (!atomic_load(&s->shared->rows[slot].is_started)) /* it may wait to write an input */
		(void)process_tree_signal(proc_fd, reaper_pid, INIT_PID, SIGKILL);
	else if (it->leaf.dir_fd < 0)
		kill_below(proc_fd, reaper_pid, since_ms);
}

enum session_left session_kill_all(struct session *s, unsigned slot)
{
	const uint64_t begin_ms = clock_ms();
	for (;;) {
		enum session_left left = session_look(s, slot);
		uint64_t since_ms = clock_ms() - begin_ms;
		if (left != LEFT_SOME || since_ms >= SESSION_KILL_MS)
			return left;
		kill_round(s, slot, since_ms);
		struct pollfd p = { .fd = s->slots[slot].link_fd, .events = POLLIN };
		(void)poll(&p, 1, ROUND_MS);
	}
}

bool session_exec_runs(const struct session *s, unsigned slot)
{
	const enum slot_state state = s->slots[slot].state;
	return (state == SLOT_RUNNING || state == SLOT_BETWEEN_CELLS) &&
	       atomic_load(&s->shared->rows[slot].state) == EXEC_RESERVED;
}

/* From now on the keeper reads its link. */
static void take_over(struct session_slot *slot, bool kills)
{
	slot->state = kills ? SLOT_KILLING : SLOT_LEFT;
	slot->next_ms = clock_ms();
	slot->deadline_ms = slot->next_ms + SESSION_KILL_MS;
}

static bool is_ours(const struct session_slot *slot)
{
	return slot->state == SLOT_LEFT || slot->state == SLOT_KILLING;
}

bool session_exec_kill_left(struct session *s, const char *id)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		struct session_slot *slot = &s->slots[i];
		if (!is_ours(slot) || strcmp(slot->id, id) != 0)
			continue;
		if (slot->state == SLOT_LEFT)
			take_over(slot, true);
		return true;
	}
	return false;
}

void session_exec_done(struct session *s, unsigned slot)
{
	struct session_slot *it = &s->slots[slot];
	if (it->state != SLOT_RUNNING && it->state != SLOT_BETWEEN_CELLS)
		return;
	take_over(it, atomic_load(&s->shared->rows[slot].state) == EXEC_RESERVED);
	atomic_store(&s->shared->rows[slot].main_pid, 0);
}

void session_slots_watch(const struct session *s, struct pollfd fds[static SESSION_EXECS_MAX])
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		const struct session_slot *slot = &s->slots[i];
		bool is_watched = session_slot_is_spare(slot) ||
				  (is_ours(slot) && slot->next_ms == 0);
		/* of a spare that has moved, only the end: poll(2) */
		short events = slot->state == SLOT_SPARE ? 0 : POLLIN;
		fds[i] = (struct pollfd){ is_watched ? slot->link_fd : -1, events, 0 };
	}
}

uint64_t session_slots_next_ms(const struct session *s)
{
	uint64_t at_ms = s->tidy_at_ms;
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (is_ours(&s->slots[i]))
			at_ms = clock_earlier(at_ms, s->slots[i].next_ms);
	return at_ms;
}

static enum session_end fail_stuck(struct cj_error *err)
{
	cj_refuse_as(err, ETIMEDOUT, "a program's processes could not be killed within %d s",
		     SESSION_KILL_MS / 1000);
	return SESSION_STUCK;
}

static enum session_end turn(struct session *s, unsigned i, struct cj_error *err)
{
	const unsigned state = atomic_load(&s->shared->rows[i].state);
	if (state == EXEC_STUCK)
		return fail_stuck(err);
	enum session_left left = state == EXEC_EMPTY           ? LEFT_NONE
				 : state == EXEC_REAPER_KILLED ? LEFT_UNKNOWN
							       : session_look(s, i);
	if (left == LEFT_UNKNOWN) {
		cj_refuse_as(err, ECHILD,
			     "the reaper of a program was killed, so the processes that "
			     "it left can't be told apart from others");
		return SESSION_STUCK;
	}
	if (left == LEFT_SOME) {
		/* They are killed, or stay; then a killed reaper is noticed by its cgroup, without
		 * events. */
		struct session_slot *slot = &s->slots[i];
		if (slot->state == SLOT_LEFT) {
			bool is_closed = look_at_link(slot->link_fd) == LINK_CLOSED;
			slot->next_ms = is_closed ? clock_ms() + ORPHAN_LOOK_MS : 0;
			return SESSION_LIVES;
		}
		const uint64_t now_ms = clock_ms();
		if (now_ms >= slot->deadline_ms)
			return fail_stuck(err);
		kill_round(s, i, now_ms + SESSION_KILL_MS - slot->deadline_ms);
		slot->next_ms = clock_ms() + ROUND_MS;
		return SESSION_LIVES;
	}
	session_packets_sync(s);
	cj_close(&s->slots[i].link_fd);
	s->slots[i].state = SLOT_OVER;
	want_spare(s);
	return SESSION_LIVES;
}

enum session_end session_slots_turn(struct session *s, struct cj_error *err)
{
	enum session_end end = SESSION_LIVES;
	for (unsigned i = 0; i < SESSION_EXECS_MAX && end == SESSION_LIVES; i++) {
		const struct session_slot *slot = &s->slots[i];
		bool is_early = slot->next_ms > clock_ms();
		if (is_ours(slot) && !is_early)
			end = turn(s, i, err);
	}
	if (end == SESSION_LIVES) {
		look_at_spare(s);
		tidy(s);
	}
	return end;
}

/* Also of an exec whose worker has told its end, and that has not been looked at since. */
bool session_slots_are_empty(const struct session *s)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++)
		if (session_slot_has_exec(&s->slots[i]) &&
		    atomic_load(&s->shared->rows[i].state) != EXEC_EMPTY)
			return false;
	return true;
}

void session_slots_fini(struct session *s)
{
	for (unsigned i = 0; i < SESSION_EXECS_MAX; i++) {
		struct session_slot *slot = &s->slots[i];
		cj_close(&slot->link_fd);
		cgroup_close(&slot->leaf);
		slot->state = SLOT_FREE;
	}
}
