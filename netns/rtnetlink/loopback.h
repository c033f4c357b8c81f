/* SPDX-License-Identifier: Apache-2.0 */
/* loopback - the one interface of a jail without a network. */
#pragma once

#include "runtime/base/error.h"

/*
 * loopback_up - bring "lo" up in the calling process' network namespace.
 *
 * Runs in:  init, with CAP_NET_ADMIN over its network namespace, before the seal.
 * Follows:  netdevice(7) SIOCSIFFLAGS.
 */
int loopback_up(struct cj_error *err);
