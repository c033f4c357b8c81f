/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp_agent - the program that answers notified system calls: it receives the filter's listener
 * over its unix socket, with a message about the process.
 *
 * The process can't send the listener itself: the filter may notify just that call, and nobody
 * would answer.  So a thread without the filter sends it, and execve(2) ends the thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/error.h"

struct agent_message;

struct seccomp_agent {
	int sock_fd;                   /* connected, O_CLOEXEC; -1: there is no agent */
	struct agent_message *message; /* shared with forks of this process */
};
#define SECCOMP_AGENT_NULL ((struct seccomp_agent){ .sock_fd = -1 })

/* Connects to the agent.  Runs outside, before the fork. */
int seccomp_agent_connect(const char *socket_path, struct seccomp_agent *out, struct cj_error *err);
void seccomp_agent_close(struct seccomp_agent *agent);

/* The message that goes with the listener; the process itself may have been forked already. */
int seccomp_agent_describe(const struct seccomp_agent *agent, const char *text, size_t size,
			   struct cj_error *err);

/*
 * seccomp_agent_load - load the filter on this process, and send its listener.
 *
 * `load` makes the seccomp(2) call and returns the listener or -1 with errno.  Returns when the
 * agent's socket has the message.  This process makes no system call after `load`.
 * Fails: what `load` says; EPIPE and others of the socket.
 */
int seccomp_agent_load(const struct seccomp_agent *agent, int (*load)(const void *context),
		       const void *context, struct cj_error *err);
