/* SPDX-License-Identifier: Apache-2.0 */
/* filter_parts - what the supervisor's side of a listener (filter_watch.c) uses. */
#pragma once

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>

/* --- names of refused calls: "mount", "socket(AF_ALG)" -------------------------------------- */

#define FILTER_NAME_MAX 48

/* From tables and numbers.  Memory behind a pointer is never read. */
void filter_name_call(const struct seccomp_data *data, char out[FILTER_NAME_MAX]);

/* --- how often something is done: a burst at once, then a number per millisecond ------------- */

#define RATE_PAUSE_MS 10 /* a pause is at least so long, so that pauses cost little */

struct rate {
	unsigned per_ms, burst;
	unsigned left;     /* so many may be done now */
	uint64_t since_ms; /* from here on time earns more */
};

void rate_init(struct rate *r, unsigned per_ms, unsigned burst, uint64_t now_ms);

/* Something of this price was done. */
void rate_take(struct rate *r, unsigned price);

/* With nothing left: adds what the time has earned, after a pause.  Is something left? */
bool rate_refill(struct rate *r, uint64_t now_ms);

/* The end of the pause, on clock_ms(); 0: something is left. */
uint64_t rate_paused_until_ms(const struct rate *r);

/* --- how many netlink sockets a jail has ------------------------------------------------------ */

/*
 * A netlink socket queues unread answers, up to net.core.rmem_default, in memory that no cgroup
 * counts.  So the number of sockets has a limit: FILTER_NETLINK_MAX, or less where the host has
 * raised that size.  All zero: nothing was granted yet.
 */
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
