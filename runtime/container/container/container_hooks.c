/* SPDX-License-Identifier: Apache-2.0 */
/* Runs hooks. */
#include "runtime/container/container/container.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define INIT_WAIT_MS 30000 /* cejail-oci(8) says so */
#define OUTPUT_TAIL  160   /* bytes of a hook's output in a message */

/* All hooks of a kind. */
struct hook_run {
	const struct oci_options *options; /* NULL: init has no log */
	const struct oci_hooks *hooks;
	const char *kind;
	struct hook_place place;
	int state_fd; /* the JSON */
	bool goes_on; /* a failure is a warning */
};

struct hook_call {
	const struct hook_run *run;
	const struct oci_hook *hook;
	int output_fd;
};

static int prepare(const struct hook_call *call, struct cj_error *err)
{
	const struct hook_place *place = &call->run->place;

	if (dup2(call->run->state_fd, STDIN_FILENO) < 0 ||
	    dup2(call->output_fd, STDOUT_FILENO) < 0 || dup2(call->output_fd, STDERR_FILENO) < 0 ||
	    lseek(STDIN_FILENO, 0, SEEK_SET) < 0)
		return cj_fail(err, errno, "give it its streams");
	if (child_unblock_signals(err) < 0)
		return -err->code;
	if (place->dir_fd >= 0 && fchdir(place->dir_fd) < 0)
		return cj_fail(err, errno, "enter its working directory");
	if (sys_close_range(CHILD_FIRST_FD, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return cj_fail(err, errno, "close all descriptors at execve(2)");
	return place->confine ? place->confine(place->process, err) : 0;
}

/* The error goes to the pipe, which execve(2) closes. */
static _Noreturn void hook_main(const struct hook_call *call, int failed_fd)
{
	static const char *const nothing[] = { NULL };
	const struct oci_hook *hook = call->hook;
	const char *const alone[] = { hook->path, NULL };
	const char *const *given = hook->env.count ? hook->env.items : nothing;
	const char *const *env = hook->has_env ? given : call->run->place.env;
	struct cj_error err = { 0 };

	(void)setpgid(0, 0); /* cannot fail in a new process */
	child_default_signals();
	if (prepare(call, &err) == 0) {
		(void)execve(hook->path,
			     (char *const *)(hook->args.count ? hook->args.items : alone),
			     (char *const *)env);
		(void)!cj_fail(&err, errno, "execute '%s'", hook->path);
	}
	(void)sys_write(failed_fd, &err, sizeof(err)); /* the exit status says it, too */
	_exit(127);
}

/* 0, or -ETIMEDOUT after which it is killed. */
static int await_end(pid_t pid, int pidfd, uint32_t timeout_secs, int *out_status)
{
	const uint64_t until_ms = clock_ms() + (uint64_t)timeout_secs * 1000;
	int rc = 0;

	while (timeout_secs > 0 && !fd_await(pidfd, POLLIN, clock_ms_until(until_ms))) {
		if (clock_ms() < until_ms)
			continue;
		(void)kill(-pid, SIGKILL);                   /* its group, */
		(void)sys_pidfd_send_signal(pidfd, SIGKILL); /* and if it left the group */
		rc = -ETIMEDOUT;
		break;
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
	return cj_reject_as(err, EPROTO, "hook %s '%s': %s%s%s", call->run->kind, call->hook->path,
			    how, tail[0] ? ": " : "", tail);
}

static int run_hook(const struct hook_call *call, struct cj_error *err)
{
	const char *kind = call->run->kind;
	struct cj_error failed = { 0 };
	int failed_fds[2], status = 0, pidfd_raw = -1;

	if (call->run->options)
		oci_log_debug(call->run->options, "hook %s '%s'", kind, call->hook->path);
	if (pipe2(failed_fds, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "hook %s: make a pipe", kind);
	auto_fd int read_fd = failed_fds[0], write_fd = failed_fds[1];
	pid_t pid = child_fork(&pidfd_raw);
	if (pid == 0)
		hook_main(call, write_fd);
	if (pid < 0)
		return cj_fail(err, errno, "hook %s: start a process", kind);
	auto_fd int pidfd = pidfd_raw;
	cj_close(&write_fd);
	int rc = await_end(pid, pidfd, call->hook->timeout_secs, &status);
	if (rc == -ETIMEDOUT)
		return cj_reject_as(err, ETIMEDOUT, "hook %s '%s': no end after %u s", kind,
				    call->hook->path, call->hook->timeout_secs);
	if (rc < 0)
		return cj_fail(err, -rc, "hook %s: wait for '%s'", kind, call->hook->path);
	if (sys_read(read_fd, &failed, sizeof(failed)) == (ssize_t)sizeof(failed)) {
		*err = failed;
		return cj_wrap(err, "hook %s", kind);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return reject_status(call, status, err);
	return 0;
}

static int state_memfd(const struct oci_config *config, const struct state *s,
		       enum state_status status, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text;

	if (!w)
		return cj_fail(err, ENOMEM, "write the state for a hook");
	state_status_write(w, s, status, &config->annotations, false);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	return fd_memfd_sealed("state", text.bytes, text.size, err);
}

static int run_all(const struct hook_run *run, struct cj_error *err)
{
	for (size_t i = 0; i < run->hooks->count; i++) {
		struct cj_error failed = { 0 };
		auto_fd int output_fd = memfd_create("hook-output", MFD_CLOEXEC);
		const struct hook_call call = { run, &run->hooks->items[i], output_fd };
		int rc = output_fd < 0 ? cj_fail(&failed, errno,
						 "hook %s: make a file for its output", run->kind)
				       : run_hook(&call, &failed);
		if (rc == 0)
			continue;
		if (!run->goes_on) {
			*err = failed;
			return -err->code;
		}
		oci_log_warning(run->options, &failed);
	}
	return 0;
}

static int run_kind(struct hook_run *run, const struct oci_config *config, enum oci_hook_kind kind,
		    const struct state *s, enum state_status status, struct cj_error *err)
{
	run->hooks = &config->hooks[kind];
	run->kind = oci_hook_names[kind];
	if (run->hooks->count == 0)
		return 0;
	auto_fd int state_fd = state_memfd(config, s, status, err);
	if (state_fd < 0)
		return state_fd;
	run->state_fd = state_fd;
	return run_all(run, err);
}

/* In the bundle: hooks of the runtime. */
static int run_outside(const struct oci_options *o, const struct oci_config *config,
		       enum oci_hook_kind kind, const struct state *s, enum state_status status,
		       bool goes_on, struct cj_error *err)
{
	struct hook_run run = { .options = o,
				.place.env = (const char *const *)environ,
				.goes_on = goes_on };

	if (config->hooks[kind].count == 0)
		return 0;
	auto_fd int dir_fd = open(s->record.bundle, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return cj_fail(err, errno, "hook %s: open the bundle '%s'", oci_hook_names[kind],
			       s->record.bundle);
	run.place.dir_fd = dir_fd;
	return run_kind(&run, config, kind, s, status, err);
}

int container_hooks_run(const struct oci_options *o, const struct oci_config *config,
			enum oci_hook_kind kind, const struct state *s, enum state_status status,
			struct cj_error *err)
{
	return run_outside(o, config, kind, s, status, false, err);
}

void container_hooks_run_each(const struct oci_options *o, const struct oci_config *config,
			      enum oci_hook_kind kind, const struct state *s,
			      enum state_status status)
{
	struct cj_error failed = { 0 };

	if (run_outside(o, config, kind, s, status, true, &failed) < 0)
		oci_log_warning(o, &failed);
}

int container_hooks_run_in(const struct oci_config *config, enum oci_hook_kind kind,
			   const struct state *s, enum state_status status,
			   const struct hook_place *place, struct cj_error *err)
{
	struct hook_run run = { .place = *place };

	return run_kind(&run, config, kind, s, status, err);
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
