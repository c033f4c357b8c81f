/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses of the origin servers.
 *
 *	helper     one byte: which origin
 *	resolver   forked before the helper has read a byte of a client; forks for each question,
 *	           so that each reads resolv.conf(5) anew, also where another file has its place
 *	lookup     gives up all but what the resolver of the C library needs; answers and ends
 *
 * So the process that reads requests opens no datagram socket, sends no query and starts no thread.
 */
#include "runtime/front/helpers/upstream/origin.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/privileges.h"

#define RESOLVER_FD 3
#define FRESH_MS    60000
#define FAILED_MS   1000

struct answer {
	size_t origin;
	char addresses[ORIGIN_ADDRESSES_MAX];
};

static void add_address(const struct sockaddr *at, char out[static ORIGIN_ADDRESSES_MAX])
{
	const bool is_ip6 = at->sa_family == AF_INET6;
	const void *bytes = is_ip6 ? (const void *)&((const struct sockaddr_in6 *)at)->sin6_addr
				   : (const void *)&((const struct sockaddr_in *)at)->sin_addr;
	char text[INET6_ADDRSTRLEN];
	const size_t used = strlen(out);
	if (!inet_ntop(at->sa_family, bytes, text, sizeof(text)) ||
	    used + strlen(text) + 4 > ORIGIN_ADDRESSES_MAX)
		return;
	(void)snprintf(out + used, ORIGIN_ADDRESSES_MAX - used, is_ip6 ? "%s[%s]" : "%s%s",
		       used > 0 ? "," : "", text);
}

static void look_up(const struct origin *o, struct answer *answer)
{
	const struct addrinfo wanted = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	struct cj_error ignored;
	if (child_die_with_parent(RESOLVER_FD, &ignored) < 0 ||
	    origin_confine_lookup(&ignored) < 0 || getaddrinfo(o->host, NULL, &wanted, &found) != 0)
		return;
	for (const struct addrinfo *i = found; i; i = i->ai_next)
		if (i->ai_family == AF_INET || i->ai_family == AF_INET6)
			add_address(i->ai_addr, answer->addresses);
}

/* A lookup that was killed has answered nothing. */
static void answer_one(const struct origin_set *set, size_t origin)
{
	struct answer answer = { .origin = origin };
	int status = 1;
	const pid_t pid = fork();
	if (pid == 0) {
		look_up(&set->origins[origin], &answer);
		_exit(send(RESOLVER_FD, &answer, sizeof(answer), MSG_NOSIGNAL) < 0 ? 1 : 0);
	}
	if (pid > 0)
		(void)sys_waitpid(pid, &status, 0); /* our child */
	if (status != 0 && send(RESOLVER_FD, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
		_exit(0);
}

/* One question after the other: all go to the same name servers. */
static void serve_lookups(const struct origin_set *set, int fd)
{
	struct cj_error ignored;
	uint8_t origin;
	if (dup2(fd, RESOLVER_FD) < 0 || sys_close_range(RESOLVER_FD + 1, ~0u, 0) < 0 ||
	    privileges_keep_only(0, &ignored) < 0 ||
	    child_die_with_parent(RESOLVER_FD, &ignored) < 0)
		_exit(1);
	(void)prctl(PR_SET_NAME, "upstream-names", 0, 0, 0);
	while (sys_read(RESOLVER_FD, &origin, sizeof(origin)) == (ssize_t)sizeof(origin))
		if (origin < set->count)
			answer_one(set, origin);
	_exit(0);
}

int origin_start_resolver(struct origin_set *set, struct cj_error *err)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return cj_fail(err, errno, "create a socket pair");
	const pid_t pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		serve_lookups(set, ends[1]);
	}
	(void)close(ends[1]);
	set->resolver_fd = ends[0];
	return pid < 0 ? cj_fail(err, errno, "fork") : 0;
}

static void settle(struct origin *o, const char *addresses)
{
	o->is_asked = false;
	o->fresh_until_ms = clock_ms() + (addresses[0] ? FRESH_MS : FAILED_MS);
	(void)snprintf(o->addresses, sizeof(o->addresses), "%s", addresses);
}

bool origin_is_resolved(const struct origin_set *set, struct origin *o)
{
	const uint8_t number = (uint8_t)(o - set->origins);
	if (!o->host[0] || (!o->is_asked && clock_ms() < o->fresh_until_ms))
		return true;
	if (!o->is_asked && send(set->resolver_fd, &number, sizeof(number), MSG_NOSIGNAL) < 0) {
		settle(o, "");
		return true;
	}
	o->is_asked = true;
	return false;
}

bool origin_take_addresses(struct origin_set *set)
{
	struct answer answer;
	const ssize_t size = recv(set->resolver_fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (size == (ssize_t)sizeof(answer) && answer.origin < set->count &&
	    memchr(answer.addresses, '\0', sizeof(answer.addresses))) {
		settle(&set->origins[answer.origin], answer.addresses);
		return true;
	}
	for (size_t i = 0; i < set->count; i++)
		if (set->origins[i].is_asked)
			settle(&set->origins[i], "");
	return false;
}
