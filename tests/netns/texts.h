/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as a test writes them; one that is refused ends the test program, or a body's child. */
#pragma once

#include "netns/address/ip.h"

static inline void text_refused(const char *text)
{
	(void)fprintf(stderr, "'%s' is refused\n", text);
	abort();
}

static inline struct ip ip_of(const char *text)
{
	struct ip ip = { 0 };
	if (!ip_parse(text, &ip))
		text_refused(text);
	return ip;
}

static inline struct ip_net net_of(const char *text)
{
	struct ip_net net = { 0 };
	if (!ip_net_parse(text, &net))
		text_refused(text);
	return net;
}
