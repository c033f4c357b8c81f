/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's side of the gateway: its start and its end. */
#include "netns/gateway.h"

#include "netns/gateway_parts.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/scope.h"

const char *const gateway_step_names[GATEWAY_STEPS] = {
	[GATEWAY_OPENED] = "gateway is open",
	[GATEWAY_READY] = "gateway is ready",
	[GATEWAY_SERVE] = "serve names",
	[GATEWAY_SERVED] = "names are served",
	[GATEWAY_DENIED] = "denied",
	[GATEWAY_ASK] = "ask for a socket",
	[GATEWAY_SOCKET] = "socket",
	[GATEWAY_NAME] = "name",
	[GATEWAY_NAMED] = "answer about a name",
	[GATEWAY_CHECK] = "check a connection",
	[GATEWAY_CHECKED] = "answer about a connection",
	[GATEWAY_AGAIN] = "check connections again",
	[GATEWAY_DIAL] = "connect",
	[GATEWAY_FILTER] = "filter names",
	[GATEWAY_LOSE] = "uplink is lost",
	[GATEWAY_DRAIN] = "drain",
	[GATEWAY_DRAINED] = "drained",
};

void gateway_version(char out[static GATEWAY_VERSION_MAX])
{
	(void)snprintf(out, GATEWAY_VERSION_MAX, "%s-%d-%zu-%zu-%zu-%d-%zu", CJ_VERSION,
		       GATEWAY_STEPS, sizeof(struct gateway_name), sizeof(struct gateway_check),
		       sizeof(struct denial), LOADER_STEPS, sizeof(struct loader_order));
}

/* fds[0] is the program's end of the link. */
static int start(const char *const *words, const int *fds, size_t count, int *out_pidfd,
		 struct cj_error *err)
{
	char version[GATEWAY_VERSION_MAX];
	const char *args[GATEWAY_WORDS] = { version };
	char *const none[] = { NULL };
	for (size_t i = 0; words[i]; i++)
		args[1 + i] = words[i];
	gateway_version(version);
	/* No signal to all processes of a terminal or a service ends it. */
	const struct libexec_program program = { "gateway", args, none, fds, count, true };
	return libexec_start(&program, out_pidfd, err) < 0 ? -err->code : 0;
}

static int pair(const char *peer, const char *const *names, struct step_link *out, int *out_theirs,
		struct cj_error *err)
{
	int ends[2];
	if (step_pair(ends, GATEWAY_ANSWER_MS, err) < 0)
		return -err->code;
	*out = (struct step_link){ ends[0], peer, names };
	*out_theirs = ends[1];
	return 0;
}

static int pair_gateway(struct step_link *out, int *out_theirs, struct cj_error *err)
{
	return pair("the gateway", gateway_step_names, out, out_theirs, err);
}

static int pair_loader(struct loader *out, int *out_theirs, struct cj_error *err)
{
	return pair("the loader", loader_step_names, &out->link, out_theirs, err);
}

int gateway_start(const struct gateway_wants *wants, int jail_fd, struct gateway *out,
		  struct loader *out_loader, struct cj_error *err)
{
	const char *const words[] = { "jail", wants->has_dns ? "dns" : "-",
				      wants->has_proxy ? "proxy" : "-", NULL };
	auto_fd int link_fd = -1, asks_fd = -1, loader_fd = -1;
	*out = GATEWAY_NONE;
	*out_loader = LOADER_NONE;
	if (pair_gateway(&out->link, &link_fd, err) < 0 ||
	    pair_gateway(&out->asks, &asks_fd, err) < 0 ||
	    pair_loader(out_loader, &loader_fd, err) < 0 ||
	    start(words, (int[]){ link_fd, asks_fd, jail_fd, loader_fd }, 4, &out->pidfd, err) <
		0) {
		gateway_stop(out);
		loader_stop(out_loader);
		return -err->code;
	}
	step_limit_wait(out->asks.sock_fd, GATEWAY_SEND_MS);
	return 0;
}

int gateway_start_log(int log_fd, struct gateway *out, struct cj_error *err)
{
	static const char *const words[] = { "log", NULL };
	auto_fd int link_fd = -1;
	*out = GATEWAY_NONE;
	if (pair_gateway(&out->link, &link_fd, err) < 0 ||
	    start(words, (int[]){ link_fd, log_fd }, 2, &out->pidfd, err) < 0 ||
	    step_await(&out->link, GATEWAY_READY, NULL, err) < 0) {
		gateway_stop(out);
		return -err->code;
	}
	return 0;
}

int gateway_start_loader(struct loader *out, struct cj_error *err)
{
	static const char *const words[] = { "loader", NULL };
	auto_fd int link_fd = -1;
	*out = LOADER_NONE;
	if (pair_loader(out, &link_fd, err) < 0 ||
	    start(words, &link_fd, 1, &out->pidfd, err) < 0) {
		loader_stop(out);
		return -err->code;
	}
	return 0;
}

int gateway_hint(struct cj_error *err)
{
	return cj_hint_for(err, EPIPE, "run libexec/cejail/gateway: it says if it lacks a library");
}

void gateway_stop(struct gateway *g)
{
	cj_end_child(&g->pidfd);
	cj_end_child(&g->dialer_pidfd);
	cj_close(&g->link.sock_fd);
	cj_close(&g->asks.sock_fd);
}
