/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lab: a child process whose network namespace is the caller's for the code under test.  A tap
 * device "world" with default routes stands for the Internet, where no host answers; the tests
 * listen at addresses of the lab.  The gateway is a new network namespace in a new user namespace.
 * There is no firewall rule, so a helper's own configuration causes every refusal.
 */
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/ipv6.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/route.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "netns/rtnetlink/links.h"
#include "netns/rtnetlink/rtmsg.h"
#include "netns/uplink/uplink.h"
#include "netns/uplink/uplink_helper.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "tests/netns/uplink/loader_here.h"
#include "tests/forked.h"
#include "tests/patience.h"

#define SKIPPED     77
#define PORT        4711
#define WORLD       "192.0.9.2"
#define WORLD6      "2001:db9::2"
#define PATIENCE_MS patience_ms(60000) /* only what hangs takes so long */

/* --- a lab ------------------------------------------------------------------------------------ */

/* In the lab there is no cmocka: a failure is said and ends it. */
#define CHECK(condition, ...)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);      \
			(void)fprintf(stderr, __VA_ARGS__);                                        \
			(void)fputc('\n', stderr);                                                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static inline void skip_lab(const char *why)
{
	(void)fprintf(stderr, "skipped: %s\n", why);
	_exit(SKIPPED);
}

static inline void put(const char *path, const char *text)
{
	auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path,
	      strerror(errno));
}

static inline void map_ids(pid_t pid, unsigned inside, unsigned uid, unsigned gid)
{
	char path[64], text[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
	put(path, "deny");
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	(void)snprintf(text, sizeof(text), "%u %u 1", inside, uid);
	put(path, text);
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	(void)snprintf(text, sizeof(text), "%u %u 1", inside, gid);
	put(path, text);
}

static inline struct sockaddr_in address(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	CHECK(inet_pton(AF_INET, text, &a.sin_addr) == 1, "%s", text);
	return a;
}

/* Of either family. */
static inline socklen_t any_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1) {
		memcpy(out, &six, sizeof(six));
		return sizeof(six);
	}
	struct sockaddr_in four = address(text, port);
	memcpy(out, &four, sizeof(four));
	return sizeof(four);
}

static inline void bring_up(int fd, const char *name)
{
	struct ifreq r = { 0 };
	(void)snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	r.ifr_flags = IFF_UP;
	CHECK(ioctl(fd, SIOCSIFFLAGS, &r) == 0, "%s: %s", name, strerror(errno));
}

static inline void add_default_route(int fd)
{
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
	struct sockaddr_in any = address("0.0.0.0", 0), via = address("192.0.9.1", 0);
	memcpy(&route.rt_dst, &any, sizeof(any));
	memcpy(&route.rt_genmask, &any, sizeof(any));
	memcpy(&route.rt_gateway, &via, sizeof(via));
	CHECK(ioctl(fd, SIOCADDRT, &route) == 0, "%s", strerror(errno));
}

/* As far as the lab has IPv6: a kernel may be without. */
static inline bool add_ipv6(const char *name)
{
	struct in6_rtmsg route = { .rtmsg_flags = RTF_UP, .rtmsg_metric = 1 };
	struct in6_ifreq own = { .ifr6_prefixlen = 64, .ifr6_ifindex = (int)if_nametoindex(name) };
	auto_fd int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	(void)inet_pton(AF_INET6, WORLD6, &own.ifr6_addr);
	route.rtmsg_ifindex = own.ifr6_ifindex;
	return ioctl(fd, SIOCSIFADDR, &own) == 0 && ioctl(fd, SIOCADDRT, &route) == 0;
}

/* Its tap ends with the lab: the descriptor is left open. */
static inline void make_world(void)
{
	auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bring_up(fd, "lo");
	int tap_fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	struct ifreq r = { .ifr_name = "world" };
	r.ifr_flags = IFF_TAP | IFF_NO_PI;
	CHECK(tap_fd >= 0 && ioctl(tap_fd, TUNSETIFF, &r) == 0, "%s", strerror(errno));

	struct sockaddr_in own = address(WORLD, 0), mask = address("255.255.255.0", 0);
	memcpy(&r.ifr_addr, &own, sizeof(own));
	CHECK(ioctl(fd, SIOCSIFADDR, &r) == 0, "%s", strerror(errno));
	memcpy(&r.ifr_netmask, &mask, sizeof(mask));
	CHECK(ioctl(fd, SIOCSIFNETMASK, &r) == 0, "%s", strerror(errno));
	/* no time for duplicate detection; ENOENT: no IPv6 */
	auto_fd int dad_fd = open("/proc/sys/net/ipv6/conf/world/accept_dad", O_WRONLY | O_CLOEXEC);
	CHECK(dad_fd < 0 || write(dad_fd, "0", 1) == 1, "%s", strerror(errno));
	bring_up(fd, "world");
	add_default_route(fd);
	(void)add_ipv6("world"); /* tests of IPv6 ask for it */
}

static inline void enter_lab(void)
{
	unsigned uid = geteuid(), gid = getegid();
	/* an ordinary user's needs a user namespace around it; it stays the same user in it */
	if (unshare(CLONE_NEWNET | (uid == 0 ? 0 : CLONE_NEWUSER)) < 0)
		skip_lab("no network namespace to be had");
	if (uid != 0)
		map_ids(getpid(), uid, uid, gid);
}

static inline bool may_use_tun(void)
{
	struct cj_error err = { 0 };
	return uplink_helper_try_tun(&err) == 0;
}

static inline void run_in_lab(void (*body)(void))
{
	int status = 0;
	(void)fflush(NULL);
	pid_t pid = test_fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		(void)alarm(patience_s(240)); /* a lab that hangs fails */
		enter_lab();
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		skip();
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static inline int send_fd(int sock_fd, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(sock_fd, &msg, 0) == 1 ? 0 : -1;
}

static inline int receive_fd(int sock_fd)
{
	char byte, room[CMSG_SPACE(sizeof(int))];
	struct iovec part = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = room,
			      .msg_controllen = sizeof(room) };
	int fd = -1;
	if (recvmsg(sock_fd, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

#define JAIL_ID 0x70001234 /* what root maps it to, as idmap.c would */

/* Root of a container may have no id but its own to give. */
static inline bool has_ids_to_give(void)
{
	unsigned inside = 0, outside = 0, count = 0;
	auto_file FILE *map = fopen("/proc/self/uid_map", "re");
	return geteuid() == 0 && map && fscanf(map, "%u %u %u", &inside, &outside, &count) == 3 &&
	       inside == 0 && count > JAIL_ID;
}

/* A NETLINK_ROUTE socket in new namespaces whose one user is 4000, as jail_prepare() has it. */
static inline int make_gateway(void)
{
	int ends[2];
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
	pid_t pid = test_fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
			_exit(SKIPPED);
		int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
		char byte;
		_exit(send_fd(ends[1], fd) == 0 && read(ends[1], &byte, 1) == 1 ? 0 : 1);
	}
	(void)close(ends[1]);
	auto_fd int link_fd = ends[0];
	int gateway_fd = receive_fd(link_fd);
	if (gateway_fd < 0)
		skip_lab("no user namespace to be had");
	if (has_ids_to_give())
		map_ids(pid, 4000, JAIL_ID, JAIL_ID);
	else
		map_ids(pid, 4000, geteuid(), getegid());
	CHECK(write(link_fd, "", 1) == 1 && waitpid(pid, NULL, 0) == pid, "map ids");
	return gateway_fd;
}

/* --- questions ----------------------------------------------------------------------------------
 */

/* Is a helper attached to the tap device? */
static inline bool is_attached(int gateway_fd)
{
	return links_look(gateway_fd, LINK_UPLINK).has_carrier;
}

static inline bool helper_lets_go(int gateway_fd)
{
	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		if (!is_attached(gateway_fd))
			return true;
		(void)poll(NULL, 0, 10);
	}
	return false;
}

#define WITNESS "witness"

/* A link from the lab to the gateway: the kernel removes it with the gateway's namespace. */
static inline void add_witness(int gateway_fd)
{
	struct cj_error err = { 0 };
	struct rtbatch b = { 0 };
	auto_fd int route_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	auto_fd int netns_fd = ioctl(gateway_fd, SIOCGSKNS);
	rtmsg_veth(&b, &(struct rtmsg_link){ WITNESS, 0, { 2, 0, 0, 0, 0, 7 } },
		   &(struct rtmsg_link){ "far", 0, { 2, 0, 0, 0, 0, 8 } }, netns_fd, 1500);
	CHECK(rtbatch_send(route_fd, &b, NULL, &err) == 0, "%s", err.msg);
}

static inline bool witness_ends(void)
{
	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		if (if_nametoindex(WITNESS) == 0)
			return true;
		(void)poll(NULL, 0, 10);
	}
	return false;
}

static inline size_t count_fds(void)
{
	size_t count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static inline int listen_at(const char *ip, uint16_t port)
{
	struct sockaddr_storage a;
	socklen_t size = any_address(ip, port, &a);
	int one = 1, fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, size) == 0 && listen(fd, 8) == 0,
	      "%s:%u: %s", ip, port, strerror(errno));
	return fd;
}

/* 0 or errno; ETIMEDOUT after `wait_ms`. */
static inline int try_connect(const char *ip, uint16_t port, int wait_ms)
{
	struct sockaddr_storage a;
	socklen_t length = any_address(ip, port, &a);
	auto_fd int fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connect(fd, (struct sockaddr *)&a, length) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	struct pollfd done = { .fd = fd, .events = POLLOUT };
	if (poll(&done, 1, wait_ms) == 0)
		return ETIMEDOUT;
	int code = 0;
	socklen_t size = sizeof(code);
	(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
	return code;
}

/* What the kernel of this namespace has counted and resolved, for who reads why a test failed. */
static inline void say_counters(int code)
{
	static const char *const files[] = { "/proc/net/arp", "/proc/net/snmp" };
	char line[512];
	(void)fprintf(stderr, "in the gateway: %s\n", strerror(code));
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		auto_file FILE *f = fopen(files[i], "re");
		while (f && fgets(line, sizeof(line), f))
			if (i == 0 || strncmp(line, "Tcp:", 4) == 0)
				(void)fputs(line, stderr);
	}
}

/* Runs in the gateway's network namespace, in a child. */
static inline int from_gateway(int gateway_fd, int (*what)(const char *, uint16_t, int),
			       const char *ip, int wait_ms)
{
	int status = 0;
	pid_t pid = test_fork();
	if (pid == 0) {
		auto_fd int netns_fd = ioctl(gateway_fd, SIOCGSKNS);
		CHECK(setns(netns_fd, CLONE_NEWNET) == 0, "%s", strerror(errno));
		int code = what(ip, PORT, wait_ms);
		if (code != 0)
			say_counters(code);
		_exit(code);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "probe");
	return WEXITSTATUS(status);
}

static inline struct uplink *start(const struct uplink_spec *spec)
{
	struct cj_error err = { 0 };
	struct uplink *u = NULL;
	struct uplink_spec complete = *spec;
	complete.loader = loader_here(spec->gateway_fd);
	CHECK(uplink_start(&complete, &u, &err) == 0, "%s", err.msg);
	return u;
}

static inline struct uplink *plug(enum uplink_kind kind, int gateway_fd)
{
	struct uplink_spec spec = { .kind = kind, .gateway_fd = gateway_fd, .has_ipv6 = true };
	struct cj_error err = { 0 };
	if (uplink_probe(kind, NULL, &err) < 0)
		skip_lab(err.msg);
	make_world();
	struct uplink *u = start(&spec);
	CHECK(uplink_await(u, &err) == 0, "%s", err.msg);
	CHECK(uplink_kind_of(u) == kind, "%s", uplink_why(u));
	return u;
}

#define LAB_TEST(sentence, body)                                                                   \
	static void sentence(void **state)                                                         \
	{                                                                                          \
		(void)state;                                                                       \
		run_in_lab(body);                                                                  \
	}
