/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp - both ends of the connections that tools/bench measures.  Acts.
 *
 *	tcp world PORT
 *		listens on PORT and closes what it accepts; on PORT+1 it reads until the sender's
 *		end first.  Prints "ready".  Ends with its parent.
 *	tcp connect ADDRESS PORT
 *		the whole program of a jail: opens one connection
 *	tcp send ADDRESS PORT MS
 *		the whole program of a jail: sends for so long, prints the megabytes per second
 *
 * Stands alone, so that tools/bench compiles it in one command.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAITING_MAX 4096 /* connections that wait to be accepted */
#define CHUNK       (128 * 1024)

static char chunk[CHUNK];

static uint64_t now_us(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int must(int fd, const char *what)
{
	if (fd < 0) {
		perror(what);
		exit(EXIT_FAILURE);
	}
	return fd;
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "tcp: socket");
	must(bind(fd, (struct sockaddr *)&any, sizeof(any)), "tcp: bind");
	must(listen(fd, WAITING_MAX), "tcp: listen");
	return fd;
}

static _Noreturn void world(uint16_t port)
{
	must(prctl(PR_SET_PDEATHSIG, SIGKILL), "tcp: prctl");
	struct pollfd polls[2] = { { .fd = listen_on(port), .events = POLLIN },
				   { .fd = listen_on(port + 1), .events = POLLIN } };
	(void)puts("ready");
	(void)fflush(stdout); /* if nobody reads it, nobody connects */
	for (;;) {
		must(poll(polls, 2, -1), "tcp: poll");
		for (int i = 0; i < 2; i++) {
			if (!polls[i].revents)
				continue;
			int fd = must(accept(polls[i].fd, NULL, NULL), "tcp: accept");
			while (i == 1 && recv(fd, chunk, sizeof(chunk), 0) > 0)
				;
			(void)close(fd); /* only a socket */
		}
	}
}

static int dial(const char *address, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "tcp: socket");
	must(inet_pton(AF_INET, address, &to.sin_addr) - 1, "tcp: address");
	must(connect(fd, (struct sockaddr *)&to, sizeof(to)), "tcp: connect");
	return fd;
}

/* Until the receiver has read everything: what waits in buffers does not count as sent. */
static int send_for(int fd, uint64_t span_us)
{
	uint64_t bytes = 0, began = now_us();
	while (now_us() - began < span_us) {
		ssize_t sent = send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL);
		bytes += (uint64_t)must((int)sent, "tcp: send");
	}
	must(shutdown(fd, SHUT_WR), "tcp: shutdown");
	must((int)recv(fd, chunk, sizeof(chunk), 0), "tcp: receive");
	(void)printf("%.1f\n", (double)bytes / (double)(now_us() - began));
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";
	uint16_t port = (uint16_t)strtoul(argv[argc > 3 ? 3 : argc - 1], NULL, 10);
	if (argc == 3 && strcmp(verb, "world") == 0)
		world(port);
	if (argc == 4 && strcmp(verb, "connect") == 0)
		return dial(argv[2], port) < 0;
	if (argc == 5 && strcmp(verb, "send") == 0)
		return send_for(dial(argv[2], port), strtoull(argv[4], NULL, 10) * 1000);
	(void)fprintf(stderr,
		      "usage: tcp world PORT | connect ADDRESS PORT | send ADDRESS PORT MS\n");
	return EXIT_FAILURE;
}
