/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_table_ask - the run's side of the shared table.  Acts.
 *
 * Any process of this network namespace may have taken the holder's address.  So a run believes
 * only a peer with its own user id, and asks the kernel whether the socket that it was given is of
 * this namespace and owns the table: only a process with CAP_NET_ADMIN can have arranged that.
 */
#pragma once

#include "netns/uplink/host_table.h"
#include "runtime/base/error.h"

/*
 * host_table_ask - a shared table into *out.  0: done.
 *
 * Fails: ECONNREFUSED without a holder.  On any failure *out is null: use a table of its own.
 */
int host_table_ask(bool has_ipv6, struct host_table *out, struct cj_error *err);

/* As host_table_ask(), with a new holder. */
int host_table_start(bool has_ipv6, struct host_table *out, struct cj_error *err);

/*
 * host_table_mark - a socket with an address that only one process can have: the mark of a run
 * with a table of its own.  Keep it as long as the table.
 *
 * Fails: EADDRINUSE when there is such a run, or its table is being removed.
 */
int host_table_mark(struct cj_error *err);
