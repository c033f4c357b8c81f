/* SPDX-License-Identifier: Apache-2.0 */
/*
 * taken_over - what a gateway's process does that a program of the jail has taken over.
 *
 * A test program includes this once, and wraps denials_receive.
 */
#pragma once

#include "netns/firewall/denials.h"
#include "netns/gateway.h"

/* Runs in the process, when the supervisor drains it; NULL: nobody has taken it over. */
static void (*taken_over)(const struct step_link *to_supervisor);

int __real_denials_receive(int log_fd, struct denials *d,
			   void (*each)(void *context, const struct denial *d), void *context,
			   struct cj_error *err);
int __wrap_denials_receive(int log_fd, struct denials *d,
			   void (*each)(void *context, const struct denial *d), void *context,
			   struct cj_error *err);
int __wrap_denials_receive(int log_fd, struct denials *d,
			   void (*each)(void *context, const struct denial *d), void *context,
			   struct cj_error *err)
{
	static const char *const names[GATEWAY_STEPS + 1];
	const struct step_link link = { 3 /* the first that it keeps */, "the supervisor", names };
	if (taken_over)
		taken_over(&link);
	return __real_denials_receive(log_fd, d, each, context, err);
}
