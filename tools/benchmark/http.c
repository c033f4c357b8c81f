/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http - calls a service over its Unix socket, with many callers at once.  Acts.
 *
 *	http SOCKET BODY-FILE REQUESTS SECONDS CALLERS PAUSE_MS
 *
 * Each caller posts the body to /v1/runs again and again over a connection of its own, reads the
 * whole stream of events, and waits PAUSE_MS before the next request.  All stop after REQUESTS
 * requests, or after SECONDS.  Prints a line for each run that exited: the microseconds from the
 * request to the program's first output, and to the end of the answer.  The last line is
 * "total MICROSECONDS REFUSED LOST": REFUSED counts 429 and 503, LOST all other requests.
 *
 * Stands alone, so that tools/bench compiles it in one command.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define CALLERS_MAX  1024
#define REQUESTS_MAX (1u << 20)
#define BODY_MAX     (1u << 16)
#define REPLY_MAX    (1u << 16)
#define PATIENCE_MS  120000

struct caller {
	int fd;     /* -1: done */
	bool waits; /* for an answer; else until next_us */
	uint64_t began_us, first_us, next_us;
	size_t got;
	char reply[REPLY_MAX];
};

struct bench {
	const char *socket_path;
	char *request;
	size_t request_size, left, ncallers, nruns, refused, lost;
	uint64_t pause_us, end_us;
	struct caller callers[CALLERS_MAX];
	struct {
		uint64_t first_us, whole_us;
	} runs[REQUESTS_MAX];
};

static uint64_t now_us(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "http: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static int dial(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		die("connect");
	return fd;
}

static void make_request(struct bench *b, const char *body_path)
{
	static char body[BODY_MAX];
	FILE *file = fopen(body_path, "re");
	if (!file)
		die(body_path);
	size_t size = fread(body, 1, sizeof(body) - 1, file);
	(void)fclose(file); /* only read */
	int length = asprintf(&b->request,
			      "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n"
			      "Accept: application/x-ndjson\r\nContent-Type: application/json\r\n"
			      "Content-Length: %zu\r\n\r\n%s",
			      size, body);
	if (length < 0)
		die("make the request");
	b->request_size = (size_t)length;
}

static void send_request(struct bench *b, struct caller *c)
{
	if (now_us() > b->end_us)
		b->left = 0;
	if (b->left == 0) {
		(void)close(c->fd); /* only a socket */
		c->fd = -1;
		return;
	}
	b->left--;
	c->waits = true;
	c->got = 0;
	c->first_us = 0;
	c->began_us = now_us();
	/* Small enough for the socket's buffer. */
	if (send(c->fd, b->request, b->request_size, MSG_NOSIGNAL) != (ssize_t)b->request_size)
		die("send");
}

/* A stream ends with an empty chunk, an error with its last byte. */
static bool is_whole(const struct caller *c)
{
	const char *head_end = strstr(c->reply, "\r\n\r\n");
	const char *length = strcasestr(c->reply, "\r\nContent-Length:");
	if (!head_end)
		return false;
	if (length && length < head_end)
		return c->got >=
		       (size_t)(head_end + 4 - c->reply) + strtoull(length + 17, NULL, 10);
	return c->got >= 5 && strcmp(c->reply + c->got - 5, "0\r\n\r\n") == 0;
}

static void count(struct bench *b, struct caller *c, uint64_t now)
{
	unsigned status = 0;
	(void)sscanf(c->reply, "HTTP/1.1 %u", &status); /* else it stays 0: lost */
	if (status == 200 && c->first_us > 0 && strstr(c->reply, "\"status\":\"exited\"")) {
		b->runs[b->nruns].first_us = c->first_us - c->began_us;
		b->runs[b->nruns++].whole_us = now - c->began_us;
	} else if (status == 429 || status == 503) {
		b->refused++;
	} else {
		b->lost++;
	}
	c->waits = false;
	c->next_us = now + b->pause_us;
}

static void redial(struct bench *b, struct caller *c)
{
	if (c->waits)
		b->lost++;
	c->waits = false;
	(void)close(c->fd); /* only a socket */
	c->fd = dial(b->socket_path);
}

static void receive(struct bench *b, struct caller *c)
{
	ssize_t size = recv(c->fd, c->reply + c->got, REPLY_MAX - 1 - c->got, MSG_DONTWAIT);
	uint64_t now = now_us();
	if (size < 0 && errno == EAGAIN)
		return;
	if (size <= 0) {
		redial(b, c);
		return;
	}
	c->got += (size_t)size;
	c->reply[c->got] = '\0';
	if (c->first_us == 0 && strstr(c->reply, "\"type\":\"stdout\""))
		c->first_us = now;
	if (is_whole(c))
		count(b, c, now);
}

/* Milliseconds until the next request is due; -1: none is. */
static int send_due(struct bench *b)
{
	int patience = -1;
	for (size_t i = 0; i < b->ncallers; i++) {
		struct caller *c = &b->callers[i];
		if (c->fd < 0 || c->waits)
			continue;
		uint64_t now = now_us();
		if (c->next_us <= now) {
			send_request(b, c);
			continue;
		}
		int ms = (int)((c->next_us - now + 999) / 1000);
		if (patience < 0 || ms < patience)
			patience = ms;
	}
	return patience;
}

static void serve_round(struct bench *b)
{
	struct pollfd polls[CALLERS_MAX];
	int patience = send_due(b);
	for (size_t i = 0; i < b->ncallers; i++)
		polls[i] = (struct pollfd){ .fd = b->callers[i].fd, .events = POLLIN };
	int ready = poll(polls, b->ncallers, patience < 0 ? PATIENCE_MS : patience);
	if (ready == 0 && patience < 0) {
		errno = ETIMEDOUT;
		die("wait for an answer");
	}
	for (size_t i = 0; ready > 0 && i < b->ncallers; i++)
		if (polls[i].revents && b->callers[i].fd >= 0)
			receive(b, &b->callers[i]);
}

static bool is_busy(const struct bench *b)
{
	for (size_t i = 0; i < b->ncallers; i++)
		if (b->callers[i].fd >= 0 && (b->left > 0 || b->callers[i].waits))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	static struct bench b;
	if (argc != 7)
		die("usage: http SOCKET BODY-FILE REQUESTS SECONDS CALLERS PAUSE_MS");
	b.socket_path = argv[1];
	b.left = strtoull(argv[3], NULL, 10);
	b.ncallers = strtoull(argv[5], NULL, 10);
	b.pause_us = strtoull(argv[6], NULL, 10) * 1000;
	if (b.left > REQUESTS_MAX || b.ncallers > CALLERS_MAX)
		die("begin");
	make_request(&b, argv[2]);
	for (size_t i = 0; i < b.ncallers; i++)
		b.callers[i].fd = dial(b.socket_path);

	uint64_t began = now_us();
	b.end_us = began + strtoull(argv[4], NULL, 10) * 1000000;
	while (is_busy(&b))
		serve_round(&b);
	uint64_t took = now_us() - began;
	for (size_t i = 0; i < b.nruns; i++)
		(void)printf("%ju %ju\n", (uintmax_t)b.runs[i].first_us,
			     (uintmax_t)b.runs[i].whole_us);
	(void)printf("total %ju %zu %zu\n", (uintmax_t)took, b.refused, b.lost);
	return EXIT_SUCCESS;
}
