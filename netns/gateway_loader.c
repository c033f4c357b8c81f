/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's process. */
#include "netns/gateway_parts.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "netns/uplink/uplink_parts.h"
#include "runtime/base/scope.h"

/* What it keeps from one message to the next. */
struct loader_process {
	struct step_link link;
	int nft_fds[LOADER_TABLES];
	size_t sockets;
	char *lists; /* of the next order */
	size_t list_bytes;
};

static int add_list(struct loader_process *p, const struct step_msg *msg, struct cj_error *err)
{
	char *lists = msg->size <= LOADER_LISTS_MAX - p->list_bytes
			  ? realloc(p->lists, p->list_bytes + msg->size)
			  : NULL;
	if (!lists)
		return cj_fail(err, ENOMEM, "take the lists of an order");
	memcpy(lists + p->list_bytes, msg->data, msg->size);
	p->lists = lists;
	p->list_bytes += msg->size;
	return 0;
}

/* The pointers of the order, into the lists.  A null one stays of `from`, which has none. */
static int place_lists(const struct loader_process *p, struct loader_order *o, struct cj_error *err)
{
	const char *at = p->lists;
	size_t left = p->list_bytes;
	for (size_t i = 0; i < LOADER_LISTS; i++) {
		const struct loader_list *l = &loader_lists[i];
		size_t count;
		memcpy(&count, (char *)o + l->count, sizeof(count));
		if (count > left / l->size)
			return cj_fail(err, EPROTO, "receive the lists of an order");
		memcpy((char *)o + l->items, &at, sizeof(at));
		if (at)
			at += count * l->size;
		left -= count * l->size;
	}
	return left == 0 ? 0 : cj_fail(err, EPROTO, "receive the lists of an order");
}

static int take_sockets(struct loader_process *p, struct step_msg *msg, struct cj_error *err)
{
	if (p->sockets > 0 || msg->nfds == 0 || msg->nfds > LOADER_TABLES)
		return cj_fail(err, EPROTO, "take %zu sockets", msg->nfds);
	for (; p->sockets < msg->nfds; p->sockets++)
		p->nft_fds[p->sockets] = take_fd(&msg->fds[p->sockets]);
	return 0;
}

static int join(const struct loader_process *p, struct cj_error *err)
{
	auto_fd int netns_fd = p->sockets > 0 ? uplink_join_owner(p->nft_fds[0], err) : -1;
	const struct gateway_rights rights = { .calls = &gateway_loader_calls,
					       .whose = "the loader",
					       .has_joined = netns_fd >= 0,
					       .kept = UINT64_C(1) << CAP_NET_ADMIN };
	if (p->sockets > 0 && netns_fd < 0 && err->code != EINVAL) /* setns(2): it is our own */
		return -err->code;
	return gateway_give_up(p->link.sock_fd, &rights, err);
}

/* In each table, as far as none fails: the gateway's first. */
static int carry_out_each(const struct loader_process *p, enum loader_step step,
			  const struct loader_order *o, struct loader_answer *out,
			  struct cj_error *err)
{
	int rc = p->sockets > 0 ? 0 : cj_fail(err, EPROTO, "carry out an order without a socket");
	for (size_t i = p->sockets; i-- > 0 && rc == 0;) {
		const int nft_fd = p->nft_fds[i];
		if (step == LOADER_OPEN_NAMES)
			rc = firewall_open_names(nft_fd, o->spec.named, o->spec.nnamed, err);
		else if (step == LOADER_CLOSE_HOST)
			rc = firewall_close_host(nft_fd, &o->ip, err);
		else
			rc = firewall_read_table(nft_fd, o->table, out->counts, err);
	}
	return rc;
}

static int carry_out(struct loader_process *p, struct step_msg *msg, const struct loader_order *o,
		     struct loader_answer *out, struct cj_error *err)
{
	const enum loader_table on = msg->step == LOADER_GATEWAY   ? LOADER_OF_GATEWAY
				     : msg->step == LOADER_REPLACE ? o->on
								   : LOADER_OF_JAIL;
	const bool is_own = msg->step == LOADER_HOST || msg->step == LOADER_CONTAINER;
	const int nft_fd = is_own ? msg->fds[0] : on < p->sockets ? p->nft_fds[on] : -1;
	switch (msg->step) {
	case LOADER_SOCKETS:
		return take_sockets(p, msg, err);
	case LOADER_JOIN:
		return join(p, err);
	case LOADER_OPEN_NAMES:
	case LOADER_CLOSE_HOST:
	case LOADER_COUNT:
		return carry_out_each(p, msg->step, o, out, err);
	default:
		break;
	}
	if (nft_fd < 0 || msg->nfds != is_own)
		return cj_fail(err, EPROTO, "carry out an order without a socket");
	switch (msg->step) {
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
	default:
		return cj_fail(err, EPROTO, "obey step %u of the supervisor", msg->step);
	}
}

static bool is_text(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* What the rules take for granted. */
static bool is_order_valid(const struct loader_order *o)
{
	return is_text(o->table, sizeof(o->table)) &&
	       is_text(o->host.table, sizeof(o->host.table)) &&
	       is_text(o->host.link, sizeof(o->host.link)) &&
	       is_text(o->host.every_link, sizeof(o->host.every_link)) &&
	       o->container.nname_servers <= FIREWALL_NAME_SERVERS_MAX;
}

/* One message.  An order that fails is answered; a negative return ends the process. */
static int obey(struct loader_process *p, struct cj_error *err)
{
	struct loader_answer answer = { 0 };
	struct loader_order order;
	auto_step_msg struct step_msg msg = { 0 };
	if (step_next(&p->link, &msg, err) < 0)
		return -err->code;
	if (msg.step == LOADER_LIST)
		return add_list(p, &msg, err);
	int rc = -EPROTO;
	if (msg.size != sizeof(order))
		(void)!cj_fail(&answer.why, EPROTO, "receive an order of the supervisor");
	else {
		memcpy(&order, msg.data, sizeof(order));
		if (!is_order_valid(&order))
			(void)!cj_fail(&answer.why, EPROTO, "receive an order of the supervisor");
		else if ((rc = place_lists(p, &order, &answer.why)) == 0)
			rc = carry_out(p, &msg, &order, &answer, &answer.why);
	}
	p->list_bytes = 0;
	if (rc == 0)
		answer.why = (struct cj_error){ 0 }; /* of a try that failed */
	const bool has_half_joined = rc < 0 && msg.step == LOADER_JOIN;
	rc = step_tell(&p->link, LOADER_DONE, &answer, sizeof(answer), NULL, 0, err);
	return has_half_joined ? -EPERM : rc;
}

_Noreturn void gateway_run_loader(int link_fd)
{
	struct cj_error ended = { 0 };
	struct loader_process p = { .link = { link_fd, "the supervisor", loader_step_names } };
	(void)prctl(PR_SET_NAME, "cejail-loader", 0, 0, 0); /* only what ps(1) shows */
	step_wait_forever(&p.link);
	while (obey(&p, &ended) == 0)
		;
	step_abort(&p.link, &ended); /* to nobody, if the supervisor has closed the link */
	_exit(EXIT_SUCCESS);         /* which needs no call that it has given up */
}

int gateway_fork_loader(int link_fd, struct cj_error *err)
{
	struct cj_error why = { 0 };
	auto_child int pidfd = -1;
	pid_t pid = child_fork_sibling(&pidfd);
	if (pid == 0 && child_keep_only(&link_fd, 1, &why) == 0 &&
	    child_die_with_parent(link_fd, &why) == 0)
		gateway_run_loader(link_fd);
	const struct step_link link = { link_fd, "the supervisor", loader_step_names };
	if (pid == 0) {
		step_abort(&link, &why);
		_exit(0);
	}
	if (pid < 0)
		return cj_fail(err, errno, "create the loader of rules");
	if (step_tell(&link, LOADER_STARTED, &pid, sizeof(pid), NULL, 0, err) < 0)
		return -err->code;
	cj_close(&pidfd); /* it is the supervisor's to end */
	return 0;
}
