/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in the helper. */
#include "netns/address/name_lookup.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void free_answer(struct addrinfo **answer)
{
	if (*answer)
		freeaddrinfo(*answer);
}

static int fail_lookup(int code, struct cj_error *err)
{
	switch (code) {
	case EAI_NONAME:
		return cj_reject_as(err, ENOENT, "this host's resolver knows no such name");
	case EAI_NODATA:
	case EAI_ADDRFAMILY:
		return cj_reject_as(err, ENOENT, "the name has no address");
	case EAI_AGAIN:
	case EAI_FAIL:
		cj_refuse_as(err, EAGAIN, "this host's name servers gave no answer");
		return cj_hint(err,
			       "see what 'getent ahosts NAME' says; write the address instead");
	case EAI_MEMORY:
		return cj_fail(err, ENOMEM, "look up the name");
	case EAI_SYSTEM:
		return cj_fail(err, errno ? errno : EIO, "look up the name");
	default:
		return cj_reject_as(err, EIO, "look up the name: %s", gai_strerror(code));
	}
}

static bool ip_of_sockaddr(const struct sockaddr *address, struct ip *out)
{
	*out = (struct ip){ 0 };
	if (address->sa_family == AF_INET) {
		out->family = 4;
		memcpy(out->bytes, &((const struct sockaddr_in *)address)->sin_addr, 4);
	} else if (address->sa_family == AF_INET6) {
		out->family = 6;
		memcpy(out->bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	}
	return out->family != 0;
}

static int take_answer(const struct addrinfo *answer, struct ip *out, size_t *out_count,
		       struct cj_error *err)
{
	for (const struct addrinfo *i = answer; i; i = i->ai_next) {
		struct ip ip;
		if (!ip_of_sockaddr(i->ai_addr, &ip))
			continue;
		if (*out_count == NAME_ADDRESSES_MAX)
			return cj_reject_as(err, E2BIG, "it has more than %d addresses",
					    NAME_ADDRESSES_MAX);
		out[(*out_count)++] = ip;
	}
	return *out_count > 0 ? 0 : fail_lookup(EAI_NODATA, err);
}

int name_lookup(const char *name, struct ip out[static NAME_ADDRESSES_MAX], size_t *out_count,
		struct cj_error *err)
{
	const struct addrinfo wanted = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	__attribute__((cleanup(free_answer))) struct addrinfo *answer = NULL;

	*out_count = 0;
	int code = getaddrinfo(name, NULL, &wanted, &answer);
	return code != 0 ? fail_lookup(code, err) : take_answer(answer, out, out_count, err);
}
