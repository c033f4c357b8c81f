/* SPDX-License-Identifier: Apache-2.0 */
/* session_exec - what jail.h's functions do differently on the view of one exec. */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

struct jail;
struct outcome;

/* The part of a struct jail that makes it a view. */
struct session_exec {
	struct session *session; /* borrowed */
	unsigned slot;
	int channel_fd; /* borrowed; -1: none */
	bool is_empty;  /* the reaper said that it has no child left, or the leaf is empty */
	bool has_ended; /* the link is closed */
};

/* The program was sent, and runs: its pid in the jail. */
void session_exec_starting(struct jail *view);
void session_exec_started(struct jail *view, int main_pid);

/* SIGINT to the main process, before its time limit ends it. */
void session_exec_interrupt(struct jail *view);

/*
 * The end of jail_wait(): processes stay if the main process ended by itself (`may_stay`), else they
 * are killed.  False: one did not die in time, or the reaper was killed; the session will end.
 */
bool session_exec_end(struct jail *view, bool may_stay);

/* Releases the view, not what it borrows from the session. */
void session_exec_close(struct jail **view);
