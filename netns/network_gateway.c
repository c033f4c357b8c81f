/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the supervisor receives from a gateway's process.
 *
 * That process reads what the program sends.  So each message is checked, and only so many of them
 * count in a second.
 */
#include "netns/network_parts.h"

#include <assert.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>

#include "netns/firewall/firewall.h"
#include "netns/relay/tcp_proxy.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

/* The kernel logs fewer in the two namespaces, and the resolver asks for fewer. */
#define DENIALS_SECOND (4 * FIREWALL_LOG_SECOND)
#define ASKS_SECOND    2048
#define NAMES_SECOND   4096 /* an address for each entry of the list, and one more */

#define RESOLV_CONF_MAX 65536 /* bytes; it has a few lines */

/* The next step on a link.  An error in its place may have any bytes. */
static int next_step(const struct step_link *link, struct step_msg *out, struct cj_error *err)
{
	struct cj_error theirs = { 0 };
	if (step_next(link, out, &theirs) == 0)
		return 0;
	*err = (struct cj_error){ .code = theirs.code };
	(void)text_escape(theirs.msg, strlen(theirs.msg), false, err->msg, sizeof(err->msg));
	(void)text_escape(theirs.hint, strlen(theirs.hint), false, err->hint, sizeof(err->hint));
	return -err->code;
}

/* One more of what may happen `most` times in a second. */
static bool is_within(struct network_rate *r, unsigned most)
{
	const uint64_t now_s = clock_ms() / 1000;
	if (r->second != now_s)
		*r = (struct network_rate){ .second = now_s };
	return r->count++ < most;
}

static void add_denial(struct network *n, const struct denial *one)
{
	const struct denial *row =
	    is_within(&n->denial_rate, DENIALS_SECOND) ? denials_add(&n->denials, one) : NULL;
	if (row)
		n->callbacks.denied(n->callbacks.context, row);
}

/* Those above the rate, and those behind a drain that was late, are counted by the kernel alone. */
static int take_denial(struct network *n, const struct step_msg *msg, struct cj_error *err)
{
	struct denial one;
	if (msg->size != sizeof(one))
		return cj_fail(err, EPROTO, "receive a denial");
	memcpy(&one, msg->data, sizeof(one));
	if (!denial_is_valid(&one) || one.class == NET_NAME)
		return cj_fail(err, EPROTO, "receive a denial");
	one.is_shared = false;
	if (!n->is_drain_late)
		add_denial(n, &one);
	return 0;
}

static int take_event(struct network *n, const struct step_msg *msg, struct cj_error *err)
{
	if (msg->step == GATEWAY_DENIED)
		return take_denial(n, msg, err);
	if (msg->step != GATEWAY_DRAINED || !n->is_drain_late)
		return cj_fail(err, EPROTO, "receive step %u of the gateway", msg->step);
	n->is_drain_late = false;
	return 0;
}

static uint32_t filter_name(struct network *n, const struct denial *denial,
			    const struct gateway_name *name)
{
	if (names_may_ask(&n->names->rules, name->text))
		return GATEWAY_NAME_LISTED;
	n->denied_names++;
	add_denial(n, denial);
	return 0;
}

/* Whoever answers for a listed name chooses its aliases: none of them is a denied one. */
static bool has_denied_alias(struct network *n, const struct gateway_name *name)
{
	const struct names_rules *rules = &n->names->rules;
	for (size_t i = 0; i < name->aliases.count; i++) {
		if (!names_has(rules->deny, rules->ndeny, name->aliases.names[i]))
			continue;
		const struct denial denial = denial_of_name(name->aliases.names[i]);
		n->denied_names++;
		add_denial(n, &denial);
		return true;
	}
	return false;
}

static_assert(RESOLVER_NAME_MAX == NAMES_SIZE_MAX, "aliases stand as in struct names_answer");

/* The program gets a failure of its name server, and its caller a warning: once, because the
 * program may ask again and again. */
static uint32_t refuse_addresses(struct network *n, const char *name, struct cj_error *why)
{
	(void)!cj_wrap(why, "the addresses of '%s' stay closed", name);
	if (!n->has_refused_address)
		n->callbacks.warn(n->callbacks.context, why->msg);
	n->has_refused_address = true;
	return GATEWAY_NAME_LATER;
}

static int open_new(struct network *n, struct cj_error *err)
{
	size_t count = 0;
	const struct endpoint *named = names_new(n->names, &count);
	return count > 0 ? loader_open_names(&n->loader, named, count, err) : 0;
}

/* What is new is open only if both tables take it. */
static uint32_t open_name(struct network *n, const struct gateway_name *name)
{
	struct cj_error err = { 0 };
	const struct names_answer answer = { name->text, name->aliases.names[0],
					     name->aliases.count };
	uint32_t open = 0;
	if (has_denied_alias(n, name))
		return GATEWAY_NAME_DENIED;
	for (size_t i = 0; i < name->count; i++) {
		if (!is_within(&n->name_rate,
			       NAMES_SECOND / (1 + (unsigned)n->names->rules.nallow))) {
			names_loaded(n->names, false);
			return GATEWAY_NAME_LATER;
		}
		enum names_end end = names_take(n->names, &answer, &name->addresses[i], clock_ms());
		if (end == NAMES_FULL) {
			names_loaded(n->names, false);
			cj_refuse_as(&err, ENFILE, "a jail has at most %d open ones",
				     NAMES_OPEN_MAX);
			return refuse_addresses(n, name->text, &err);
		}
		if (end == NAMES_OPEN)
			open |= UINT32_C(1) << i;
	}
	bool are_open = open_new(n, &err) == 0;
	names_loaded(n->names, are_open);
	return are_open ? open : refuse_addresses(n, name->text, &err);
}

static bool is_text(const char *text, size_t size)
{
	if (!memchr(text, '\0', size))
		return false;
	const struct denial denial = denial_of_name(text);
	return denial_is_valid(&denial);
}

static bool is_name_valid(const struct gateway_name *name)
{
	bool is_valid = name->count <= RESOLVER_ADDRESSES_MAX &&
			name->aliases.count <= RESOLVER_ALIASES_MAX &&
			is_text(name->text, sizeof(name->text));
	for (size_t i = 0; is_valid && i < name->count; i++)
		is_valid = name->addresses[i].family == 4 || name->addresses[i].family == 6;
	for (size_t i = 0; is_valid && i < name->aliases.count; i++)
		is_valid = is_text(name->aliases.names[i], sizeof(name->aliases.names[i]));
	return is_valid;
}

static int answer_name(struct network *n, const struct step_msg *msg, struct cj_error *err)
{
	struct gateway_name name;
	if (msg->size != sizeof(name) || !n->names)
		return cj_fail(err, EPROTO, "receive a name of the gateway");
	memcpy(&name, msg->data, sizeof(name));
	if (!is_name_valid(&name))
		return cj_fail(err, EPROTO, "receive a name of the gateway");
	const struct denial denial = denial_of_name(name.text);
	const uint32_t open = name.count == 0 ? filter_name(n, &denial, &name)
					      : open_name(n, &name);
	if (step_tell(&n->gateway.asks, GATEWAY_NAMED, &open, sizeof(open), NULL, 0, err) < 0)
		return -err->code;
	return loader_has_ended(&n->loader) ? cj_fail(err, EPIPE, "load rules") : 0;
}

/* Of a name, or of a destination whose client states none. */
static bool may_reach(struct network *n, const struct gateway_check *check,
		      const struct denial *denial)
{
	if (names_may_reach(&n->names->rules, check->text, check->to.port))
		return true;
	if (check->is_again)
		return false;
	n->denied_names++;
	add_denial(n, denial);
	return false;
}

static int answer_check(struct network *n, const struct step_msg *msg, struct cj_error *err)
{
	struct gateway_check check;
	if (msg->size != sizeof(check) || !n->names)
		return cj_fail(err, EPROTO, "receive a connection of the gateway");
	memcpy(&check, msg->data, sizeof(check));
	if (!memchr(check.text, '\0', sizeof(check.text)))
		return cj_fail(err, EPROTO, "receive a connection of the gateway");
	const struct denial denial = check.text[0]
					 ? denial_of_name(check.text)
					 : denial_of_nameless(&check.to.address, check.to.port);
	if (!denial_is_valid(&denial))
		return cj_fail(err, EPROTO, "receive a connection of the gateway");
	const bool may = may_reach(n, &check, &denial);
	return step_tell(&n->gateway.asks, GATEWAY_CHECKED, &may, sizeof(may), NULL, 0, err);
}

int name_servers_read(const char *path, struct name_servers *out, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *text = NULL;
	size_t size;
	/* Usually a link into /run.  O_NONBLOCK: a fifo there must not block. */
	auto_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return cj_fail(err, errno, "open '%s'", path);
	if (fd >= 0) {
		int rc = fd_read_all(fd, RESOLV_CONF_MAX, &a, &text, &size, path, err);
		if (rc < 0)
			return rc;
	}
	out->count = resolver_read_conf(text ? text : "", out->items);
	return 0;
}

int name_servers_connect(const struct name_servers *servers, size_t server, int type)
{
	struct sockaddr_storage address;
	if (server >= servers->count || (type != SOCK_DGRAM && type != SOCK_STREAM))
		return -EINVAL;
	socklen_t size = ip_socket_address(&servers->items[server], RESOLVER_PORT, &address);
	return tcp_proxy_dial((struct sockaddr *)&address, size, type);
}

int network_answer_ask(struct network *n, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct gateway_ask ask;
	if (!fd_await(n->gateway.asks.sock_fd, POLLIN,
		      0)) /* network_await_gateway() has served it */
		return 0;
	if (next_step(&n->gateway.asks, &msg, err) < 0)
		return -err->code;
	if (msg.step == GATEWAY_NAME)
		return answer_name(n, &msg, err);
	if (msg.step == GATEWAY_CHECK)
		return answer_check(n, &msg, err);
	if (msg.step != GATEWAY_ASK || msg.size != sizeof(ask))
		return cj_fail(err, EPROTO, "receive what the gateway asks for");
	memcpy(&ask, msg.data, sizeof(ask));
	auto_fd int fd = is_within(&n->ask_rate, ASKS_SECOND)
			     ? name_servers_connect(&n->name_servers, ask.server, ask.type)
			     : -1;
	if (fd >= 0 && step_tell(&n->gateway.asks, GATEWAY_SOCKET, NULL, 0, &fd, 1, err) == 0)
		return 0;
	/* ETOOMANYREFS: too many descriptors of this user are on their way, unix(7) */
	return step_tell(&n->gateway.asks, GATEWAY_SOCKET, NULL, 0, NULL, 0, err);
}

int network_await_gateway(struct network *n, enum gateway_step answer, unsigned timeout_ms,
			  struct step_msg *out, struct cj_error *err)
{
	const struct step_link *link = &n->gateway.link;
	const uint64_t until_ms = clock_ms() + timeout_ms;
	for (uint64_t now_ms; (now_ms = clock_ms()) < until_ms;) {
		struct pollfd fds[] = { { .fd = link->sock_fd, .events = POLLIN },
					{ .fd = n->gateway.asks.sock_fd, .events = POLLIN } };
		if (poll(fds, 2, (int)(until_ms - now_ms)) < 0 && errno != EINTR)
			return cj_fail(err, errno, "wait for the gateway");
		if (fds[0].revents) {
			if (next_step(link, out, err) < 0)
				return -err->code;
			if (out->step == answer)
				return 0;
			int rc = take_event(n, out, err);
			step_msg_fini(out);
			if (rc < 0)
				return rc;
		} else if (fds[1].revents && network_answer_ask(n, err) < 0) {
			return -err->code;
		}
	}
	return cj_fail(err, ETIMEDOUT, "wait until the %s", link->names[answer]);
}

int network_take_events(struct network *n, struct cj_error *err)
{
	for (unsigned i = 0; i < DENIALS_AT_ONCE && fd_await(n->gateway.link.sock_fd, POLLIN, 0);
	     i++) {
		auto_step_msg struct step_msg msg = { 0 };
		if (next_step(&n->gateway.link, &msg, err) < 0 || take_event(n, &msg, err) < 0)
			return -err->code;
	}
	return 0;
}

int network_drain(struct network *n, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	if (n->is_drain_late)
		return 0;
	if (step_tell(&n->gateway.link, GATEWAY_DRAIN, NULL, 0, NULL, 0, err) < 0)
		return -err->code;
	int rc = network_await_gateway(n, GATEWAY_DRAINED, GATEWAY_DRAIN_MS, &msg, err);
	n->is_drain_late = rc == -ETIMEDOUT;
	return n->is_drain_late ? 0 : rc;
}
