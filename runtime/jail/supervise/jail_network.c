/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/supervise/jail_network.h"

#include "netns/address/addresses.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/protocol.h"

#define NUMBERS 0x10000u /* of jails on one host, as netns/uplink/uplink_host.c counts them */

static void on_warning(void *context, const char *text)
{
	jail_warn(context, "%s", text);
}

static void on_denial(void *context, const struct denial *denial)
{
	const struct jail *j = context;
	if (j->run.io.denied)
		j->run.io.denied(j->run.io.context, &(struct jail_denied){ .packet = denial });
}

/* For the jail's /etc: hosts with the names and addresses of --allow; a resolv.conf where names are
 * looked up later. */
int jail_network_names_enter(struct jail *j, struct cj_error *err)
{
	const struct network_spec *spec = &j->plan->network;
	if (spec->mode == NETWORK_PUBLIC && network_has_dns(spec))
		j->root.resolv_conf = "nameserver " ADDRESS_GATEWAY4_TEXT "\n";
	if (spec->nupstreams > 0) {
		j->root.hosts = http_upstream_hosts(spec->upstreams, spec->nupstreams, &j->arena);
		if (!j->root.hosts)
			return cj_fail(err, ENOMEM, "write /etc/hosts");
	}
	if (spec->nallow + spec->ndeny == 0)
		return 0;
	if (allowlist_resolve(spec->allow, spec->nallow, spec->allow_private, &j->arena,
			      &j->endpoints, err) < 0)
		return -err->code;
	if (allowlist_deny(spec->deny, spec->ndeny, &j->arena, &j->endpoints, err) < 0)
		return cj_wrap(err, "--deny");
	for (size_t i = 0; i < j->endpoints.warnings.count; i++)
		jail_warn(j, "%s", j->endpoints.warnings.items[i]);
	if (spec->nallow == 0 || spec->is_live)
		return 0; /* an address of a file would outlive a change of the list */
	j->root.hosts =
	    arena_printf(&j->arena, "%s%s", j->root.hosts ? j->root.hosts : "", j->endpoints.hosts);
	return j->root.hosts ? 0 : cj_fail(err, ENOMEM, "write /etc/hosts");
}

int jail_network_enter(struct jail *j, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct opened opened;
	struct network_handles handles;
	/* Each jail begins its search for a free address elsewhere: by an id of its own. */
	const unsigned number = j->ids.lock_fd >= 0 ? j->ids.uid : (unsigned)getpid();
	const struct network_setup setup = {
		.spec = &j->plan->network,
		.endpoints = &j->endpoints,
		.number = number % NUMBERS,
		.callbacks = { on_warning, on_denial, j },
	};
	if (step_await(&j->link, STEP_NETWORK, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(opened))
		return cj_fail(err, EPROTO, "receive the network");
	memcpy(&opened, msg.data, sizeof(opened));
	network_handles_init(&handles);
	network_handles_unpack(&handles, opened.slots, msg.fds, msg.nfds);
	if (network_create(&setup, &handles, &j->network, err) < 0)
		return -err->code;
	if (jail_network_starts_late(j) || network_build(j->network, err) == 0)
		return 0;
	network_destroy(&j->network);
	return -err->code;
}

void jail_network_leave(struct jail *j)
{
	network_destroy(&j->network);
}

/* Without a listener no call could ask for the network: an outer sandbox has one already. */
int jail_network_uplink_enter(struct jail *j, struct cj_error *err)
{
	if (jail_network_starts_late(j) && j->watch)
		return 0;
	if (network_build(j->network, err) < 0) /* does nothing the second time */
		return -err->code;
	return network_await(j->network, err);
}

/* A network of lo alone has nothing to filter. */
void jail_network_assess(struct jail *j)
{
	const char *why;
	enum layer_state state = LAYER_OFF;
	if (j->network && network_state(j->network, &why) != NETWORK_UNUSED)
		state = network_is_filtered(j->network) ? LAYER_ON : LAYER_ABSENT;
	j->layers[LAYER_NETWORK_FILTER] = state;
}

bool jail_network_advance(struct jail *j)
{
	struct cj_error err = { 0 };
	if (network_build(j->network, &err) < 0 || network_proceed(j->network, &err) < 0)
		network_give_up(j->network, &err);
	if (network_is_building(j->network))
		return false;
	jail_network_assess(j);
	filter_watch_network_settled(j->watch);
	return true;
}

void jail_network_report(struct jail *j)
{
	struct network_outcome now = { 0 };
	if (!j->network || !j->run.io.network || network_is_building(j->network))
		return;
	now.state = network_state(j->network, &now.why);
	if (now.state == j->run.network_reported)
		return;
	now.uplink = network_uplink(j->network);
	j->run.network_reported = now.state;
	j->run.io.network(j->run.io.context, &now);
}

int jail_network_read_upstreams(const struct http_upstream *all, struct http_upstream_use *before,
				struct outcome *out, struct cj_error *err)
{
	if (!all)
		return 0;
	out->network.upstreams = http_upstream_read(all, before, &out->arena);
	if (!out->network.upstreams)
		return cj_fail(err, ENOMEM, "keep what the upstreams were used for");
	out->network.nupstreams = http_upstream_count(all);
	return 0;
}
