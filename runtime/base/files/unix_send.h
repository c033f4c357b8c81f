/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unix_send - connects to unix sockets, and sends a message with one descriptor.
 */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

/* A stream socket connected to the path, which may be longer than sun_path: unix(7). */
int unix_connect(const char *path, struct cj_error *err);

/* A datagram socket connected to a path or, after a '@', to an abstract name: NOTIFY_SOCKET of
 * sd_notify(3).  Neither is longer than sun_path. */
int unix_connect_datagram(const char *where, struct cj_error *err);

/* Sends all bytes, the descriptor with the first of them.  Makes system calls only.  0 or an
 * errno. */
int unix_send(int sock_fd, const void *bytes, size_t size, int fd);
