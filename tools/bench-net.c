/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-net - the two ends of a connection for tools/bench-network.  Acts.
 *
 *	bench-net world PORT
 *		moves into a network namespace of its own, listens there on every address, says
 *		"ready PID", and closes what it accepts; ends with its parent
 *	bench-net connect ADDRESS PORT [STAY_MS]
 *		the whole program of a jail: connects, prints the microseconds that took, stays on
 *
 * Stands alone, so that tools/bench-network can compile it in one line.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAITING_MAX 4096 /* connections that wait to be accepted: more than jails at once */

static uint64_t now_us(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int fail(const char *what)
{
	perror(what);
	return EXIT_FAILURE;
}

static int serve(uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || unshare(CLONE_NEWNET) < 0)
		return fail("bench-net: a network namespace");
	int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listen_fd < 0 || bind(listen_fd, (struct sockaddr *)&any, sizeof(any)) < 0 ||
	    listen(listen_fd, WAITING_MAX) < 0)
		return fail("bench-net: listen");
	(void)printf("ready %d\n", getpid());
	(void)fflush(stdout); /* nobody reads it: then there is nobody to serve */
	for (;;) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			(void)close(fd);
	}
}

static int connect_once(const char *address, uint16_t port, int stay_ms)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	uint64_t began = now_us();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || fd < 0 ||
	    connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return fail("bench-net: connect");
	(void)printf("%llu\n", (unsigned long long)(now_us() - began));
	(void)fflush(stdout); /* who reads it sees that it is missing */
	(void)poll(NULL, 0, stay_ms);
	return EXIT_SUCCESS;
}

static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	return *end == '\0' && value <= max ? value : 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "world") == 0)
		return serve((uint16_t)number(argv[2], UINT16_MAX));
	if ((argc == 4 || argc == 5) && strcmp(argv[1], "connect") == 0)
		return connect_once(argv[2], (uint16_t)number(argv[3], UINT16_MAX),
				    argc == 5 ? (int)number(argv[4], 60000) : 0);
	(void)fprintf(stderr, "usage: bench-net world PORT\n"
			      "       bench-net connect ADDRESS PORT [STAY_MS]\n");
	return EXIT_FAILURE;
}
