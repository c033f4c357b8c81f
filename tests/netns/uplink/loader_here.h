/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_here - the loader is the test's process: test_gateway_loader.c has one of its own.
 *
 * A test program includes this once, and wraps the functions below.
 */
#pragma once

#include "netns/address/addresses.h"
#include "netns/loader/loader.h"

#define GATEWAYS_MAX 1024 /* of their descriptors */

/* One that has the sockets of this gateway. */
static inline struct loader *loader_here(int gateway_fd)
{
	static struct loader all[GATEWAYS_MAX];
	all[gateway_fd].link.sock_fd = gateway_fd;
	return &all[gateway_fd];
}

int __wrap_loader_plug_host(struct loader *l, int host_fd, const struct links_host_spec *spec,
			    struct cj_error *err);
int __wrap_loader_plug_host(struct loader *l, int host_fd, const struct links_host_spec *spec,
			    struct cj_error *err)
{
	return links_plug_host(host_fd, l->link.sock_fd, spec, err);
}

int __wrap_loader_configure_tap(struct loader *l, const struct links_tap_spec *spec,
				struct cj_error *err);
int __wrap_loader_configure_tap(struct loader *l, const struct links_tap_spec *spec,
				struct cj_error *err)
{
	return links_configure_tap(l->link.sock_fd, spec, err);
}

int __wrap_loader_look(struct loader *l, struct links_state *out, struct cj_error *err);
int __wrap_loader_look(struct loader *l, struct links_state *out, struct cj_error *err)
{
	(void)err;
	*out = links_look(l->link.sock_fd, LINK_UPLINK);
	return 0;
}

int __wrap_loader_unplug(struct loader *l, struct cj_error *err);
int __wrap_loader_unplug(struct loader *l, struct cj_error *err)
{
	(void)err;
	links_remove(l->link.sock_fd, LINK_UPLINK);
	return 0;
}
