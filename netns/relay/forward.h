/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward - --connect tcp:127.0.0.1:PORT: one host port on the jail's own loopback.
 *
 * Init listens inside the jail and hands the listening sockets to the supervisor.  The supervisor
 * accepts, connects to the same port of its own loopback, and relays bytes.  Connections and
 * buffers are bounded.  Half-closes are passed on.  A client whose port can't be connected gets a
 * reset. Both peers are untrusted, so nothing is parsed.
 */
#pragma once

#include "runtime/base/error.h"

#define FORWARD_CONNECTIONS_MAX 64 /* at a time, all ports together; more wait in the backlog */

struct forward;

/*
 * Runs in init, in the jail's network namespace, `lo` up: a listening socket, non-blocking, at an
 * address of its loopback (in the byte order of the host).
 */
int forward_listen(uint32_t address, uint16_t port, struct cj_error *err);

/* Takes the listening sockets on success; on failure they stay the caller's. */
int forward_create(const int *listen_fds, const uint16_t *ports, size_t n, struct forward **out,
		   struct cj_error *err);
void forward_destroy(struct forward **f);

/* Readable when there is something to do; then forward_serve(), which never blocks and does a
 * bounded amount of work. */
int forward_fd(const struct forward *f);
int forward_serve(struct forward *f, struct cj_error *err);
