/* SPDX-License-Identifier: Apache-2.0 */
/* The loader's process. */
#include "netns/gateway_parts.h"

#include <linux/capability.h>
#include <sys/prctl.h>

#include "netns/uplink/uplink_parts.h"
#include "runtime/base/scope.h"

/* What it keeps from one message to the next. */
struct loader_process {
	struct step_link link;
	int fds[LOADER_KEPT];
	size_t count;
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
	if (p->count > 0 || (msg->nfds != 1 && msg->nfds != LOADER_KEPT))
		return cj_fail(err, EPROTO, "take %zu sockets", msg->nfds);
	for (; p->count < msg->nfds; p->count++)
		p->fds[p->count] = take_fd(&msg->fds[p->count]);
	return 0;
}

static int join(const struct loader_process *p, struct cj_error *err)
{
	auto_fd int netns_fd = p->count > 0 ? uplink_join_owner(p->fds[0], err) : -1;
	const struct gateway_rights rights = { .calls = &gateway_loader_calls,
					       .whose = "the loader",
					       .has_joined = netns_fd >= 0,
					       .kept = UINT64_C(1) << CAP_NET_ADMIN };
	if (p->count > 0 && netns_fd < 0 && err->code != EINVAL) /* setns(2): it is our own */
		return -err->code;
	return gateway_give_up(p->link.sock_fd, &rights, err);
}

/* In each table, as far as none fails: the gateway's first. */
static int carry_out_each(const struct loader_process *p, enum loader_step step,
			  const struct loader_order *o, struct loader_answer *out,
			  struct cj_error *err)
{
	int rc = p->count > 0 ? 0 : cj_fail(err, EPROTO, "carry out an order without a socket");
	for (size_t i = p->count == 1 ? 1 : LOADER_TABLES; i-- > 0 && rc == 0;) {
		const int nft_fd = p->fds[i];
		if (step == LOADER_OPEN_NAMES)
			rc = firewall_open_names(nft_fd, o->spec.named, o->spec.nnamed, err);
		else if (step == LOADER_CLOSE_HOST)
			rc = firewall_close_host(nft_fd, &o->ip, err);
		else
			rc = firewall_read_table(nft_fd, o->table, out->counts, err);
	}
	return rc;
}

/* The descriptor of an order: its own, or a socket that is kept.  -1: there is none. */
static int descriptor_of(const struct loader_process *p, const struct step_msg *msg,
			 const struct loader_order *o)
{
	size_t kept = LOADER_OF_JAIL;
	switch (msg->step) {
	case LOADER_HOST:
	case LOADER_CONTAINER:
	case LOADER_PLUG:
	case LOADER_LINKS:
		return msg->nfds == 1 ? msg->fds[0] : -1;
	case LOADER_GATEWAY:
		kept = LOADER_OF_GATEWAY;
		break;
	case LOADER_REPLACE:
		kept = o->on;
		break;
	case LOADER_TAP:
	case LOADER_LOOK:
	case LOADER_UNPLUG:
		kept = LOADER_GATEWAY_ROUTE;
		break;
	default:
		break;
	}
	return msg->nfds == 0 && kept < p->count ? p->fds[kept] : -1;
}

static int carry_out_link(const struct loader_process *p, enum loader_step step, int fd,
			  const struct loader_order *o, struct loader_answer *out,
			  struct cj_error *err)
{
	const int gateway_fd = p->fds[LOADER_GATEWAY_ROUTE];
	if (p->count != LOADER_KEPT)
		return cj_fail(err, EPROTO, "carry out an order without sockets");
	switch (step) {
	case LOADER_LINKS:
		return links_join(gateway_fd, p->fds[LOADER_JAIL_ROUTE], fd, &o->links, err);
	case LOADER_PLUG:
		return links_plug_host(fd, gateway_fd, &o->plug, err);
	case LOADER_TAP:
		return links_configure_tap(gateway_fd, &o->tap, err);
	case LOADER_LOOK:
		out->state = links_look(gateway_fd, LINK_UPLINK);
		return 0;
	case LOADER_UNPLUG:
		links_remove(gateway_fd, LINK_UPLINK);
		return 0;
	default:
		return cj_fail(err, EPROTO, "obey step %u of the supervisor", step);
	}
}

static int carry_out_one(const struct loader_process *p, struct step_msg *msg,
			 const struct loader_order *o, struct loader_answer *out,
			 struct cj_error *err)
{
	const int fd = descriptor_of(p, msg, o);
	if (fd < 0)
		return cj_fail(err, EPROTO, "carry out an order without a socket");
	switch (msg->step) {
	case LOADER_JAIL:
		return firewall_apply_jail(fd, &o->spec, err);
	case LOADER_GATEWAY:
		return firewall_apply_gateway(fd, &o->spec, err);
	case LOADER_HOST:
		return firewall_apply_host(fd, &o->host, err);
	case LOADER_CONTAINER:
		return firewall_apply_container(fd, &o->container, out->table, err);
	case LOADER_REPLACE:
		return firewall_replace(fd, &o->from, &o->spec, err);
	case LOADER_UNREACHABLE:
		return firewall_unreachable(fd, o->family, err);
	default:
		return carry_out_link(p, msg->step, fd, o, out, err);
	}
}

static int carry_out(struct loader_process *p, struct step_msg *msg, const struct loader_order *o,
		     struct loader_answer *out, struct cj_error *err)
{
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
		return carry_out_one(p, msg, o, out, err);
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
	       is_text(o->plug.name, sizeof(o->plug.name)) && o->on < LOADER_TABLES &&
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
		return cj_fail(err, errno, "create the loader");
	if (step_tell(&link, LOADER_STARTED, &pid, sizeof(pid), NULL, 0, err) < 0)
		return -err->code;
	cj_close(&pidfd); /* it is the supervisor's to end */
	return 0;
}
