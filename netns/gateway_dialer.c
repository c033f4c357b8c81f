/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dialer: a process in the gateway's namespace that makes the proxy's connections.
 *
 * The gateway's process holds sockets of the caller's own network, to name servers.  If it could
 * call connect(2), whoever takes it over could connect one of these anew, to anywhere there.  The
 * dialer has no such socket, and reads nothing but destinations of a fixed size.
 */
#include "netns/gateway_parts.h"

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "netns/relay/tcp_proxy.h"
#include "runtime/base/scope.h"

static int connect_to(const struct step_msg *msg)
{
	struct name_destination to;
	struct sockaddr_storage at;
	if (msg->size != sizeof(to))
		return -1;
	memcpy(&to, msg->data, sizeof(to));
	if (to.address.family != 4 && to.address.family != 6)
		return -1;
	const socklen_t size = ip_socket_address(&to.address, to.port, &at);
	return tcp_proxy_dial((struct sockaddr *)&at, size, SOCK_STREAM);
}

static int serve(const struct step_link *link, struct cj_error *err)
{
	for (;;) {
		auto_step_msg struct step_msg msg = { 0 };
		if (step_await(link, GATEWAY_DIAL, &msg, err) < 0)
			return -err->code;
		auto_fd int fd = connect_to(&msg);
		if (fd >= 0 && step_tell(link, GATEWAY_SOCKET, NULL, 0, &fd, 1, err) == 0)
			continue;
		if (step_tell(link, GATEWAY_SOCKET, NULL, 0, NULL, 0, err) < 0)
			return -err->code;
	}
}

static int run(int link_fd, struct cj_error *err)
{
	if (child_keep_only(&link_fd, 1, err) < 0)
		return -err->code;
	(void)prctl(PR_SET_NAME, "cejail-dialer", 0, 0, 0); /* only what ps(1) shows */
	const struct step_link link = { link_fd, "the gateway", gateway_step_names };
	const struct gateway_rights rights = { &gateway_dialer_calls, "the dialer", true, 0 };
	step_wait_forever(&link);
	if (gateway_give_up(link_fd, &rights, err) < 0) {
		step_abort(&link, err);
		return -err->code;
	}
	return serve(&link, err);
}

int gateway_start_dialer(struct step_link *out, int *out_pidfd, struct cj_error *err)
{
	struct cj_error why = { 0 };
	int ends[2];
	if (step_pair(ends, 0, err) < 0)
		return -err->code;
	pid_t pid = child_fork_sibling(out_pidfd);
	if (pid == 0) {
		(void)run(ends[1], &why);
		_exit(0);
	}
	const int code = errno;
	cj_close(&ends[1]);
	*out = (struct step_link){ ends[0], "the dialer", gateway_step_names };
	if (pid < 0)
		return cj_fail(err, code, "create the gateway's dialer");
	return 0;
}

int gateway_dial(const struct step_link *dialer, const struct name_destination *to)
{
	const struct gateway_question q = { GATEWAY_DIAL, to, sizeof(*to), GATEWAY_SOCKET, 0 };
	auto_step_msg struct step_msg msg = { 0 };
	gateway_ask(dialer, &q, &msg);
	return msg.nfds > 0 ? take_fd(&msg.fds[0]) : -1;
}
