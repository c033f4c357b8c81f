/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal - the caller's terminal while the jail has one of its own: every key goes
 * in, Ctrl-C included, and comes back as it was on every way out.
 */
#pragma once

#include <termios.h>

struct terminal {
	int fd; /* -1: nothing to give back */
	struct termios before;
};

#define auto_terminal __attribute__((cleanup(terminal_restore)))

/* Sets fd to raw mode; does nothing where it is no terminal. */
void terminal_make_raw(struct terminal *t, int fd);
void terminal_restore(struct terminal *t);
