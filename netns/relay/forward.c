/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/relay/forward.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "netns/relay/tcp_pool.h"
#include "runtime/base/scope.h"

#define PAUSE_MS  100
#define SPARE_FDS 16 /* of the limit of open files: kept for the supervisor itself */

struct forward {
	struct tcp_pool pool;
	struct tcp_pool_slot slots[FORWARD_CONNECTIONS_MAX];
	uint16_t ports[TCP_POOL_LISTENERS_MAX];
};

static struct sockaddr_in loopback(uint32_t address, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(address) };
}

int forward_listen(uint32_t address, uint16_t port, struct cj_error *err)
{
	int on = 1;
	struct sockaddr_in at = loopback(address, port);
	auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "open a socket for port %u of the jail", port);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "set SO_REUSEADDR for port %u of the jail", port);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		int rc = cj_fail(err, errno, "bind port %u of the jail's loopback", port);
		return rc == -EADDRINUSE ? cj_hint(err, "name each port once") : rc;
	}
	if (listen(fd, FORWARD_CONNECTIONS_MAX) < 0)
		return cj_fail(err, errno, "listen on port %u of the jail's loopback", port);
	return take_fd(&fd);
}

/* The kernel gives out the lowest free descriptor.  The jail must not use up the last ones. */
static bool has_descriptors_to_spare(void *owner)
{
	const struct forward *f = owner;
	struct rlimit limit;
	auto_fd int lowest = fcntl(f->pool.timer_fd, F_DUPFD_CLOEXEC, 0);
	return lowest >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       (rlim_t)lowest + SPARE_FDS < limit.rlim_cur;
}

static enum tcp_proxy_state open_client(void *owner, size_t slot, int jail_fd, size_t listener)
{
	struct forward *f = owner;
	const struct sockaddr_in address = loopback(INADDR_LOOPBACK, f->ports[listener]);
	(void)jail_fd;
	return tcp_proxy_join(
	    f->slots[slot].proxy,
	    tcp_proxy_dial((const struct sockaddr *)&address, sizeof(address), SOCK_STREAM));
}

static const struct tcp_pool_calls pool_calls = {
	.is_wanted = has_descriptors_to_spare,
	.open = open_client,
};

int forward_create(const int *listen_fds, const uint16_t *ports, size_t n, struct forward **out,
		   struct cj_error *err)
{
	struct forward *f = calloc(1, sizeof(*f));
	if (!f)
		return cj_fail(err, ENOMEM, "make room for the connected ports");
	f->pool = (struct tcp_pool){ .what = "the connected ports",
				     .calls = &pool_calls,
				     .owner = f,
				     .slots = f->slots,
				     .nslots = FORWARD_CONNECTIONS_MAX,
				     .tick_ms = PAUSE_MS };
	int rc = tcp_pool_open(&f->pool, listen_fds, n, err);
	if (rc < 0) {
		forward_destroy(&f);
		return rc;
	}
	memcpy(f->ports, ports, n * sizeof(ports[0]));
	*out = f;
	return 0;
}

void forward_destroy(struct forward **ff)
{
	if (!*ff)
		return;
	tcp_pool_close(&(*ff)->pool);
	cj_free(ff);
}

int forward_fd(const struct forward *f)
{
	return f->pool.epoll_fd;
}

int forward_serve(struct forward *f, struct cj_error *err)
{
	return tcp_pool_serve(&f->pool, err);
}
