/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name-helper NAME: looks up a name with this host's resolver and writes its addresses, each a
 * struct ip.  Started by netns/address/name_ask.c.  It has the caller's rights.
 */
#include "netns/address/name_lookup.h"
#include "runtime/base/files/libexec.h"

/* resolv.conf(5): three servers, two attempts, 5 s each; and other sources. */
#define LIFE_SECONDS 120

static struct ip found[NAME_ADDRESSES_MAX];

int main(int argc, char **argv)
{
	struct cj_error err = { 0 };
	size_t count = 0;
	libexec_begin(LIFE_SECONDS);
	int rc = argc == 2 ? name_lookup(argv[1], found, &count, &err)
			   : cj_reject(&err, "usage: name-helper NAME");
	return rc < 0 ? libexec_fail(&err) : libexec_answer(found, count * sizeof(*found));
}
