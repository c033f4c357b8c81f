/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/upstream/server_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/process_tree.h"

#define CANNOT_EXECUTE 127 /* as in a shell */
#define KEEPER_FAILED  125
#define LAST_WAIT_MS   5000 /* for the keeper, longer than it ever takes */

enum { SERVER_STDIN, SERVER_STDOUT, SERVER_STDERR, KEEPER_STOP, KEEPER_FDS };

static const char *const passed[] = { "HOME",  "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH",
				      "SHELL", "TERM", "TMPDIR", "USER",     NULL };

static bool is_passed(const char *variable)
{
	size_t size = strcspn(variable, "=");

	for (size_t i = 0; passed[i]; i++)
		if (strlen(passed[i]) == size && strncmp(passed[i], variable, size) == 0)
			return true;
	return false;
}

/* In the child: its memory is its own. */
static char **environment_of(const struct server_spec *spec, struct arena *a)
{
	struct strings all = { 0 };

	if (spec->is_jailed)
		return environ;
	for (char **e = environ; *e; e++)
		if (is_passed(*e) && !strings_find_variable(&spec->env, *e) &&
		    strings_add(&all, a, *e) < 0)
			return NULL;
	if (strings_add_all(&all, a, &spec->env) < 0)
		return NULL;
	return all.count > 0 ? (char **)(void *)all.items : arena_array(a, 1, sizeof(char *));
}

/*
 * The variables of a jailed server on a descriptor: all users see arguments, and HOME or
 * XDG_CONFIG_HOME in the environment of `cejail mcp wrap` would be its own.
 */
static const char *variables_option(const struct strings *env, struct arena *a)
{
	int fd = memfd_create("env", 0);

	for (size_t i = 0; fd >= 0 && i < env->count; i++)
		if (dprintf(fd, "%s\n", env->items[i]) < 0)
			return NULL;
	return fd >= 0 && lseek(fd, 0, SEEK_SET) == 0 ? arena_printf(a, "--env-file=fd:%d", fd)
						      : NULL;
}

/* "cejail mcp wrap OPTION... --" */
static int add_wrap(struct strings *all, struct arena *a, const struct server_spec *spec)
{
	char cejail[PATH_MAX];
	struct cj_error ignored = { 0 };

	if (libexec_find("../../bin/cejail", cejail, &ignored) < 0 ||
	    strings_add(all, a, arena_strdup(a, cejail)) < 0 || strings_add(all, a, "mcp") < 0 ||
	    strings_add(all, a, "wrap") < 0 || strings_add_all(all, a, &spec->jail) < 0 ||
	    (spec->env.count > 0 && strings_add(all, a, variables_option(&spec->env, a)) < 0))
		return -ENOMEM;
	return strings_add(all, a, "--");
}

static char **arguments_of(const struct server_spec *spec, struct arena *a)
{
	struct strings all = { 0 };

	if (spec->is_jailed && add_wrap(&all, a, spec) < 0)
		return NULL;
	if (strings_add(&all, a, spec->command) < 0 || strings_add_all(&all, a, &spec->args) < 0)
		return NULL;
	return (char **)(void *)all.items;
}

/* Ends the process of the server with a line for the log. */
static _Noreturn void give_up(const char *what, const char *object)
{
	int code = errno;

	(void)dprintf(STDERR_FILENO, "cejail cannot %s '%s': %s\n", what, object, strerror(code));
	_exit(CANNOT_EXECUTE);
}

static _Noreturn void become_server(const struct server_spec *spec, const int *fds)
{
	struct arena a = { 0 };
	struct cj_error ignored = { 0 };

	(void)setpgid(0, 0);
	(void)child_die_with_parent(-1, &ignored); /* the keeper's stop pipe ends it otherwise */
	child_default_signals();
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			_exit(CANNOT_EXECUTE);
	char **args = arguments_of(spec, &a), **env = environment_of(spec, &a);
	if (!args || !env || child_unblock_signals(&ignored) < 0)
		_exit(CANNOT_EXECUTE);
	if (spec->cwd && chdir(spec->cwd) < 0)
		give_up("enter", spec->cwd);
	environ = env;
	(void)execvp(args[0], args);
	give_up("execute", args[0]);
}

/* Every process below the keeper is its child, or becomes one when its parent has ended. */
static void kill_all(void)
{
	auto_fd int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct timespec pause = { .tv_nsec = 2000000 };

	for (;;) {
		if (proc_fd >= 0)
			(void)process_tree_kill(proc_fd, getpid());
		pid_t pid;
		while ((pid = sys_waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0) /* ECHILD */
			return;
		(void)nanosleep(&pause, NULL);
	}
}

/* Waits until the server ends or, with a stop_fd, until cejail closes its end. */
static bool await_server(int server_pidfd, int stop_fd, int timeout_ms)
{
	struct pollfd both[] = { { server_pidfd, POLLIN, 0 }, { stop_fd, 0, 0 } };

	while (poll(both, 2, timeout_ms) < 0 && errno == EINTR)
		;
	return (both[0].revents & POLLIN) != 0;
}

static _Noreturn void keep(const struct server_spec *spec, int *fds)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct cj_error ignored = { 0 };
	int pidfd = -1;

	if (child_reset(fds, KEEPER_FDS, &ignored) < 0 || child_start_session(&ignored) < 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		_exit(KEEPER_FAILED);
	/* It ends by its pipe, when nothing of the server is left. */
	(void)sigaction(SIGTERM, &ignore, NULL);
	(void)sigaction(SIGINT, &ignore, NULL);
	(void)sigaction(SIGHUP, &ignore, NULL);
	pid_t server = child_fork(&pidfd);
	if (server < 0)
		_exit(KEEPER_FAILED);
	if (server == 0)
		become_server(spec, fds);
	for (int i = SERVER_STDIN; i <= SERVER_STDERR; i++)
		(void)close(fds[i]);
	if (!await_server(pidfd, fds[KEEPER_STOP], -1) && !await_server(pidfd, -1, SERVER_EOF_MS)) {
		(void)kill(-server, SIGTERM);
		(void)await_server(pidfd, -1, spec->is_jailed ? SERVER_JAIL_MS : SERVER_TERM_MS);
	}
	(void)kill(-server, SIGKILL); /* after it is reaped, its number may be another process's */
	int raw = 0;
	bool has_status = sys_waitpid(server, &raw, WNOHANG) == server;
	kill_all();
	_exit(has_status ? child_exit_status(raw) : 128 + SIGKILL);
}

/* The ends for the child are new; those for cejail are in *p. */
static int make_pipes(struct server_process *p, int theirs[KEEPER_FDS], struct cj_error *err)
{
	int *ours[] = { &p->stdin_fd, &p->stdout_fd, &p->stderr_fd, &p->stop_fd };

	for (int i = 0; i < KEEPER_FDS; i++) {
		int ends[2]; /* to read, to write */
		bool is_read_here = i == SERVER_STDOUT || i == SERVER_STDERR;
		if (pipe2(ends, O_CLOEXEC) < 0)
			return cj_fail(err, errno, "create a pipe");
		*ours[i] = ends[!is_read_here];
		theirs[i] = ends[is_read_here];
	}
	return 0;
}

int server_process_start(const struct server_spec *spec, struct server_process *p,
			 struct cj_error *err)
{
	int theirs[KEEPER_FDS] = { -1, -1, -1, -1 }, copies[KEEPER_FDS];

	*p = (struct server_process)SERVER_PROCESS_NULL;
	int rc = make_pipes(p, theirs, err);
	memcpy(copies, theirs, sizeof(copies));
	if (rc == 0 && (p->pid = child_fork(&p->pidfd)) < 0) {
		p->pid = 0;
		rc = cj_fail(err, errno, "create a process");
	}
	if (rc == 0 && p->pid == 0)
		keep(spec, copies);
	for (int i = 0; i < KEEPER_FDS; i++)
		cj_close(&theirs[i]);
	return rc;
}

void server_process_stop(struct server_process *p)
{
	cj_close(&p->stdin_fd);
	cj_close(&p->stop_fd);
}

bool server_process_has_ended(struct server_process *p, int *out_status)
{
	int status = 0;

	if (p->pid == 0)
		return true;
	if (sys_waitpid(p->pid, &status, WNOHANG) != p->pid)
		return false;
	p->pid = 0;
	*out_status = child_exit_status(status);
	return true;
}

void server_process_fini(struct server_process *p)
{
	int status;

	server_process_stop(p);
	if (p->pid != 0 && !fd_await(p->pidfd, POLLIN, LAST_WAIT_MS))
		(void)sys_pidfd_send_signal(p->pidfd, SIGKILL); /* the server dies with it */
	if (p->pid != 0)
		(void)sys_waitpid(p->pid, &status, 0);
	p->pid = 0;
	cj_close(&p->pidfd);
	cj_close(&p->stdout_fd);
	cj_close(&p->stderr_fd);
}
