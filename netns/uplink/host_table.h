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
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define HOST_TABLE_IDLE_MS  300
#define HOST_TABLE_NAME_MAX 16

/* A table, and the socket that owns it. */
struct host_table {
	uint32_t number;
	int rules_fd; /* null: -1 */
};

/* What the holder sends: the number, with the socket. */
enum host_table_step { HOST_TABLE_GIVEN, HOST_TABLE_STEPS };
extern const char *const host_table_steps[HOST_TABLE_STEPS];

void host_table_name(uint32_t number, char out[static HOST_TABLE_NAME_MAX]);
void host_table_links(uint32_t number, char out[static HOST_TABLE_NAME_MAX]); /* their prefix */

/* For `what` of this user and this version of cejail.  Fills *out, returns its size. */
socklen_t host_table_address(const char *what, struct sockaddr_un *out);
const char *host_table_what(bool has_ipv6); /* the holder's */

/* `what` of the address of host_table_mark(). */
#define HOST_TABLE_ALONE "alone"
