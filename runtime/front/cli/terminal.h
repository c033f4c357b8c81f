/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal - raw mode for the caller's terminal while the jail has a terminal of its own.  Every
 * key goes to the program, Ctrl-C included.  auto_terminal restores the mode on every path.
 */
#pragma once

#include <termios.h>

struct terminal {
	int fd; /* -1: nothing to restore */
	struct termios before;
};

#define auto_terminal __attribute__((cleanup(terminal_restore)))

/* Sets fd to raw mode; does nothing if it is not a terminal. */
void terminal_make_raw(struct terminal *t, int fd);
void terminal_restore(struct terminal *t);
