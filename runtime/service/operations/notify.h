/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - messages to systemd (sd_notify(3), watchdog) and its sockets (sd_listen_fds(3)); without
 * libsystemd.
 */
#pragma once

#include "runtime/base/error.h"

/* A datagram to $NOTIFY_SOCKET ("READY=1", "STATUS=...", several lines); nothing without one. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "RELOADING=1" with MONOTONIC_USEC=. */
void notify_reloading(void);

/*
 * Returns the number of descriptors of socket activation, and makes them close-on-exec.  LISTEN_PID
 * must be our pid; the variables are removed.
 */
int notify_listen_fds(int *out_first, struct cj_error *err);

/* The interval of WATCHDOG=1 messages, half of $WATCHDOG_USEC; 0: none. */
uint64_t notify_watchdog_ms(void);
