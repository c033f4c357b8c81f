/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the place of three functions of libc that would load the resolver's plug-ins, which a
 * static program can't.  libnl refers to them, but nothing here calls what does.
 */
#include "runtime/front/cli/cli.h"

#include <netdb.h>

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's begin with "__" */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *wanted,
		struct addrinfo **out)
{
	(void)name, (void)service, (void)wanted, (void)out;
	return EAI_FAIL;
}

struct protoent *getprotobyname(const char *name)
{
	(void)name;
	return NULL;
}

struct protoent *getprotobynumber(int number)
{
	(void)number;
	return NULL;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
