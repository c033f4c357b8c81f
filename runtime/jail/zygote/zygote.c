/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/zygote/zygote.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "profiles/paths.h"
#include "profiles/plan/env_file.h"
#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/jail/protocol.h"
#include "runtime/jail/zygote/zygote_inside.h"
#include "runtime/jail/zygote/zygote_tree.h"

/* Where an interpreter and its modules lie, and what they read there. */
static const char *const shared[] = { "/usr",   "/bin",    "/sbin", "/lib", "/lib32",
				      "/lib64", "/libx32", "/opt",  "/etc" };

/* Init opens its side of the adoption beside what it opens for every jail: init_adoption_open(). */
#define NOFILE_MIN 64

static bool changes_shared(const char *target)
{
	for (size_t i = 0; i < COUNT_OF(shared); i++)
		if (paths_is_below(target, shared[i]) || paths_is_below(shared[i], target))
			return true;
	return false;
}

const char *zygote_refusal(const struct plan *plan)
{
	if (plan->tty)
		return "its program has a terminal";
	if (plan->root.kind != ROOT_HOST)
		return "its root is not the host's /usr";
	if (plan->root.writable)
		return "its root is writable";
	if (plan->limits.nofile > 0 && plan->limits.nofile < NOFILE_MIN)
		return "its limit of open files is below 64";
	for (size_t i = 0; i < plan->root.nbinds; i++)
		if (changes_shared(plan->root.binds[i].target))
			return "a bind changes the directories of the interpreter";
	return NULL;
}

/*
 * OpenSSL detects a fork by its pid, so no fork may have the zygote's.  Pids in a jail begin at 1,
 * and the zygote's may be as low where the service runs in a new pid namespace.
 */
#define PID_MIN   300
#define TRIES_MAX (PID_MIN + 100)

/* What the child needs before execve(2). */
struct start_up {
	int sock_fd, scratch_fd, program_fd, log_fd;
	char *const *argv, *const *env;
};

/*
 * Pipes, as in a jail: an interpreter remembers what kind of file its streams are.  Input and
 * output are the ends of one pipe, so nobody else has either.
 */
static int place_streams(int log_fd, struct cj_error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");
	auto_fd int in_fd = ends[0], out_fd = ends[1];
	if (dup2(log_fd < 0 ? out_fd : log_fd, STDERR_FILENO) < 0 ||
	    dup2(in_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0)
		return cj_fail(err, errno, "give the zygote its streams");
	return 0;
}

/* The order of descriptors is that of zygote.h; the program's closes at execve(2). */
static int execute(struct start_up *s, struct cj_error *err)
{
	int fds[] = { s->sock_fd, s->scratch_fd, s->program_fd };
	if (place_streams(s->log_fd, err) < 0 || child_keep_only(fds, 3, err) < 0)
		return -err->code;
	s->sock_fd = fds[0];
	if (child_die_with_parent(s->sock_fd, err) < 0 || child_start_session(err) < 0)
		return -err->code;
	child_default_signals();
	if (child_unblock_signals(err) < 0)
		return -err->code;
	umask(022);
	if (chdir("/") < 0 || fcntl(fds[0], F_SETFD, 0) < 0 || fcntl(fds[1], F_SETFD, 0) < 0)
		return cj_fail(err, errno, "start in directory '/'");
	(void)syscall(SYS_execveat, fds[2], "", s->argv, s->env, AT_EMPTY_PATH);
	return cj_fail(err, errno, "execute '%s'", s->argv[0]);
}

/* From here: the zygote. */
static _Noreturn void zygote_main(struct start_up *s)
{
	struct cj_error err = { 0 };
	(void)execute(s, &err); /* returns only with an error */
	const struct step_link link = { s->sock_fd, "the service", zygote_step_names };
	step_abort(&link, &err);
	_exit(EXIT_FAILURE);
}

/* Creates children, and ends each at once, until one has a pid above PID_MIN. */
static int fork_late(struct start_up *s, struct zygote *out, struct cj_error *err)
{
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		int pidfd = -1;
		pid_t pid = child_fork(&pidfd);
		if (pid < 0)
			return cj_fail(err, errno, "fork the zygote");
		if (pid == 0 && getpid() <= PID_MIN)
			_exit(EXIT_SUCCESS);
		if (pid == 0)
			zygote_main(s);
		if (pid > PID_MIN) {
			out->pid = pid;
			out->pidfd = pidfd;
			return 0;
		}
		cj_end_child(&pidfd);
	}
	return cj_fail(err, EAGAIN, "get a pid above %d for the zygote", PID_MIN);
}

/* The program's environment and LD_PRELOAD, which zygote.so removes again. */
static int join_env(const struct strings *env, const char **out, char preload[PATH_MAX + 16],
		    struct cj_error *err)
{
	char path[PATH_MAX];
	if (env_value(env->items, "LD_PRELOAD"))
		return cj_reject(err, "the profile sets LD_PRELOAD, which the zygote needs itself");
	if (libexec_find("zygote.so", path, err) < 0)
		return -err->code;
	if (access(path, R_OK) < 0) /* the dynamic linker would only warn */
		return cj_fail(err, errno, "read '%s'", path);
	if (path[strcspn(path, " :")] != '\0')
		return cj_reject(err,
				 "LD_PRELOAD can't name '%s': install cejail below a path "
				 "without a space or a colon",
				 path);
	(void)snprintf(preload, PATH_MAX + 16, "LD_PRELOAD=%s", path);
	for (size_t i = 0; i < env->count; i++)
		out[i] = env->items[i];
	out[env->count] = preload;
	out[env->count + 1] = NULL;
	return 0;
}

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static int spawn(const struct program *launcher, int log_fd, struct zygote *out,
		 struct cj_error *err)
{
	char preload[PATH_MAX + 16];
	auto_free const char **env = calloc(launcher->env.count + 2, sizeof(*env));
	auto_free const char **argv = calloc(launcher->argv.count + 1, sizeof(*argv));
	if (!env || !argv)
		return cj_fail(err, ENOMEM, "gather the zygote's arguments");
	memcpy(argv, launcher->argv.items, launcher->argv.count * sizeof(*argv));
	if (join_env(&launcher->env, env, preload, err) < 0)
		return -err->code;

	int ends[2];
	auto_zygote_tree tree = ZYGOTE_TREE_NULL;
	if (zygote_tree_open(&tree, err) < 0)
		return -err->code;
	const char *path = env_value(launcher->env.items, "PATH");
	auto_fd int program_fd = zygote_tree_find(tree.tree_fd, launcher->argv.items[0],
						  path ? path : DEFAULT_PATH, err);
	if (program_fd < 0 || step_pair(ends, STEP_TIMEOUT_MS, err) < 0)
		return -err->code;
	auto_fd int near_fd = ends[0], far_fd = ends[1];
	struct start_up start_up = { far_fd, tree.scratch_fd,     program_fd,
				     log_fd, (char *const *)argv, (char *const *)env };
	const char *script = launcher->script;
	if (script && send(near_fd, script, strlen(script), MSG_NOSIGNAL) < 0)
		return cj_fail(err, errno, "hand the zygote its script");
	if (fork_late(&start_up, out, err) < 0)
		return -err->code;
	out->sock_fd = take_fd(&near_fd);
	out->scratch_fd = take_fd(&tree.scratch_fd);
	return 0;
}

static int fail_zygote(struct cj_error *err)
{
	cj_stage(err, "zygote");
	return cj_wrap(err, "zygote");
}

int zygote_spawn(const struct program *launcher, int log_fd, struct zygote *out,
		 struct cj_error *err)
{
	struct zygote zygote = ZYGOTE_NULL;
	if (spawn(launcher, log_fd, &zygote, err) < 0)
		return fail_zygote(err);
	*out = zygote;
	return 0;
}

int zygote_await_ready(const struct zygote *z, unsigned timeout_ms, struct cj_error *err)
{
	const struct step_link link = { z->sock_fd, "the zygote", zygote_step_names };
	auto_step_msg struct step_msg ready = { 0 };
	int rc = fd_await(z->sock_fd, POLLIN, (int)timeout_ms)
		     ? step_await(&link, ZYGOTE_READY, &ready, err)
		     : cj_fail(err, ETIMEDOUT, "wait for the zygote to be ready");
	return rc < 0 ? fail_zygote(err) : 0;
}

void zygote_end(struct zygote *z)
{
	cj_end_child(&z->pidfd);
	cj_close(&z->sock_fd);
	cj_close(&z->scratch_fd);
	z->pid = 0;
}
