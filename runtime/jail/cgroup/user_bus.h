/* SPDX-License-Identifier: Apache-2.0 */
/* user_bus - the addresses of the user's own systemd.  Only looks for sockets; connects to none. */
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

/* Is there any? */
bool user_bus_is_there(void);
