/* SPDX-License-Identifier: Apache-2.0 */
/* jail_io - the program's streams and the caller's callbacks, while a program runs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct denial;
struct network_outcome;

/* What was refused: a packet or a system call; the other is NULL. */
struct jail_denied {
	const struct denial *packet; /* its row, counted so far */
	const char *syscall;         /* its name */
};

/* Every callback may be NULL. */
struct jail_io {
	int stdin_fd;  /* the program's input; -1: /dev/null */
	int stdout_fd; /* pass the program's output on to these as it comes; -1: only keep it */
	int stderr_fd;
	bool escape[2]; /* stdout, stderr are terminals: show control characters as \xNN */
	int tty_fd;     /* --tty: the caller's terminal; -1: none */
	int channel_fd; /* becomes descriptor 3 of the program: a session's REPL; 0: none */
	/* The program has started, and has written to stdout (stream 0) or stderr (1). */
	void (*started)(void *context);
	void (*output)(void *context, size_t stream, const void *bytes, size_t size);
	/* Something was refused; packets at most as often as the kernel logs. */
	void (*denied)(void *context, const struct jail_denied *d);
	/* The public network became ready, or failed: its state, reason and uplink. */
	void (*network)(void *context, const struct network_outcome *n);
	/*
	 * False: the receiver of events has no room for more.  Then output stays in its pipe and
	 * the program waits, until room_fd can be written.  NULL: events never delay output.
	 */
	bool (*has_room)(void *context);
	void *context;
	int room_fd;   /* with has_room */
	int hangup_fd; /* the run is cancelled when this descriptor's other end closes; -1: none */
};
