/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's loop as a test turns it by hand, and the world it turns in. */
#pragma once

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/base/error.h"

/* What set_up() made; where it made nothing this host refuses namespaces. */
static inline void *world_of(void **state)
{
	if (!*state) {
		print_message("skipped: this host refuses namespaces\n");
		skip();
	}
	return *state;
}

/* Waits `ms` at most, serves once; false: nothing came. */
static inline bool turn_once(int fd, int ms, int (*serve)(void *world, struct cj_error *err),
			     void *world)
{
	struct cj_error err = { 0 };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	bool is_ready = poll(&p, 1, ms) > 0;
	if (is_ready && serve(world, &err) < 0)
		fail_msg("%s", err.msg);
	return is_ready;
}
