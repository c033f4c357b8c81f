/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the host, finds a free number, loads the rules, plugs the link. */
#include "netns/uplink/uplink_parts.h"

#include <netinet/in.h> /* before linux/: the kernel's headers then leave its types out */

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if.h>
#include <linux/io_uring.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "netns/firewall/host_firewall.h"
#include "netns/loader/loader.h"
#include "netns/nftables/nfnl.h"
#include "netns/uplink/host_table.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/capabilities.h"

#define NUMBERS       65535 /* 1 to that: two bytes of an address */
#define TRIES_IN_LINE 64    /* from spec->number on; then as many at random */
#define TRIES         (2 * TRIES_IN_LINE)
#define HOST_MTU      1500 /* path MTU discovery (ICMP) handles smaller ones */

/*
 * The last close of a socket that owns an nftables table waits for an RCU grace period of 5 to
 * 20 ms, and so does the exit of its process.  An io_uring releases its registered files in a
 * kernel worker after the ring is closed.  So the process closes its own descriptors first, which
 * are not the last then, and the ring after them: both are fast.  It is as safe: the kernel closes
 * the ring with its process, however the process ends.
 *
 * Returns a ring that keeps fds[] open, too; -1 if this kernel or sandbox has no io_uring: then the
 * last close waits.  Follows: io_uring_setup(2), io_uring_register(2) IORING_REGISTER_FILES.
 */
static int defer_close(const int *fds, size_t count)
{
	struct io_uring_params params = { 0 };
	auto_fd int ring_fd = (int)syscall(SYS_io_uring_setup, 1, &params);
	if (ring_fd < 0 ||
	    syscall(SYS_io_uring_register, ring_fd, IORING_REGISTER_FILES, fds, count) < 0)
		return -1;
	return take_fd(&ring_fd);
}

static int refuse_capability(struct cj_error *err)
{
	return cj_reject_as(err, EPERM,
			    "CAP_NET_ADMIN over the caller's network namespace is missing "
			    "(run cejail as root)");
}

/* 1 if the sysctl file begins with `value`; 0 if not, or if there is no such file; or an error. */
static int is_sysctl(const char *path, char value, struct cj_error *err)
{
	char byte = '\0';
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || sys_read(fd, &byte, 1) < 0)
		return cj_fail(err, errno, "read '%s'", path);
	return byte == value;
}

/* New links inherit `default`, and forwarding also needs the switch for the whole host. */
static int check_forwarding(struct cj_error *err)
{
	static const struct {
		const char *path, *name;
	} switches[] = {
		{ "/proc/sys/net/ipv4/ip_forward", "net.ipv4.ip_forward" },
		{ "/proc/sys/net/ipv4/conf/default/forwarding",
		  "net.ipv4.conf.default.forwarding" },
	};
	for (size_t i = 0; i < COUNT_OF(switches); i++) {
		int rc = is_sysctl(switches[i].path, '1', err);
		if (rc < 0)
			return rc;
		if (rc == 0)
			return cj_reject_as(err, ENONET,
					    "IP forwarding is off; turn it on: sysctl -w %s=1",
					    switches[i].name);
	}
	return 0;
}

/* 1, 0, or an error. */
static int host_forwards_ipv6(struct cj_error *err)
{
	int rc = is_sysctl("/proc/sys/net/ipv6/conf/all/forwarding", '1', err);
	if (rc <= 0)
		return rc;
	return is_sysctl("/proc/sys/net/ipv6/conf/default/disable_ipv6", '0', err);
}

static int explain_nf_tables(struct cj_error *err)
{
	if (err->code == EPERM)
		return refuse_capability(err);
	if (err->code == EINVAL || err->code == EPROTONOSUPPORT || err->code == EOPNOTSUPP)
		return cj_reject_as(err, EOPNOTSUPP,
				    "the kernel has no nf_tables; load it: modprobe nf_tables");
	return -err->code;
}

/* The capability may be over a user namespace that does not own the network namespace.  Listing the
 * chains of nf_tables finds out: it needs the right capability. */
int uplink_host_check(char out_warning[static UPLINK_WHY_MAX], struct cj_error *err)
{
	out_warning[0] = '\0';
	if (!capabilities_is_effective(CAP_NET_ADMIN))
		return refuse_capability(err);
	if (check_forwarding(err) < 0)
		return -err->code;

	struct host_firewall_chain chain;
	int rc = host_firewall_look(&chain, err);
	if (rc < 0)
		return explain_nf_tables(err);
	if (rc > 0)
		(void)snprintf(out_warning, UPLINK_WHY_MAX,
			       "the table '%s %s' drops forwarded packets by its policy; allow "
			       "interface '" HOST_FIREWALL_LINKS
			       "*' in it ('cejail doctor' has the command)",
			       host_firewall_family_name(chain.family), chain.table);
	return 0;
}

struct attempt {
	const struct uplink_spec *spec;
	int host_fd;
	bool has_ipv6;
	struct host_table shared; /* null: the jail loads a table of its own */
	int mark_fd;
};

static struct ip ip4_of(unsigned number)
{
	return (struct ip){ 4, { 198, 19, (uint8_t)(number >> 8), (uint8_t)number } };
}

static struct ip ip6_of(unsigned number)
{
	return (struct ip){
		6, { 0xfd, 0xce, 0x6a, 0x12, [14] = (uint8_t)(number >> 8), [15] = (uint8_t)number }
	};
}

/* A hint that saves loading and removing a table; loader_plug_host() decides. */
static bool is_name_taken(int host_fd, const char *name)
{
	struct ifreq request = { 0 };
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(host_fd, SIOCGIFINDEX, &request) == 0;
}

static int load_own(struct loader *loader, const struct firewall_host_spec *rules,
		    struct cj_error *err)
{
	auto_fd int nft_fd = nfnl_socket(NETLINK_NETFILTER, err);
	if (nft_fd < 0)
		return nft_fd;
	if (loader_apply_host(loader, nft_fd, rules, err) == 0)
		return take_fd(&nft_fd);
	/* The kernel has answered before, so EPERM means: another socket owns a table of that
	 * name. */
	if (err->code == EPERM)
		err->code = EEXIST;
	return -err->code;
}

/* Fills *out only on success. */
static int try_number(struct attempt *a, unsigned number, struct uplink_host *out,
		      struct cj_error *err)
{
	const bool is_shared = a->shared.rules_fd >= 0;
	struct firewall_host_spec rules = { .every_link = HOST_FIREWALL_LINKS,
					    .ip4 = ip4_of(number),
					    .allowed = a->spec->allowed,
					    .nallowed = a->spec->nallowed };
	char prefix[HOST_TABLE_NAME_MAX] = HOST_FIREWALL_LINKS;
	if (is_shared)
		host_table_links(a->shared.number, prefix);
	(void)snprintf(rules.link, sizeof(rules.link), "%.9s%u", prefix, number % (NUMBERS + 1));
	(void)snprintf(rules.table, sizeof(rules.table), FIREWALL_TABLE "-%u",
		       number % (NUMBERS + 1));
	if (a->has_ipv6)
		rules.ip6 = ip6_of(number);
	if (is_name_taken(a->host_fd, rules.link))
		return cj_fail(err, EEXIST, "create '%s'", rules.link);

	auto_fd int own_fd = is_shared ? -1 : load_own(a->spec->loader, &rules, err);
	if (!is_shared && own_fd < 0)
		return own_fd;
	struct links_host_spec link = { .ip4 = rules.ip4, .ip6 = rules.ip6, .mtu = HOST_MTU };
	memcpy(link.name, rules.link, sizeof(link.name));
	if (loader_plug_host(a->spec->loader, a->host_fd, &link, err) < 0)
		return -err->code;
	memcpy(out->name, rules.link, sizeof(out->name));
	out->has_ipv6 = a->has_ipv6;
	if (!is_shared) {
		memcpy(out->table, rules.table, sizeof(out->table));
		out->rules_fd = take_fd(&own_fd);
		out->mark_fd = take_fd(&a->mark_fd);
		/* The mark stays until the kernel closes the socket of the table. */
		const int fds[] = { out->rules_fd, out->mark_fd };
		out->ring_fd = defer_close(fds, out->mark_fd < 0 ? 1 : 2);
		if (out->ring_fd >= 0)
			cj_close(&out->mark_fd);
		return 0;
	}
	out->rules_fd = take_fd(&a->shared.rules_fd);
	out->given_ms = clock_ms();
	return 0;
}

static unsigned number_at(const struct uplink_spec *spec, int try)
{
	uint16_t chance = 0;
	if (try < TRIES_IN_LINE)
		return (spec->number + (unsigned)try) % NUMBERS + 1;
	if (getrandom(&chance, sizeof(chance), 0) < 0)
		chance = 0; /* then the next number in line */
	return (spec->number + (unsigned)try + chance) % NUMBERS + 1;
}

/*
 * A table of its own is best for a single run: no process is left behind.  But to remove it keeps
 * the host's nftables lock busy, and the next run would wait.  So the second one starts the holder.
 * Whatever fails here, a table of its own always works.
 */
static void find_table(struct attempt *a)
{
	struct cj_error err;
	if (a->spec->nallowed > 0 || host_table_ask(a->has_ipv6, &a->shared, &err) == 0)
		return;
	a->mark_fd = host_table_mark(&err);
	if (a->mark_fd == -EADDRINUSE)
		(void)host_table_start(a->has_ipv6, &a->shared, &err);
}

int uplink_host_start(const struct uplink_spec *spec, struct uplink_host *out, struct cj_error *err)
{
	*out = UPLINK_HOST_NONE;
	if (uplink_host_check(out->warning, err) < 0)
		return -err->code;
	auto_fd int host_fd = nfnl_socket(NETLINK_ROUTE, err);
	if (host_fd < 0)
		return host_fd;
	int has_ipv6 = spec->has_ipv6 ? host_forwards_ipv6(err) : 0;
	if (has_ipv6 < 0)
		return has_ipv6;

	struct attempt a = { spec, host_fd, has_ipv6 > 0, { .rules_fd = -1 }, -1 };
	find_table(&a);
	int rc = -EEXIST;
	for (int try = 0; rc == -EEXIST && try < TRIES; try++)
		rc = try_number(&a, number_at(spec, try), out, err);
	cj_close(&a.shared.rules_fd);
	cj_close(&a.mark_fd);
	return rc;
}

/* Otherwise what the dead jail's TCP still sends could pass the host without the table. */
static bool take_link_down(const char *name)
{
	struct ifreq request = { 0 }; /* no flag */
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && (ioctl(fd, SIOCSIFFLAGS, &request) == 0 || errno == ENODEV);
}

/*
 * Unlike closing its socket, this does not wait for an RCU grace period.  Best effort: closing
 * removes the table, too.  The loader has no right over the host any more.
 */
static void remove_table(int rules_fd, const char *table)
{
	const struct nfnl_head begin = { .message = NFNL_MSG_BATCH_BEGIN,
					 .resource = NFNL_SUBSYS_NFTABLES },
			       end = { .message = NFNL_MSG_BATCH_END,
				       .resource = NFNL_SUBSYS_NFTABLES },
			       table_head = { .subsystem = NFNL_SUBSYS_NFTABLES,
					      .message = NFT_MSG_DELTABLE,
					      .family = NFPROTO_INET };
	const struct nfnl_head *const heads[] = { &begin, &table_head, &end };
	char batch[256];
	size_t size = 0;
	for (size_t i = 0; i < COUNT_OF(heads); i++) {
		auto_nl_msg *message = nfnl_create(heads[i]);
		if (!message ||
		    (heads[i]->subsystem && nla_put_string(message, NFTA_TABLE_NAME, table) < 0))
			return;
		memcpy(batch + size, nlmsg_hdr(message), nlmsg_hdr(message)->nlmsg_len);
		size += NLMSG_ALIGN(nlmsg_hdr(message)->nlmsg_len);
	}
	(void)nfnl_send(rules_fd, batch, size);
}

void uplink_host_stop(struct uplink_host *u)
{
	bool is_own = u->table[0] != '\0';
	/* The holder may have ended, and this may be the last socket of its table. */
	bool may_be_last = !is_own && u->rules_fd >= 0 &&
			   clock_ms() - u->given_ms >= HOST_TABLE_IDLE_MS;
	bool is_down = (is_own || may_be_last) && take_link_down(u->name);
	if (is_own && is_down)
		remove_table(u->rules_fd, u->table);
	if (may_be_last)
		u->ring_fd = defer_close(&u->rules_fd, 1);
	cj_close(&u->rules_fd);
	cj_close(&u->mark_fd);
	cj_close(&u->ring_fd);
	u->name[0] = u->table[0] = '\0';
}
