/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tcp - both ends of the connections that tools/bench measures.  Acts.
 *
 *	tcp world ADDRESS PORT
 *		listens on PORT and closes what it accepts; on PORT+1 and on 80 it reads until the
 *		sender's end first.  On UDP port 53 every name has this address.  Prints "ready".
 *		Ends with its parent.
 *	tcp connect ADDRESS PORT
 *		the whole program of a jail: opens one connection
 *	tcp send HOST PORT MS
 *		the whole program of a jail: sends for WARM_US and for so long, prints the megabytes
 *		per second of the second part; on port 80 as a request to this host
 *
 * Stands alone, so that tools/bench compiles it in one command.
 */
#include <arpa/inet.h>
#include <netdb.h>
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
#define WARM_US     1000000 /* until buffers and windows have grown */
#define HTTP        80

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

static int serve_names(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(53) };
	int fd = must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "tcp: socket");
	must(bind(fd, (struct sockaddr *)&any, sizeof(any)), "tcp: bind");
	return fd;
}

/* From the address that was asked, which this namespace does not prefer; it asks again. */
static void reply(int fd, void *text, size_t size, struct sockaddr_in *to, struct in_addr from)
{
	const struct in_pktinfo info = { .ipi_spec_dst = from };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(info))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(info)),
				.cmsg_level = IPPROTO_IP,
				.cmsg_type = IP_PKTINFO } };
	struct iovec part = { text, size };
	struct msghdr message = { .msg_name = to,
				  .msg_namelen = sizeof(*to),
				  .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	memcpy(CMSG_DATA(&control.head), &info, sizeof(info));
	(void)sendmsg(fd, &message, 0);
}

/* The question, with one address behind it if it asks for IPv4; RFC 1035, section 4. */
static void answer(int fd, const char *address)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4 };
	struct sockaddr_in from;
	socklen_t size = sizeof(from);
	struct in_addr own;
	uint8_t text[1024];
	ssize_t got = recvfrom(fd, text, 512, 0, (struct sockaddr *)&from, &size);
	size_t end = 12;
	while (got > 12 && end + 5 < (size_t)got && text[end] != 0)
		end += 1 + (size_t)text[end];
	end += 5;
	if (got < 17 || end > (size_t)got)
		return;
	text[2] = 0x81, text[3] = 0x80;
	text[7] = text[end - 3] == 1; /* answers */
	memset(text + 8, 0, 4);
	must(inet_pton(AF_INET, address, &own) - 1, "tcp: address");
	if (text[7]) {
		memcpy(text + end, record, sizeof(record));
		memcpy(text + end + sizeof(record), &own, sizeof(own));
		end += sizeof(record) + sizeof(own);
	}
	reply(fd, text, end, &from, own);
}

static _Noreturn void world(const char *address, uint16_t port)
{
	must(prctl(PR_SET_PDEATHSIG, SIGKILL), "tcp: prctl");
	struct pollfd polls[4] = { { .fd = listen_on(port), .events = POLLIN },
				   { .fd = listen_on(port + 1), .events = POLLIN },
				   { .fd = listen_on(HTTP), .events = POLLIN },
				   { .fd = serve_names(), .events = POLLIN } };
	(void)puts("ready");
	(void)fflush(stdout); /* if nobody reads it, nobody connects */
	for (;;) {
		must(poll(polls, 4, -1), "tcp: poll");
		if (polls[3].revents)
			answer(polls[3].fd, address);
		for (int i = 0; i < 3; i++) {
			if (!polls[i].revents)
				continue;
			int fd = must(accept(polls[i].fd, NULL, NULL), "tcp: accept");
			while (i > 0 && recv(fd, chunk, sizeof(chunk), 0) > 0)
				;
			(void)close(fd); /* only a socket */
		}
	}
}

static int dial(const char *host, uint16_t port)
{
	struct addrinfo wanted = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM },
			*found = NULL;
	must(getaddrinfo(host, NULL, &wanted, &found) == 0 ? 0 : -1, "tcp: look up the host");
	struct sockaddr_in to = *(struct sockaddr_in *)found->ai_addr;
	int fd = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "tcp: socket");
	to.sin_port = htons(port);
	must(connect(fd, (struct sockaddr *)&to, sizeof(to)), "tcp: connect");
	return fd;
}

static uint64_t send_until(int fd, uint64_t end_us)
{
	uint64_t bytes = 0;
	while (now_us() < end_us)
		bytes +=
		    (uint64_t)must((int)send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL), "tcp: send");
	return bytes;
}

/* Until the receiver has read everything: what waits in buffers does not count as sent. */
static int send_for(int fd, const char *host, uint64_t span_us)
{
	if (host)
		must(dprintf(fd,
			     "PUT / HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000000000\r\n\r\n",
			     host),
		     "tcp: send");
	(void)send_until(fd, now_us() + WARM_US);
	uint64_t began = now_us(), bytes = send_until(fd, began + span_us);
	must(shutdown(fd, SHUT_WR), "tcp: shutdown");
	must((int)recv(fd, chunk, sizeof(chunk), 0), "tcp: receive");
	(void)printf("%.1f\n", (double)bytes / (double)(now_us() - began));
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 2 ? argv[1] : "";
	uint16_t port = (uint16_t)strtoul(argv[argc > 3 ? 3 : argc - 1], NULL, 10);
	if (argc == 4 && strcmp(verb, "world") == 0)
		world(argv[2], port);
	if (argc == 4 && strcmp(verb, "connect") == 0)
		return dial(argv[2], port) < 0;
	if (argc == 5 && strcmp(verb, "send") == 0)
		return send_for(dial(argv[2], port), port == HTTP ? argv[2] : NULL,
				strtoull(argv[4], NULL, 10) * 1000);
	(void)fprintf(stderr,
		      "usage: tcp world ADDRESS PORT | connect HOST PORT | send HOST PORT MS\n");
	return EXIT_FAILURE;
}
