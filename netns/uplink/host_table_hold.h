/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_table_hold - the holder: loads the shared table and gives it to runs.  Acts.
 *
 * The process that starts it waits until the table is loaded.  The holder itself is a child that
 * goes on without it: in a session of its own, without capabilities, with no descriptor but the
 * two sockets.  It reads nothing that a client sends.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

/*
 * host_table_hold - returns 0 in the caller when the table is loaded, or if there is another
 * holder.  The child does not return: it ends when no run has asked for idle_ms.
 */
int host_table_hold(bool has_ipv6, unsigned idle_ms, struct cj_error *err);
