/* SPDX-License-Identifier: Apache-2.0 */
/*
 * console - the terminal of a container: a pty of its own devpts, whose master goes to the engine
 * over a unix socket.
 *
 * Every file is reached by descriptor in the container's root; a link there is an error, and each
 * file system and device is checked.  So a hostile root can't pass off another file as the
 * terminal, or have /dev/console mounted elsewhere (CVE-2025-52565).
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/container/config/oci_process.h"

struct console {
	int master_fd, slave_fd; /* O_CLOEXEC; -1: none */
};
#define CONSOLE_NULL ((struct console){ .master_fd = -1, .slave_fd = -1 })

void console_close(struct console *c);
#define auto_console __attribute__((cleanup(console_close)))

/* A socket connected to the engine's --console-socket; any length of path.  Runs outside. */
int console_connect(const char *socket_path, struct cj_error *err);

/*
 * console_open - a new pty of the devpts at dev/pts in `root_fd`, with the process' size and owner.
 *
 * Runs in:  a process in the container's mount and user namespace, before or after pivot_root.
 * Fails:    the container has no devpts there.  Follows: ioctl_tty(2) TIOCGPTPEER, pts(4).
 */
int console_open(int root_fd, const struct oci_process *process, struct console *out,
		 struct cj_error *err);

/*
 * console_mount - bind the slave to dev/console in `root_fd`, for create only.
 *
 * Makes the file where there is none.  Must not: run after the root is read-only.
 */
int console_mount(int root_fd, const struct console *c, struct cj_error *err);

/* Sends the master: one message, one byte, one descriptor; closes it here. */
int console_send(int socket_fd, struct console *c, struct cj_error *err);

/* Starts a session, makes the slave its controlling terminal and the three streams. */
int console_enter(const struct console *c, struct cj_error *err);
