/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor's work where the sandbox has limits: as the supervisor of a run, with its functions.
 *
 * The child is the first process of its pid namespace and dies with the monitor, so nothing inside
 * outlives it.  A record and its empty cgroup may; 'cejail gc' and the next run remove both.
 */
#include <linux/capability.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/front/bwrap/bwrap.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/prepare/jail_init.h"
#include "runtime/jail/supervise/jail_network.h"
#include "runtime/jail/supervise/verdict.h"
#include "runtime/jail/usage/usage_watch.h"
#include "runtime/kernel/process/process_tree.h"
#include "runtime/kernel/process/spawn.h"
#include "runtime/run/report/result.h"

#define KILLED (128 + SIGKILL) /* the exit status */

#define REMEDY_MAX 96

static const char *format_count(uint64_t value, char *out, size_t size)
{
	(void)snprintf(out, size, "%ju", (uintmax_t)value);
	return out;
}

static const struct bwrap_ending {
	enum status status; /* of a program that has ended by the limit; STATUS_COUNT: it goes on */
	enum limit limit;
	const char *what, *option, *key;
	const char *(*format)(uint64_t value, char *out, size_t size);
} endings[] = {
	{ STATUS_OOM, LIMIT_MEMORY, "out of memory: the limit is", "memory", "memory",
	  text_format_size },
	{ STATUS_TIMEOUT, LIMIT_WALL, "timeout: ended after", "timeout", "timeout",
	  text_format_duration },
	{ STATUS_CPU_LIMIT, LIMIT_CPU_TIME, "CPU time limit: ended after", "cpu-time", "cpu_time",
	  text_format_duration },
	{ STATUS_COUNT, LIMIT_PIDS, "processes: the limit was reached:", "pids", "pids",
	  format_count },
};

static struct spawn_place place_of(const struct jail *j)
{
	return (struct spawn_place){ .cgroup_fd = cgroup_birth_fd(&j->cgroup),
				     .path = j->cgroup.path,
				     .moves = j->moves_init };
}

static void note_layers(struct jail *j, const struct bwrap_start *s)
{
	static const struct {
		enum layer layer;
		uint64_t flag;
	} rows[] = {
		{ LAYER_USER_NS, CLONE_NEWUSER },     { LAYER_PID_NS, CLONE_NEWPID },
		{ LAYER_MOUNT_NS, CLONE_NEWNS },      { LAYER_NETWORK_NS, CLONE_NEWNET },
		{ LAYER_IPC_NS, CLONE_NEWIPC },       { LAYER_UTS_NS, CLONE_NEWUTS },
		{ LAYER_CGROUP_NS, CLONE_NEWCGROUP },
	};
	const enum layer_state cgroup = j->layers[LAYER_CGROUP];
	const bool has_caps = bwrap_limits_caps(s->config, s->uid) != 0;
	for (enum layer i = 0; i < LAYER_COUNT; i++)
		j->layers[i] = LAYER_OFF;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		j->layers[rows[i].layer] = (s->namespaces & rows[i].flag) ? LAYER_ON : LAYER_OFF;
	j->layers[LAYER_CGROUP] = cgroup;
	j->layers[LAYER_NO_NEW_PRIVS] = LAYER_ON;
	j->layers[LAYER_CAPABILITIES] = has_caps ? LAYER_OFF : LAYER_ON;
	j->layers[LAYER_SECCOMP] = s->config->limits.has_filter ? LAYER_ON : LAYER_OFF;
	jail_network_assess(j);
}

/* Root has no limit by setrlimit(2), which fork(2) says under EAGAIN: its processes are sampled. */
static void assess(struct jail *j, const struct bwrap_start *s)
{
	struct limit_state *pids = &j->limits[LIMIT_PIDS];
	const struct bwrap_limits *l = &s->config->limits;
	if (pids->enforced_by == ENFORCED_BY_RLIMIT && s->uid == 0)
		pids->enforced_by = ENFORCED_BY_SUPERVISOR;
	if (l->values[LIMIT_MEMORY] > 0 && !j->cgroup.enforced[CGROUP_MEMORY])
		jail_degrade(j, DEGRADED_LIMITS,
			     "memory is enforced by sampling, without files in a tmpfs: %s",
			     j->cgroup.why_not);
	if (l->values[LIMIT_PIDS] > 0 && !j->cgroup.enforced[CGROUP_PIDS])
		jail_degrade(j, DEGRADED_LIMITS, "processes are enforced by %s: %s",
			     limit_enforcer_names[pids->enforced_by], j->cgroup.why_not);
	if (!(s->namespaces & CLONE_NEWUSER) && bwrap_limits_caps(s->config, s->uid))
		jail_degrade(j, DEGRADED_LIMITS,
			     "the command has capabilities over the host and can undo them; add "
			     "--unshare-user, or --cap-drop ALL");
	else if (j->cgroup.dir_fd >= 0 && j->cgroup.init_fd < 0)
		jail_degrade(j, DEGRADED_LIMITS,
			     "the cgroup can't be divided, so the command may "
			     "be able to change its limits");
}

/* Those that are new. */
static void print_warnings(const struct bwrap_config *c, struct bwrap_watch *w)
{
	/* What only 'cejail ps' lacks is in the result. */
	for (; w->printed < w->jail->warnings.count; w->printed++) {
		const char *warning = w->jail->warnings.items[w->printed];
		if (degraded_of(warning) != DEGRADED_RECORD)
			(void)fprintf(stderr, "%sbwrap: warning: %s\n",
				      c->has_level_prefix ? "<4>" : "", warning);
	}
}

static int check_result_fd(int fd, struct cj_error *err)
{
	const int flags = fd >= 0 ? fcntl(fd, F_GETFL) : O_WRONLY;
	if (flags < 0)
		return cj_fail(err, errno, BWRAP_PREFIX "result-fd %d", fd);
	if ((flags & O_ACCMODE) == O_RDONLY || flags & O_PATH)
		return cj_reject(err, BWRAP_PREFIX "result-fd %d is not open for writing", fd);
	if (fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return cj_fail(err, errno, BWRAP_PREFIX "result-fd %d", fd);
	return 0;
}

int bwrap_watch_begin(struct bwrap_watch *w, struct bwrap_start *s, struct cj_error *err)
{
	const struct bwrap_limits *l = &s->config->limits;
	char id[PLAN_ID_MAX];
	*w = (struct bwrap_watch){
		.plan = { .profile_name = "bwrap",
			  .profile_sha256 = "",
			  .limits = { .memory_bytes = l->values[LIMIT_MEMORY],
				      .pids = l->values[LIMIT_PIDS],
				      .cpu_ms = l->values[LIMIT_CPU_TIME] },
			  .is_divided = true }, /* from inside its files are out of reach */
	};
	if (check_result_fd(l->result_fd, err) < 0 || bwrap_network_plan(w, l, err) < 0 ||
	    plan_mint_id(id, err) < 0)
		return -err->code;
	if (jail_hold(&w->plan, id, &w->jail, err) < 0) {
		/* An address that stays closed: the hint of 'cejail run' names its own options. */
		if (err->code == EINVAL && strcmp(err->stage, "names") == 0) {
			err->hint[0] = '\0';
			return cj_hint(err,
				       "this command opens no such address; for what 'cejail run' "
				       "can do, see cejail-network(7)");
		}
		return -err->code;
	}
	struct jail *j = w->jail;
	outcome_init(&w->outcome, id, 0);
	j->limits[LIMIT_WALL] =
	    (struct limit_state){ l->values[LIMIT_WALL], ENFORCED_BY_SUPERVISOR, HIT_NO };
	assess(j, s);
	print_warnings(s->config, w);
	s->is_limited = true;
	s->locks_mounts = s->namespaces & CLONE_NEWUSER &&
			  bwrap_limits_caps(s->config, s->uid) >> CAP_SYS_ADMIN & 1;
	s->rlimits.cpu_ms = l->values[LIMIT_CPU_TIME];
	if (j->limits[LIMIT_PIDS].enforced_by == ENFORCED_BY_RLIMIT)
		s->rlimits.pids = l->values[LIMIT_PIDS];
	return bwrap_network_offer(w, s, err);
}

pid_t bwrap_watch_spawn(struct bwrap_watch *w, uint64_t namespaces)
{
	const struct spawn_place place = place_of(w->jail);
	pid_t pid = spawn_process(&place, namespaces | CLONE_PIDFD, SIGCHLD, &w->jail->init_pidfd);
	w->jail->init_pid = pid > 0 ? pid : 0;
	return pid;
}

void bwrap_watch_born(struct bwrap_watch *w, int report_fd)
{
	struct cj_error ignored; /* the monitor sees that this process has ended */
	cj_close(&w->jail->link.sock_fd);
	(void)sigprocmask(SIG_SETMASK, &w->jail->old_signals, NULL); /* it was in force */
	if (fd_write_all(report_fd, "", 1, "the monitor", &ignored) < 0)
		_exit(BWRAP_FAILED);
}

int bwrap_watch_adopt(struct bwrap_watch *w, int report_fd, bool *out_again, struct cj_error *err)
{
	struct jail *j = w->jail;
	const struct spawn_place place = place_of(j);
	struct pollfd fds[] = { { report_fd, POLLIN, 0 }, { j->init_pidfd, POLLIN, 0 } };
	char byte;
	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	*out_again = !(fds[0].revents & POLLIN) && spawn_kills(&place);
	if (*out_again) {
		j->moves_init = true;
		cj_end_child(&j->init_pidfd);
		return 0;
	}
	/* This process has the other end, too: without a byte a read would wait. */
	if (!(fds[0].revents & POLLIN) || sys_read(report_fd, &byte, 1) != 1)
		return cj_fail(err, ESRCH, "start the first process of the sandbox");
	return spawn_move(&place, j->init_pid, err);
}

void bwrap_watch_keep(const struct bwrap_watch *w, struct bwrap_fds *kept)
{
	const struct jail *j = w->jail;
	const int fds[] = { j->init_pidfd,    j->signal_fd,        j->runtime_dir_fd,
			    j->record_fd,     j->cgroup.dir_fd,    j->cgroup.init_fd,
			    j->cgroup.cpu_fd, j->cgroup.parent_fd, j->handles.proc_fd,
			    j->link.sock_fd };
	for (size_t i = 0; i < COUNT_OF(fds); i++)
		kept->fds[kept->count++] = fds[i];
}

/* --- until the end --- */

struct bwrap_waiting {
	struct bwrap_watch *w;
	struct usage_watch usage;
	struct watched seen;
	uint64_t wall_at_ms; /* 0: never */
	bool is_pid_1;
	bool is_over_pids;    /* sampled, and more than the limit */
	struct pollfd fds[4]; /* the report, the child, signals, the network */
	int status;           /* the program's, as bubblewrap has it */
};

static void on_report(struct bwrap_waiting *g)
{
	struct outcome *out = &g->w->outcome;
	struct bwrap_report report = { 0 };
	const bool is_whole = sys_read(g->fds[0].fd, &report, sizeof(report)) ==
			      (ssize_t)sizeof(report);
	g->fds[0].fd = -1; /* one report; the program's execve(2) may close the other end, too */
	if (!is_whole)
		return;
	g->status = report.has_failed ? BWRAP_FAILED : child_exit_status(report.status);
	if (report.has_failed) {
		(void)cj_stage(&report.error, "sandbox");
		outcome_fail(out, &report.error);
		return;
	}
	verdict_decide(g->w->jail, &g->seen.ended, report.status, out);
}

static void on_child(struct bwrap_waiting *g)
{
	struct jail *j = g->w->jail;
	siginfo_t info = { 0 };
	g->fds[1].fd = -1;
	if (g->fds[0].fd >= 0 && fd_await(g->fds[0].fd, POLLIN, 0))
		on_report(g); /* it was sent before the end */
	if (g->w->outcome.has_status)
		return;
	(void)waitid(P_PIDFD, (id_t)j->init_pidfd, &info, WEXITED | WNOWAIT); /* it has ended */
	int status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
	g->status = child_exit_status(status);
	/* Init ends as the program has ended: its report may be lost. */
	if (g->is_pid_1 || info.si_code == CLD_EXITED)
		verdict_decide(j, &g->seen.ended, status, &g->w->outcome);
	else
		j->ops->lose(j, &g->seen.ended, &g->w->outcome);
}

static void on_signal(struct bwrap_waiting *g)
{
	struct signalfd_siginfo info;
	while (sys_read(g->fds[2].fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (!g->w->outcome.has_status) {
			g->w->outcome.cancel_signal = (int)info.ssi_signo;
			outcome_decide(&g->w->outcome, STATUS_CANCELLED);
		}
}

static bool samples_pids(const struct jail *j)
{
	return j->plan->limits.pids > 0 &&
	       j->limits[LIMIT_PIDS].enforced_by == ENFORCED_BY_SUPERVISOR;
}

static int wait_once(struct bwrap_waiting *g, struct cj_error *err)
{
	struct bwrap_watch *w = g->w;
	int n = poll(g->fds, 4, clock_ms_until(clock_earlier(g->usage.next_at_ms, g->wall_at_ms)));
	if (n < 0 && errno != EINTR)
		return cj_fail(err, errno, "wait for events");
	if (n > 0 && g->fds[0].revents)
		on_report(g);
	if (n > 0 && g->fds[1].revents && !w->outcome.has_status)
		on_child(g);
	if (n > 0 && g->fds[2].revents)
		on_signal(g);
	if (n > 0 && g->fds[3].revents && network_serve(w->jail->network, err) < 0)
		return cj_wrap(err, "network");
	const uint64_t now_ms = clock_ms();
	if (g->wall_at_ms > 0 && now_ms >= g->wall_at_ms)
		outcome_decide(&w->outcome, STATUS_TIMEOUT);
	if (w->outcome.has_status || g->usage.next_at_ms == 0 || now_ms < g->usage.next_at_ms)
		return 0;
	if (usage_watch_sample(&g->usage, w->jail, &w->outcome, err) < 0)
		return -err->code;
	g->is_over_pids = samples_pids(w->jail) && !w->outcome.has_status &&
			  g->usage.peak.processes > w->plan.limits.pids;
	if (g->is_over_pids) {
		w->outcome.signal = SIGKILL;
		outcome_decide(&w->outcome, STATUS_SIGNALED);
	}
	return 0;
}

/* Ends all processes.  The kernel has then added up what the child waited for. */
static void end_all(struct bwrap_waiting *g)
{
	struct jail *j = g->w->jail;
	struct rusage used;
	g->seen.wall_ms = clock_ms() - j->run.started_ms;
	usage_watch_last(&g->usage, j);
	g->seen.peak = g->usage.peak;
	cgroup_kill(&j->cgroup);
	if (j->cgroup.dir_fd < 0)
		(void)process_tree_kill(j->handles.proc_fd, j->parent_pid);
	(void)j->ops->end(j, &g->seen.ended, false); /* it has warned */
	cj_end_child(&j->init_pidfd);
	(void)getrusage(RUSAGE_CHILDREN, &used); /* cannot fail with these arguments */
	g->seen.ended.cpu_user_us = clock_us_of(used.ru_utime);
	g->seen.ended.cpu_system_us = clock_us_of(used.ru_stime);
	g->seen.ended.max_rss_bytes = (uint64_t)used.ru_maxrss * 1024;
}

/* "raise --cejail-memory in CEJAIL_BWRAP_OPTIONS" */
static const char *remedy(enum bwrap_source source, const struct bwrap_ending *e,
			  char out[static REMEDY_MAX])
{
	if (source == BWRAP_FROM_FILE)
		(void)snprintf(out, REMEDY_MAX, "raise '%s' in " BWRAP_ADMIN_FILE, e->key);
	else
		(void)snprintf(out, REMEDY_MAX, "raise " BWRAP_PREFIX "%s%s", e->option,
			       source == BWRAP_FROM_VARIABLE ? " in " BWRAP_VARIABLE : "");
	return out;
}

/* Which limit was reached, and the remedy. */
static void print_end(const struct bwrap_config *c, const struct outcome *o)
{
	const char *level = c->has_level_prefix ? "<3>" : "";
	char value[32], text[REMEDY_MAX];
	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		const struct bwrap_ending *e = &endings[i];
		const struct limit_state *l = &o->limits[e->limit];
		if (o->status == STATUS_OOM && e->limit == LIMIT_MEMORY && l->hit == HIT_NO)
			(void)fprintf(stderr,
				      "%sbwrap: out of memory: the host, or a cgroup above, has "
				      "no memory left\n",
				      level);
		if (l->hit == HIT_YES)
			(void)fprintf(stderr, "%sbwrap: %s %s (%s)\n", level, e->what,
				      e->format(l->value, value, sizeof(value)),
				      remedy(c->limits.sources[e->limit], e, text));
	}
}

static int write_result(const struct bwrap_start *s, const struct outcome *o, struct cj_error *err)
{
	const struct result_about about = {
		.profile_name = "",
		.profile_sha256 = "",
		.network = s->config->limits.network == NETWORK_PUBLIC ? NETWORK_PUBLIC
			   : (s->namespaces & CLONE_NEWNET)            ? NETWORK_NONE
								       : NETWORK_MODE_COUNT,
	};
	auto_json_writer struct json_writer *w = json_writer_create(false);
	size_t size = 0;
	if (s->config->limits.result_fd < 0)
		return 0;
	if (result_write(w, o, &about, err) < 0)
		return -err->code;
	auto_free char *line = json_writer_line(w, &size);
	if (!line)
		return cj_fail(err, ENOMEM, "write the result");
	return fd_write_all(s->config->limits.result_fd, line, size, "the result", err);
}

/* As the last object of bubblewrap, with members of ours. */
static int write_status(const struct bwrap_config *c, int status, const struct outcome *o,
			struct cj_error *err)
{
	const struct usage *u = &o->usage;
	const char *limit = NULL;
	if (c->status_fd < 0 || o->status == STATUS_SETUP_ERROR || o->status == STATUS_CANCELLED)
		return 0;
	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		const struct limit_state *l = &o->limits[endings[i].limit];
		const bool has_ended =
		    endings[i].status == o->status ||
		    (endings[i].limit == LIMIT_PIDS && l->enforced_by == ENFORCED_BY_SUPERVISOR);
		if (has_ended && l->hit == HIT_YES)
			limit = limit_names[endings[i].limit];
	}
	auto_json_writer struct json_writer *w = json_writer_create(false);
	json_open_object(w);
	json_member_u64(w, "exit-code", (uint64_t)status);
	json_member_text(w, "cejail-id", o->id);
	json_member_text(w, "cejail-status", status_names[o->status]);
	json_member_text(w, "cejail-limit", limit);
	json_member_u64(w, "cejail-wall-ms", u->wall_ms);
	json_member_u64(w, "cejail-cpu-ms", u->cpu_user_ms + u->cpu_system_ms);
	json_member_known(w, "cejail-memory-peak-bytes", u->has_memory_peak, u->memory_peak_bytes);
	bwrap_network_put(w, &c->limits, &o->network);
	json_close_object(w);
	size_t size = 0;
	auto_free char *line = json_writer_line(w, &size);
	if (!line)
		return cj_fail(err, ENOMEM, "write the status");
	return fd_write_all(c->status_fd, line, size, "json-status-fd", err) < 0
		   ? cj_fail(err, err->code, "Write to json_status_fd")
		   : 0;
}

static int conclude(struct bwrap_waiting *g, const struct bwrap_start *s, struct cj_error *err)
{
	struct outcome *out = &g->w->outcome;
	struct jail *j = g->w->jail;
	note_layers(j, s);
	if (verdict_read(j, &g->seen, out, err) < 0)
		return -err->code;
	if (g->is_over_pids) {
		out->limits[LIMIT_PIDS].hit = HIT_YES;
		g->status = KILLED;
	}
	print_warnings(s->config, g->w);
	for (size_t i = 0; i < j->warnings.count; i++)
		outcome_warn(out, "%s", j->warnings.items[i]);
	print_end(s->config, out);
	for (size_t i = 0; i < COUNT_OF(endings); i++)
		if (out->status == endings[i].status)
			g->status = KILLED;
	g->w->is_over = true;
	if (write_result(s, out, err) < 0 || write_status(s->config, g->status, out, err) < 0)
		return -err->code;
	return g->status;
}

static int find_processes(struct jail *j, bool is_pid_1, struct cj_error *err)
{
	/* Sampled are the child's descendants, in our own /proc: all of its pid namespace. */
	j->is_shared = !j->cgroup.enforced[CGROUP_MEMORY];
	j->parent_pid = is_pid_1 ? getpid() : j->init_pid;
	j->handles.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return j->handles.proc_fd < 0 ? cj_fail(err, errno, "open '/proc'") : 0;
}

int bwrap_watch_end(struct bwrap_watch *w, const struct bwrap_start *s, int report_fd,
		    struct cj_error *err)
{
	struct jail *j = w->jail;
	struct bwrap_waiting g = { .w = w,
				   .is_pid_1 = s->config->is_pid_1,
				   .status = BWRAP_FAILED };
	struct cj_error why = { 0 };
	int rc = find_processes(j, g.is_pid_1, &why);
	if (rc == 0)
		rc = jail_hold_init(j, &why);
	if (rc == 0)
		rc = bwrap_network_build(w, s, report_fd, &why);
	print_warnings(s->config, w);
	j->run.started_epoch_ms = clock_epoch_ms();
	j->run.started_ms = clock_ms();
	if (s->config->limits.values[LIMIT_WALL] > 0)
		g.wall_at_ms = j->run.started_ms + s->config->limits.values[LIMIT_WALL];
	usage_watch_init(&g.usage, j);
	if (samples_pids(j)) {
		g.usage.reads_proc = true;
		g.usage.next_at_ms = clock_ms();
	}
	g.fds[0] = (struct pollfd){ report_fd, POLLIN, 0 };
	g.fds[1] = (struct pollfd){ j->init_pidfd, POLLIN, 0 };
	g.fds[2] = (struct pollfd){ j->signal_fd, POLLIN, 0 };
	g.fds[3] = (struct pollfd){ j->network ? network_fd(j->network) : -1, POLLIN, 0 };
	while (rc == 0 && !w->outcome.has_status)
		rc = wait_once(&g, &why);
	end_all(&g);
	usage_watch_fini(&g.usage);
	if (rc < 0) { /* a limit that can't be enforced ends the program */
		outcome_fail(&w->outcome, &why);
		bwrap_print_error(s->config, &why);
	}
	return conclude(&g, s, err);
}

void bwrap_watch_fail(struct bwrap_watch *w, const struct bwrap_start *s,
		      const struct cj_error *why)
{
	struct cj_error ignored; /* `why` is the one to report */
	char id[PLAN_ID_MAX];
	if (w->is_over || s->config->limits.result_fd < 0)
		return;
	(void)signal(SIGPIPE, SIG_IGN); /* the error is still to be printed */
	if (!w->jail) {
		if (plan_mint_id(id, &ignored) < 0)
			return;
		outcome_init(&w->outcome, id, 0);
	}
	struct cj_error staged = *why;
	(void)cj_stage(&staged, "sandbox");
	outcome_fail(&w->outcome, &staged);
	(void)write_result(s, &w->outcome, &ignored);
	if (!w->jail)
		outcome_fini(&w->outcome);
}

void bwrap_watch_fini(struct bwrap_watch *w)
{
	const int signal = w->outcome.status == STATUS_CANCELLED ? w->outcome.cancel_signal : 0;
	if (w->jail) {
		cj_end_child(&w->jail->init_pidfd);
		cj_close(&w->jail->handles.proc_fd);
		jail_destroy(&w->jail);
		outcome_fini(&w->outcome);
	}
	arena_fini(&w->config.arena);
	if (signal)
		(void)raise(signal);
}
