/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socket_count - how many netlink sockets a jail has.
 *
 * A netlink socket queues unread answers, up to net.core.rmem_default, in memory that no cgroup
 * counts.  So the number of sockets has a limit: FILTER_NETLINK_MAX, or less where the host has
 * raised that size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* All zero: nothing was granted yet. */
struct socket_count {
	unsigned max;     /* 0: not known yet */
	unsigned granted; /* at most so many exist now */
};

/*
 * May the jail have one more?  Reads its /proc only when the sockets granted since the last look
 * could be too many; sets *out_has_looked.  If it can't be read, all granted sockets count as open.
 */
bool socket_count_take(struct socket_count *c, int proc_fd, bool *out_has_looked);

/* The row of netlink in the text of /proc/net/protocols; -1: there is none. */
long socket_count_parse(const char *text);
