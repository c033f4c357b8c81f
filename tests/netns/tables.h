/* SPDX-License-Identifier: Apache-2.0 */
/* How many nftables tables there are in the namespace of the caller. */
#pragma once

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <signal.h>
#include <sys/prctl.h>

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include "netns/nftables/nfnl.h"
#include "tests/netns/namespaces.h"

static inline int count_tables(void)
{
	_Alignas(4) char bytes[32768] = { 0 };
	auto_nl_msg *request = nfnl_create(&(struct nfnl_head){ .subsystem = NFNL_SUBSYS_NFTABLES,
								.message = NFT_MSG_GETTABLE,
								.flags = NLM_F_DUMP,
								.family = NFPROTO_UNSPEC });
	MUST(request);
	int count = 0, fd = open_netlink(NETLINK_NETFILTER);
	MUST(send(fd, nlmsg_hdr(request), nlmsg_hdr(request)->nlmsg_len, 0) > 0);
	for (bool is_end = false; !is_end;) {
		int left = (int)recv(fd, bytes, sizeof(bytes), 0);
		MUST(left > 0);
		const struct nlmsghdr *header = (void *)bytes;
		for (; nfnl_is_message(header, left); header = nfnl_next(header, &left)) {
			is_end = header->nlmsg_type == NLMSG_DONE;
			MUST(header->nlmsg_type != NLMSG_ERROR);
			count += !is_end;
		}
	}
	close(fd);
	return count;
}

/* The holder of a table, whose parent ends at once, becomes a child of this test. */
static inline void adopt_holders(void)
{
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
}

/* All processes below this test. */
static inline void kill_children(void)
{
	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		int pid = 0;
		FILE *children = fopen("/proc/thread-self/children", "re");
		MUST(children);
		while (fscanf(children, "%d", &pid) == 1)
			(void)kill(pid, SIGKILL);
		fclose(children);
	}
}
