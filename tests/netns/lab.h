/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lab - three network namespaces in a row, for tests of the rules that judge real packets:
 *
 *	jail (eth0) ---- (jail) gateway (uplink) ---- (world) world
 *
 * Whatever address a packet goes to, the world has it: two local default routes.  Its canary sees
 * every packet that arrives.  All of it belongs to a user namespace of the test's own; nothing
 * leads out.  Links are made with ip(8): the code under test is not their maker.
 */
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "netns/firewall/firewall.h"
#include "runtime/base/scope.h"
#include "tests/forked.h"
#include "tests/netns/script.h"
#include "tests/patience.h"

#define LAB_PUBLIC4 "93.184.216.34"
#define LAB_PUBLIC6 "2a00:1450:4001::1"
#define LAB_PORT    80
#define LAB_END     9 /* UDP to this port of LAB_PUBLIC4 ends a count */
#define LAB_WAIT_MS patience_ms(30000)

#define MAC_JAIL    "02:00:00:00:00:02"
#define MAC_GATEWAY "02:00:00:00:00:03"

struct lab {
	int jail, gateway, world; /* namespaces */
	int jail_rules, gateway_rules;
	int canary;
	int listener4, listener6; /* in the world, TCP, on every address */
};

static inline void lab_put(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		perror(path);
}

/* A user namespace for the whole test program; NULL, or why there is none. */
static inline const char *lab_enter_user(void)
{
	char map[32];
	const unsigned uid = geteuid(), gid = getegid();

	if (access("/usr/sbin/ip", X_OK) < 0 && access("/sbin/ip", X_OK) < 0)
		return "ip(8) is not installed";
	if (access("/usr/sbin/nft", X_OK) < 0 && access("/sbin/nft", X_OK) < 0)
		return "nft(8) is not installed";
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return "no user or network namespace is to be had";
	lab_put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	lab_put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	lab_put("/proc/self/gid_map", map);
	return NULL;
}

static inline void lab_die(const char *what)
{
	perror(what);
	abort();
}

static inline void lab_go(int ns)
{
	if (setns(ns, CLONE_NEWNET) < 0)
		lab_die("setns");
}

/* A new namespace; the descriptor is inherited by ip(8), which finds it below /proc/self/fd. */
static inline int lab_namespace(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		lab_die("unshare");
	int ns = open("/proc/self/ns/net", O_RDONLY);
	if (ns < 0)
		lab_die("/proc/self/ns/net");
	return ns;
}

/* Runs a program in a namespace, `input` on its stdin; its exit code. */
static inline int lab_run(int ns, const char *input, const char *const argv[])
{
	auto_fd int input_fd = script_open(input);
	if (input_fd < 0)
		lab_die("memfd_create");
	pid_t pid = test_fork();
	if (pid == 0) {
		lab_go(ns);
		dup2(input_fd, STDIN_FILENO);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static inline void lab_ip(int ns, const char *lines)
{
	const char *const argv[] = { "ip", "-batch", "-", NULL };
	if (lab_run(ns, lines, argv) != 0) {
		fprintf(stderr, "ip -batch failed:\n%s", lines);
		abort();
	}
}

static inline int lab_nft(int ns, const char *text)
{
	const char *const argv[] = { "nft", "-f", "-", NULL };
	return lab_run(ns, text, argv);
}

static inline int lab_socket(int ns, int family, int type, int protocol)
{
	lab_go(ns);
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		lab_die("socket");
	return fd;
}

static inline void lab_bind_any(int fd, int family, uint16_t port)
{
	const int on = 1;
	struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, family == AF_INET6 ? (void *)&any6 : (void *)&any4,
		 family == AF_INET6 ? sizeof(any6) : sizeof(any4)) < 0)
		lab_die("bind");
}

static inline int lab_listen(int ns, int family, uint16_t port)
{
	int fd = lab_socket(ns, family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	lab_bind_any(fd, family, port);
	if (listen(fd, 4096) < 0)
		lab_die("listen");
	return fd;
}

static inline int lab_canary(int ns, const char *link)
{
	int fd = lab_socket(ns, AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, htons(ETH_P_ALL));
	const int bytes = 8 << 20;
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)if_nametoindex(link) };
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	if (bind(fd, (void *)&at, sizeof(at)) < 0)
		lab_die("bind the canary");
	return fd;
}

/* --- the namespaces --- */

static inline void lab_plug(const struct lab *lab)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "link set lo up\n"
		 "link add jail address " MAC_GATEWAY " type veth peer name eth0 address " MAC_JAIL
		 " netns /proc/self/fd/%d\n"
		 "link add uplink address 02:00:00:00:00:11 type veth peer name world address "
		 "02:00:00:00:00:10 netns /proc/self/fd/%d\n",
		 lab->jail, lab->world);
	lab_ip(lab->gateway, text);
	lab_ip(lab->jail,
	       "link set lo up\nlink set eth0 addrgenmode none\nlink set eth0 up\n"
	       "addr add 198.18.0.2/31 dev eth0\naddr add fdce:6a11::2/127 dev eth0 nodad\n"
	       "neigh add 198.18.0.3 lladdr " MAC_GATEWAY " dev eth0 nud permanent\n"
	       "neigh add fdce:6a11::3 lladdr " MAC_GATEWAY " dev eth0 nud permanent\n"
	       "route add default via 198.18.0.3\nroute add default via fdce:6a11::3\n");
	lab_ip(lab->gateway,
	       "link set jail addrgenmode none\nlink set uplink addrgenmode none\n"
	       "link set jail up\nlink set uplink up\n"
	       "addr add 198.18.0.3/31 dev jail\naddr add fdce:6a11::3/127 dev jail nodad\n"
	       "neigh add 198.18.0.2 lladdr " MAC_JAIL " dev jail nud permanent\n"
	       "neigh add fdce:6a11::2 lladdr " MAC_JAIL " dev jail nud permanent\n"
	       "addr add 198.19.0.1/31 dev uplink\naddr add fdce:6a12::1/127 dev uplink nodad\n"
	       "neigh add fdce:6a12::0 lladdr 02:00:00:00:00:10 dev uplink nud permanent\n"
	       "route add default via 198.19.0.0\nroute add default via fdce:6a12::0\n");
	lab_ip(lab->world,
	       "link set lo up\nlink set world addrgenmode none\nlink set world up\n"
	       "addr add 198.19.0.0/31 dev world\naddr add fdce:6a12::0/127 dev world nodad\n"
	       "neigh add fdce:6a12::1 lladdr 02:00:00:00:00:11 dev world nud permanent\n"
	       "route add 198.18.0.2/31 via 198.19.0.1\n"
	       "route add local 0.0.0.0/0 dev lo table main\n"
	       "route add local ::/0 dev lo table main\n");
}

/* The kernel notices in a thread of its own that a link has come up, and until then the link drops
 * packets without a word.  It marks the link, and begins to send, under one lock. */
static inline void lab_await_link(int ns, const char *link)
{
	auto_fd int fd = lab_socket(ns, AF_INET, SOCK_DGRAM, 0);
	struct ifreq request = { 0 };
	char line[64];

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", link);
	for (int i = 0; i < LAB_WAIT_MS && !(request.ifr_flags & IFF_RUNNING); i++) {
		if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
			lab_die(link);
		(void)poll(NULL, 0, 1);
	}
	/* this changes nothing, but takes the lock */
	snprintf(line, sizeof(line), "link set %s up\n", link);
	lab_ip(ns, line);
}

static inline void lab_forward(int ns)
{
	lab_go(ns);
	lab_put("/proc/sys/net/ipv4/ip_forward", "1");
	lab_put("/proc/sys/net/ipv6/conf/all/forwarding", "1");
}

static inline void lab_open(struct lab *lab)
{
	lab->jail = lab_namespace();
	lab->world = lab_namespace();
	lab->gateway = lab_namespace();
	lab_plug(lab);
	lab_await_link(lab->jail, "eth0");
	lab_await_link(lab->gateway, "jail");
	lab_await_link(lab->gateway, "uplink");
	lab_await_link(lab->world, "world");
	lab_forward(lab->gateway);
	lab->jail_rules = lab_socket(lab->jail, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	lab->gateway_rules = lab_socket(lab->gateway, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	lab->canary = lab_canary(lab->world, "world");
	lab->listener4 = lab_listen(lab->world, AF_INET, LAB_PORT);
	lab->listener6 = lab_listen(lab->world, AF_INET6, LAB_PORT);
	lab_go(lab->jail);
}

static inline void lab_close(struct lab *lab)
{
	int *fds[] = { &lab->jail,          &lab->gateway, &lab->world,     &lab->jail_rules,
		       &lab->gateway_rules, &lab->canary,  &lab->listener4, &lab->listener6 };
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		cj_close(fds[i]);
}

/* --- traffic of the jail's --- */

static inline struct ip lab_address(const char *text)
{
	struct ip ip;
	if (!ip_parse(text, &ip))
		abort();
	return ip;
}

/* Connects; 0, an errno, or ETIMEDOUT when nothing was heard within `wait_ms`. */
static inline int lab_connect(int ns, const struct ip *ip, uint16_t port, int wait_ms, int *out_fd)
{
	struct sockaddr_storage to;
	socklen_t size = ip_socket_address(ip, port, &to);
	int fd = lab_socket(ns, to.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int code = connect(fd, (void *)&to, size) < 0 ? errno : 0;

	if (code == EINPROGRESS) {
		struct pollfd waiting = { .fd = fd, .events = POLLOUT };
		socklen_t length = sizeof(code);
		if (poll(&waiting, 1, wait_ms) <= 0)
			code = ETIMEDOUT;
		else
			getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length);
	}
	if (out_fd && code == 0)
		*out_fd = fd;
	else
		close(fd);
	return code;
}

/* Sends a datagram; 0, an errno of sending or of an answer within `wait_ms`. */
static inline int lab_send(int ns, const struct ip *ip, uint16_t port, size_t bytes, int wait_ms)
{
	static const char data[8192];
	struct sockaddr_storage to;
	socklen_t size = ip_socket_address(ip, port, &to);
	auto_fd int fd = lab_socket(ns, to.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	int code = 0;
	socklen_t length = sizeof(code);

	if (connect(fd, (void *)&to, size) < 0 || send(fd, data, bytes, 0) < 0)
		return errno;
	struct pollfd waiting = { .fd = fd, .events = POLLIN };
	if (wait_ms > 0 && poll(&waiting, 1, wait_ms) > 0)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length);
	return code;
}

/* --- the canary --- */

static inline bool lab_is_end(const uint8_t *p, ssize_t size)
{
	const struct ip end = lab_address(LAB_PUBLIC4);
	return size >= 24 && p[0] == 0x45 && p[9] == IPPROTO_UDP &&
	       memcmp(p + 16, end.bytes, 4) == 0 && p[22] == 0 && p[23] == LAB_END;
}

/* IPv6's own housekeeping on a link. */
static inline bool lab_is_noise(const struct sockaddr_ll *from, const uint8_t *p)
{
	return from->sll_pkttype == PACKET_OUTGOING || from->sll_protocol == htons(ETH_P_ARP) ||
	       ((p[0] >> 4) == 6 && p[24] == 0xff && (p[6] == IPPROTO_ICMPV6 || p[6] == 0));
}

/* How many packets have reached the world since the last count, all of them in: an allowed one is
 * sent behind them.  -1: that one did not arrive. */
static inline int lab_count(const struct lab *lab)
{
	const struct ip end = lab_address(LAB_PUBLIC4);
	uint8_t packet[256];
	struct sockaddr_ll from;
	int count = 0;

	lab_send(lab->jail, &end, LAB_END, 1, 0);
	for (;;) {
		struct pollfd waiting = { .fd = lab->canary, .events = POLLIN };
		if (poll(&waiting, 1, LAB_WAIT_MS) <= 0)
			return -1;
		socklen_t size = sizeof(from);
		ssize_t got =
		    recvfrom(lab->canary, packet, sizeof(packet), 0, (void *)&from, &size);
		if (got < 20 || lab_is_noise(&from, packet))
			continue;
		if (lab_is_end(packet, got))
			return count;
		count++;
	}
}
