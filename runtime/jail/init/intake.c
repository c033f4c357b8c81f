/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake - sealed init receives the program, starts it and reaps.
 *
 * Init runs here as the jail's user and under its filter, with no more rights than the program.
 */
#include "runtime/jail/init/init.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "rootfs/files/inputs.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/unix.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/step_bytes.h"

static int open_root(const struct jail *j, struct cj_error *err)
{
	if (j->plan->reduced) {
		int fd = fcntl(j->init.files_fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? cj_fail(err, errno, "open the private directory") : fd;
	}
	int root_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return root_fd < 0 ? cj_fail(err, errno, "open '/'") : root_fd;
}

static int write_input(const struct jail *j, const struct step_msg *msg, struct cj_error *err)
{
	struct input in;
	if (msg->size != sizeof(in))
		return cj_fail(err, EPROTO, "read an input");
	memcpy(&in, msg->data, sizeof(in));
	auto_fd int root_fd = open_root(j, err);
	return root_fd < 0 ? root_fd
			   : input_write(root_fd, &in, msg->nfds > 0 ? msg->fds[0] : -1, err);
}

static int write_files(const struct jail *j, struct step_msg *msg, struct cj_error *err)
{
	auto_arena struct arena arena = { 0 };
	struct files_head head;
	char *bytes;
	size_t size;
	if (msg->size < sizeof(head))
		return cj_fail(err, EPROTO, "read the files");
	memcpy(&head, msg->data, sizeof(head));
	if (step_take_bytes(msg, sizeof(head), INPUT_PACK_MAX, &arena, &bytes, &size, "the files",
			    err) < 0)
		return -err->code;
	auto_fd int root_fd = open_root(j, err);
	return root_fd < 0 ? root_fd
			   : input_pack_write(root_fd, bytes, size, head.replaces != 0, err);
}

struct command {
	const char *workdir, *script; /* script: NULL when there is none */
	char **argv, **env;
	char **own_argv; /* by the interpreter of the code's "#!" line; NULL: there is none */
};

/* Splits NUL-terminated strings.  step_take_bytes() put a NUL after `text`. */
static char *split_strings(char *text, const char *end, char **out, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (text >= end)
			return NULL;
		out[i] = text;
		text += strlen(text) + 1;
	}
	out[count] = NULL;
	return text;
}

/* argv, with `own` in place of the arguments before the code's file. */
static char **join_own(const struct start *start, char **argv, char **own, struct arena *a)
{
	char **joined = arena_array(a, (size_t)start->ownc + start->argc + 1, sizeof(char *));
	size_t rest = start->argc - start->own_replaces;
	if (!joined)
		return NULL;
	memcpy(joined, own, start->ownc * sizeof(char *));
	memcpy(joined + start->ownc, argv + start->own_replaces, rest * sizeof(char *));
	return joined;
}

static int read_command(struct step_msg *msg, const struct start *start, struct arena *a,
			struct command *out, struct cj_error *err)
{
	char *text, *workdir[2] = { NULL }, *script[2] = { NULL };
	size_t size;
	if (step_take_bytes(msg, sizeof(*start), START_STRINGS_MAX, a, &text, &size,
			    "the program's arguments and environment", err) < 0)
		return -err->code;
	out->argv = arena_array(a, (size_t)start->argc + 1, sizeof(char *));
	out->env = arena_array(a, (size_t)start->envc + 1, sizeof(char *));
	char **own = arena_array(a, SCRIPT_ARGV_MAX + 1, sizeof(char *));
	if (!out->argv || !out->env || !own)
		return cj_fail(err, ENOMEM, "keep the program's arguments and environment");
	if (start->ownc > SCRIPT_ARGV_MAX || start->own_replaces > start->argc)
		return cj_fail(err, EPROTO, "read the program's arguments and environment");

	const char *end = text + size;
	char *rest = split_strings(text, end, workdir, 1);
	rest = rest ? split_strings(rest, end, script, start->has_script ? 1 : 0) : NULL;
	rest = rest ? split_strings(rest, end, out->argv, start->argc) : NULL;
	rest = rest ? split_strings(rest, end, out->env, start->envc) : NULL;
	rest = rest ? split_strings(rest, end, own, start->ownc) : NULL;
	if (rest != end || start->argc == 0)
		return cj_fail(err, EPROTO, "read the program's arguments and environment");
	out->workdir = workdir[0];
	out->script = script[0];
	if (start->ownc == 0)
		return 0;
	out->own_argv = join_own(start, out->argv, own, a);
	return out->own_argv ? 0
			     : cj_fail(err, ENOMEM, "keep the program's arguments and environment");
}

/* A terminal in the jail's own devpts; the master end goes to the supervisor. */
static int open_terminal(struct payload *p, int *out_master_fd, struct cj_error *err)
{
	int locked = 0;
	auto_fd int master_fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master_fd < 0)
		return cj_fail(err, errno, "open '/dev/ptmx'");
	if (ioctl(master_fd, TIOCSPTLCK, &locked) < 0)
		return cj_fail(err, errno, "unlock a terminal");

	int slave_fd = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave_fd < 0)
		return cj_fail(err, errno, "open a terminal");
	for (int i = 0; i < 3; i++)
		p->stdio[i] = slave_fd;
	p->has_tty = true;
	*out_master_fd = take_fd(&master_fd);
	return 0;
}

static int prepare_stdio(const struct start *start, struct step_msg *msg, struct payload *p,
			 int *out_master_fd, struct cj_error *err)
{
	const size_t streams = start->wants_tty ? 0 : 3, calls = start->has_calls != 0;
	if (msg->nfds < streams + calls || msg->nfds > streams + calls + 1)
		return cj_fail(err, EPROTO, "take the program's standard streams");
	for (size_t i = 0; i < streams; i++)
		p->stdio[i] = take_fd(&msg->fds[i]);
	/* The message closes these. */
	if (calls)
		p->calls_fd = msg->fds[streams];
	if (msg->nfds > streams + calls && p->channel_fd < 0)
		p->channel_fd = msg->fds[streams + calls];
	return start->wants_tty ? open_terminal(p, out_master_fd, err) : 0;
}

static int report_started(struct jail *j, const struct executed *how, int master_fd,
			  struct cj_error *err)
{
	if (how->exec_errno != 0)
		return step_tell(&j->link, STEP_EXEC_FAILED, how, sizeof(*how), NULL, 0, err);
	return step_tell(&j->link, STEP_STARTED, how, sizeof(*how), &master_fd, master_fd >= 0,
			 err);
}

/* A launcher's socket pair; both -1: it is the payload. */
struct launcher_ends {
	int our_fd, its_fd;
	int domain_fd; /* of a program of a session; -1: none */
	int oom_fd;    /* closed with the program's streams; -1: none */
};

/* The whole script is in the socket before the launcher starts. */
static int put_script(const struct launcher_ends *ends, const char *script, struct cj_error *err)
{
	size_t size = strlen(script);

	if (ends->our_fd < 0 || size > START_SCRIPT_MAX)
		return cj_fail(err, EPROTO, "take the interpreter's script");
	if (send(ends->our_fd, script, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size)
		return cj_fail(err, EMSGSIZE, "hand the interpreter its script");
	return 0;
}

/* Starts the payload or a launcher.  Returns its pid; 0 when it could not be executed. */
static pid_t start_payload(struct step_msg *msg, const struct launcher_ends *ends,
			   struct executed *out_how, int *out_master_fd, struct cj_error *err)
{
	auto_arena struct arena arena = { 0 };
	struct start start;
	struct command command = { 0 };
	struct payload payload = { .stdio = { -1, -1, -1 },
				   .channel_fd = ends->its_fd,
				   .calls_fd = -1,
				   .domain_fd = ends->domain_fd };
	auto_fd_bag struct fd_bag done = { 0 };
	fd_bag_add(&done, ends->oom_fd);
	if (msg->size < sizeof(start))
		return cj_fail(err, EPROTO, "read the program");
	memcpy(&start, msg->data, sizeof(start));
	if (read_command(msg, &start, &arena, &command, err) < 0)
		return -err->code;
	if (command.script && put_script(ends, command.script, err) < 0)
		return -err->code;
	if (prepare_stdio(&start, msg, &payload, out_master_fd, err) < 0)
		return -err->code;
	/* read_command() has set it, or else it failed;
	 * NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
	if (chdir(command.workdir) < 0)
		return cj_fail(err, errno, "start in directory '%s'", command.workdir);

	payload.argv = command.argv;
	payload.env = command.env;
	payload.own_argv = command.own_argv;
	pid_t pid = payload_start(&payload, out_how, err);
	out_how->main_pid = pid > 0 ? pid : 0;
	for (int i = 0; i < (payload.has_tty ? 1 : 3); i++)
		fd_bag_add(&done, payload.stdio[i]); /* or end of file would wait for us */
	return pid;
}

#define PROGRAM_OOM_SCORE "500"

static void raise_oom_score(int fd)
{
	char now[32];
	if (fd >= 0 && system_file_reread(fd, now, sizeof(now)) > 0 &&
	    strtol(now, NULL, 10) < strtol(PROGRAM_OOM_SCORE, NULL, 10))
		(void)sys_write(fd, PROGRAM_OOM_SCORE, strlen(PROGRAM_OOM_SCORE));
}

/*
 * When the host runs out of memory, the kernel should kill a program before its caller, and before
 * prepared jails, which keep the caller's score.  Best effort: the score is only raised, and the
 * program may lower it back to the caller's.
 */
static void raise_oom_scores(struct jail *j, pid_t launcher)
{
	raise_oom_score(j->init.oom_fd); /* init's; its later children inherit it */
	if (launcher == 0)
		return;
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", launcher);
	auto_fd int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	raise_oom_score(fd);
}

static pid_t start_program(struct jail *j, struct step_msg *msg, struct cj_error *err)
{
	raise_oom_scores(j, 0);
	auto_fd int master_fd = -1;
	struct executed how = { 0 };
	const struct launcher_ends none = { -1, -1, j->init.domain_fd, take_fd(&j->init.oom_fd) };
	pid_t pid = start_payload(msg, &none, &how, &master_fd, err);
	if (pid < 0 || report_started(j, &how, master_fd, err) < 0)
		return -err->code;
	return pid;
}

/* Init is in the outer user namespace when it opens most of them; then in the program's. */
static const char *const paths[ZYGOTE_NAMESPACES] = {
	[ZYGOTE_USER] = "/proc/self/ns/user",   [ZYGOTE_MOUNT] = "/proc/self/ns/mnt",
	[ZYGOTE_NETWORK] = "/proc/self/ns/net", [ZYGOTE_IPC] = "/proc/self/ns/ipc",
	[ZYGOTE_UTS] = "/proc/self/ns/uts",     [ZYGOTE_CGROUP] = "/proc/self/ns/cgroup",
	[ZYGOTE_PID] = "/proc/self/ns/pid",     [ZYGOTE_PROGRAM_USER] = "/proc/self/ns/user",
};

static int open_namespace(struct adoption *a, enum zygote_namespace which, struct cj_error *err)
{
	a->namespace_fds[which] = open(paths[which], O_RDONLY | O_CLOEXEC);
	if (a->namespace_fds[which] < 0)
		return cj_fail(err, errno, "open '%s'", paths[which]);
	return 0;
}

/* A socket that names the sender: the filter may refuse to ask for it later. */
static int open_socket(struct adoption *a, struct cj_error *err)
{
	int ends[2];
	const int on = 1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return cj_fail(err, errno, "create a socket pair for the interpreter");
	a->our_fd = ends[0];
	a->its_fd = ends[1];
	if (setsockopt(a->our_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "ask who sends the interpreter's messages");
	return 0;
}

int init_adoption_open(struct adoption *a, struct cj_error *err)
{
	for (int which = 0; which < ZYGOTE_PROGRAM_USER; which++)
		if (open_namespace(a, (enum zygote_namespace)which, err) < 0)
			return -err->code;
	return open_socket(a, err);
}

int init_adoption_open_program_user(struct adoption *a, struct cj_error *err)
{
	return open_namespace(a, ZYGOTE_PROGRAM_USER, err);
}

/* A program of ours; nothing untrusted is in it until it has the program. */
struct launcher {
	pid_t pid;
	int fd; /* our end of its descriptor 3; -1: there is none */
};

static void launcher_fini(struct launcher *l)
{
	cj_close(&l->fd);
}

static int launcher_ended(const struct launcher *l, struct cj_error *err)
{
	int status = 0;
	(void)waitpid(l->pid, &status, 0); /* it is our child, and has closed its socket */
	bool is_signal = WIFSIGNALED(status);
	return cj_reject_as(err, ECHILD, "the interpreter ended before its program came (%s %d)",
			    is_signal ? "signal" : "exit status",
			    is_signal ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* The launcher's CPU time, for jails without a cgroup: clock_getcpuclockid(3). */
static uint64_t cpu_us_of(pid_t pid)
{
	clockid_t clock;
	struct timespec used = { 0 };
	if (clock_getcpuclockid(pid, &clock) == 0)
		(void)clock_gettime(clock,
				    &used); /* on failure 0: all CPU time counts as the program's */
	return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

static int report_warmed(struct jail *j, const struct launcher *l, struct cj_error *err)
{
	const struct warmed warmed = { .cpu_us = cpu_us_of(l->pid) };
	return step_tell(&j->link, STEP_WARMED, &warmed, sizeof(warmed), NULL, 0, err);
}

/* Sends init's side to the supervisor, and closes it. */
static int send_adoption(struct jail *j, int *out_fd, struct cj_error *err)
{
	struct adoption *a = &j->init.adoption;
	int fds[1 + ZYGOTE_NAMESPACES + 1] = { a->its_fd };
	size_t count = 1;
	if (a->our_fd < 0)
		return cj_fail(err, EPROTO, "adopt an interpreter: the plan has no zygote");
	for (size_t i = 0; i < ZYGOTE_NAMESPACES; i++)
		fds[count++] = a->namespace_fds[i];
	if (a->ruleset_fd >= 0)
		fds[count++] = a->ruleset_fd;
	int rc = step_tell(&j->link, STEP_ADOPTED, NULL, 0, fds, count, err);
	*out_fd = take_fd(&a->our_fd);
	auto_fd_bag struct fd_bag sent = { 0 };
	while (count > 0)
		fd_bag_add(&sent, fds[--count]);
	*a = ADOPTION_NULL;
	return rc;
}

/* The launcher is a fork of a zygote; init learns its pid from the kernel, with its byte. */
static int adopt_launcher(struct jail *j, struct launcher *l, struct cj_error *err)
{
	char ready;
	struct iovec part = { .iov_base = &ready, .iov_len = 1 };
	struct unix_message m = { .parts = &part, .nparts = 1 };
	if (send_adoption(j, &l->fd, err) < 0)
		return -err->code;
	ssize_t got = unix_receive_message(l->fd, &m);
	if (got < 0)
		return cj_fail(err, (int)-got, "wait for the fork of the zygote");
	if (got == 0)
		return cj_reject_as(err, ECHILD,
				    "the fork of the zygote ended before it was ready");
	if (m.pid <= 1 || waitpid(m.pid, NULL, WNOHANG | __WALL) != 0)
		return cj_fail(err, EPROTO,
			       "take the fork of the zygote: pid %d is no child of init", m.pid);
	l->pid = m.pid;
	return report_warmed(j, l, err);
}

/* Returns 1 if this process is alone now. */
static int report_ended(const struct step_link *link, int wait_status, struct cj_error *err)
{
	struct rusage all = { 0 };
	(void)getrusage(RUSAGE_CHILDREN, &all); /* cannot fail with these arguments */
	const struct ended ended = {
		.wait_status = wait_status,
		.is_alone = waitpid(-1, NULL, WNOHANG | __WALL) < 0 && errno == ECHILD,
		.cpu_user_us = clock_us_of(all.ru_utime),
		.cpu_system_us = clock_us_of(all.ru_stime),
		.max_rss_bytes = (uint64_t)all.ru_maxrss * 1024,
	};
	int rc = step_tell(link, STEP_ENDED, &ended, sizeof(ended), NULL, 0, err);
	return rc < 0 ? rc : (int)ended.is_alone;
}

static int reap_until(pid_t main_pid, int *out_status, struct cj_error *err)
{
	for (;;) {
		pid_t pid = waitpid(-1, out_status, __WALL);
		if (pid < 0 && errno != EINTR)
			return cj_fail(err, errno, "wait for the program");
		/* A caller's filter may allow PTRACE_TRACEME: a traced stop is no end.  wait(2) */
		if (pid == main_pid && !WIFSTOPPED(*out_status))
			return 0;
	}
}

/* All that the command leaves behind ends with it: the program is alone when it starts, and no
 * process has a socket of the command's network. */
static int run_setup(struct jail *j, struct step_msg *msg, struct cj_error *err)
{
	int wait_status;
	if (getpid() != INIT_PID)
		return cj_fail(err, EPROTO, "run a setup command: this is no init");
	pid_t pid = start_program(j, msg, err);
	if (pid <= 0)
		return pid;
	if (reap_until(pid, &wait_status, err) < 0)
		return -err->code;
	(void)kill(-1, SIGKILL); /* ESRCH: there is no other process */
	init_reap_all();
	return report_ended(&j->link, wait_status, err);
}

static int start_launcher(struct jail *j, struct step_msg *msg, struct launcher *l,
			  struct cj_error *err)
{
	int ends[2];
	struct executed how = { 0 };
	auto_fd int master_fd = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return cj_fail(err, errno, "create a socket pair for the interpreter");

	l->fd = ends[0];
	auto_fd int far_fd = ends[1];
	const struct launcher_ends both = { l->fd, far_fd, -1, -1 };
	l->pid = start_payload(msg, &both, &how, &master_fd, err);
	cj_close(&far_fd); /* else we would not see the launcher end */
	if (l->pid < 0)
		return l->pid;
	if (l->pid == 0)
		return cj_fail(err, how.exec_errno, "execute the interpreter");
	/* It sends one byte when it is ready.  The supervisor has the time limit. */
	char ready;
	return sys_read(l->fd, &ready, 1) == 1 ? report_warmed(j, l, err) : launcher_ended(l, err);
}

/* Whatever the launcher sends after this would come from the program, so its socket is closed. */
static pid_t hand_over(struct jail *j, struct step_msg *msg, struct launcher *l,
		       struct cj_error *err)
{
	auto_arena struct arena arena = { 0 };
	char *strings;
	size_t size;
	if (step_take_bytes(msg, 0, START_STRINGS_MAX, &arena, &strings, &size,
			    "the program's arguments and environment", err) < 0)
		return -err->code;

	raise_oom_scores(j, l->pid);
	cj_close(&j->init.oom_fd);
	for (size_t at = 0; at < size;) {
		ssize_t put = send(l->fd, strings + at, size - at, MSG_NOSIGNAL);
		if (put < 0 && errno == EPIPE)
			return launcher_ended(l, err);
		if (put < 0 && errno != EINTR)
			return cj_fail(err, errno, "hand the interpreter its program");
		at += put > 0 ? (size_t)put : 0;
	}
	cj_close(&l->fd);
	const struct executed how = { 0 };
	return report_started(j, &how, -1, err) < 0 ? -err->code : l->pid;
}

/* Waits for the supervisor's next step, or for the launcher's end. */
static int next_step(struct jail *j, const struct launcher *l, struct step_msg *msg,
		     struct cj_error *err)
{
	struct pollfd ends[] = {
		{ .fd = j->link.sock_fd, .events = POLLIN },
		{ .fd = l->fd }, /* POLLHUP only; its data has no meaning */
	};
	while (l->fd >= 0 && poll(ends, 2, -1) < 0)
		if (errno != EINTR)
			return cj_fail(err, errno, "wait for the program");
	if (l->fd >= 0 && ends[1].revents)
		return launcher_ended(l, err);
	return step_next(&j->link, msg, err);
}

pid_t init_take_program(struct jail *j, struct cj_error *err)
{
	__attribute__((cleanup(launcher_fini))) struct launcher launcher = { .fd = -1 };
	for (;;) {
		auto_step_msg struct step_msg msg = { 0 };
		if (next_step(j, &launcher, &msg, err) < 0)
			return -err->code;
		bool is_warm = launcher.fd >= 0;
		int rc;
		if (msg.step == STEP_INPUT)
			rc = write_input(j, &msg, err);
		else if (msg.step == STEP_FILES)
			rc = write_files(j, &msg, err);
		else if (msg.step == STEP_WARM && !is_warm)
			rc = start_launcher(j, &msg, &launcher, err);
		else if (msg.step == STEP_ADOPT && !is_warm)
			rc = adopt_launcher(j, &launcher, err);
		else if (msg.step == STEP_SESSION && !is_warm && j->init.serve) {
			raise_oom_scores(j, 0); /* reapers and programs inherit the score */
			cj_close(&j->init.oom_fd);
			return INIT_BECOMES_SESSION;
		} else if (msg.step == STEP_SETUP && !is_warm)
			rc = run_setup(j, &msg, err);
		else if (msg.step == STEP_START && !is_warm)
			return start_program(j, &msg, err);
		else if (msg.step == STEP_GO && is_warm)
			return hand_over(j, &msg, &launcher, err);
		else
			rc = cj_fail(err, EPROTO, "take in the program: step %u", msg.step);
		if (rc < 0)
			return rc;
	}
}

int init_reap_until_ended(const struct step_link *link, pid_t main_pid, struct cj_error *err)
{
	int wait_status;
	return reap_until(main_pid, &wait_status, err) < 0 ? -err->code
							   : report_ended(link, wait_status, err);
}

void init_reap_all(void)
{
	while (waitpid(-1, NULL, __WALL) >= 0 || errno == EINTR)
		;
}
