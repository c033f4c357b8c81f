/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the holder, or starts it.  Acts. */
#include "netns/uplink/host_table_ask.h"

#include <string.h>
#include <unistd.h>

#include "netns/uplink/host_table_owner.h"
#include "runtime/base/files/libexec_run.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"

#define WAIT_MS 1000 /* then this run uses a table of its own */

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
	socklen_t size = host_table_address(host_table_what(has_ipv6), &address);
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
	host_table_name(table.number, name);
	if (host_table_check_owner(table.rules_fd, name, err) < 0)
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
	const struct step_link link = { sock_fd, "the holder of the host's table",
					host_table_steps };
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
	socklen_t size = host_table_address(HOST_TABLE_ALONE, &address);
	auto_fd int sock_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock_fd < 0)
		return cj_fail(err, errno, "create a socket");
	if (bind(sock_fd, (const struct sockaddr *)&address, size) < 0)
		return cj_fail(err, errno, "mark a table as the only one of the host");
	return take_fd(&sock_fd);
}
