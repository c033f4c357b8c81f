/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --cejail-network public and allow: the network of a run, which jail_network.h builds.
 *
 *	monitor (as the supervisor)               child (as init)
 *	plan, look up names: jail_hold()
 *	clone3, with the namespaces ------------> id maps, init_network_open()
 *	<------------------- STEP_NETWORK, a socket of its network namespace
 *	rules, gateway, uplink, links             makes the root meanwhile
 *	a byte ---------------------------------> user namespace of the program, execve(2)
 *
 * The network namespace belongs to the child's user namespace, and the program is in one below it:
 * no capability of the program, not even of user id 0 with --cap-add ALL, applies to the rules,
 * links, routes and raw sockets there.  The rules of the gateway are out of its reach in any case.
 */
#include <poll.h>

#include "profiles/config.h"
#include "runtime/base/files/fd.h"
#include "runtime/front/bwrap/bwrap.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/prepare/jail_init.h"
#include "runtime/jail/supervise/jail_network.h"

int bwrap_network_plan(struct bwrap_watch *w, const struct bwrap_limits *l, struct cj_error *err)
{
	config_init(&w->config);
	if (l->network != NETWORK_PUBLIC)
		return 0;
	w->config.network = NETWORK_PUBLIC;
	w->config.network_start = NETWORK_START_EARLY;
	if (strings_add_all(&w->config.allow, &w->config.arena, &l->allow) < 0)
		return cj_fail(err, ENOMEM, "plan the network");
	return plan_network_alone(&w->config, &w->plan.network, err) < 0
		   ? cj_wrap(err, BWRAP_PREFIX "network")
		   : 0;
}

int bwrap_network_offer(struct bwrap_watch *w, struct bwrap_start *s, struct cj_error *err)
{
	struct jail *j = w->jail;
	int ends[2];
	if (!jail_network_is_wanted(j))
		return 0;
	if (step_pair(ends, 0, err) < 0)
		return -err->code;
	step_limit_wait(ends[0], STEP_TIMEOUT_MS);
	j->link = (struct step_link){ ends[0], "the child", step_names };
	s->link = (struct step_link){ ends[1], "the monitor", step_names };
	s->network = &w->plan.network;
	/* An empty one means the local machine, which refuses at once: resolv.conf(5). */
	s->tree.resolv_conf = j->root.resolv_conf ? j->root.resolv_conf : "";
	if (!j->root.hosts)
		return 0;
	s->tree.hosts = arena_printf(&j->arena,
				     "127.0.0.1\tlocalhost\n"
				     "::1\tlocalhost ip6-localhost ip6-loopback\n%s",
				     j->root.hosts);
	return s->tree.hosts ? 0 : cj_fail(err, ENOMEM, "write /etc/hosts");
}

int bwrap_network_build(struct bwrap_watch *w, const struct bwrap_start *s, int report_fd,
			struct cj_error *err)
{
	struct jail *j = w->jail;
	if (!s->network)
		return 0;
	int rc = jail_hold_network(j, err);
	if (rc == 0)
		rc = fd_write_all(j->link.sock_fd, "", 1, "the child", err);
	/* A child that has failed meanwhile has said why: its report counts. */
	if (rc < 0 && fd_await(report_fd, POLLIN, 0)) {
		*err = (struct cj_error){ 0 };
		return 0;
	}
	return rc;
}

void bwrap_network_put(struct json_writer *w, const struct bwrap_limits *l,
		       const struct network_outcome *n)
{
	uint64_t denied = 0;
	if (l->network != NETWORK_PUBLIC)
		return;
	for (size_t i = 0; i < n->ndenied; i++)
		denied += n->denied[i].count;
	json_member_text(w, "cejail-network", network_state_names[n->state]);
	json_member_u64(w, "cejail-denied", denied);
}
