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
#include <signal.h>
#include <sys/mman.h>

#include "runtime/base/clock.h"
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

enum keep_source {
	SOURCE_MEMORY,   /* the kernel's OOM killer was active */
	SOURCE_INIT,     /* init has ended */
	SOURCE_SYSCALLS, /* notifications of system calls */
	SOURCE_NETWORK,  /* denials, names, forwards, the uplink; once it is built */
	SOURCE_PACKETS,  /* the worker of an exec asks for its denied packets */
	SOURCE_SLOTS,    /* the links of finished execs */
	SOURCE_CALLER = SOURCE_SLOTS + SESSION_EXECS_MAX
};

const struct session_end_row session_ends[SESSION_END_COUNT] = {
	[SESSION_LIVES] = { "lives", "the session has not ended" },
	[SESSION_LEASE] = { "lease", "the session's lease is over" },
	[SESSION_IDLE] = { "idle", "the session was idle for too long" },
	[SESSION_DRAIN] = { "drain", "the service is shutting down" },
	[SESSION_CLOSED] = { "closed", "the session was closed" },
	[SESSION_OOM] = { "oom", "the programs of the session together exceeded its memory limit" },
	[SESSION_KILLED] = { "killed",
			     "a program of the session ended the first process of its jail" },
	[SESSION_STUCK] = { "stuck", "the processes of an exec could not be killed" },
	[SESSION_FAILED] = { "failed",
			     "the session's jail failed; the service's log has the reason" },
};

static struct session *create(struct jail *j)
{
	struct session *s = calloc(1, sizeof(*s));
	void *shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fds[2] = { -1, -1 };
	if (!s || shared == MAP_FAILED || pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(s);
		if (shared != MAP_FAILED)
			(void)munmap(shared, sizeof(*s->shared));
		return NULL;
	}
	*s = (struct session){ .jail = j,
			       .keeper_pid = getpid(),
			       .shared = shared,
			       .packets_fds = { fds[0], fds[1] },
			       .init_cgroup_fd = -1,
			       .memory.events_fd = -1,
			       .began_ms = clock_ms() };
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++) {
		s->slots[i].link_fd = -1;
		s->slots[i].leaf = CGROUP_NULL;
	}
	s->host_proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return s;
}

static void release(struct session **slot)
{
	struct session *s = *slot;
	session_memory_fini(s);
	cj_close(&s->host_proc_fd);
	cj_close(&s->init_cgroup_fd);
	cj_close(&s->packets_fds[0]);
	cj_close(&s->packets_fds[1]);
	(void)munmap(s->shared, sizeof(*s->shared));
	cj_free(slot);
}

/* Sends STEP_SESSION and takes the answer. */
static int ask_init(const struct jail *j, enum session_isolation *out_isolation,
		    struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct serving serving;
	if (step_say(&j->link, STEP_SESSION, err) < 0 ||
	    step_await(&j->link, STEP_SERVING, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(serving))
		return cj_fail(err, EPROTO, "begin the session");
	memcpy(&serving, msg.data, sizeof(serving));
	if (serving.isolation >= SESSION_ISOLATION_COUNT)
		return cj_fail(err, EPROTO, "begin the session");
	*out_isolation = (enum session_isolation)serving.isolation;
	return 0;
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

void session_publish_network(struct session *s)
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
	if (ask_init(j, &s->isolation, err) < 0 || assess(s, err) < 0) {
		release(&s);
		return -err->code;
	}
	s->upstream = j->network ? network_upstream(j->network) : NULL;
	session_cgroup_begin(s);
	s->tidy_at_ms =
	    clock_ms(); /* a spare is made in the first round: the begin does not wait */
	session_memory_init(s);
	session_denied_begin(s);
	session_publish_network(s);
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

static bool is_network_wanted(const struct session *s)
{
	return s->jail->watch && filter_watch_wants_network(s->jail->watch);
}

static int poll_timeout(const struct session *s, int timeout_ms)
{
	const struct filter_watch *calls = s->jail->watch;
	const uint64_t now_ms = clock_ms();
	uint64_t at_ms = session_slots_next_ms(s);
	at_ms = clock_earlier(at_ms, session_memory_next_ms(s));
	at_ms = clock_earlier(at_ms, calls ? filter_watch_paused_until_ms(calls) : 0);
	if (timeout_ms >= 0)
		at_ms = clock_earlier(at_ms, now_ms + (uint64_t)timeout_ms);
	if (is_network_wanted(s))
		at_ms = clock_earlier(at_ms, now_ms + NETWORK_LOOK_MS);
	return clock_ms_until(at_ms);
}

/* Init's own error, if it sent one before it ended; it never waits: the other end is closed. */
static enum session_end on_init(struct session *s, struct cj_error *err)
{
	if (session_memory_killed_init(s))
		return session_memory_fail(err);
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

static enum session_end handle(struct session *s, const struct pollfd *fds, struct cj_error *err)
{
	const char *name;
	enum session_end end = session_memory_turn(s, fds[SOURCE_MEMORY].revents != 0, err);
	if (end == SESSION_LIVES && fds[SOURCE_INIT].revents != 0)
		end = on_init(s, err);
	if (end == SESSION_LIVES && fds[SOURCE_SYSCALLS].revents != 0)
		filter_watch_answer(s->jail->watch, &name);
	if (end == SESSION_LIVES && fds[SOURCE_NETWORK].revents != 0) {
		end = network_serve(s->jail->network, err) < 0 ? SESSION_FAILED : SESSION_LIVES;
		session_publish_network(s);
	}
	if (end != SESSION_LIVES)
		return end;
	if (fds[SOURCE_PACKETS].revents != 0)
		session_packets_answer(s);
	if (is_network_wanted(s)) { /* all that asks until it is there goes on together */
		(void)jail_network_advance(s->jail);
		session_publish_network(s);
	}
	end = session_slots_turn(s, err);
	if (end != SESSION_STUCK)
		return end;
	/* When init dies, the kernel kills all reapers before it reports init's end. */
	struct pollfd init = { .fd = s->jail->init_pidfd, .events = POLLIN };
	int ready = poll(&init, 1, INIT_LOOK_MS);
	if (ready == 0 && process_tree_is_ending(s->jail->handles.proc_fd, INIT_PID))
		ready = poll(&init, 1, SESSION_KILL_MS);
	return ready > 0 ? on_init(s, err) : SESSION_STUCK;
}

static int serve_once(struct session *s, struct pollfd *fds, size_t nfds, int timeout_ms,
		      enum session_end *end, struct cj_error *err)
{
	struct pollfd polled[SOURCE_CALLER + CALLERS_MAX];
	int ready = 0;
	*end = SESSION_FAILED;
	if (nfds > CALLERS_MAX)
		return cj_fail(err, EINVAL, "watch %zu descriptors", nfds);
	struct jail *j = s->jail;
	const int calls_fd = j->watch ? filter_watch_fd(j->watch) : -1;
	const int network_events_fd = j->network ? network_fd(j->network) : -1;
	polled[SOURCE_MEMORY] = (struct pollfd){ s->memory.events_fd, POLLPRI, 0 };
	polled[SOURCE_INIT] = (struct pollfd){ j->init_pidfd, POLLIN, 0 };
	polled[SOURCE_SYSCALLS] = (struct pollfd){ calls_fd, POLLIN, 0 };
	polled[SOURCE_NETWORK] = (struct pollfd){ network_events_fd, POLLIN, 0 };
	polled[SOURCE_PACKETS] = (struct pollfd){ s->packets_fds[0], POLLIN, 0 };
	session_slots_watch(s, polled + SOURCE_SLOTS);
	if (nfds > 0)
		memcpy(polled + SOURCE_CALLER, fds, nfds * sizeof(*fds));
	if (poll(polled, SOURCE_CALLER + nfds, poll_timeout(s, timeout_ms)) < 0) {
		if (errno != EINTR)
			return cj_fail(err, errno, "wait for events of the session");
		for (size_t i = 0; i < SOURCE_CALLER + nfds; i++)
			polled[i].revents = 0;
	}
	*end = handle(s, polled, err);
	for (size_t i = 0; i < nfds; i++) {
		fds[i].revents = polled[SOURCE_CALLER + i].revents;
		ready += fds[i].revents != 0;
	}
	return *end == SESSION_LIVES ? ready : -ECANCELED;
}

int session_serve(struct session *s, struct pollfd *fds, size_t nfds, int timeout_ms,
		  enum session_end *end, struct cj_error *err)
{
	int rc = serve_once(s, fds, nfds, timeout_ms, end, err);
	if (rc < 0)
		atomic_store(&s->shared->end, *end);
	return rc < 0 ? -ECANCELED : rc;
}

void session_status(struct session *s, struct session_status *out)
{
	*out = (struct session_status){
		.denied_is_complete = true,
	};
	for (size_t i = 0; i < SESSION_EXECS_MAX; i++)
		out->execs += session_slot_has_exec(&s->slots[i]);
	if (s->jail->watch)
		out->denied =
		    filter_watch_denied(s->jail->watch, &out->ndenied, &out->denied_is_complete);
	if (s->jail->network)
		out->denied_packets = network_denied_so_far(s->jail->network);
	session_memory_usage(s, &out->usage);
	out->memory_bytes = session_memory_now(s);
	out->usage.wall_ms = clock_ms() - s->began_ms;
}
