/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's side of the loader: its orders. */
#include "netns/firewall/loader.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

const char *const loader_step_names[LOADER_STEPS] = {
	[LOADER_JAIL] = "load the jail's rules",  [LOADER_GATEWAY] = "load the gateway's rules",
	[LOADER_HOST] = "load the host's rules",  [LOADER_CONTAINER] = "load a container's rules",
	[LOADER_REPLACE] = "replace rules",       [LOADER_OPEN_NAMES] = "open what names have",
	[LOADER_CLOSE_HOST] = "close an address", [LOADER_UNREACHABLE] = "reject a family",
	[LOADER_COUNT] = "read counters",         [LOADER_JOIN] = "join the jail's user namespace",
	[LOADER_DONE] = "rules are loaded",       [LOADER_STARTED] = "loader is started",
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

/* Moves the lists into a memfd.  Returns it; -1: they are empty. */
static int pack(struct loader_order *o, struct cj_error *err)
{
	struct iovec parts[LOADER_LISTS];
	void *const none = NULL;
	o->list_bytes = 0;
	for (size_t i = 0; i < LOADER_LISTS; i++) {
		const struct loader_list *l = &loader_lists[i];
		size_t count;
		memcpy(&parts[i].iov_base, (char *)o + l->items, sizeof(void *));
		memcpy(&count, (char *)o + l->count, sizeof(count));
		memcpy((char *)o + l->items, &none, sizeof(none));
		parts[i].iov_len = count * l->size;
		o->list_bytes += parts[i].iov_len;
	}
	return o->list_bytes > 0 ? fd_memfd_sealed_parts("rules", parts, LOADER_LISTS, err) : -1;
}

static int give(const struct loader *l, enum loader_step step, struct loader_order *o,
		const int *sock_fds, size_t count, struct loader_answer *out, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	int fds[3];
	auto_fd int lists_fd = pack(o, err);
	if (lists_fd < 0 && o->list_bytes > 0)
		return lists_fd;
	memcpy(fds, sock_fds, count * sizeof(*fds));
	if (lists_fd >= 0)
		fds[count++] = lists_fd;
	if (step_tell(&l->link, step, o, sizeof(*o), fds, count, err) < 0 ||
	    step_await(&l->link, LOADER_DONE, &msg, err) < 0)
		return -err->code;
	if (msg.size != sizeof(*out))
		return cj_fail(err, EPROTO, "receive the loader's answer");
	memcpy(out, msg.data, sizeof(*out));
	return 0;
}

static int give_one(const struct loader *l, enum loader_step step, struct loader_order *o,
		    int sock_fd, struct cj_error *err)
{
	struct loader_answer ignored;
	return give(l, step, o, &sock_fd, 1, &ignored, err);
}

int loader_join(const struct loader *l, int sock_fd, struct cj_error *err)
{
	return give_one(l, LOADER_JOIN, &(struct loader_order){ 0 }, sock_fd, err);
}

int loader_apply_jail(const struct loader *l, int nft_fd, const struct firewall_spec *spec,
		      struct cj_error *err)
{
	return give_one(l, LOADER_JAIL, &(struct loader_order){ .spec = *spec }, nft_fd, err);
}

int loader_apply_gateway(const struct loader *l, int nft_fd, const struct firewall_spec *spec,
			 struct cj_error *err)
{
	return give_one(l, LOADER_GATEWAY, &(struct loader_order){ .spec = *spec }, nft_fd, err);
}

int loader_apply_host(const struct loader *l, int nft_fd, const struct firewall_host_spec *spec,
		      struct cj_error *err)
{
	return give_one(l, LOADER_HOST, &(struct loader_order){ .host = *spec }, nft_fd, err);
}

int loader_apply_container(const struct loader *l, int nft_fd,
			   const struct firewall_container_spec *spec,
			   char out_table[static FIREWALL_TABLE_MAX], struct cj_error *err)
{
	struct loader_order o = { .container = *spec };
	struct loader_answer answer;
	if (give(l, LOADER_CONTAINER, &o, &nft_fd, 1, &answer, err) < 0)
		return -err->code;
	memcpy(out_table, answer.table, sizeof(answer.table));
	return 0;
}

int loader_replace(const struct loader *l, int nft_fd, const struct firewall_spec *from,
		   const struct firewall_spec *to, struct cj_error *err)
{
	struct loader_order o = { .spec = *to, .from = *from };
	o.from.allowed = o.from.denied = o.from.named = NULL; /* their lengths tell which sets */
	o.from.host = NULL;
	return give_one(l, LOADER_REPLACE, &o, nft_fd, err);
}

int loader_unreachable(const struct loader *l, int nft_fd, int family, struct cj_error *err)
{
	return give_one(l, LOADER_UNREACHABLE, &(struct loader_order){ .family = family }, nft_fd,
			err);
}

int loader_open_names(const struct loader *l, const int nft_fds[static 2],
		      const struct endpoint *named, size_t n, struct cj_error *err)
{
	struct loader_order o = { .spec = { .named = named, .nnamed = n } };
	struct loader_answer ignored;
	return give(l, LOADER_OPEN_NAMES, &o, nft_fds, 2, &ignored, err);
}

int loader_close_host(const struct loader *l, const int nft_fds[static 2], const struct ip *ip,
		      struct cj_error *err)
{
	struct loader_answer ignored;
	return give(l, LOADER_CLOSE_HOST, &(struct loader_order){ .ip = *ip }, nft_fds, 2, &ignored,
		    err);
}

static int count(const struct loader *l, const int *nft_fds, size_t n, const char *table,
		 uint64_t counts[static NET_CLASS_COUNT], struct cj_error *err)
{
	struct loader_order o = { 0 };
	struct loader_answer answer;
	(void)snprintf(o.table, sizeof(o.table), "%s", table);
	if (give(l, LOADER_COUNT, &o, nft_fds, n, &answer, err) < 0)
		return -err->code;
	for (size_t i = 0; i < NET_CLASS_COUNT; i++)
		counts[i] += answer.counts[i];
	return 0;
}

int loader_read_table(const struct loader *l, int nft_fd, const char *table,
		      uint64_t counts[static NET_CLASS_COUNT], struct cj_error *err)
{
	return count(l, &nft_fd, 1, table, counts, err);
}

int loader_read_counters(const struct loader *l, const int nft_fds[static 2],
			 uint64_t counts[static NET_CLASS_COUNT], struct cj_error *err)
{
	return count(l, nft_fds, 2, FIREWALL_TABLE, counts, err);
}

int loader_take(struct loader *l, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	if (step_await(&l->link, LOADER_STARTED, &msg, err) < 0)
		return -err->code;
	if (msg.nfds != 1)
		return cj_fail(err, EPROTO, "receive the loader's pidfd");
	l->pidfd = take_fd(&msg.fds[0]);
	return 0;
}

void loader_stop(struct loader *l)
{
	struct cj_error ignored;
	const int sock_fd = l->link.sock_fd;
	if (l->pidfd < 0 && sock_fd >= 0 && fd_await(sock_fd, POLLIN, 0))
		(void)!loader_take(l, &ignored);
	cj_end_child(&l->pidfd);
	cj_close(&l->link.sock_fd);
}
