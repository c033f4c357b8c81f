/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify - what systemd and the service say to each other: sd_notify(3), sd_listen_fds(3),
 * watchdog; without libsystemd.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/error.h"

/* A datagram to $NOTIFY_SOCKET ("READY=1", "STATUS=...", several lines); nothing without one. */
void notify_send(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "RELOADING=1" with MONOTONIC_USEC=. */
void notify_reloading(void);

/* Descriptors handed over by socket activation, made close-on-exec; count of them.  LISTEN_PID must
 * be ours; the variables are removed. */
int notify_listen_fds(int *out_first, struct cj_error *err);

/* How often the watchdog wants to hear, half of $WATCHDOG_USEC; 0: never. */
uint64_t notify_watchdog_ms(void);
