/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last steps before the untrusted program: from a vfork(2)ed child of init to
 * execve(2).  Acts.
 *
 * The child shares init's memory until it execs, which costs no page tables; it
 * writes only `exec_errno`, through a volatile, and calls nothing but the kernel.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/sys.h"
#include "runtime/jail/state.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static const char *path_of(char *const *env)
{
	for (; *env; env++)
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	return DEFAULT_PATH;
}

/*
 * execvpe(3) would search init's PATH; this searches the program's.  Returns the errno to
 * report: EACCES if something of the name was there, as shells and env(1) do.
 */
static int exec_in_path(const struct payload *p)
{
	const char *name = p->argv[0];
	if (strchr(name, '/')) {
		execve(name, p->argv, p->env);
		return errno;
	}

	int verdict = ENOENT;
	for (const char *dir = path_of(p->env), *end; *dir; dir = *end ? end + 1 : end) {
		end = strchrnul(dir, ':');
		char file[PATH_MAX];
		int size = snprintf(file, sizeof(file), "%.*s/%s", (int)(end - dir), dir, name);
		if (end == dir || size < 0 || (size_t)size >= sizeof(file))
			continue; /* an empty entry would mean the current directory */
		execve(file, p->argv, p->env);
		if (errno != ENOENT && errno != ENOTDIR)
			verdict = errno;
	}
	return verdict;
}

static int take_terminal(const struct payload *p)
{
	return p->has_tty ? ioctl(p->stdio[0], TIOCSCTTY, 0) : 0;
}

static int place_stdio(const struct payload *p)
{
	for (int i = 0; i < 3; i++)
		if (dup2(p->stdio[i], i) < 0)
			return -1;
	return 0;
}

/* From here: the payload to be.  A session of its own, three descriptors, no signal blocked. */
static int become_payload(const struct payload *p)
{
	sigset_t none;
	sigemptyset(&none);
	if (setsid() < 0 || take_terminal(p) < 0 || place_stdio(p) < 0)
		return errno;
	if (sys_close_range(3, ~0u, 0) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return errno;
	return exec_in_path(p);
}

pid_t payload_start(const struct payload *p, int *out_exec_errno, struct cj_error *err)
{
	volatile int exec_errno = 0;

	/* The vDSO and the page tables are shared until execve: cheaper than fork by the size of
	 * us. */
	pid_t pid = vfork();
	if (pid < 0)
		return cj_fail(err, errno, "fork the payload");
	if (pid == 0) {
		exec_errno = become_payload(p);
		_exit(127);
	}
	if (exec_errno != 0) {
		(void)waitpid(pid, NULL, 0); /* it has left by _exit */
		*out_exec_errno = exec_errno;
		return 0;
	}
	return pid;
}
