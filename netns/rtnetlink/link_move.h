/* SPDX-License-Identifier: Apache-2.0 */
/* link_move - gives an existing link to another network namespace.  Acts. */
#pragma once

#include "runtime/base/error.h"

/* Two NETLINK_ROUTE sockets, and the namespace of the second one. */
struct link_move {
	int from_fd, to_fd, to_netns_fd;
};

/*
 * link_move - move the link `name`, call it `new_name` there, and bring it up.
 *
 * *out_index: 0, or the link's index, which counts then and not `name`.  Becomes its index there,
 * or 0 if it is not moved.
 * It keeps its MTU, its link address and its permanent addresses of global scope.  With "%d" in
 * new_name the kernel chooses a number.
 * Fails: ENODEV; EEXIST when the other namespace has such a link: nothing is moved; EINVAL for a
 *        link that can't be moved, as `lo`.  After a later failure the link is in the other one.
 * Follows: rtnetlink(7), linux/if_link.h IFLA_NET_NS_FD, IFLA_NEW_IFINDEX.
 */
int link_move(const struct link_move *where, const char *name, const char *new_name, int *out_index,
	      struct cj_error *err);
