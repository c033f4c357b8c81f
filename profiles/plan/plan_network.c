/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network a jail gets: what --network, --allow, --deny, --connect tcp: and --upstream come to.
 */

#include "netns/address/names.h"
#include "profiles/paths.h"
#include "profiles/plan/plan_parts.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define TCP_PREFIX "tcp:127.0.0.1:"

static int parse_targets(struct planner *p, const struct strings *texts, const char *option,
			 allowlist_parser *parse, struct allowlist_entry **out,
			 struct cj_error *err)
{
	int rc = allowlist_parse_all(texts, parse, &p->c->arena, out, err);
	return rc < 0 ? cj_wrap(err, "%s", option) : 0;
}

/* The list of the command that runs before the program.  Names are looked up when they are asked
 * for, because the list changes. */
static int plan_setup(struct planner *p, struct cj_error *err)
{
	struct network_spec *network = &p->plan.network;
	struct setup_spec *setup = &p->plan.setup;
	const struct strings *texts = &p->c->setup_allow;
	struct allowlist_entry *targets;

	if (!p->c->setup && texts->count > 0) {
		cj_refuse(err, "--setup-allow '%s': there is no command that it is for",
			  texts->items[0]);
		return cj_hint(err, "add --setup COMMAND; or use --allow for the program");
	}
	*setup = (struct setup_spec){ .command = p->c->setup, .wall_ms = p->c->setup_ms };
	if (texts->count == 0)
		return 0;
	if (parse_targets(p, texts, "--setup-allow", allowlist_parse, &targets, err) < 0)
		return -err->code;
	setup->has_network = true;
	setup->lists.is_list = network->mode == NETWORK_NONE || network->nallow > 0;
	if (network->nallow > 0)
		setup->lists.allow = p->c->allow;
	if (network->mode == NETWORK_PUBLIC)
		setup->lists.deny = p->c->deny;
	allowlist_make_live(targets, texts->count);
	network->mode = NETWORK_PUBLIC;
	network->allow = targets;
	network->nallow = texts->count;
	network->is_live = true;
	return 0;
}

/* It holds for the command of --setup, too. */
static int plan_denied(struct planner *p, struct cj_error *err)
{
	const struct strings *texts = &p->c->deny;
	struct allowlist_entry *denied;
	if (p->c->network == NETWORK_NONE && p->c->setup_allow.count == 0)
		return 0;
	if (parse_targets(p, texts, "--deny", allowlist_parse_denied, &denied, err) < 0)
		return -err->code;
	p->plan.network.deny = denied;
	p->plan.network.ndeny = texts->count;
	return 0;
}

/* What has no answer before the start. */
static int check_names_at_start(const struct planner *p, struct cj_error *err)
{
	const struct network_spec *n = &p->plan.network;
	const struct allowlist_entry *wildcard = allowlist_wildcard(n->allow, n->nallow);
	if (!wildcard)
		wildcard = allowlist_wildcard(n->deny, n->ndeny);
	if (wildcard) {
		cj_refuse(err, "--network-names start: '%s' can't be looked up before the start",
			  wildcard->text);
		return cj_hint(err, "write each name in full, or use --network-names auto");
	}
	if (!network_checks_names(p->c->allow_by, n->allow, n->nallow))
		return 0;
	cj_refuse(err, "--network-names start: the names that --allow-by name checks are looked up "
		       "by the program");
	return cj_hint(err, "use --allow-by address, or --network-names auto");
}

static int plan_targets(struct planner *p, struct cj_error *err)
{
	const struct strings *texts = &p->c->allow;
	struct network_spec *network = &p->plan.network;
	struct allowlist_entry *targets;
	/* --network none against a profile's list is that, none; beside --allow it is a mistake. */
	if (p->c->network == NETWORK_NONE && texts->count == p->c->profile_allow)
		return 0;
	if (p->c->network == NETWORK_NONE) {
		cj_refuse(err, "--allow '%s': there is no network to open it in",
			  texts->items[p->c->profile_allow]);
		return cj_hint(err, "add --network public");
	}
	if (parse_targets(p, texts, "--allow", allowlist_parse, &targets, err) < 0)
		return -err->code;
	for (size_t i = 0; i < texts->count; i++) /* a denied name is not in hosts(5) either */
		if (targets[i].name && names_has(network->deny, network->ndeny, targets[i].name))
			targets[i].is_live = true;
	network->allow = targets;
	network->nallow = texts->count;
	network->is_live = texts->count > 0 ? allowlist_has_wildcard(targets, texts->count)
					    : network->ndeny > 0;
	if (texts->count == 0)
		return 0;
	if (p->c->network_names == NETWORK_NAMES_START)
		return check_names_at_start(p, err);
	/* Whether a name leads to a denied wildcard only the answers for it show. */
	if (network_checks_names(p->c->allow_by, targets, texts->count) ||
	    allowlist_has_wildcard(network->deny, network->ndeny) ||
	    p->c->network_names == NETWORK_NAMES_LIVE) {
		allowlist_make_live(targets, texts->count);
		network->is_live = true;
	}
	return 0;
}

bool plan_is_tcp(const char *connect)
{
	return strncmp(connect, "tcp:", 4) == 0;
}

static int parse_port(const char *text, uint16_t *out, struct cj_error *err)
{
	uint64_t port = 0;
	if (strncmp(text, TCP_PREFIX, strlen(TCP_PREFIX)) != 0)
		return cj_reject(err,
				 "'%s' is not '" TCP_PREFIX "PORT': nothing but the host's "
				 "own loopback can be shown",
				 text);
	struct cj_error ignored;
	if (parse_u64(text + strlen(TCP_PREFIX), 1, UINT16_MAX, &port, &ignored) < 0)
		return cj_reject(err, "'%s': a port is a number from 1 to 65535", text);
	*out = (uint16_t)port;
	return 0;
}

static int plan_ports(struct planner *p, struct cj_error *err)
{
	size_t *count = &p->plan.network.nports;
	uint16_t *ports = arena_array(&p->c->arena, NETWORK_PORTS_MAX, sizeof(*ports));
	if (!ports)
		return cj_fail(err, ENOMEM, "plan the network");
	for (size_t i = 0; i < p->c->connects.count; i++) {
		uint16_t port = 0;
		bool is_known = false; /* the same end point twice is once */
		if (!plan_is_tcp(p->c->connects.items[i]))
			continue;
		if (parse_port(p->c->connects.items[i], &port, err) < 0)
			return cj_wrap(err, "--connect");
		for (size_t k = 0; k < *count; k++)
			is_known |= ports[k] == port;
		if (!is_known && *count == NETWORK_PORTS_MAX)
			return cj_reject(err, "--connect: more than %d 'tcp:' end points",
					 NETWORK_PORTS_MAX);
		if (!is_known)
			ports[(*count)++] = port;
	}
	p->plan.network.ports = ports;
	return 0;
}

/* The file has to be there now; what it has is read when it is used. */
static int plan_header(struct planner *p, struct http_upstream_header *header, struct cj_error *err)
{
	if (paths_absolute(header->file, &p->c->arena, &header->file, err) < 0)
		return -err->code;
	auto_fd int fd = fd_open_linked(header->file, err);
	return fd < 0 ? -err->code : 0;
}

static int plan_upstreams(struct planner *p, struct cj_error *err)
{
	const struct strings *texts = &p->c->upstreams;
	struct network_spec *network = &p->plan.network;
	struct http_upstream_spec *specs =
	    arena_array(&p->c->arena, texts->count + 1, sizeof(*specs));
	if (!specs)
		return cj_fail(err, ENOMEM, "plan the network");
	if (network->nports + texts->count > NETWORK_PORTS_MAX)
		return cj_reject(err, "--upstream: more than %d with the ports of --connect",
				 NETWORK_PORTS_MAX);
	for (size_t i = 0; i < texts->count; i++) {
		if (http_upstream_parse(texts->items[i], &p->c->arena, &specs[i], err) < 0)
			return cj_wrap(err, "--upstream");
		for (size_t k = 0; k < i; k++)
			if (strcmp(specs[k].name, specs[i].name) == 0)
				return cj_reject(err, "--upstream: two have the name '%s'",
						 specs[i].name);
		for (size_t k = 0; k < specs[i].nheaders; k++)
			if (plan_header(p, &specs[i].headers[k], err) < 0)
				return cj_wrap(err, "--upstream: the file of 'header=%s:@'",
					       specs[i].headers[k].name);
	}
	network->upstreams = specs;
	network->nupstreams = texts->count;
	return 0;
}

int plan_network_alone(struct config *c, struct network_spec *out, struct cj_error *err)
{
	struct planner p = { .c = c };
	if (plan_network(&p, err) < 0)
		return -err->code;
	*out = p.plan.network;
	return 0;
}

int plan_network(struct planner *p, struct cj_error *err)
{
	const struct config *c = p->c;
	p->plan.network = (struct network_spec){
		.mode = c->network,
		.uplink = c->uplink,
		.starts_early = c->strict || c->network_start == NETWORK_START_EARLY,
		.allow_by = c->allow_by,
		.names = c->network_names,
		.allow_private = c->allow_private,
	};
	if (plan_denied(p, err) < 0 || plan_targets(p, err) < 0 || plan_setup(p, err) < 0)
		return -err->code;
	return plan_ports(p, err) < 0 ? -err->code : plan_upstreams(p, err);
}
