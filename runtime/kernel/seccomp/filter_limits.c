/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What limits the calls of a jail that the supervisor answers: a rate, and the number of netlink
 * sockets in the jail's network namespace, by /proc/net/protocols.  The kernel counts there from
 * socket(2) to the last close, bound or not.
 */
#include "runtime/kernel/seccomp/filter_parts.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/files/system_file.h"
#include "runtime/kernel/seccomp/filter.h"

#define BYTES_MAX (16L << 20) /* of all netlink sockets of a jail */
#define LEAST     4           /* of them, however large one may be */

#define PROTOCOLS_MAX 16384 /* a line of 130 bytes for each protocol of the kernel */

void rate_init(struct rate *r, unsigned per_ms, unsigned burst, uint64_t now_ms)
{
	*r = (struct rate){ per_ms, burst, burst, now_ms };
}

void rate_take(struct rate *r, unsigned price)
{
	r->left = r->left > price ? r->left - price : 0;
}

bool rate_refill(struct rate *r, uint64_t now_ms)
{
	if (r->left > 0)
		return true;
	if (now_ms < r->since_ms + RATE_PAUSE_MS)
		return false;
	uint64_t ms = now_ms - r->since_ms;
	r->left = ms < r->burst / r->per_ms ? (unsigned)ms * r->per_ms : r->burst;
	r->since_ms = now_ms;
	return true;
}

uint64_t rate_paused_until_ms(const struct rate *r)
{
	return r->left > 0 ? 0 : r->since_ms + RATE_PAUSE_MS;
}

/* "protocol size sockets ...": the third word of the line that begins with NETLINK. */
long socket_count_parse(const char *text)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, "NETLINK ", 8) != 0)
			continue;
		char *end;
		(void)strtol(line + 8, &end, 10);
		return strtol(end, NULL, 10);
	}
	return -1;
}

static long count_sockets(int proc_fd)
{
	char text[PROTOCOLS_MAX];
	if (proc_fd < 0 || system_file_read(proc_fd, "1/net/protocols", text, sizeof(text)) <= 0)
		return -1;
	return socket_count_parse(text);
}

static unsigned find_max(void)
{
	char text[SYSTEM_FILE_SMALL];
	long bytes = 0;
	if (system_file_read(AT_FDCWD, "/proc/sys/net/core/rmem_default", text, sizeof(text)) > 0)
		bytes = strtol(text, NULL, 10);
	if (bytes <= BYTES_MAX / FILTER_NETLINK_MAX)
		return FILTER_NETLINK_MAX;
	return bytes < BYTES_MAX / LEAST ? (unsigned)(BYTES_MAX / bytes) : LEAST;
}

bool socket_count_take(struct socket_count *c, int proc_fd, bool *out_has_looked)
{
	if (c->max == 0)
		c->max = find_max();
	*out_has_looked = c->granted >= c->max;
	if (*out_has_looked) {
		long now = count_sockets(proc_fd);
		if (now >= 0 && (unsigned long)now < c->granted)
			c->granted = (unsigned)now;
	}
	if (c->granted >= c->max)
		return false;
	c->granted++;
	return true;
}
