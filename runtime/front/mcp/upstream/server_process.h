/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_process - an MCP server as a child process, and all processes that it starts.
 *
 * Between cejail and the server stands a process of ours, the keeper.  It is a subreaper, so it
 * inherits each process of the server whose parent has ended.  It holds the reading end of a
 * pipe whose other end only cejail has.  When that end is closed, even by SIGKILL, the keeper waits
 * for the server, whose standard input has ended, then sends SIGTERM, then SIGKILL, and ends when
 * no process is left.  It ends likewise after the server has.  PR_SET_CHILD_SUBREAPER(2const)
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/front/mcp/upstream/servers_file.h"

#define SERVER_EOF_MS  800  /* from the end of its standard input to SIGTERM */
#define SERVER_TERM_MS 400  /* from SIGTERM to SIGKILL */
#define SERVER_JAIL_MS 3000 /* the same for `cejail mcp wrap`, which kills and removes its jail */

struct server_process {
	pid_t pid;   /* of the keeper; 0: none */
	int pidfd;   /* readable when all has ended */
	int stop_fd; /* to be closed */
	/* The server's streams; the caller may take them. */
	int stdin_fd, stdout_fd, stderr_fd;
};
#define SERVER_PROCESS_NULL                                                                        \
	{                                                                                          \
		.pidfd = -1, .stop_fd = -1, .stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1       \
	}

/*
 * server_process_start - execute the command of `spec`.
 *
 * The environment has HOME, LANG, LC_ALL, LC_CTYPE, LOGNAME, PATH, SHELL, TERM, TMPDIR and USER of
 * cejail's, and the "env" of the server.  With "jail", `cejail mcp wrap` has cejail's, and its
 * server only "env".  A command that cannot be executed writes why to its standard error, and
 * ends with 127.
 * Owns: the caller calls server_process_fini(), also after a failure.
 */
int server_process_start(const struct server_spec *spec, struct server_process *p,
			 struct cj_error *err);

/* Begins to end it.  The caller closes stdin_fd if it has taken it. */
void server_process_stop(struct server_process *p);

/* Has all of it ended?  *out_status: of the server, as the shell writes it: 128 + a signal. */
bool server_process_has_ended(struct server_process *p, int *out_status);

/* Stops it, and waits for its end. */
void server_process_fini(struct server_process *p);
