/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets of a network: init's part, and how they travel. */
#include "netns/network.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "netns/relay/forward.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

void network_handles_init(struct network_handles *h)
{
	for (size_t i = 0; i < SLOT_COUNT; i++)
		h->fds[i] = -1;
	h->has_ipv6 = false;
}

void network_handles_fini(struct network_handles *h)
{
	for (size_t i = 0; i < SLOT_COUNT; i++)
		cj_close(&h->fds[i]);
}

uint32_t network_handles_pack(const struct network_handles *h, int fds[SLOT_COUNT], size_t *out_n)
{
	uint32_t slots = 0;
	*out_n = 0;
	for (size_t slot = 0; slot < SLOT_COUNT; slot++) {
		if (h->fds[slot] < 0)
			continue;
		slots |= 1u << slot;
		fds[(*out_n)++] = h->fds[slot];
	}
	return slots;
}

void network_handles_unpack(struct network_handles *h, uint32_t slots, int *fds, size_t n)
{
	size_t taken = 0;
	for (size_t slot = 0; slot < SLOT_COUNT; slot++)
		if ((slots & (1u << slot)) && taken < n) {
			cj_close(&h->fds[slot]);
			h->fds[slot] = take_fd(&fds[taken++]);
		}
}

static int open_all(const struct network_spec *spec, struct network_handles *h,
		    struct cj_error *err)
{
	if (links_raise_loopback(err) < 0)
		return -err->code;
	if (spec->mode == NETWORK_PUBLIC) {
		/* Any socket tells the gateway which namespace is the jail's. */
		h->fds[SLOT_JAIL] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (h->fds[SLOT_JAIL] < 0)
			return cj_fail(err, errno, "open a socket of the jail's");
	}
	for (size_t i = 0; i < spec->nports + spec->nupstreams; i++) {
		const bool is_port = i < spec->nports;
		h->fds[SLOT_LISTENERS + i] =
		    is_port ? forward_listen(INADDR_LOOPBACK, spec->ports[i], err)
			    : forward_listen(http_upstream_address(i - spec->nports), UPSTREAM_PORT,
					     err);
		if (h->fds[SLOT_LISTENERS + i] < 0)
			return -err->code;
	}
	return 0;
}

int network_open(const struct network_spec *spec, struct network_handles *out, struct cj_error *err)
{
	network_handles_init(out);
	if (open_all(spec, out, err) == 0)
		return 0;
	network_handles_fini(out);
	return -err->code;
}

int network_allow_ping(unsigned gid, struct cj_error *err)
{
	char range[32];
	(void)snprintf(range, sizeof(range), "%u %u", gid, gid);
	return fd_put_file(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", range, err);
}
