/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attrs - where a list of netlink attributes ends.
 *
 *	for (a = mnl_attr_get_payload(nest); attrs_go_on(a, attrs_end(nest)); a = mnl_attr_next(a))
 *
 * libmnl's own loops are macros that narrow a difference of pointers and drop a const where they
 * are used; compilers and checkers then speak of our lines.
 */
#pragma once

#include <libmnl/libmnl.h>
#include <stdbool.h>

/* Of a nested list; of a message's it is mnl_nlmsg_get_payload_tail(). */
static inline const void *attrs_end(const struct nlattr *nest)
{
	return (const char *)mnl_attr_get_payload(nest) + mnl_attr_get_payload_len(nest);
}

/* A whole attribute stands before the end.  A message has less than INT_MAX bytes. */
static inline bool attrs_go_on(const struct nlattr *attr, const void *end)
{
	return mnl_attr_ok(attr, (int)((const char *)end - (const char *)attr));
}
