/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attrs - bounds for loops over netlink attributes.
 *
 *	for (a = mnl_attr_get_payload(nest); attrs_go_on(a, attrs_end(nest)); a = mnl_attr_next(a))
 *
 * libmnl's own loops are macros that narrow a difference of pointers and drop a const.  Compilers
 * and checkers would report that for every line that uses them.
 */
#pragma once

#include <libmnl/libmnl.h>
#include <stdbool.h>

/* The end of a nested list; the end of a message's list is mnl_nlmsg_get_payload_tail(). */
static inline const void *attrs_end(const struct nlattr *nest)
{
	return (const char *)mnl_attr_get_payload(nest) + mnl_attr_get_payload_len(nest);
}

/* Is there a whole attribute before the end?  A message has less than INT_MAX bytes. */
static inline bool attrs_go_on(const struct nlattr *attr, const void *end)
{
	return mnl_attr_ok(attr, (int)((const char *)end - (const char *)attr));
}
