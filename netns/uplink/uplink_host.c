/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the host, finds a free number, loads the rules, plugs the link.  Acts. */
#include "netns/uplink/uplink_host.h"

#include <netinet/in.h> /* before linux/: the kernel's headers then leave its types out */

#include <fcntl.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/capability.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "netns/firewall/firewall.h"
#include "netns/firewall/host_firewall.h"
#include "netns/uplink/host_table_ask.h"
#include "netns/rtnetlink/links.h"
#include "netns/uplink/deferred_close.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define NUMBERS       65535 /* 1 to that: two bytes of an address */
#define TRIES_IN_LINE 64    /* from spec->number on; then as many at random */
#define TRIES         (2 * TRIES_IN_LINE)
#define HOST_MTU      1500 /* path MTU discovery (ICMP) handles smaller ones */

static int refuse(char why[static UPLINK_WHY_MAX], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static int refuse(char why[static UPLINK_WHY_MAX], const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(why, UPLINK_WHY_MAX, fmt, args); /* may be cut */
	va_end(args);
	return 1;
}

/* These end the run; after any other error another kind of uplink may work. */
static bool is_out_of_resources(int code)
{
	return code == ENOMEM || code == EMFILE || code == ENFILE || code == ENOBUFS;
}

static int explain_error(char why[static UPLINK_WHY_MAX], const struct cj_error *err)
{
	if (is_out_of_resources(err->code))
		return -err->code;
	return refuse(why, "%s%s%s%s", err->msg, err->hint[0] ? " (" : "", err->hint,
		      err->hint[0] ? ")" : "");
}

static int refuse_capability(char why[static UPLINK_WHY_MAX])
{
	return refuse(why, "CAP_NET_ADMIN over the caller's network namespace is missing "
			   "(run cejail as root)");
}

static bool has_capability(void)
{
	cap_flag_value_t value = CAP_CLEAR;
	cap_t caps = cap_get_proc();
	if (caps)
		(void)cap_get_flag(caps, CAP_NET_ADMIN, CAP_EFFECTIVE,
				   &value); /* on failure it stays clear */
	(void)cap_free(caps);
	return value == CAP_SET;
}

/* Is `value` the first byte of the sysctl file?  A missing file: no. */
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
static int check_forwarding(char why[static UPLINK_WHY_MAX], struct cj_error *err)
{
	static const char *const switches[] = { "net/ipv4/ip_forward",
						"net/ipv4/conf/default/forwarding" };
	static const char *const names[] = { "net.ipv4.ip_forward",
					     "net.ipv4.conf.default.forwarding" };
	for (size_t i = 0; i < 2; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "/proc/sys/%s", switches[i]);
		int rc = is_sysctl(path, '1', err);
		if (rc < 0)
			return rc;
		if (rc == 0)
			return refuse(why, "IP forwarding is off; turn it on: sysctl -w %s=1",
				      names[i]);
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

static int explain_nf_tables(char why[static UPLINK_WHY_MAX], const struct cj_error *err)
{
	if (err->code == EPERM)
		return refuse_capability(why);
	if (err->code == EINVAL || err->code == EPROTONOSUPPORT || err->code == EOPNOTSUPP)
		return refuse(why, "the kernel has no nf_tables; load it: modprobe nf_tables");
	return explain_error(why, err);
}

/* The capability may be over a user namespace that does not own the network namespace.  Listing the
 * chains of nf_tables finds out: it needs the right capability. */
static int check_host(char why[static UPLINK_WHY_MAX], struct cj_error *err)
{
	why[0] = '\0';
	if (!has_capability())
		return refuse_capability(why);
	int rc = check_forwarding(why, err);
	if (rc != 0)
		return rc;

	struct host_firewall_chain chain;
	rc = host_firewall_look(&chain, err);
	if (rc < 0)
		return explain_nf_tables(why, err);
	if (rc > 0) {
		const char *family = host_firewall_family_name(chain.family);
		(void)refuse(why,
			     "the table '%s %s' drops forwarded packets by its policy; allow "
			     "interface '" HOST_FIREWALL_LINKS
			     "*' in it ('cejail doctor' has the command)",
			     family, chain.table);
	}
	return 0;
}

struct attempt {
	const struct uplink_spec *spec;
	int host_fd;
	bool has_ipv6;
	struct host_table shared; /* null: the jail loads a table of its own */
	int mark_fd;
};

static void attempt_fini(struct attempt *a)
{
	cj_close(&a->shared.rules_fd);
	cj_close(&a->mark_fd);
}

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

/* A hint that saves loading and removing a table; links_plug_host() decides. */
static bool is_name_taken(int host_fd, const char *name)
{
	struct ifreq request = { 0 };
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(host_fd, SIOCGIFINDEX, &request) == 0;
}

/* The kernel has answered before, so EPERM means: another socket owns a table of that name. */
static int load_rules(int nft_fd, const struct firewall_host_spec *rules, struct cj_error *err)
{
	int rc = firewall_apply_host(nft_fd, rules, err);
	if (rc == -EPERM)
		err->code = EEXIST;
	return rc < 0 ? -err->code : 0;
}

static int load_own(const struct firewall_host_spec *rules, struct cj_error *err)
{
	auto_fd int nft_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (nft_fd < 0)
		return cj_fail(err, errno, "open a NETLINK_NETFILTER socket");
	if (load_rules(nft_fd, rules, err) < 0)
		return -err->code;
	return take_fd(&nft_fd);
}

static int plug(const struct attempt *a, const struct firewall_host_spec *rules,
		struct cj_error *err)
{
	const struct links_host_spec link = {
		.name = rules->link, .ip4 = rules->ip4, .ip6 = rules->ip6, .mtu = HOST_MTU
	};
	return links_plug_host(a->host_fd, a->spec->gateway_fd, &link, err);
}

/* Takes the descriptors of *a. */
static void keep_shared(struct attempt *a, struct uplink_host *out)
{
	out->rules_fd = take_fd(&a->shared.rules_fd);
	out->given_ms = clock_ms();
}

/* Takes rules_fd and the mark of *a. */
static void keep_own(struct attempt *a, int rules_fd, const char *table, struct uplink_host *out)
{
	(void)snprintf(out->table, sizeof(out->table), "%s", table);
	out->rules_fd = rules_fd;
	out->mark_fd = take_fd(&a->mark_fd);
	/* The mark stays until the kernel closes the socket of the table. */
	const int fds[] = { rules_fd, out->mark_fd };
	out->ring_fd = deferred_close(fds, out->mark_fd < 0 ? 1 : 2);
	if (out->ring_fd >= 0)
		cj_close(&out->mark_fd);
}

/* Fills *out only on success. */
static int try_number(struct attempt *a, unsigned number, struct uplink_host *out,
		      struct cj_error *err)
{
	const bool is_shared = a->shared.rules_fd >= 0;
	char name[sizeof(out->name)], table[sizeof(out->table)];
	char prefix[HOST_TABLE_NAME_MAX] = HOST_FIREWALL_LINKS;
	if (is_shared)
		host_table_links(a->shared.number, prefix);
	(void)snprintf(name, sizeof(name), "%.9s%u", prefix, number % (NUMBERS + 1));
	(void)snprintf(table, sizeof(table), FIREWALL_TABLE "-%u", number % (NUMBERS + 1));
	if (is_name_taken(a->host_fd, name))
		return cj_fail(err, EEXIST, "create '%s'", name);

	const struct ip none = { 0 };
	const struct firewall_host_spec rules = { .table = table,
						  .link = name,
						  .every_link = HOST_FIREWALL_LINKS,
						  .ip4 = ip4_of(number),
						  .ip6 = a->has_ipv6 ? ip6_of(number) : none,
						  .allowed = a->spec->allowed,
						  .nallowed = a->spec->nallowed };
	auto_fd int own_fd = is_shared ? -1 : load_own(&rules, err);
	if ((!is_shared && own_fd < 0) || plug(a, &rules, err) < 0)
		return -err->code;
	memcpy(out->name, name, sizeof(name));
	out->has_ipv6 = a->has_ipv6;
	if (is_shared)
		keep_shared(a, out);
	else
		keep_own(a, take_fd(&own_fd), table, out);
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

static int find_number(struct attempt *a, struct uplink_host *out, struct cj_error *err)
{
	int rc = -EEXIST;
	for (int try = 0; rc == -EEXIST && try < TRIES; try++)
		rc = try_number(a, number_at(a->spec, try), out, err);
	return rc;
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

int uplink_host_start(const struct uplink_spec *spec, struct uplink_host *out,
		      char why[static UPLINK_WHY_MAX], struct cj_error *err)
{
	*out = (struct uplink_host)UPLINK_HOST_NONE;
	int refused = check_host(why, err);
	if (refused != 0)
		return refused;

	auto_fd int host_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (host_fd < 0)
		return cj_fail(err, errno, "open a NETLINK_ROUTE socket");
	int has_ipv6 = spec->has_ipv6 ? host_forwards_ipv6(err) : 0;
	if (has_ipv6 < 0)
		return has_ipv6;
	struct attempt a = { spec, host_fd, has_ipv6 > 0, { .rules_fd = -1 }, -1 };
	find_table(&a);
	int rc = find_number(&a, out, err);
	attempt_fini(&a);
	return rc < 0 ? explain_error(why, err) : 0;
}

/* Otherwise what the dead jail's TCP still sends could pass the host without the table. */
static bool take_link_down(const char *name)
{
	struct ifreq request = { 0 }; /* no flag */
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && (ioctl(fd, SIOCSIFFLAGS, &request) == 0 || errno == ENODEV);
}

void uplink_host_stop(struct uplink_host *u)
{
	bool is_own = u->table[0] != '\0';
	/* The holder may have ended, and this may be the last socket of its table. */
	bool may_be_last = !is_own && u->rules_fd >= 0 &&
			   clock_ms() - u->given_ms >= HOST_TABLE_IDLE_MS;
	bool is_down = (is_own || may_be_last) && take_link_down(u->name);
	if (is_own && is_down)
		firewall_remove(u->rules_fd, u->table);
	if (may_be_last)
		u->ring_fd = deferred_close(&u->rules_fd, 1);
	cj_close(&u->rules_fd);
	cj_close(&u->mark_fd);
	cj_close(&u->ring_fd);
	u->name[0] = u->table[0] = '\0';
}

bool uplink_host_probe(char why[static UPLINK_WHY_MAX])
{
	struct cj_error err = { 0 };
	int rc = check_host(why, &err);
	if (rc < 0)
		(void)refuse(why, "%s", err.msg);
	return rc == 0;
}
