/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward - --connect tcp:127.0.0.1:PORT: one host port on the jail's own loopback.  Acts.
 *
 * init listens inside and hands the listeners out; the supervisor accepts and connects to the same
 * port of its own loopback, and moves bytes.  Bounded connections and buffers, half-closes passed
 * on, a reset for what can't be connected.  Both peers are strangers to us: nothing is parsed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

#define FORWARD_CONNECTIONS_MAX 64 /* at a time, all ports together; more wait in the backlog */

struct forward;

/* Runs in init, in the jail's network namespace, `lo` up: a listening socket, non-blocking. */
int forward_listen(uint16_t port, struct cj_error *err);

/* Takes the listeners: on success the fds are the forward's, on failure still the caller's. */
int forward_create(const int *listen_fds, const uint16_t *ports, size_t n, struct forward **out,
		   struct cj_error *err);
void forward_destroy(struct forward **f);

/* Readable when there is something to do; then forward_serve(), which never blocks and does a
 * bounded amount of work. */
int forward_fd(const struct forward *f);
int forward_serve(struct forward *f, struct cj_error *err);
