/* SPDX-License-Identifier: Apache-2.0 */
/* Runs hooks.  Acts. */
#include "runtime/front/oci/container/container_hooks.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define INIT_WAIT_MS 30000 /* cejail-oci(8) says so */
#define OUTPUT_TAIL  160   /* bytes of a hook's output in a message */

struct hook_call {
	const struct oci_hook *hook;
	const char *kind, *dir; /* dir NULL: as it is */
	int state_fd;           /* the JSON */
	int output_fd;
};

/* --- the hook's process -------------------------------------------------------------------- */

static int take_streams(const struct hook_call *call)
{
	if (dup2(call->state_fd, STDIN_FILENO) < 0 || dup2(call->output_fd, STDOUT_FILENO) < 0 ||
	    dup2(call->output_fd, STDERR_FILENO) < 0)
		return -errno;
	return lseek(STDIN_FILENO, 0, SEEK_SET) < 0 ? -errno : 0;
}

/* The errno goes to the pipe, which execve(2) closes. */
static _Noreturn void hook_main(const struct hook_call *call, int failed_fd)
{
	static const char *const nothing[] = { NULL };
	const struct oci_hook *hook = call->hook;
	const char *const alone[] = { hook->path, NULL };
	struct cj_error err = { 0 };
	int code = take_streams(call);

	(void)setpgid(0, 0); /* cannot fail in a new process */
	child_default_signals();
	if (code == 0)
		code = child_unblock_signals(&err);
	if (code == 0 && call->dir && chdir(call->dir) < 0)
		code = -errno;
	if (code == 0 && sys_close_range(CHILD_FIRST_FD, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		code = -errno;
	if (code == 0) {
		(void)execve(hook->path,
			     (char *const *)(hook->args.count ? hook->args.items : alone),
			     (char *const *)(hook->env.count ? hook->env.items : nothing));
		code = -errno;
	}
	(void)sys_write(failed_fd, &code, sizeof(code)); /* the exit status says it, too */
	_exit(127);
}

/* --- waiting for it ------------------------------------------------------------------------ */

/* 0, or -ETIMEDOUT after which it is killed. */
static int await_end(pid_t pid, int pidfd, uint32_t timeout_secs, int *out_status)
{
	uint64_t deadline = clock_ms() + (uint64_t)timeout_secs * 1000;
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int rc = 0;

	while (timeout_secs > 0) {
		uint64_t now = clock_ms();
		int left = now >= deadline          ? 0
			   : deadline - now > 60000 ? 60000
						    : (int)(deadline - now);
		if (poll(&ended, 1, left) > 0)
			break;
		if (clock_ms() >= deadline) {
			(void)kill(-pid, SIGKILL);                   /* its group, */
			(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* and if it left the group */
			rc = -ETIMEDOUT;
			break;
		}
	}
	return sys_waitpid(pid, out_status, __WALL) < 0 ? -errno : rc;
}

/* The end of what the hook printed, on one line. */
static void read_tail(int output_fd, char *out, size_t out_size)
{
	char raw[OUTPUT_TAIL];
	off_t size = lseek(output_fd, 0, SEEK_END);
	off_t from = size > (off_t)sizeof(raw) ? size - (off_t)sizeof(raw) : 0;
	ssize_t got = size > 0 ? pread(output_fd, raw, sizeof(raw), from) : 0;

	out[0] = '\0';
	while (got > 0 && (raw[got - 1] == '\n' || raw[got - 1] == ' '))
		got--;
	if (got > 0)
		(void)text_escape(raw, (size_t)got, false, out, out_size);
}

static int reject_status(const struct hook_call *call, int status, struct cj_error *err)
{
	char tail[4 * OUTPUT_TAIL + 16] = "", how[64];

	if (WIFSIGNALED(status))
		(void)snprintf(how, sizeof(how), "ended by signal %d", WTERMSIG(status));
	else
		(void)snprintf(how, sizeof(how), "exit status %d", WEXITSTATUS(status));
	read_tail(call->output_fd, tail, sizeof(tail));
	return cj_reject_as(err, EPROTO, "hook %s '%s': %s%s%s", call->kind, call->hook->path, how,
			    tail[0] ? ": " : "", tail);
}

static int run_hook(const struct hook_call *call, struct cj_error *err)
{
	int failed_fds[2], code = 0, status = 0, pidfd_raw = -1;

	if (pipe2(failed_fds, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "hook %s: make a pipe", call->kind);
	auto_fd int read_fd = failed_fds[0], write_fd = failed_fds[1];
	pid_t pid = child_fork(&pidfd_raw);
	if (pid == 0)
		hook_main(call, write_fd);
	if (pid < 0)
		return cj_fail(err, errno, "hook %s: start a process", call->kind);
	auto_fd int pidfd = pidfd_raw;
	cj_close(&write_fd);
	int rc = await_end(pid, pidfd, call->hook->timeout_secs, &status);
	if (rc == -ETIMEDOUT)
		return cj_reject_as(err, ETIMEDOUT, "hook %s '%s': no end after %u s", call->kind,
				    call->hook->path, call->hook->timeout_secs);
	if (rc < 0)
		return cj_fail(err, -rc, "hook %s: wait for '%s'", call->kind, call->hook->path);
	if (sys_read(read_fd, &code, sizeof(code)) == (ssize_t)sizeof(code))
		return cj_fail(err, -code, "hook %s: execute '%s'", call->kind, call->hook->path);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return reject_status(call, status, err);
	return 0;
}

/* --- all of a kind ------------------------------------------------------------------------- */

static int state_memfd(const struct oci_config *config, const struct state *s,
		       enum state_status status, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text;
	size_t size;

	if (!w)
		return cj_fail(err, ENOMEM, "write the state for a hook");
	state_status_write(w, s, status, &config->annotations, false);
	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	return fd_memfd_sealed("state", text, size, err);
}

static int run_all(const struct oci_config *config, enum oci_hook_kind kind, const struct state *s,
		   enum state_status status, const char *dir, struct cj_error *err)
{
	const struct oci_hooks *hooks = &config->hooks[kind];

	if (hooks->count == 0)
		return 0;
	auto_fd int state_fd = state_memfd(config, s, status, err);
	if (state_fd < 0)
		return state_fd;
	for (size_t i = 0; i < hooks->count; i++) {
		auto_fd int output_fd = memfd_create("hook-output", MFD_CLOEXEC);
		struct hook_call call = { &hooks->items[i], oci_hook_names[kind], dir, state_fd,
					  output_fd };
		if (output_fd < 0)
			return cj_fail(err, errno, "hook %s: make a file for its output",
				       call.kind);
		if (run_hook(&call, err) < 0)
			return -err->code;
	}
	return 0;
}

int container_hooks_run(const struct oci_config *config, enum oci_hook_kind kind,
			const struct state *s, enum state_status status, struct cj_error *err)
{
	return run_all(config, kind, s, status, s->record.bundle, err);
}

int container_hooks_run_inside(const struct oci_config *config, enum oci_hook_kind kind,
			       const struct state *s, enum state_status status,
			       struct cj_error *err)
{
	return run_all(config, kind, s, status, NULL, err);
}

unsigned container_hooks_wait_ms(const struct oci_config *config, enum oci_hook_kind kind)
{
	const struct oci_hooks *hooks = &config->hooks[kind];
	uint64_t wait_ms = INIT_WAIT_MS;

	for (size_t i = 0; i < hooks->count; i++) {
		if (hooks->items[i].timeout_secs == 0)
			return 0;
		wait_ms += (uint64_t)hooks->items[i].timeout_secs * 1000;
	}
	return wait_ms <= UINT_MAX ? (unsigned)wait_ms : 0;
}
