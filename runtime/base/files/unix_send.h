/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unix_send - a message with one descriptor over a unix socket that an engine listens on.
 */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

/* A stream socket connected to the path, which may be longer than sun_path: unix(7). */
int unix_connect(const char *path, struct cj_error *err);

/* Sends all bytes, the descriptor with the first of them.  Makes system calls only.  0 or an
 * errno. */
int unix_send(int sock_fd, const void *bytes, size_t size, int fd);
