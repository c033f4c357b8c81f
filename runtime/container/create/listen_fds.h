/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen_fds - sockets that systemd or podman pass to the container: sd_listen_fds(3).
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct listen_fds {
	unsigned count;  /* descriptors from 3 on; 0: none */
	char *pid_entry; /* "LISTEN_PID=...", of LISTEN_PID_MAX bytes */
};

/*
 * listen_fds_read - LISTEN_FDS of our environment, if LISTEN_PID is this process, or 1, which
 * podman writes for the container's.  What another process was given stays closed.
 *
 * Fails: EINVAL for a number that is none or above `max`.
 */
int listen_fds_read(unsigned max, struct listen_fds *out, struct cj_error *err);

/* Puts LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES into the program's environment, in the place of
 * those that it has.  Without descriptors it does nothing. */
int listen_fds_pass(struct listen_fds *l, struct strings *env, struct arena *a,
		    struct cj_error *err);

/* In the process that becomes the program: its pid, as it sees itself, becomes LISTEN_PID. */
void listen_fds_name_self(const struct listen_fds *l);
