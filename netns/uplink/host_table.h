/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_table - one nftables table on the host for the links of many jails.
 *
 * A table of its own costs each run 0.7 ms to load, and 5 to 20 ms of the host's nftables lock when
 * the socket that owns it closes.  So runs that follow one another share a table:
 *
 *	holder   a small process of its own (table-helper).  It loads the table "cejail-sN", gives
 *	         the socket that owns the table to each run that asks, and ends when none has
 *	         asked for HOST_TABLE_IDLE_MS.
 *	run      asks the holder by an abstract unix(7) address, which belongs to the network
 *	         namespace.  Its link is "cjsN-NUMBER".  It keeps the socket until it ends.
 *
 * So the kernel counts the users of the table: it is there as long as the holder or a run is, and
 * goes with the last of them, however they end.  The first run on a host that has no holder uses a
 * table of its own.  The next run starts the holder if that table still exists.
 *
 * Any process of this network namespace may have taken the holder's address.  So a run believes
 * only a peer with its own user id, and asks the kernel whether the socket that it was given is of
 * this namespace and owns the table: only a process with CAP_NET_ADMIN can have arranged that.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/error.h"

#define HOST_TABLE_IDLE_MS  300
#define HOST_TABLE_NAME_MAX 16

/* A table, and the socket that owns it. */
struct host_table {
	uint32_t number;
	int rules_fd; /* null: -1 */
};

/* What the holder sends: the number, with the socket. */
enum host_table_step { HOST_TABLE_GIVEN, HOST_TABLE_STEPS };

void host_table_links(uint32_t number, char out[static HOST_TABLE_NAME_MAX]); /* their prefix */

/* The holder's address, for this user and this version of cejail.  Fills *out, returns its size. */
socklen_t host_table_address(bool has_ipv6, struct sockaddr_un *out);

/*
 * host_table_ask - a shared table into *out.
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

/*
 * host_table_hold - load the table, and leave a child that gives it to runs.
 *
 * Returns 0 in the caller when the table is loaded, or if there is another holder.  The child does
 * not return: it ends when no run has asked for idle_ms.  It goes on without the caller, in a
 * session of its own, without capabilities, with no descriptor but the two sockets.  It reads
 * nothing that a client sends.
 */
int host_table_hold(bool has_ipv6, unsigned idle_ms, struct cj_error *err);
