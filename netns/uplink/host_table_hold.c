/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, forks, serves, ends.  Acts. */
#include "netns/uplink/host_table_hold.h"

#include <linux/netlink.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "netns/firewall/firewall.h"
#include "netns/firewall/host_firewall.h"
#include "netns/uplink/host_table.h"
#include "netns/uplink/uplink_privileges.h"
#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"

#define NUMBERS 64  /* tables of other users, other versions, and of holders that were killed */
#define BACKLOG 128 /* runs that ask at the same time; a further one waits in its connect(2) */

/* Any address of the networks that netns/uplink/uplink_host.c takes the jails' addresses from. */
static const struct ip network4 = { 4, { 198, 19 } };
static const struct ip network6 = { 6, { 0xfd, 0xce, 0x6a, 0x12 } };

static int listen_at_address(bool has_ipv6, struct cj_error *err)
{
	struct sockaddr_un address;
	socklen_t size = host_table_address(host_table_what(has_ipv6), &address);
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
	char name[HOST_TABLE_NAME_MAX], links[HOST_TABLE_NAME_MAX];
	host_table_name(number, name);
	host_table_links(number, links);
	const struct firewall_host_spec rules = { .table = name,
						  .link = links,
						  .every_link = HOST_FIREWALL_LINKS,
						  .is_shared = true,
						  .ip4 = network4,
						  .ip6 = has_ipv6 ? network6 : none };
	table->number = number;
	return firewall_apply_host(table->rules_fd, &rules, err);
}

/* Another socket's table of that name is EPERM, a table without an owner EEXIST. */
static int load_any(struct host_table *table, bool has_ipv6, struct cj_error *err)
{
	int rc = -EEXIST;
	for (uint32_t n = 1; (rc == -EEXIST || rc == -EPERM) && n <= NUMBERS; n++)
		rc = load(table, n, has_ipv6, err);
	return rc;
}

/* --- from here: the holder ------------------------------------------------------------- */

static int drop_privileges(struct cj_error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "set no_new_privs");
	return uplink_privileges_drop(err);
}

/* True: the client has the table. */
static bool serve(int listen_fd, const struct host_table *table)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	struct cj_error ignored; /* a client that went away, or did not read */
	auto_fd int sock_fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock_fd < 0 || getsockopt(sock_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    peer.uid != geteuid())
		return false;
	const struct step_link link = { sock_fd, "a run", host_table_steps };
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
	    drop_privileges(&ignored) < 0)
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
	auto_fd int rules_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (rules_fd < 0)
		return cj_fail(err, errno, "open a NETLINK_NETFILTER socket");
	struct host_table table = { .rules_fd = rules_fd };
	if (load_any(&table, has_ipv6, err) < 0)
		return -err->code;

	pid_t pid = fork();
	if (pid < 0)
		return cj_fail(err, errno, "create a process");
	if (pid == 0)
		hold(listen_fd, &table, idle_ms);
	return 0;
}
