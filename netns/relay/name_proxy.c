/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/relay/name_proxy.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "netns/relay/client_name.h"
#include "netns/relay/tcp_pool.h"
#include "runtime/base/scope.h"

#define TICK_MS 1000

#define ORIGINAL_DESTINATION 80 /* SO_ORIGINAL_DST, IP6T_SO_ORIGINAL_DST: linux/netfilter_ipv4.h */

struct name_client {
	struct name_proxy *owner;
	struct client_stream stream;
	struct name_destination to;
	bool is_named; /* there is a connection to the server, or will be */
};

struct name_proxy {
	struct tcp_pool pool;
	struct name_proxy_calls calls;
	struct tcp_pool_slot slots[NAME_PROXY_CONNECTIONS];
	struct name_client clients[NAME_PROXY_CONNECTIONS];
};

int name_proxy_listen(int family, struct cj_error *err)
{
	const struct ip any = { .family = (uint8_t)family };
	struct sockaddr_storage at;
	const socklen_t size = ip_socket_address(&any, NAME_PROXY_PORT, &at);
	const int on = 1;
	auto_fd int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return cj_fail(err, errno, "open a socket for connections by name");
	if (family == 6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return cj_fail(err, errno, "set IPV6_V6ONLY for connections by name");
	if (bind(fd, (struct sockaddr *)&at, size) < 0 || listen(fd, NAME_PROXY_CONNECTIONS) < 0)
		return cj_fail(err, errno, "listen for connections by name");
	return take_fd(&fd);
}

static bool may(const struct name_client *c, const char *name, bool is_again)
{
	const struct name_proxy_calls *calls = &c->owner->calls;
	return calls->may(calls->context, name, &c->to, is_again);
}

static bool may_reach(void *context, const char *name)
{
	return may(context, name, false);
}

static ssize_t filter(void *arg, uint8_t *bytes, size_t *size)
{
	struct name_client *c = arg;
	ssize_t passed = client_stream_read(&c->stream, bytes, *size);
	if (passed < 0 && !c->stream.is_denied)
		(void)may(c, "", false); /* only to report it */
	return passed;
}

/* Where the client wanted to go, before the rules redirected it. */
static bool find_destination(int fd, struct name_destination *out)
{
	struct sockaddr_storage at = { 0 };
	const struct sockaddr_in *four = (const struct sockaddr_in *)&at;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&at;
	socklen_t size = sizeof(at);
	*out = (struct name_destination){ 0 };
	if (getsockname(fd, (struct sockaddr *)&at, &size) < 0)
		return false;
	const bool is_ip6 = at.ss_family == AF_INET6;
	size = is_ip6 ? sizeof(*six) : sizeof(*four);
	if (getsockopt(fd, is_ip6 ? IPPROTO_IPV6 : IPPROTO_IP, ORIGINAL_DESTINATION, &at, &size) <
	    0)
		return false;
	out->address.family = is_ip6 ? 6 : 4;
	out->port = ntohs(is_ip6 ? six->sin6_port : four->sin_port);
	if (is_ip6)
		memcpy(out->address.bytes, &six->sin6_addr, sizeof(six->sin6_addr));
	else
		memcpy(out->address.bytes, &four->sin_addr, sizeof(four->sin_addr));
	return true;
}

static enum tcp_proxy_state open_client(void *owner, size_t slot, int jail_fd, size_t listener)
{
	struct name_proxy *p = owner;
	struct name_client *c = &p->clients[slot];
	(void)listener;
	*c = (struct name_client){ .owner = p, .stream = { .may = may_reach, .context = c } };
	if (!find_destination(jail_fd, &c->to))
		return TCP_PROXY_CLOSED;
	tcp_proxy_filter(p->slots[slot].proxy, filter, c);
	return tcp_proxy_hear(p->slots[slot].proxy);
}

/* Reads until the name is known and allowed, then connects. */
static enum tcp_proxy_state hear(struct name_proxy *p, size_t slot)
{
	struct name_client *c = &p->clients[slot];
	struct tcp_proxy *proxy = p->slots[slot].proxy;
	enum tcp_proxy_state state = tcp_proxy_hear(proxy);
	if (state != TCP_PROXY_OPEN || c->stream.stage == CLIENT_BEGIN)
		return state;
	c->is_named = true;
	p->slots[slot].since_ms = p->pool.now_ms;
	return tcp_proxy_join(proxy, p->calls.connect(p->calls.context, &c->to));
}

static enum tcp_proxy_state serve_client(void *owner, size_t slot, enum tcp_proxy_side side,
					 uint32_t events)
{
	struct name_proxy *p = owner;
	return p->clients[slot].is_named ? tcp_proxy_serve(p->slots[slot].proxy, side, events)
					 : hear(p, slot);
}

static bool is_late(struct name_proxy *p, size_t slot)
{
	const struct name_client *c = &p->clients[slot];
	const struct tcp_pool_slot *s = &p->slots[slot];
	if (c->is_named)
		return tcp_pool_idle_ms(&p->pool, slot) >= NAME_PROXY_IDLE_S * 1000;
	if (p->pool.now_ms - s->since_ms < NAME_PROXY_FIRST_S * 1000)
		return false;
	if (tcp_proxy_moved(s->proxy) > 0)
		(void)may(c, "", false); /* only to report it */
	return true;
}

static bool drop_late_clients(void *owner)
{
	struct name_proxy *p = owner;
	for (size_t i = 0; i < NAME_PROXY_CONNECTIONS; i++)
		if (p->slots[i].proxy && is_late(p, i))
			tcp_pool_drop(&p->pool, i);
	return p->pool.count > 0;
}

static const struct tcp_pool_calls pool_calls = {
	.open = open_client,
	.serve = serve_client,
	.tick = drop_late_clients,
};

void name_proxy_check_again(struct name_proxy *p)
{
	for (size_t i = 0; i < NAME_PROXY_CONNECTIONS; i++) {
		const struct name_client *c = &p->clients[i];
		if (p->slots[i].proxy && c->is_named && !may(c, c->stream.name, true))
			tcp_pool_drop(&p->pool, i);
	}
}

int name_proxy_create(int ip4_fd, int ip6_fd, const struct name_proxy_calls *calls,
		      struct name_proxy **out, struct cj_error *err)
{
	const int listen_fds[] = { ip4_fd, ip6_fd };
	struct name_proxy *p = calloc(1, sizeof(*p));
	if (!p)
		return cj_fail(err, ENOMEM, "make room for connections by name");
	p->calls = *calls;
	p->pool = (struct tcp_pool){ .what = "connections by name",
				     .calls = &pool_calls,
				     .owner = p,
				     .slots = p->slots,
				     .nslots = NAME_PROXY_CONNECTIONS,
				     .tick_ms = TICK_MS };
	int rc = tcp_pool_open(&p->pool, listen_fds, 2, err);
	if (rc < 0)
		name_proxy_destroy(&p);
	else
		*out = p;
	return rc;
}

void name_proxy_destroy(struct name_proxy **pp)
{
	if (!*pp)
		return;
	tcp_pool_close(&(*pp)->pool);
	cj_free(pp);
}

int name_proxy_fd(const struct name_proxy *p)
{
	return p->pool.epoll_fd;
}

int name_proxy_serve(struct name_proxy *p, struct cj_error *err)
{
	return tcp_pool_serve(&p->pool, err);
}
