/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of the loader: its orders. */
#include "netns/loader/loader.h"

#include <assert.h>
#include <poll.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

const char *const loader_step_names[LOADER_STEPS] = {
	[LOADER_LIST] = "lists of an order",
	[LOADER_SOCKETS] = "take sockets",
	[LOADER_JAIL] = "load the jail's rules",
	[LOADER_GATEWAY] = "load the gateway's rules",
	[LOADER_HOST] = "load the host's rules",
	[LOADER_CONTAINER] = "load a container's rules",
	[LOADER_REPLACE] = "replace rules",
	[LOADER_OPEN_NAMES] = "open what names have",
	[LOADER_CLOSE_HOST] = "close an address",
	[LOADER_UNREACHABLE] = "reject a family",
	[LOADER_COUNT] = "read counters",
	[LOADER_LINKS] = "make the links of a jail",
	[LOADER_PLUG] = "make a link of the host",
	[LOADER_TAP] = "set up a tap device",
	[LOADER_LOOK] = "look at a link",
	[LOADER_UNPLUG] = "remove a link",
	[LOADER_JOIN] = "join the jail's user namespace",
	[LOADER_DONE] = "it is done",
	[LOADER_STARTED] = "loader is started",
};

#define LIST(list, n)                                                                              \
	{                                                                                          \
		offsetof(struct loader_order, list), offsetof(struct loader_order, n),             \
		    sizeof(*((struct loader_order *)NULL)->list)                                   \
	}

/* Those with ports first, which are aligned to two bytes. */
const struct loader_list loader_lists[LOADER_LISTS] = {
	LIST(spec.allowed, spec.nallowed),
	LIST(spec.denied, spec.ndenied),
	LIST(spec.named, spec.nnamed),
	LIST(host.allowed, host.nallowed),
	LIST(container.rules.allowed, container.rules.nallowed),
	LIST(container.rules.denied, container.rules.ndenied),
	LIST(spec.host, spec.nhost),
	LIST(container.rules.host, container.rules.nhost),
	LIST(container.name_servers, container.nname_servers),
};
static_assert(_Alignof(struct endpoint) == 2 && _Alignof(struct ip) == 1,
	      "the lists are aligned, one behind the other");

/* Sends the lists, and leaves null pointers. */
static int send_lists(const struct loader *l, struct loader_order *o, struct cj_error *err)
{
	const char *items;
	const char *const none = NULL;
	size_t count;
	for (size_t i = 0; i < LOADER_LISTS; i++) {
		const struct loader_list *list = &loader_lists[i];
		memcpy(&items, (char *)o + list->items, sizeof(items));
		memcpy(&count, (char *)o + list->count, sizeof(count));
		memcpy((char *)o + list->items, &none, sizeof(none));
		for (size_t left = items ? count * list->size : 0; left > 0;) {
			const size_t size = left < STEP_DATA_MAX ? left : STEP_DATA_MAX;
			if (step_tell(&l->link, LOADER_LIST, items, size, NULL, 0, err) < 0)
				return -err->code;
			items += size;
			left -= size;
		}
	}
	return 0;
}

static int receive_answer(const struct loader *l, struct loader_answer *out, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	if (step_await(&l->link, LOADER_DONE, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(*out))
		return cj_fail(err, EPROTO, "receive the loader's answer");
	memcpy(out, msg.data, sizeof(*out));
	return 0;
}

/* Its answer is to be taken. */
static int send_order(struct loader *l, enum loader_step step, struct loader_order *o,
		      const int *fds, size_t nfds, struct cj_error *err)
{
	if (loader_has_ended(l))
		return cj_fail(err, EPIPE, "order the loader to %s", loader_step_names[step]);
	if (send_lists(l, o, err) == 0 &&
	    step_tell(&l->link, step, o, sizeof(*o), fds, nfds, err) == 0)
		return 0;
	loader_stop(l);
	return -err->code;
}

static int take_answer(struct loader *l, struct loader_answer *out, struct cj_error *err)
{
	l->is_looking = false;
	if (receive_answer(l, out, err) < 0) {
		loader_stop(l); /* no later answer may be taken for another order's */
		return -err->code;
	}
	if (out->why.code == 0)
		return 0;
	*err = out->why;
	return -err->code;
}

static int give(struct loader *l, enum loader_step step, struct loader_order *o, const int *fds,
		size_t nfds, struct loader_answer *out, struct cj_error *err)
{
	if (l->is_looking && take_answer(l, out, err) < 0)
		return -err->code;
	return send_order(l, step, o, fds, nfds, err) < 0 ? -err->code : take_answer(l, out, err);
}

/* With a descriptor of the order's own. */
static int give_with(struct loader *l, enum loader_step step, struct loader_order *o, int fd,
		     struct cj_error *err)
{
	struct loader_answer ignored;
	return give(l, step, o, &fd, 1, &ignored, err);
}

static int give_one(struct loader *l, enum loader_step step, struct loader_order *o,
		    struct cj_error *err)
{
	struct loader_answer ignored;
	return give(l, step, o, NULL, 0, &ignored, err);
}

int loader_give_sockets(struct loader *l, const int *fds, size_t n, struct cj_error *err)
{
	struct loader_answer ignored;
	return give(l, LOADER_SOCKETS, &(struct loader_order){ 0 }, fds, n, &ignored, err);
}

int loader_join(struct loader *l, struct cj_error *err)
{
	return give_one(l, LOADER_JOIN, &(struct loader_order){ 0 }, err);
}

int loader_apply_jail(struct loader *l, const struct firewall_spec *spec, struct cj_error *err)
{
	return give_one(l, LOADER_JAIL, &(struct loader_order){ .spec = *spec }, err);
}

int loader_apply_gateway(struct loader *l, const struct firewall_spec *spec, struct cj_error *err)
{
	return give_one(l, LOADER_GATEWAY, &(struct loader_order){ .spec = *spec }, err);
}

int loader_replace(struct loader *l, enum loader_table table, const struct firewall_spec *from,
		   const struct firewall_spec *to, struct cj_error *err)
{
	struct loader_order o = { .spec = *to, .from = *from, .on = table };
	o.from.allowed = o.from.denied = o.from.named = NULL; /* their lengths tell which sets */
	o.from.host = NULL;
	return give_one(l, LOADER_REPLACE, &o, err);
}

int loader_unreachable(struct loader *l, int family, struct cj_error *err)
{
	return give_one(l, LOADER_UNREACHABLE, &(struct loader_order){ .family = family }, err);
}

int loader_open_names(struct loader *l, const struct endpoint *named, size_t n,
		      struct cj_error *err)
{
	struct loader_order o = { .spec = { .named = named, .nnamed = n } };
	return give_one(l, LOADER_OPEN_NAMES, &o, err);
}

int loader_close_host(struct loader *l, const struct ip *ip, struct cj_error *err)
{
	return give_one(l, LOADER_CLOSE_HOST, &(struct loader_order){ .ip = *ip }, err);
}

int loader_read_counters(struct loader *l, const char *table,
			 uint64_t counts[static NET_CLASS_COUNT], struct cj_error *err)
{
	struct loader_order o = { 0 };
	struct loader_answer answer;
	(void)snprintf(o.table, sizeof(o.table), "%s", table);
	if (give(l, LOADER_COUNT, &o, NULL, 0, &answer, err) < 0)
		return -err->code;
	for (size_t i = 0; i < NET_CLASS_COUNT; i++)
		counts[i] += answer.counts[i];
	return 0;
}

int loader_apply_host(struct loader *l, int nft_fd, const struct firewall_host_spec *spec,
		      struct cj_error *err)
{
	return give_with(l, LOADER_HOST, &(struct loader_order){ .host = *spec }, nft_fd, err);
}

int loader_apply_container(struct loader *l, int nft_fd, const struct firewall_container_spec *spec,
			   char out_table[static FIREWALL_TABLE_MAX], struct cj_error *err)
{
	struct loader_order o = { .container = *spec };
	struct loader_answer answer;
	if (give(l, LOADER_CONTAINER, &o, &nft_fd, 1, &answer, err) < 0)
		return -err->code;
	memcpy(out_table, answer.table, sizeof(answer.table));
	return 0;
}

int loader_join_links(struct loader *l, int jail_netns_fd, const struct links_spec *spec,
		      struct cj_error *err)
{
	return give_with(l, LOADER_LINKS, &(struct loader_order){ .links = *spec }, jail_netns_fd,
			 err);
}

int loader_plug_host(struct loader *l, int host_fd, const struct links_host_spec *spec,
		     struct cj_error *err)
{
	return give_with(l, LOADER_PLUG, &(struct loader_order){ .plug = *spec }, host_fd, err);
}

int loader_configure_tap(struct loader *l, const struct links_tap_spec *spec, struct cj_error *err)
{
	return give_one(l, LOADER_TAP, &(struct loader_order){ .tap = *spec }, err);
}

int loader_look(struct loader *l, struct links_state *out, struct cj_error *err)
{
	struct loader_order o = { 0 };
	struct loader_answer answer;
	if (!l->is_looking && send_order(l, LOADER_LOOK, &o, NULL, 0, err) < 0)
		return -err->code;
	l->is_looking = true;
	if (!fd_await(l->link.sock_fd, POLLIN, LOADER_LOOK_MS))
		return -EAGAIN;
	if (take_answer(l, &answer, err) < 0)
		return -err->code;
	*out = answer.state;
	return 0;
}

int loader_unplug(struct loader *l, struct cj_error *err)
{
	return give_one(l, LOADER_UNPLUG, &(struct loader_order){ 0 }, err);
}

int loader_take(struct loader *l, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	pid_t pid;
	if (step_await(&l->link, LOADER_STARTED, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(pid))
		return cj_fail(err, EPROTO, "receive the loader's pid");
	memcpy(&pid, msg.data, sizeof(pid));
	l->pidfd = sys_pidfd_open(pid); /* a child that is not reaped: the pid is no other's */
	return l->pidfd < 0 ? cj_fail(err, errno, "open the loader's pidfd") : 0;
}

void loader_stop(struct loader *l)
{
	struct cj_error ignored;
	const int sock_fd = l->link.sock_fd;
	if (l->pidfd < 0 && sock_fd >= 0 && fd_await(sock_fd, POLLIN, 0))
		(void)!loader_take(l, &ignored);
	cj_end_child(&l->pidfd);
	cj_close(&l->link.sock_fd);
	l->is_looking = false;
}
