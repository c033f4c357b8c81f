/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of a network are made of. */
#include "netns/network_parts.h"

const char *const network_allow_by_names[NETWORK_ALLOW_BY_COUNT] = {
	[NETWORK_ALLOW_BY_ADDRESS] = "address",
	[NETWORK_ALLOW_BY_AUTO] = "auto",
	[NETWORK_ALLOW_BY_NAME] = "name",
};

const char *const network_names_names[NETWORK_NAMES_COUNT] = {
	[NETWORK_NAMES_LIVE] = "live",
	[NETWORK_NAMES_AUTO] = "auto",
	[NETWORK_NAMES_START] = "start",
};

bool network_checks_names(enum network_allow_by by, const struct allowlist_entry *allow,
			  size_t nallow)
{
	if (by == NETWORK_ALLOW_BY_AUTO)
		return allowlist_has_wildcard(allow, nallow);
	for (size_t i = 0; i < nallow; i++)
		if (allow[i].name)
			return by == NETWORK_ALLOW_BY_NAME;
	return false;
}

bool network_has_proxy(const struct network_spec *spec)
{
	return spec->is_live && spec->allow_by != NETWORK_ALLOW_BY_ADDRESS;
}

bool network_has_dns(const struct network_spec *spec)
{
	return spec->nallow == 0 || spec->is_live;
}

struct firewall_spec network_firewall(const struct network *n, enum loader_table table,
				      const struct names_rules *rules)
{
	struct firewall_spec spec = {
		.addresses = addresses_make(n->handles.has_ipv6),
		.has_dns = network_has_dns(n->spec),
		.has_names = n->names != NULL,
		.has_proxy = table == LOADER_OF_GATEWAY && network_has_proxy(n->spec),
		.checks_names = rules->checks_names,
		.is_list = rules->is_list,
		.allowed = rules->endpoints->items,
		.nallowed = rules->endpoints->count,
		.denied = rules->endpoints->denied,
		.ndenied = rules->endpoints->ndenied,
	};
	spec.host = hostaddrs_list(n->hostaddrs, &spec.nhost);
	if (n->names)
		spec.named = names_new(n->names, &spec.nnamed);
	return spec;
}
