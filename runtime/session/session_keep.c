/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keeper's loop.
 *
 * One thread, one poll(2).  The caller's descriptors wait in the same call.  The loop uses no epoll
 * and no timers, for the reason that supervise/supervisor.c names.
 *
 * The limits of the session are the kernel's where its cgroup has them.  Else the keeper samples
 * the memory of the whole jail while execs live; the execs' workers sample their own.
 */
#include "runtime/session/session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/prepare/jail_init.h"
#include "runtime/jail/supervise/jail_network.h"
#include "runtime/jail/protocol.h"
#include "runtime/session/session_state.h"
#include "runtime/kernel/process/process_tree.h"
#include "runtime/jail/usage/usage_watch.h"

#define INIT_LOOK_MS 200  /* the session ends in any case: for the reason */
#define CALLERS_MAX  1024 /* descriptors of the caller */

enum source {
	SOURCE_MEMORY,   /* the kernel's OOM killer was active */
	SOURCE_INIT,     /* init has ended */
	SOURCE_SYSCALLS, /* notifications of system calls */
	SOURCE_NETWORK,  /* denials, names, forwards, the uplink; once it is built */
	SOURCE_PACKETS,  /* the worker of an exec asks for its denied packets */
	SOURCE_SLOTS,    /* the links of finished execs */
	SOURCE_CALLER = SOURCE_SLOTS + SESSION_EXECS_MAX
};

struct session_keep {
	struct pollfd *fds; /* SOURCE_CALLER and as many as the caller had at most */
	size_t room;
	struct session_memory memory;
	uint64_t began_ms;
};

/* --- begin and end ---------------------------------------------------------------------- */

static struct session *create(struct jail *j)
{
	struct session *s = calloc(1, sizeof(*s));
	struct session_keep *k = calloc(1, sizeof(*k));
	void *shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fds[2] = { -1, -1 };
	if (!s || !k || shared == MAP_FAILED || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(s);
		free(k);
		if (shared != MAP_FAILED)
			(void)munmap(shared, sizeof(*s->shared));
		return NULL;
	}
	*s = (struct session){ .jail = j,
			       .keeper_pid = getpid(),
			       .shared = shared,
			       .packets_fds = { fds[0], fds[1] },
			       .init_cgroup_fd = -1,
			       .keep = k };
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++) {
		s->slots[i].link_fd = -1;
		s->slots[i].leaf = CGROUP_NULL;
	}
	s->host_proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	k->memory.events_fd = -1;
	k->began_ms = clock_ms();
	return s;
}

static void release(struct session **slot)
{
	struct session *s = *slot;
	session_memory_fini(&s->keep->memory);
	cj_close(&s->host_proc_fd);
	cj_close(&s->init_cgroup_fd);
	cj_close(&s->packets_fds[0]);
	cj_close(&s->packets_fds[1]);
	(void)munmap(s->shared, sizeof(*s->shared));
	free(s->keep->fds);
	free(s->keep);
	cj_free(slot);
}

/* What the execs of this session can do to each other is in the warnings of each of them. */
static int assess(struct session *s, struct cj_error *err)
{
	static const char *const lacks[SESSION_ISOLATION_COUNT] = {
		[SESSION_SHARED] = "the programs of this session are not isolated from each other: "
				   "this kernel has no Landlock, or the seccomp policy refuses it",
		[SESSION_UNTRACED] = "the programs of this session can signal each other: Landlock "
				     "isolates signals from Linux 6.12 on",
	};
	const char *lack = lacks[s->isolation];
	if (!lack)
		return 0;
	if (s->jail->plan->strict) {
		cj_refuse(err, "--strict: %s", lack);
		return cj_hint(err, "'cejail doctor' says what this host lacks");
	}
	jail_degrade(s->jail, DEGRADED_LANDLOCK, "%s", lack);
	return 0;
}

static void publish_network(struct session *s)
{
	const char *why;
	if (!s->jail->network)
		return;
	const enum network_state state = network_state(s->jail->network, &why);
	if (state == NETWORK_FAILED && why && strcmp(why, s->shared->network_why) != 0)
		(void)snprintf(s->shared->network_why, NETWORK_WHY_MAX, "%s", why);
	atomic_store(&s->shared->uplink, network_uplink(s->jail->network));
	atomic_store(&s->shared->network, state);
}

int session_prepare(const struct plan *plan, const char *id, struct jail **out,
		    struct cj_error *err)
{
	return jail_prepare_session(plan, id, session_init_serve, out, err);
}

int session_begin(struct jail *j, struct session **out, struct cj_error *err)
{
	if (j->is_shared || j->warm.launcher || j->run.program)
		return cj_reject_as(err, EBUSY,
				    "begin a session: a program is in the jail already");
	if (!j->init.serve)
		return cj_reject(err, "begin a session: the jail was prepared for a run");
	struct session *s = create(j);
	if (!s)
		return cj_fail(err, ENOMEM, "begin a session");
	if (session_ask_init(j, &s->isolation, err) < 0 || assess(s, err) < 0) {
		release(&s);
		return -err->code;
	}
	session_cgroup_begin(s);
	session_slots_begin(s);
	session_memory_init(&s->keep->memory, s);
	session_denied_begin(s);
	publish_network(s);
	*out = s;
	return 0;
}

void session_taken(struct session *s)
{
	jail_record_started(s->jail);
}

enum session_isolation session_isolation(const struct session *s)
{
	return s->isolation;
}

void session_finish(struct session **slot)
{
	struct session *s = *slot;
	if (!s)
		return;
	if (getpid() == s->keeper_pid) {
		atomic_store(&s->shared->is_closing, true); /* its workers see why init ended */
		/* False: a sweep removes the leaves later.  A spare reaper that moves dies when it
		 * has moved, so its end is not waited for. */
		(void)jail_init_kill(s->jail, session_slots_are_empty(s));
		session_packets_end(s);
		if (s->jail->watch)
			filter_watch_split(s->jail->watch, &(struct filter_groups){ 0 });
	}
	session_slots_fini(s);
	release(slot);
}

/* --- what is watched --------------------------------------------------------------------- */

static void watch_fd(struct session *s, unsigned source, int fd, short events)
{
	s->keep->fds[source] = (struct pollfd){ .fd = fd, .events = events };
}

static void watch_all(struct session *s, const struct pollfd *fds, size_t nfds)
{
	struct jail *j = s->jail;
	watch_fd(s, SOURCE_MEMORY, s->keep->memory.events_fd, POLLPRI);
	watch_fd(s, SOURCE_INIT, j->init_pidfd, POLLIN);
	watch_fd(s, SOURCE_SYSCALLS, j->watch ? filter_watch_fd(j->watch) : -1, POLLIN);
	watch_fd(s, SOURCE_NETWORK, j->network ? network_fd(j->network) : -1, POLLIN);
	watch_fd(s, SOURCE_PACKETS, s->packets_fds[0], POLLIN);
	session_slots_watch(s, s->keep->fds + SOURCE_SLOTS);
	if (nfds > 0)
		memcpy(s->keep->fds + SOURCE_CALLER, fds, nfds * sizeof(*fds));
}

static int make_room(struct session_keep *k, size_t nfds, struct cj_error *err)
{
	if (nfds > CALLERS_MAX)
		return cj_fail(err, EINVAL, "watch %zu descriptors", nfds);
	if (SOURCE_CALLER + nfds <= k->room)
		return 0;
	struct pollfd *fds = realloc(k->fds, (SOURCE_CALLER + nfds) * sizeof(*fds));
	if (!fds)
		return cj_fail(err, ENOMEM, "watch %zu descriptors", nfds);
	k->fds = fds;
	k->room = SOURCE_CALLER + nfds;
	return 0;
}

static bool is_network_wanted(const struct session *s)
{
	return s->jail->watch && filter_watch_wants_network(s->jail->watch);
}

static int shorter(int timeout_ms, int other_ms)
{
	if (timeout_ms < 0 || (other_ms >= 0 && other_ms < timeout_ms))
		return other_ms;
	return timeout_ms;
}

static int poll_timeout(const struct session *s, int timeout_ms)
{
	const struct filter_watch *calls = s->jail->watch;
	uint64_t at_ms = session_slots_next_ms(s);
	at_ms = clock_earlier(at_ms, session_memory_next_ms(s, &s->keep->memory));
	at_ms = clock_earlier(at_ms, calls ? filter_watch_paused_until_ms(calls) : 0);
	timeout_ms = shorter(timeout_ms, clock_ms_until(at_ms));
	return is_network_wanted(s) ? shorter(timeout_ms, NETWORK_LOOK_MS) : timeout_ms;
}

/* --- events --------------------------------------------------------------------------------- */

/* Init's own error, if it sent one before it ended; it never waits: the other end is closed. */
static enum session_end take_init_error(struct session *s, struct cj_error *err)
{
	for (;;) {
		auto_step_msg struct step_msg msg = { 0 };
		int rc = step_next(&s->jail->link, &msg, err);
		if (rc == -EPIPE)
			break;
		if (rc < 0)
			return SESSION_FAILED;
	}
	*err = (struct cj_error){ 0 };
	cj_refuse_as(err, ECANCELED, "the session's init was killed");
	return SESSION_KILLED;
}

static enum session_end on_init(struct session *s, struct cj_error *err)
{
	if (session_memory_killed_init(s))
		return session_memory_fail(err);
	return take_init_error(s, err);
}

/* All that asks for the network until it is there goes on together. */
static void advance_network(struct session *s)
{
	if (!is_network_wanted(s))
		return;
	(void)jail_network_advance(s->jail);
	publish_network(s);
}

/* When init dies, the kernel kills all reapers before it reports init's end. */
static enum session_end look_at_init(struct session *s, struct cj_error *err)
{
	struct pollfd init = { .fd = s->jail->init_pidfd, .events = POLLIN };
	int ready = poll(&init, 1, INIT_LOOK_MS);
	if (ready == 0 && process_tree_is_ending(s->jail->handles.proc_fd, INIT_PID))
		ready = poll(&init, 1, SESSION_KILL_MS);
	return ready > 0 ? on_init(s, err) : SESSION_STUCK;
}

static enum session_end handle(struct session *s, struct cj_error *err)
{
	const struct pollfd *fds = s->keep->fds;
	const char *name;
	enum session_end end =
	    session_memory_turn(s, &s->keep->memory, fds[SOURCE_MEMORY].revents != 0, err);
	if (end == SESSION_LIVES && fds[SOURCE_INIT].revents != 0)
		end = on_init(s, err);
	if (end == SESSION_LIVES && fds[SOURCE_SYSCALLS].revents != 0)
		filter_watch_answer(s->jail->watch, &name);
	if (end == SESSION_LIVES && fds[SOURCE_NETWORK].revents != 0) {
		end = network_serve(s->jail->network, err) < 0 ? SESSION_FAILED : SESSION_LIVES;
		publish_network(s);
	}
	if (end != SESSION_LIVES)
		return end;
	if (fds[SOURCE_PACKETS].revents != 0)
		session_packets_answer(s);
	advance_network(s);
	end = session_slots_turn(s, err);
	return end == SESSION_STUCK ? look_at_init(s, err) : end;
}

static int count_ready(struct pollfd *fds, size_t nfds, const struct pollfd *polled)
{
	int count = 0;
	for (size_t i = 0; i < nfds; i++) {
		fds[i].revents = polled[i].revents;
		count += fds[i].revents != 0;
	}
	return count;
}

static int serve_once(struct session *s, struct pollfd *fds, size_t nfds, int timeout_ms,
		      enum session_end *end, struct cj_error *err)
{
	*end = SESSION_FAILED;
	if (make_room(s->keep, nfds, err) < 0)
		return -err->code;
	watch_all(s, fds, nfds);
	struct pollfd *polled = s->keep->fds;
	if (poll(polled, SOURCE_CALLER + nfds, poll_timeout(s, timeout_ms)) < 0) {
		if (errno != EINTR)
			return cj_fail(err, errno, "wait for events of the session");
		for (size_t i = 0; i < SOURCE_CALLER + nfds; i++)
			polled[i].revents = 0;
	}
	*end = handle(s, err);
	return *end == SESSION_LIVES ? count_ready(fds, nfds, polled + SOURCE_CALLER) : -ECANCELED;
}

int session_serve(struct session *s, struct pollfd *fds, size_t nfds, int timeout_ms,
		  enum session_end *end, struct cj_error *err)
{
	int rc = serve_once(s, fds, nfds, timeout_ms, end, err);
	if (rc < 0)
		atomic_store(&s->shared->end, *end);
	return rc < 0 ? -ECANCELED : rc;
}

/* --- status ---------------------------------------------------------------------------------- */

void session_status(struct session *s, struct session_status *out)
{
	*out = (struct session_status){
		.isolation = s->isolation,
		.network = atomic_load(&s->shared->network),
		.denied_is_complete = true,
	};
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++)
		out->execs += session_slot_has_exec(&s->slots[i]);
	if (s->jail->watch)
		out->denied =
		    filter_watch_denied(s->jail->watch, &out->ndenied, &out->denied_is_complete);
	if (s->jail->network)
		out->denied_packets = network_denied_so_far(s->jail->network);
	session_memory_usage(s, &s->keep->memory, &out->usage);
	out->memory_bytes = session_memory_now(s, &s->keep->memory);
	out->usage.wall_ms = clock_ms() - s->keep->began_ms;
}
