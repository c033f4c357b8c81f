/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other rules for a jail that lives.
 *
 * Where the rules become narrower, the gateway's process first asks about each name; where they
 * become wider, last.  In between there is one transaction for each of the two tables.
 */
#include "netns/network_parts.h"

#include "runtime/base/clock.h"
#include "runtime/base/scope.h"

static int filter_names(struct network *n, bool are_filtered, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	if (n->gateway.pidfd < 0 || n->is_building) /* serve_names() tells it */
		return 0;
	if (step_tell(&n->gateway.link, GATEWAY_FILTER, &are_filtered, sizeof(are_filtered), NULL,
		      0, err) < 0)
		return -err->code;
	return network_await_gateway(n, GATEWAY_SERVED, GATEWAY_ANSWER_MS, &msg, err);
}

/* Of connections whose names are checked. */
static int check_again(struct network *n, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	if (n->gateway.dialer_pidfd < 0 || n->is_building)
		return 0;
	if (step_tell(&n->gateway.link, GATEWAY_AGAIN, NULL, 0, NULL, 0, err) < 0)
		return -err->code;
	return network_await_gateway(n, GATEWAY_SERVED, GATEWAY_ANSWER_MS, &msg, err);
}

/* Without the gateway, nothing leaves the jail. */
static int fail_change(struct network *n, const struct cj_error *err)
{
	network_lose_gateway(n, err);
	return -err->code;
}

static void use_names(struct network *n, const struct names_rules *rules)
{
	names_change(n->names, rules, clock_ms());
}

static int replace_table(struct network *n, enum loader_table table, const struct names_rules *from,
			 const struct names_rules *to, struct cj_error *err)
{
	const struct firewall_spec old = network_firewall(n, table, from),
				   new = network_firewall(n, table, to);
	return loader_replace(&n->loader, table, &old, &new, err);
}

/* One table after the other: what only one of them opens is closed. */
static int replace_rules(struct network *n, const struct names_rules *from,
			 const struct names_rules *to, struct cj_error *err)
{
	struct cj_error ignored;
	use_names(n, to);
	int rc = replace_table(n, LOADER_OF_JAIL, from, to, err);
	const bool is_half = rc == 0;
	if (is_half)
		rc = replace_table(n, LOADER_OF_GATEWAY, from, to, err);
	if (rc < 0)
		use_names(n, from);
	if (rc < 0 && is_half && replace_table(n, LOADER_OF_JAIL, to, from, &ignored) < 0)
		network_lose_gateway(n, err);
	names_loaded(n->names, true);
	return rc;
}

static int read_rules(const struct network *n, const struct network_lists *lists, struct arena *a,
		      struct names_rules *out, struct cj_error *err)
{
	struct allowlist_entry *allow = NULL, *deny = NULL;
	struct endpoints *endpoints = arena_array(a, 1, sizeof(*endpoints));
	if (!endpoints)
		return cj_fail(err, ENOMEM, "change the network");
	if (allowlist_parse_all(&lists->allow, allowlist_parse, a, &allow, err) < 0 ||
	    allowlist_parse_all(&lists->deny, allowlist_parse_denied, a, &deny, err) < 0)
		return -err->code;
	allowlist_make_live(allow, lists->allow.count);
	if (allowlist_resolve(allow, lists->allow.count, n->spec->allow_private, a, endpoints,
			      err) < 0 ||
	    allowlist_deny(deny, lists->deny.count, a, endpoints, err) < 0)
		return -err->code;
	*out = (struct names_rules){ .is_list = lists->is_list,
				     .allow = allow,
				     .nallow = lists->allow.count,
				     .deny = deny,
				     .ndeny = lists->deny.count,
				     .checks_names = network_checks_names(n->spec->allow_by, allow,
									  lists->allow.count),
				     .endpoints = endpoints };
	return 0;
}

int network_change(struct network *n, const struct network_lists *lists, struct cj_error *err)
{
	auto_arena struct arena arena = { 0 };
	struct names_rules rules;
	struct cj_error ignored;
	if (!n->names)
		return cj_reject_as(err, EOPNOTSUPP, "the jail's network has a list for good");
	if (read_rules(n, lists, &arena, &rules, err) < 0)
		return -err->code;
	const bool were_filtered = names_are_filtered(&n->rules),
		   are_filtered = names_are_filtered(&rules);
	/* Before it is closed nothing more is looked up, and looked up only after it is open. */
	if (are_filtered && filter_names(n, true, err) < 0)
		return fail_change(n, err);
	if (!n->is_filtered) {
		use_names(n, &rules);
	} else if (replace_rules(n, &n->rules, &rules, err) < 0) {
		if (loader_has_ended(&n->loader)) /* either list may be in force */
			return fail_change(n, err);
		if (are_filtered && !were_filtered && filter_names(n, false, &ignored) < 0)
			(void)fail_change(n, &ignored);
		return -err->code;
	}
	arena_move(&n->rules_arena, &arena);
	n->rules = rules;
	if (check_again(n, err) < 0 || (!are_filtered && filter_names(n, false, err) < 0))
		return fail_change(n, err);
	return 0;
}
