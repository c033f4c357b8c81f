/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_lookup - the addresses of a name, by this host's resolver: hosts(5), nsswitch.conf(5), DNS.
 *
 * name_lookup() runs in the helper.  The launcher only has name_ask(): the resolver's plug-ins need
 * a dynamic program.
 */
#pragma once

#include "netns/address/ip.h"
#include "runtime/base/error.h"

#define NAME_ADDRESSES_MAX 4096 /* as many as an answer of DNS can hold */

/*
 * name_lookup - fills *out_count addresses, in the resolver's order; one may be there twice.
 *
 * Fails: ENOENT for a name that does not exist or has no address; EAGAIN when no server answered;
 *        E2BIG for too many.  Follows: getaddrinfo(3).
 */
int name_lookup(const char *name, struct ip out[static NAME_ADDRESSES_MAX], size_t *out_count,
		struct cj_error *err);

/* The same, by running the helper. */
int name_ask(const char *name, struct ip out[static NAME_ADDRESSES_MAX], size_t *out_count,
	     struct cj_error *err);
