/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's process. */
#include "netns/gateway_parts.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "netns/uplink/uplink_parts.h"
#include "runtime/base/scope.h"

/* An order as it came: its lists are mapped. */
struct loader_received {
	struct loader_order order;
	const int *sock_fds;
	size_t count;
	void *lists; /* MAP_FAILED: there are none */
};

/* The pointers of the order, into its lists.  False: they are longer than these. */
static bool place_lists(struct loader_received *r)
{
	char *const order = (char *)&r->order;
	const char *at = r->lists;
	size_t left = r->order.list_bytes;
	for (size_t i = 0; i < LOADER_LISTS; i++) {
		const struct loader_list *l = &loader_lists[i];
		size_t count;
		memcpy(&count, order + l->count, sizeof(count));
		if (count > left / l->size)
			return false;
		memcpy(order + l->items, &at, sizeof(at));
		at += count * l->size;
		left -= count * l->size;
	}
	return true;
}

static int take_order(const struct step_msg *msg, struct loader_received *r, struct cj_error *err)
{
	r->lists = MAP_FAILED;
	if (msg->size != sizeof(r->order))
		return cj_fail(err, EPROTO, "receive an order of the supervisor");
	memcpy(&r->order, msg->data, sizeof(r->order));
	const bool has_lists = r->order.list_bytes > 0;
	if (msg->nfds < 1u + has_lists)
		return cj_fail(err, EPROTO, "receive an order of the supervisor");
	r->sock_fds = msg->fds;
	r->count = msg->nfds - has_lists;
	if (has_lists) {
		r->lists = mmap(NULL, r->order.list_bytes, PROT_READ, MAP_PRIVATE,
				msg->fds[msg->nfds - 1], 0);
		if (r->lists == MAP_FAILED)
			return cj_fail(err, errno, "map the lists of an order");
	}
	return place_lists(r) ? 0
			      : cj_fail(err, EPROTO, "receive the lists of the supervisor's order");
}

static void end_order(struct loader_received *r)
{
	if (r->lists != MAP_FAILED)
		(void)munmap(r->lists, r->order.list_bytes);
}

/* In each of the sockets' tables, as far as none fails. */
static int carry_out_each(enum loader_step step, const struct loader_received *r,
			  struct loader_answer *out, struct cj_error *err)
{
	const struct loader_order *o = &r->order;
	int rc = 0;
	for (size_t i = 0; i < r->count && rc == 0; i++) {
		const int nft_fd = r->sock_fds[i];
		if (step == LOADER_OPEN_NAMES)
			rc = firewall_open_names(nft_fd, o->spec.named, o->spec.nnamed, err);
		else if (step == LOADER_CLOSE_HOST)
			rc = firewall_close_host(nft_fd, &o->ip, err);
		else
			rc = firewall_read_table(nft_fd, o->table, out->counts, err);
	}
	return rc;
}

static int carry_out(unsigned step, const struct loader_received *r, struct loader_answer *out,
		     struct cj_error *err)
{
	const struct loader_order *o = &r->order;
	const int nft_fd = r->sock_fds[0];
	switch (step) {
	case LOADER_JAIL:
		return firewall_apply_jail(nft_fd, &o->spec, err);
	case LOADER_GATEWAY:
		return firewall_apply_gateway(nft_fd, &o->spec, err);
	case LOADER_HOST:
		return firewall_apply_host(nft_fd, &o->host, err);
	case LOADER_CONTAINER:
		return firewall_apply_container(nft_fd, &o->container, out->table, err);
	case LOADER_REPLACE:
		return firewall_replace(nft_fd, &o->from, &o->spec, err);
	case LOADER_UNREACHABLE:
		return firewall_unreachable(nft_fd, o->family, err);
	case LOADER_OPEN_NAMES:
	case LOADER_CLOSE_HOST:
	case LOADER_COUNT:
		return carry_out_each(step, r, out, err);
	default:
		return cj_fail(err, EPROTO, "obey step %u of the supervisor", step);
	}
}

static int join(int link_fd, int sock_fd, struct cj_error *err)
{
	auto_fd int netns_fd = uplink_join_owner(sock_fd, err);
	const struct gateway_rights rights = { .calls = &gateway_loader_calls,
					       .whose = "the loader",
					       .has_joined = netns_fd >= 0,
					       .kept = UINT64_C(1) << CAP_NET_ADMIN };
	if (netns_fd < 0 && err->code != EINVAL) /* setns(2): it is our own */
		return -err->code;
	return gateway_give_up(link_fd, &rights, err);
}

/* One order.  An order that fails is answered; a negative return ends the process. */
static int obey(const struct step_link *link, struct cj_error *err)
{
	struct loader_answer answer = { 0 };
	struct cj_error why = { 0 };
	struct loader_received r;
	auto_step_msg struct step_msg msg = { 0 };
	if (step_next(link, &msg, err) < 0)
		return -err->code;
	int rc = take_order(&msg, &r, &why);
	const bool is_join = rc == 0 && msg.step == LOADER_JOIN;
	if (is_join)
		rc = join(link->sock_fd, r.sock_fds[0], &why);
	else if (rc == 0)
		rc = carry_out(msg.step, &r, &answer, &why);
	end_order(&r);
	if (rc == 0)
		return step_tell(link, LOADER_DONE, &answer, sizeof(answer), NULL, 0, err);
	step_abort(link, &why);
	return is_join ? rc : 0; /* half of its rights may be gone */
}

_Noreturn void gateway_run_loader(int link_fd)
{
	struct cj_error ended = { 0 };
	const struct step_link link = { link_fd, "the supervisor", loader_step_names };
	(void)prctl(PR_SET_NAME, "cejail-loader", 0, 0, 0); /* only what ps(1) shows */
	step_wait_forever(&link);
	while (obey(&link, &ended) == 0)
		;
	_exit(EXIT_SUCCESS); /* which needs no call that it has given up */
}

int gateway_fork_loader(int link_fd, struct cj_error *err)
{
	struct cj_error why = { 0 };
	auto_fd int pidfd = -1;
	pid_t pid = child_fork_sibling(&pidfd);
	if (pid == 0) {
		if (child_keep_only(&link_fd, 1, &why) == 0 &&
		    child_die_with_parent(link_fd, &why) == 0)
			gateway_run_loader(link_fd);
		_exit(0);
	}
	if (pid < 0)
		return cj_fail(err, errno, "create the loader of rules");
	const struct step_link link = { link_fd, "the supervisor", loader_step_names };
	return step_tell(&link, LOADER_STARTED, NULL, 0, &pidfd, 1, err);
}
