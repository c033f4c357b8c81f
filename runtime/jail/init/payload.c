/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last steps before the untrusted program: from a vfork(2) child of init to execve(2).
 *
 * The child shares init's memory until execve(2), so no page tables are copied.  It makes only
 * system calls, and writes only the reason of its failure, through a volatile.
 */
#include "runtime/jail/init/init.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "profiles/plan/env_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/jail/script.h"

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

#define SCRIPT_DEPTH_MAX 8 /* more than the kernel follows: execve(2), ELOOP */

static bool is_same_file(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* The kernel opens an ELF file's interpreter as it opens the file: EACCES where it is ourselves. */
static int refuse_interpreter(const struct elf_file *f, const struct stat *own)
{
	for (int layout = 0; layout < ELF_LAYOUT_COUNT; layout++) {
		char name[PATH_MAX];
		struct stat st;
		int why = elf_interpreter(f, (enum elf_layout)layout, name);
		if (why != 0)
			return why;
		if (name[0] && stat(name, &st) == 0 && is_same_file(&st, own))
			return EACCES;
	}
	return 0;
}

/* Opens one file of a chain of scripts: 0 and the next interpreter in `name`, or "" at the end of
 * the chain; or an errno. */
static int follow_script(char name[SCRIPT_LINE_MAX + 1], const char *file, const struct stat *own)
{
	struct stat st;
	auto_fd int fd = open(file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno;
	if (is_same_file(&st, own))
		return EACCES;

	struct elf_file f = { .fd = fd };
	ssize_t size = sys_read(fd, f.begin, sizeof(f.begin));
	if (size < 0)
		return errno;
	f.size = (size_t)size;
	struct script script;
	script_parse(f.begin, f.size < SCRIPT_LINE_MAX ? f.size : SCRIPT_LINE_MAX, &script);
	const char *next = script.interpreter ? script.interpreter : "";
	memmove(name, next, strlen(next) + 1);
	return script.interpreter ? 0 : refuse_interpreter(&f, own);
}

/*
 * Refuses to execute cejail itself.  Until execve(2) this process is cejail, and /proc/self/exe
 * leads out of the jail to our own program, which the caller may be able to write (CVE-2019-5736).
 * A link in an image, a "#!" line or an ELF file's interpreter may lead there.  In a run no other
 * process is in the jail yet, so the files can't change between check and use.  In a session they
 * can.  There, Landlock refuses to execute a file outside of the jail's tree (landlock.c), and
 * init, which executes the same file and outlives all programs, keeps it from being written
 * (ETXTBSY).  A file that can't be read can't be checked.  Returns the errno of the refusal, or 0.
 */
static int refuse_ourselves(const char *file)
{
	struct stat own;
	char name[SCRIPT_LINE_MAX + 1] = "";
	if (stat("/proc/self/exe", &own) < 0)
		return errno;

	int why = follow_script(name, file, &own);
	for (int depth = 0; why == 0 && name[0] && depth < SCRIPT_DEPTH_MAX; depth++)
		why = follow_script(name, name, &own);
	return why;
}

/* Returns only on failure, with the errno. */
static int execute(const char *file, char *const *argv, char *const *env)
{
	int why = refuse_ourselves(file);
	if (why != 0)
		return why;
	execve(file, argv, env);
	return errno;
}

/*
 * Searches the program's PATH; execvpe(3) would search init's.  Returns the errno to report: EACCES
 * if a file of that name was found, as shells and env(1) do.
 */
static int exec_in_path(char *const *argv, char *const *env)
{
	const char *name = argv[0];
	if (strchr(name, '/'))
		return execute(name, argv, env);

	int verdict = ENOENT;
	const char *path = env_value((const char *const *)env, "PATH");
	for (const char *dir = path ? path : DEFAULT_PATH, *end; *dir; dir = *end ? end + 1 : end) {
		end = strchrnul(dir, ':');
		char file[PATH_MAX];
		int size = snprintf(file, sizeof(file), "%.*s/%s", (int)(end - dir), dir, name);
		if (end == dir || size < 0 || (size_t)size >= sizeof(file))
			continue; /* an empty entry would mean the current directory */
		int why = execute(file, argv, env);
		if (why != ENOENT && why != ENOTDIR)
			verdict = why;
	}
	return verdict;
}

/* The streams have their places, which none of these descriptors has: 0 to 2 were open before.
 * Returns what has failed, with errno; NULL: nothing. */
static const char *place_sockets(const struct payload *p)
{
	const bool has_channel = p->channel_fd >= 0, has_calls = p->calls_fd >= 0;
	int calls_fd = p->calls_fd;
	/* The channel's place may be that of the calls now, or they have their own: dup2(2) would
	 * leave it as it is. */
	if (has_calls && (has_channel || calls_fd == CALLS_FD) &&
	    (calls_fd = fcntl(calls_fd, F_DUPFD_CLOEXEC, CALLS_FD + 1)) < 0)
		return "keep the program's socket for calls";
	if (has_channel && dup2(p->channel_fd, CHANNEL_FD) < 0)
		return "give the interpreter its socket";
	if (has_calls && dup2(calls_fd, CALLS_FD) < 0)
		return "give the program its socket for calls";
	if (has_calls && !has_channel && sys_close_range(CHANNEL_FD, CHANNEL_FD, 0) < 0)
		return "close a descriptor of the program";
	const int last = has_calls ? CALLS_FD : has_channel ? CHANNEL_FD : STDERR_FILENO;
	return sys_close_range((unsigned)last + 1, ~0u, 0) < 0
		   ? "close all other descriptors of the program"
		   : NULL;
}

/* What the child does before execve(2).  Returns what has failed, with errno; NULL: nothing.  A
 * failure here is cejail's, not the program's. */
static const char *take_last_steps(const struct payload *p)
{
	struct cj_error err;
	sigset_t none;
	sigemptyset(&none);
	if (setsid() < 0)
		return "start the program's session";
	if (p->has_tty && ioctl(p->stdio[0], TIOCSCTTY, 0) < 0)
		return "give the program its terminal";
	for (int i = 0; i < 3; i++)
		if (dup2(p->stdio[i], i) < 0)
			return "give the program its standard streams";
	/* Each call makes another domain, even with the same ruleset: landlock(7). */
	if (p->domain_fd >= 0 && landlock_restrict(p->domain_fd, &err) < 0) {
		errno = err.code;
		return "give the program its Landlock domain";
	}
	const char *failed = place_sockets(p);
	if (failed)
		return failed;
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return "unblock the program's signals";
	return NULL;
}

/*
 * From here: the vfork child.  Returns what has failed, with errno; NULL: execve(2).
 * *own_errno keeps its value when the second execve(2) succeeds, because the memory is shared.
 */
static const char *become_payload(const struct payload *p, volatile int *own_errno)
{
	const char *failed = take_last_steps(p);
	if (failed)
		return failed;
	if (p->own_argv)
		*own_errno = exec_in_path(p->own_argv, p->env);
	errno = exec_in_path(p->argv, p->env);
	return NULL;
}

pid_t payload_start(const struct payload *p, struct executed *out, struct cj_error *err)
{
	const char *volatile failed = NULL;
	volatile int code = 0, own_code = 0;

	/* vfork(2) copies no page tables.
	 * NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork) */
	pid_t pid = vfork();
	if (pid < 0)
		return cj_fail(err, errno, "fork the program's process");
	if (pid == 0) {
		/* It only becomes the program; NOLINTNEXTLINE(clang-analyzer-unix.Vfork) */
		failed = become_payload(p, &own_code);
		code = errno;
		_exit(127);
	}
	*out = (struct executed){ .own_errno = own_code };
	if (code == 0)
		return pid;
	(void)waitpid(pid, NULL, 0); /* it has left by _exit */
	if (failed)
		return cj_fail(err, code, "%s", failed);
	out->exec_errno = code;
	return 0;
}
