/* SPDX-License-Identifier: Apache-2.0 */
/* session_fork - what a fork of the keeper closes before anything else. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/session/session.h"

/*
 * session_fork_charged - child_fork(), and the memory of the child counts as the session's, where a
 * cgroup counts: what it writes to a tmpfs is charged to it.
 *
 * The child is no process of the jail.  It is forked also when the session has no process left.
 * Runs in: the keeper.
 */
pid_t session_fork_charged(struct session *s, int *out_pidfd);

#define SESSION_NO_SLOT      SESSION_EXECS_MAX
#define SESSION_FORK_FDS_MAX 8

/*
 * session_fork_keep - close all descriptors but the standard streams, fds[], and what is needed to
 * look at the jail's files and, with a slot, to open that exec.
 *
 * The link to init, above all: init obeys whoever has it.  And a copy of a socket of the network
 * would keep its connection open, and in the keeper's epoll, after the keeper has closed it:
 * epoll(7).  Entries of fds[] may be -1.
 * Runs in: a fork of the keeper, first.
 */
int session_fork_keep(struct session *s, unsigned slot, const int *fds, size_t nfds,
		      struct cj_error *err);
