/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --tools-from: the program calls tools of MCP servers.
 *
 * libexec/cejail/mcp starts the servers and speaks with them, as the child that mcp_server.h
 * describes: its code and libraries would slow down the start of every run.  It has one end of a
 * socket pair.  Only this process has the other, so the servers end when it closes it, and also
 * when it is killed.
 */
#include "runtime/front/cli/run_state.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"

#define BROKER_FAILED 125
#define END_MS        20000 /* for all servers: longer than the broker ever takes */

enum { CALLS, LIST, MESSAGES, BROKER_FDS }; /* what the child keeps, from CHILD_FIRST_FD on */

/* From here: the child.  A key of the terminal is for the program, and not for the servers. */
static _Noreturn void become_broker(const char *path, const struct config *c, int fds[BROKER_FDS])
{
	const char *const args[] = { path,
				     "broker",
				     "--calls-fd",
				     "3",
				     "--tools-from",
				     c->tools_from,
				     c->quiet ? "--quiet" : NULL,
				     NULL };
	struct cj_error ignored = { 0 };

	static_assert(CALLS + CHILD_FIRST_FD == 3, "the number in args[]");
	if (child_reset(fds, BROKER_FDS, &ignored) == 0 && child_start_session(&ignored) == 0 &&
	    dup2(fds[LIST], STDOUT_FILENO) >= 0 && dup2(fds[MESSAGES], STDERR_FILENO) >= 0 &&
	    fcntl(fds[CALLS], F_SETFD, 0) == 0)
		(void)execv(path, (char *const *)args);
	_exit(BROKER_FAILED);
}

/* *out_list_fd: where the child writes the list of tools. */
static int start_broker(struct cli_run *r, int *out_list_fd, struct cj_error *err)
{
	char path[PATH_MAX];
	int calls[2], list[2];

	if (libexec_find("mcp", path, err) < 0)
		return -err->code;
	if (access(path, X_OK) < 0) {
		(void)!cj_fail(err, errno, "start '%s'", path);
		return cj_hint(err, "install it with 'make install'");
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, calls) < 0)
		return cj_fail(err, errno, "create a socket pair");
	r->servers.calls_fd = calls[0];
	auto_fd int calls_far = calls[1];
	if (pipe2(list, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");
	*out_list_fd = list[0];
	auto_fd int list_far = list[1];
	pid_t pid = child_fork(&r->servers.pidfd);
	if (pid < 0) {
		r->servers.pidfd = -1;
		return cj_fail(err, errno, "create a process");
	}
	if (pid == 0)
		become_broker(path, &r->config, (int[]){ calls_far, list_far, STDERR_FILENO });
	return 0;
}

/* The broker writes the list, or a struct cj_error. */
static int take_list(struct cli_run *r, int list_fd, struct cj_error *err)
{
	static const char what[] = "the process that starts the servers";
	struct cj_error said;
	char *text = NULL;
	size_t size = 0;

	if (fd_read_all(list_fd, JSON_BYTES_MAX, &r->config.arena, &text, &size,
			"the list of tools", err) < 0)
		return -err->code;
	if (size > 0 && text[0] == '{') {
		r->invocation.tools_json = text;
		return 0;
	}
	if (size != sizeof(said))
		return cj_reject_as(err, EPROTO, "%s has ended early", what);
	memcpy(&said, text, sizeof(said));
	(void)cj_adopt(err, &said, what);
	return cj_hint(err, "to try the servers alone: cejail mcp --tools-from %s --check",
		       r->config.tools_from);
}

int run_tools_start(struct cli_run *r, struct cj_error *err)
{
	auto_fd int list_fd = -1;

	if (plan_check(&r->config, &r->invocation, err) < 0)
		return -err->code;
	if (r->invocation.tools_json)
		return cj_reject(err, "'--tools-from' and the request's \"tools\" exclude each "
				      "other: a program has one list of tools");
	if (start_broker(r, &list_fd, err) < 0 || take_list(r, list_fd, err) < 0)
		return cj_wrap(err, "--tools-from");
	return 0;
}

void run_tools_end(struct tool_servers *s)
{
	cj_close(&s->calls_fd);
	if (s->pidfd >= 0)
		(void)fd_await(s->pidfd, POLLIN, END_MS);
	cj_end_child(&s->pidfd);
}
