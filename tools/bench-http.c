/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-http - calls a service over its Unix socket, so many callers at a time.  Acts.
 *
 *	bench-http SOCKET BODY-FILE REQUESTS CALLERS PAUSE_MS WORD
 *
 * Each caller posts the body to /v1/runs again and again on a connection of its own, waits for the
 * whole answer, and PAUSE_MS before the next.  Prints one line:
 *
 *	P50_US P95_US P99_US PER_SECOND OK REFUSED FAILED
 *
 * OK is a 200 that has WORD in it, REFUSED a 429 or 503; a request without an answer, or with
 * another one, FAILED.  Latencies are those of the OK ones.  Stands alone, like bench-run.c.
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
#define REPLY_MAX    (1u << 20)
#define PATIENCE_MS  120000

struct caller {
	int fd;
	bool waits; /* for a reply; else until next_us */
	uint64_t began_us, next_us;
	char *reply;
	size_t got;
};

struct bench {
	const char *socket_path, *word;
	char *request;
	size_t request_size;
	uint64_t pause_us;
	uint64_t latencies[REQUESTS_MAX];
	size_t left, ok, refused, failed;
	struct caller callers[CALLERS_MAX];
	size_t ncallers;
};

static uint64_t now_us(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static _Noreturn void die(const char *what)
{
	(void)fprintf(stderr, "bench-http: %s: %s\n", what, strerror(errno));
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
	static char body[1u << 20];
	FILE *file = fopen(body_path, "re");
	if (!file)
		die(body_path);
	size_t size = fread(body, 1, sizeof(body) - 1, file);
	(void)fclose(file);
	int head = asprintf(&b->request,
			    "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\n"
			    "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			    size, body);
	if (head < 0)
		die("make the request");
	b->request_size = (size_t)head;
}

static void send_request(struct bench *b, struct caller *c)
{
	if (b->left == 0) {
		close(c->fd);
		c->fd = -1;
		return;
	}
	b->left--;
	c->began_us = now_us();
	c->waits = true;
	c->got = 0;
	/* Small enough for the socket's buffer. */
	if (send(c->fd, b->request, b->request_size, MSG_NOSIGNAL) != (ssize_t)b->request_size)
		die("send");
}

/* The whole reply's size once its head is there; 0: not yet. */
static size_t reply_size(const struct caller *c)
{
	const char *end = strstr(c->reply, "\r\n\r\n");
	const char *length = strcasestr(c->reply, "\r\nContent-Length:");
	if (!end || !length || length > end)
		return 0;
	return (size_t)(end + 4 - c->reply) + strtoull(length + 17, NULL, 10);
}

static void judge(struct bench *b, struct caller *c)
{
	unsigned status = 0;
	(void)sscanf(c->reply, "HTTP/1.1 %u", &status);
	if (status == 200 && strstr(c->reply, b->word))
		b->latencies[b->ok++] = now_us() - c->began_us;
	else if (status == 429 || status == 503)
		b->refused++;
	else
		b->failed++;
	c->waits = false;
	c->next_us = now_us() + b->pause_us;
}

static void lose(struct bench *b, struct caller *c)
{
	if (c->waits)
		b->failed++;
	close(c->fd);
	c->fd = dial(b->socket_path);
	c->waits = false;
}

static void hear(struct bench *b, struct caller *c)
{
	ssize_t size = recv(c->fd, c->reply + c->got, REPLY_MAX - 1 - c->got, MSG_DONTWAIT);
	if (size < 0 && errno == EAGAIN)
		return;
	if (size <= 0) {
		lose(b, c);
		return;
	}
	c->got += (size_t)size;
	c->reply[c->got] = '\0';
	size_t whole = reply_size(c);
	if (whole > 0 && c->got >= whole)
		judge(b, c);
}

/* How long nobody has anything to send; -1: all wait for replies. */
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
	int n = poll(polls, b->ncallers, patience < 0 ? PATIENCE_MS : patience);
	if (n == 0 && patience < 0) {
		errno = ETIMEDOUT;
		die("wait for a reply");
	}
	for (size_t i = 0; n > 0 && i < b->ncallers; i++)
		if (polls[i].revents && b->callers[i].fd >= 0)
			hear(b, &b->callers[i]);
}

static bool is_busy(const struct bench *b)
{
	for (size_t i = 0; i < b->ncallers; i++)
		if (b->callers[i].fd >= 0 && (b->left > 0 || b->callers[i].waits))
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static uint64_t percentile(const struct bench *b, size_t part)
{
	return b->ok > 0 ? b->latencies[(b->ok - 1) * part / 100] : 0;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		(void)fprintf(stderr,
			      "usage: bench-http SOCKET BODY REQUESTS CALLERS PAUSE_MS WORD\n");
		return EXIT_FAILURE;
	}
	static struct bench b;
	size_t requests = strtoull(argv[3], NULL, 10);
	b.socket_path = argv[1];
	b.ncallers = strtoull(argv[4], NULL, 10);
	b.pause_us = strtoull(argv[5], NULL, 10) * 1000;
	b.word = argv[6];
	b.left = requests;
	if (requests > REQUESTS_MAX || b.ncallers == 0 || b.ncallers > CALLERS_MAX)
		die("begin");
	make_request(&b, argv[2]);
	for (size_t i = 0; i < b.ncallers; i++) {
		b.callers[i].fd = dial(b.socket_path);
		b.callers[i].reply = malloc(REPLY_MAX);
		if (!b.callers[i].reply)
			die("begin");
	}

	uint64_t began = now_us();
	while (is_busy(&b))
		serve_round(&b);
	uint64_t took = now_us() - began;
	qsort(b.latencies, b.ok, sizeof(*b.latencies), compare);
	(void)printf("%ju %ju %ju %ju %zu %zu %zu\n", (uintmax_t)percentile(&b, 50),
		     (uintmax_t)percentile(&b, 95), (uintmax_t)percentile(&b, 99),
		     (uintmax_t)(b.ok * 1000000 / (took ? took : 1)), b.ok, b.refused, b.failed);
	return b.ok + b.refused + b.failed == requests ? EXIT_SUCCESS : EXIT_FAILURE;
}
