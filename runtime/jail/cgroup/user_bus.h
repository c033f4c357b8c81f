/* SPDX-License-Identifier: Apache-2.0 */
/* user_bus - the sockets at which the user's own systemd may be asked.  Looks, talks to nobody. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define USERDOORS            3 /* in the order they are to be tried */
#define USERDOOR_ADDRESS_MAX 300

struct user_bus {
	char address[USERDOOR_ADDRESS_MAX]; /* D-Bus server address; "": not there */
	bool is_bus;                        /* a bus daemon between us and the manager */
};

struct user_bus user_bus_find(size_t i);

/* Is there any? */
bool user_bus_is_there(void);
