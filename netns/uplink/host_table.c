/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/uplink/host_table.h"

#include <netinet/in.h> /* before linux/: they agree in this order only */

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>

#include "netns/firewall/firewall.h"
#include "netns/firewall/host_firewall.h"
#include "netns/nftables/nfnl.h"
#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/kernel/process/privileges.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

#define WAIT_MS      1000 /* then this run uses a table of its own */
#define ANSWER_BYTES 4096
#define NUMBERS      64 /* tables of other users, other versions, and of holders that were killed */
#define BACKLOG      128 /* runs that ask at the same time; a further one waits in its connect(2) */

static const char *const steps[HOST_TABLE_STEPS] = {
	[HOST_TABLE_GIVEN] = "a table for the host",
};

static void table_name(uint32_t number, char out[static HOST_TABLE_NAME_MAX])
{
	(void)snprintf(out, HOST_TABLE_NAME_MAX, "cejail-s%u", number % 10000);
}

void host_table_links(uint32_t number, char out[static HOST_TABLE_NAME_MAX])
{
	(void)snprintf(out, HOST_TABLE_NAME_MAX, "cjs%u-", number % 10000);
}

/* The version, because another one may have other rules. */
static socklen_t address_of(const char *what, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	(void)snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "cejail-%s-%s-%u", CJ_VERSION,
		       what, geteuid());
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(out->sun_path + 1));
}

socklen_t host_table_address(bool has_ipv6, struct sockaddr_un *out)
{
	return address_of(has_ipv6 ? "table46" : "table4", out);
}

static int refuse_socket(struct cj_error *err)
{
	return cj_reject_as(err, EPERM, "the holder's socket does not own the host's table");
}

static int cookie_of(int fd, uint64_t *out, struct cj_error *err)
{
	socklen_t size = sizeof(*out);
	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, out, &size) < 0)
		return cj_fail(err, errno, "identify the network namespace of a socket");
	return 0;
}

/* A netlink port means something in one namespace and one protocol only. */
static int check_place(int rules_fd, int own_fd, struct cj_error *err)
{
	uint64_t theirs = 0, ours = 0;
	int domain = 0, protocol = 0;
	socklen_t size = sizeof(int);
	if (cookie_of(rules_fd, &theirs, err) < 0 || cookie_of(own_fd, &ours, err) < 0)
		return -err->code;
	if (getsockopt(rules_fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0 ||
	    getsockopt(rules_fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) < 0)
		return cj_fail(err, errno, "identify the holder's socket");
	if (theirs != ours || domain != AF_NETLINK || protocol != NETLINK_NETFILTER)
		return refuse_socket(err);
	return 0;
}

/* The kernel answers within nfnl_send(). */
static int receive_owner(int own_fd, const char *name, uint32_t *out, struct cj_error *err)
{
	_Alignas(struct nlmsghdr) char bytes[ANSWER_BYTES];
	const struct nlmsghdr *answer = (const struct nlmsghdr *)bytes;
	ssize_t size = nfnl_receive(own_fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (size < 0)
		return cj_fail(err, (int)-size, "look at the table '%s'", name);
	if (!nfnl_is_message(answer, (int)size))
		return cj_fail(err, EBADMSG, "look at the table '%s'", name);
	if (answer->nlmsg_type == NLMSG_ERROR)
		return cj_fail(err, nfnl_error(answer), "look at the table '%s'", name);
	if (answer->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWTABLE) ||
	    nlmsg_datalen(answer) < (int)sizeof(struct nfgenmsg))
		return cj_fail(err, EBADMSG, "look at the table '%s'", name);

	const struct nlattr *owner = nfnl_find(answer, NFTA_TABLE_OWNER);
	if (!owner || nla_len(owner) != sizeof(uint32_t))
		return refuse_socket(err);
	*out = ntohl(nla_get_u32(owner));
	return 0;
}

/*
 * Fails unless this socket owns the inet table `name` of our network namespace: EPERM; ENOENT
 * without the table; ENOPROTOOPT before Linux 5.14.
 * Follows: SO_NETNS_COOKIE and SO_PROTOCOL in socket(7), NFTA_TABLE_OWNER in nf_tables.h.
 */
static int check_owner(int rules_fd, const char *name, struct cj_error *err)
{
	struct sockaddr_nl port = { 0 };
	socklen_t size = sizeof(port);
	uint32_t owner = 0;
	auto_fd int own_fd = nfnl_socket(NETLINK_NETFILTER, err);
	if (own_fd < 0)
		return own_fd;
	if (check_place(rules_fd, own_fd, err) < 0)
		return -err->code;
	auto_nl_msg *request = nfnl_create(&(struct nfnl_head){ .subsystem = NFNL_SUBSYS_NFTABLES,
								.message = NFT_MSG_GETTABLE,
								.family = NFPROTO_INET });
	if (!request || nla_put_string(request, NFTA_TABLE_NAME, name) < 0)
		return cj_fail(err, ENOMEM, "look at the table '%s'", name);
	int rc = nfnl_send(own_fd, nlmsg_hdr(request), nlmsg_hdr(request)->nlmsg_len);
	if (rc < 0)
		return cj_fail(err, -rc, "look at the table '%s'", name);
	if (receive_owner(own_fd, name, &owner, err) < 0)
		return -err->code;
	if (getsockname(rules_fd, (struct sockaddr *)&port, &size) < 0)
		return cj_fail(err, errno, "getsockname of the holder's socket");
	return owner != 0 && port.nl_pid == owner ? 0 : refuse_socket(err);
}

/* The holder's credentials are those of its listen(2). */
static int check_peer(int sock_fd, struct cj_error *err)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	if (getsockopt(sock_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return cj_fail(err, errno, "identify the holder of the host's table");
	if (peer.uid != geteuid())
		return cj_reject_as(err, EACCES,
				    "another user holds the address of cejail's table");
	return 0;
}

static int connect_holder(bool has_ipv6, struct cj_error *err)
{
	struct sockaddr_un address;
	socklen_t size = host_table_address(has_ipv6, &address);
	auto_fd int sock_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock_fd < 0)
		return cj_fail(err, errno, "create a socket");
	step_limit_wait(sock_fd, WAIT_MS);
	if (connect(sock_fd, (const struct sockaddr *)&address, size) < 0)
		return cj_fail(err, errno, "connect to the holder of the host's table");
	if (check_peer(sock_fd, err) < 0)
		return -err->code;
	return take_fd(&sock_fd);
}

static int take_table(struct step_msg *msg, struct host_table *out, struct cj_error *err)
{
	struct host_table table = { .rules_fd = msg->fds[0] };
	char name[HOST_TABLE_NAME_MAX];
	if (msg->size != sizeof(table.number) || msg->nfds != 1)
		return cj_fail(err, EPROTO, "receive the host's table");
	memcpy(&table.number, msg->data, sizeof(table.number));
	table_name(table.number, name);
	if (check_owner(table.rules_fd, name, err) < 0)
		return -err->code;
	*out = table;
	msg->fds[0] = -1;
	return 0;
}

int host_table_ask(bool has_ipv6, struct host_table *out, struct cj_error *err)
{
	*out = (struct host_table){ .rules_fd = -1 };
	auto_fd int sock_fd = connect_holder(has_ipv6, err);
	if (sock_fd < 0)
		return sock_fd;
	const struct step_link link = { sock_fd, "the holder of the host's table", steps };
	auto_step_msg struct step_msg msg = { 0 };
	if (step_await(&link, HOST_TABLE_GIVEN, &msg, err) < 0)
		return -err->code;
	return take_table(&msg, out, err);
}

int host_table_start(bool has_ipv6, struct host_table *out, struct cj_error *err)
{
	*out = (struct host_table){ .rules_fd = -1 };
	const char *const args[] = { has_ipv6 ? "46" : "4", NULL };
	const struct libexec_call call = {
		.name = "table-helper",
		.what = "the holder of the host's table",
		.args = args,
	};
	if (libexec_run(&call, err) < 0)
		return -err->code;
	return host_table_ask(has_ipv6, out, err);
}

int host_table_mark(struct cj_error *err)
{
	struct sockaddr_un address;
	socklen_t size = address_of("alone", &address);
	auto_fd int sock_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock_fd < 0)
		return cj_fail(err, errno, "create a socket");
	if (bind(sock_fd, (const struct sockaddr *)&address, size) < 0)
		return cj_fail(err, errno, "mark a table as the only one of the host");
	return take_fd(&sock_fd);
}

/* Any address of the networks that uplink_host.c takes the jails' addresses from. */
static const struct ip network4 = { 4, { 198, 19 } };
static const struct ip network6 = { 6, { 0xfd, 0xce, 0x6a, 0x12 } };

static int listen_at_address(bool has_ipv6, struct cj_error *err)
{
	struct sockaddr_un address;
	socklen_t size = host_table_address(has_ipv6, &address);
	auto_fd int sock_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock_fd < 0)
		return cj_fail(err, errno, "create a socket");
	if (bind(sock_fd, (const struct sockaddr *)&address, size) < 0 ||
	    listen(sock_fd, BACKLOG) < 0)
		return cj_fail(err, errno, "listen for runs");
	return take_fd(&sock_fd);
}

static int load(struct host_table *table, uint32_t number, bool has_ipv6, struct cj_error *err)
{
	const struct ip none = { 0 };
	struct firewall_host_spec rules = { .every_link = HOST_FIREWALL_LINKS,
					    .is_shared = true,
					    .ip4 = network4,
					    .ip6 = has_ipv6 ? network6 : none };
	table_name(number, rules.table);
	host_table_links(number, rules.link);
	table->number = number;
	return firewall_apply_host(table->rules_fd, &rules, err);
}

/* From here: the holder. */

/* True: the client has the table. */
static bool serve(int listen_fd, const struct host_table *table)
{
	struct cj_error ignored; /* a client that went away, did not read, or is another user's */
	auto_fd int sock_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock_fd < 0 || check_peer(sock_fd, &ignored) < 0)
		return false;
	const struct step_link link = { sock_fd, "a run", steps };
	return step_tell(&link, HOST_TABLE_GIVEN, &table->number, sizeof(table->number),
			 &table->rules_fd, 1, &ignored) == 0;
}

static void serve_until_idle(int listen_fd, const struct host_table *table, unsigned idle_ms)
{
	uint64_t end = clock_ms() + idle_ms;
	struct pollfd waiting = { .fd = listen_fd, .events = POLLIN };
	for (uint64_t now = clock_ms(); now < end; now = clock_ms()) {
		int ready = poll(&waiting, 1, (int)(end - now));
		if (ready < 0 && errno != EINTR)
			return;
		if (ready > 0 && serve(listen_fd, table))
			end = clock_ms() + idle_ms;
	}
}

static void hold(int listen_fd, const struct host_table *loaded, unsigned idle_ms)
{
	struct cj_error ignored; /* nobody reads it: the runs use tables of their own then */
	int fds[] = { listen_fd, loaded->rules_fd };
	if (child_reset(fds, 2, &ignored) < 0 || child_start_session(&ignored) < 0 ||
	    chdir("/") < 0 || child_become_undumpable(&ignored) < 0 ||
	    privileges_keep_only(0, &ignored) < 0)
		_exit(EXIT_FAILURE);
	const struct host_table table = { .number = loaded->number, .rules_fd = fds[1] };
	serve_until_idle(fds[0], &table, idle_ms);
	cj_close(&fds[0]); /* before the table goes, which takes long: no run may wait for it */
	_exit(EXIT_SUCCESS);
}

int host_table_hold(bool has_ipv6, unsigned idle_ms, struct cj_error *err)
{
	auto_fd int listen_fd = listen_at_address(has_ipv6, err);
	if (listen_fd == -EADDRINUSE)
		return 0;
	if (listen_fd < 0)
		return listen_fd;
	auto_fd int rules_fd = nfnl_socket(NETLINK_NETFILTER, err);
	if (rules_fd < 0)
		return rules_fd;
	struct host_table table = { .rules_fd = rules_fd };
	int rc = -EEXIST;
	/* Another socket's table of that name is EPERM, a table without an owner EEXIST. */
	for (uint32_t n = 1; (rc == -EEXIST || rc == -EPERM) && n <= NUMBERS; n++)
		rc = load(&table, n, has_ipv6, err);
	if (rc < 0)
		return -err->code;

	pid_t pid = fork();
	if (pid < 0)
		return cj_fail(err, errno, "create a process");
	if (pid == 0)
		hold(listen_fd, &table, idle_ms);
	return 0;
}
