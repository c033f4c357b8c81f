/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user_bus - the addresses of the user's own systemd, and of the system's.  Only looks for sockets;
 * connects to none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define USER_BUS_ADDRESSES   3 /* in the order in which to try them */
#define USER_BUS_ADDRESS_MAX 300

struct user_bus {
	char address[USER_BUS_ADDRESS_MAX]; /* D-Bus server address; "": not there */
	bool is_bus; /* the address is a bus daemon's, not the manager's own */
};

struct user_bus user_bus_find(size_t i);
/* The same of the system's manager.  It starts scopes for root only. */
struct user_bus system_bus_find(size_t i);

/* Is there any? */
bool user_bus_is_there(void);
/* Is the system's manager a systemd?  As sd_booted(3) looks. */
bool system_bus_is_there(void);
