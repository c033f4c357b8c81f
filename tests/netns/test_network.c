/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network: each part fails once and nothing is held; what a kernel lacks leaves the jail without a
 * network, never with one that nobody judges.
 */
#include "netns/network.h"

#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "netns/address/names.h"
#include "netns/relay/resolver.h"
#include "netns/firewall/firewall.h"
#include "netns/relay/forward.h"
#include "netns/network_parts.h"
#include "netns/rtnetlink/hostaddrs.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/sys.h"
#include "tests/netns/gateway_here.h"
#include "tests/netns/init_side.h"
#include "tests/netns/namespaces.h"
#include "tests/netns/taken_over.h"

/* WRAP: gateway_start hostaddrs_open loader_apply_jail loader_apply_gateway denials_listen */
/* WRAP: uplink_start denials_receive loader_open_names loader_replace loader_join clock_ms */
/* WRAP: step_tell */
/* WRAP: links_join forward_create uplink_await uplink_proceed resolver_create uplink_kind_of */
/* WRAP: libexec_start */

#define PORT 4711

static const char *failing = "";
static int failing_code = EIO;
static unsigned warnings;
static char warned[1024];

/* In place of function: fails when it is the one that should, else does what it does. */
#define FAILS(function, parameters, arguments)                                                     \
	int __real_##function parameters;                                                          \
	int __wrap_##function parameters;                                                          \
	int __wrap_##function parameters                                                           \
	{                                                                                          \
		if (strcmp(failing, #function) == 0)                                               \
			return cj_fail(err, failing_code, "made to fail");                         \
		return __real_##function arguments;                                                \
	}

/* What loader_apply_jail() has got. */
static struct {
	bool is_list, has_dns, has_names;
	size_t nallowed;
} applied;

static const struct firewall_spec *keep_applied(const struct firewall_spec *spec)
{
	applied.is_list = spec->is_list;
	applied.has_dns = spec->has_dns;
	applied.has_names = spec->has_names;
	applied.nallowed = spec->nallowed;
	return spec;
}

FAILS(gateway_start,
      (const struct gateway_wants *wants, int jail_fd, struct gateway *out, struct loader *loader,
       struct cj_error *err),
      (wants, jail_fd, out, loader, err))
FAILS(hostaddrs_open, (struct hostaddrs * *out, struct cj_error *err), (out, err))
FAILS(loader_apply_jail,
      (struct loader * l, const struct firewall_spec *spec, struct cj_error *err),
      (l, keep_applied(spec), err))
FAILS(loader_apply_gateway,
      (struct loader * l, const struct firewall_spec *spec, struct cj_error *err), (l, spec, err))
FAILS(loader_join, (struct loader * l, struct cj_error *err), (l, err))
FAILS(denials_listen, (int fd, struct cj_error *err), (fd, err))
FAILS(uplink_start, (const struct uplink_spec *spec, struct uplink **out, struct cj_error *err),
      (spec, out, err))
FAILS(links_join,
      (int gateway, int jail, int netns, const struct links_spec *spec, struct cj_error *err),
      (gateway, jail, netns, spec, err))
FAILS(forward_create,
      (const int *fds, const uint16_t *ports, size_t n, struct forward **out, struct cj_error *err),
      (fds, ports, n, out, err))
FAILS(uplink_await, (struct uplink * u, struct cj_error *err), (u, err))
FAILS(uplink_proceed, (struct uplink * u, bool *decided, struct cj_error *err), (u, decided, err))
FAILS(resolver_create,
      (int udp, int tcp, const struct resolver_upstream *upstream, struct resolver **out,
       struct cj_error *err),
      (udp, tcp, upstream, out, err))

FAILS(loader_open_names,
      (struct loader * l, const struct endpoint *named, size_t n, struct cj_error *err),
      (l, named, n, err))

/* What the supervisor has changed and told, in order, and which of its changes fail, as bits. */
static char trace[256];
static unsigned replaced, failing_replacements;

static void note(const char *text, int value)
{
	const size_t used = strlen(trace);
	(void)snprintf(trace + used, sizeof(trace) - used, "%s%d ", text, value);
}

int __real_loader_replace(struct loader *l, enum loader_table table,
			  const struct firewall_spec *from, const struct firewall_spec *to,
			  struct cj_error *err);
int __wrap_loader_replace(struct loader *l, enum loader_table table,
			  const struct firewall_spec *from, const struct firewall_spec *to,
			  struct cj_error *err);
int __wrap_loader_replace(struct loader *l, enum loader_table table,
			  const struct firewall_spec *from, const struct firewall_spec *to,
			  struct cj_error *err)
{
	note("list", to->is_list);
	if (failing_replacements >> replaced++ & 1)
		return cj_fail(err, ENOBUFS, "made to fail");
	return __real_loader_replace(l, table, from, to, err);
}

int __real_step_tell(const struct step_link *link, uint32_t step, const void *data, size_t size,
		     const int *fds, size_t nfds, struct cj_error *err);
int __wrap_step_tell(const struct step_link *link, uint32_t step, const void *data, size_t size,
		     const int *fds, size_t nfds, struct cj_error *err);
int __wrap_step_tell(const struct step_link *link, uint32_t step, const void *data, size_t size,
		     const int *fds, size_t nfds, struct cj_error *err)
{
	if (step == GATEWAY_FILTER && size == sizeof(bool))
		note("judge", *(const bool *)data);
	if (step == GATEWAY_SERVE && size == sizeof(struct gateway_serve))
		note("serve", ((const struct gateway_serve *)data)->are_filtered);
	return __real_step_tell(link, step, data, size, fds, nfds, err);
}

/* What the clock of the supervisor shows, if it stands still, else 0. */
static uint64_t frozen_ms;
uint64_t __real_clock_ms(void);
uint64_t __wrap_clock_ms(void);
uint64_t __wrap_clock_ms(void)
{
	return frozen_ms ? frozen_ms : __real_clock_ms();
}

/* An uplink of no kind at all that leads somewhere: then names are served. */
static bool pretends_uplink;
enum uplink_kind __real_uplink_kind_of(const struct uplink *u);
enum uplink_kind __wrap_uplink_kind_of(const struct uplink *u);
enum uplink_kind __wrap_uplink_kind_of(const struct uplink *u)
{
	return pretends_uplink ? UPLINK_PASTA : __real_uplink_kind_of(u);
}

/* What a gateway that was taken over sends when it is drained. */
static uint32_t sent_step = GATEWAY_STEPS;
static const void *sent;
static size_t sent_size;

static void send_it(const struct step_link *to_supervisor)
{
	struct cj_error err = { 0 };
	MUST_DO(step_tell(to_supervisor, sent_step, sent, sent_size, NULL, 0, &err), err);
}

/* Runs the body with a gateway that sends this. */
static void with_sent(uint32_t step, const void *bytes, size_t size, void (*body)(void))
{
	sent_step = step;
	sent = bytes;
	sent_size = size;
	taken_over = send_it;
	in_own_namespace(body);
	taken_over = NULL;
}

static void keep_warning(void *context, const char *text)
{
	(void)context;
	warnings++;
	(void)snprintf(warned, sizeof(warned), "%s", text);
}

static void ignore_denial(void *context, const struct denial *denial)
{
	(void)context;
	(void)denial;
}

static const struct network_callbacks callbacks = { keep_warning, ignore_denial, NULL };
static const uint16_t ports[] = { PORT };
static const struct network_spec public_spec = {
	.mode = NETWORK_PUBLIC, .uplink = UPLINK_NONE, .ports = ports, .nports = 1
};
static const struct endpoints nowhere;

static int create(const struct network_spec *spec, struct network **out, struct cj_error *err)
{
	struct network_handles handles;
	open_init_side(spec, &handles);
	const struct network_setup setup = { spec, &nowhere, 1, callbacks };
	int rc = network_create(&setup, &handles, out, err);
	for (size_t i = 0; i < SLOT_COUNT; i++)
		MUST(handles.fds[i] == -1); /* taken, or closed */
	return rc;
}

static int build(const struct network_spec *spec, struct network **out, struct cj_error *err)
{
	int rc = create(spec, out, err);
	if (rc == 0)
		rc = network_build(*out, err);
	if (rc < 0)
		network_destroy(out);
	return rc;
}

/* In the jail's namespace. */
static bool has_link(const struct network *n)
{
	struct ifreq request = { .ifr_name = LINK_JAIL };
	return ioctl(n->handles.fds[SLOT_JAIL_ROUTE], SIOCGIFFLAGS, &request) == 0;
}

static enum network_state state_of(const struct network *n)
{
	const char *why;
	enum network_state state = network_state(n, &why);
	MUST((why != NULL) == (state == NETWORK_FAILED));
	return state;
}

static void body_whole(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	int before = count_fds();
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST(network_is_filtered(n) && has_link(n) && network_is_building(n));
	MUST_DO(network_await(n, &err), err);
	MUST(state_of(n) == NETWORK_READY && !network_is_building(n));
	MUST_DO(network_build(n, &err), err); /* not a second time */
	MUST(!network_is_building(n));
	MUST(network_uplink(n) == UPLINK_NONE && warnings == 0);
	MUST_DO(network_serve(n, &err), err);
	MUST(network_report(n)->count == 0);
	network_destroy(&n);
	MUST(n == NULL && count_fds() == before);
}

static void a_network_is_built_served_reported_and_removed(void **state)
{
	(void)state;
	in_own_namespace(body_whole);
}

static void body_failing(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	int before = count_fds();
	MUST(build(&public_spec, &n, &err) == -EIO);
	MUST(n == NULL && count_fds() == before);
	MUST(strstr(err.msg, "made to fail") && warnings == 0);
}

static void with_failing(const char *part, int code, void (*body)(void))
{
	failing = part;
	failing_code = code;
	pretends_uplink = strcmp(part, "resolver_create") == 0; /* else it is not called */
	in_own_namespace(body);
	pretends_uplink = false;
	failing = "";
}

static void each_failing_part_fails_the_network_and_leaves_nothing(void **state)
{
	(void)state;
	static const char *const parts[] = { "gateway_start",     "hostaddrs_open",
					     "loader_apply_jail", "loader_apply_gateway",
					     "denials_listen",    "uplink_start",
					     "links_join",        "forward_create",
					     "loader_join" };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		with_failing(parts[i], EIO, body_failing);
}

static void body_failing_late(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	int before = count_fds();
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST(network_await(n, &err) == -EIO);
	network_destroy(&n);
	MUST(count_fds() == before);
}

static void a_failure_while_waiting_releases_the_network(void **state)
{
	(void)state;
	with_failing("uplink_await", EIO, body_failing_late);
	with_failing("resolver_create", EIO, body_failing_late);
}

/* A network that the program asks for: the ports go on. */
static void body_given_up(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	const char *why;
	MUST_DO(create(&public_spec, &n, &err), err);
	MUST(network_build(n, &err) < 0 || network_proceed(n, &err) < 0);
	network_give_up(n, &err);
	MUST(warnings == 1 && strncmp(warned, "network: the jail has none: ", 27) == 0);
	MUST(network_state(n, &why) == NETWORK_FAILED && strstr(why, "made to fail"));
	MUST(!network_is_building(n) && !network_is_filtered(n) && n->forward);
	for (size_t i = 0; i < SLOT_COUNT; i++)
		MUST(n->handles.fds[i] == -1);
	MUST_DO(network_build(n, &err), err); /* is not tried again */
	MUST_DO(network_proceed(n, &err), err);
	MUST_DO(network_serve(n, &err), err);
	MUST(network_report(n)->count == 0 && network_uplink(n) == UPLINK_NONE);
	network_destroy(&n);
}

static void each_failing_part_of_a_late_network_leaves_the_loopback_and_a_reason(void **state)
{
	(void)state;
	static const char *const parts[] = { "gateway_start",     "hostaddrs_open",
					     "loader_apply_jail", "loader_apply_gateway",
					     "denials_listen",    "uplink_start",
					     "links_join",        "uplink_proceed",
					     "resolver_create",   "loader_join" };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		with_failing(parts[i], EIO, body_given_up);
}

static void body_unused(void)
{
	static const struct network_spec spec = { .mode = NETWORK_PUBLIC };
	struct cj_error err = { 0 };
	struct network *n = NULL;
	int before = count_fds();
	MUST_DO(create(&spec, &n, &err), err);
	MUST(state_of(n) == NETWORK_UNUSED && !network_is_filtered(n) && !network_is_building(n));
	MUST(network_fd(n) == -1 && count_fds() == before + 1); /* the jail's socket */
	MUST_DO(network_await(n, &err), err);
	MUST_DO(network_proceed(n, &err), err);
	MUST(network_report(n)->count == 0 && state_of(n) == NETWORK_UNUSED && warnings == 0);
	network_destroy(&n);
	MUST(count_fds() == before);
}

static void a_network_that_is_not_used_is_not_built(void **state)
{
	(void)state;
	in_own_namespace(body_unused);
}

static void body_late(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST(state_of(n) == NETWORK_FAILED); /* if the run ended now */
	MUST_DO(network_proceed(n, &err), err);
	MUST(state_of(n) == NETWORK_READY && !network_is_building(n) && has_link(n));
	network_destroy(&n);
}

static void a_network_that_the_program_asks_for_is_built_without_waiting(void **state)
{
	(void)state;
	in_own_namespace(body_late);
}

static void body_lacking(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	int before = count_fds();
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST(!network_is_filtered(n) && warnings == 1 && state_of(n) == NETWORK_FAILED);
	MUST(strncmp(warned, "network: the jail has none: ", 27) == 0);
	MUST_DO(network_await(n, &err), err);
	MUST(network_uplink(n) == UPLINK_NONE);
	MUST(network_report(n)->count == 0);
	network_destroy(&n);
	MUST(count_fds() == before);
}

static void a_kernel_without_rules_or_links_gives_no_network_and_a_warning(void **state)
{
	(void)state;
	static const char *const parts[] = { "loader_apply_jail", "loader_apply_gateway",
					     "links_join" };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		with_failing(parts[i], EOPNOTSUPP, body_lacking);
}

static void serve_until_lost(struct network *n)
{
	struct cj_error err = { 0 };
	struct pollfd ready = { .fd = network_fd(n), .events = POLLIN };
	while (n->gateway.pidfd >= 0) {
		MUST(poll(&ready, 1, (int)patience_ms(10000)) == 1);
		MUST_DO(network_serve(n, &err), err);
	}
}

static void expect_lost(const struct network *n, const char *reason)
{
	const char *why;
	MUST(network_state(n, &why) == NETWORK_FAILED && strstr(why, reason));
	MUST(n->gateway.pidfd == -1 && !n->uplink && warnings == 1);
	MUST(network_is_filtered(n)); /* the rules are still there */
}

static void body_killed(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	int before = count_fds();
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST_DO(network_await(n, &err), err);
	MUST(sys_pidfd_send_signal(n->gateway.pidfd, SIGKILL) == 0);
	serve_until_lost(n);
	expect_lost(n, "any more: the gateway ended");
	MUST_DO(network_serve(n, &err), err);                 /* the ports go on */
	MUST(network_report(n)->count == 0 && warnings == 1); /* the counters are the kernel's */
	network_destroy(&n);
	MUST(count_fds() == before);
}

static void body_killed_early(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST(sys_pidfd_send_signal(n->gateway.pidfd, SIGKILL) == 0);
	serve_until_lost(n);
	expect_lost(n, "any more: the gateway ended");
	MUST(!network_is_building(n));
	MUST_DO(network_proceed(n, &err), err);
	network_destroy(&n);
}

static void a_gateway_that_ends_early_takes_the_uplink_with_it(void **state)
{
	(void)state;
	in_own_namespace(body_killed);
	in_own_namespace(body_killed_early);
}

/* A network whose gateway has been asked for its denials; the counters are the kernel's. */
static struct network *drained(struct denials *out)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST_DO(network_await(n, &err), err);
	MUST_DO(network_take_denials(n, out, &err), err);
	return n;
}

static void body_hostile(void)
{
	struct denials denials;
	struct network *n = drained(&denials);
	MUST(denials.count == 0);
	expect_lost(n, "any more: ");
	network_destroy(&n);
}

static void body_unprintable(void)
{
	struct denials denials;
	struct network *n = drained(&denials);
	const char *why;
	MUST(network_state(n, &why) == NETWORK_FAILED && strstr(why, "any more: \\x1b[31m"));
	network_destroy(&n);
}

static void each_message_of_a_gateway_is_checked(void **state)
{
	(void)state;
	static const struct denial class = { .class = NET_CLASS_COUNT, .address.family = 4 };
	static const struct denial family = { .address.family = 7 };
	static const struct denial escape = { .class = NET_NAME, .name = "a.\x1b[31m.example" };
	static const struct denial upper = { .class = NET_NAME, .name = "A.example" };
	static const struct denial no_name = { .class = NET_NAME };
	static const struct denial name = { .class = NET_NAME, .name = "a.example" };
	static const struct denial other_class = { .address.family = 4, .name = "a.example" };
	static struct denial endless = { .class = NET_NAME };
	static const struct cj_error unprintable = { .code = EIO, .msg = "\x1b[31m" };
	static const struct {
		enum gateway_step step;
		const void *bytes;
		size_t size;
	} cases[] = {
		{ GATEWAY_DENIED, &class, sizeof(class) },
		{ GATEWAY_DENIED, &family, sizeof(family) },
		{ GATEWAY_DENIED, &family, sizeof(family) - 1 },
		{ GATEWAY_DENIED, &escape, sizeof(escape) },
		{ GATEWAY_DENIED, &upper, sizeof(upper) },
		{ GATEWAY_DENIED, &no_name, sizeof(no_name) },
		{ GATEWAY_DENIED, &name, sizeof(name) }, /* those are the supervisor's own */
		{ GATEWAY_DENIED, &other_class, sizeof(other_class) },
		{ GATEWAY_DENIED, &endless, sizeof(endless) },
		{ GATEWAY_OPENED, "late", 4 },
		{ GATEWAY_STEPS, "none", 4 },
	};
	memset(endless.name, 'a', sizeof(endless.name));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		with_sent(cases[i].step, cases[i].bytes, cases[i].size, body_hostile);
	/* an error in place of a step */
	with_sent(UINT32_MAX, &unprintable, sizeof(unprintable), body_unprintable);
}

static void body_reporting(void)
{
	struct denials denials;
	struct network *n = drained(&denials);
	MUST(state_of(n) == NETWORK_READY && denials.count == 1 && denials.items[0].count == 2);
	network_destroy(&n);
}

static void what_a_gateway_reports_is_in_the_result(void **state)
{
	(void)state;
	static const struct denial one = { .address.family = 4 };
	with_sent(GATEWAY_DENIED, &one, sizeof(one), body_reporting);
}

/* --- a live list: what a gateway that was taken over asks to have opened --- */

#define ASKS_FD 4 /* the second that it keeps */

static const struct allowlist_entry live_entries[] = {
	{ .name = "example.com", .is_wildcard = true, .first_port = 443, .last_port = 443 },
	{ .name = "other.example", .last_port = 65535 },
};
static const struct allowlist_entry denied_entry = { .name = "denied.example",
						     .is_wildcard = true };
static const struct network_spec live_spec = { .mode = NETWORK_PUBLIC,
					       .uplink = UPLINK_NONE,
					       .deny = &denied_entry,
					       .ndeny = 1,
					       .allow = live_entries,
					       .nallow = 2,
					       .is_live = true,
					       .ports = ports,
					       .nports = 1 };

/* The bits of the answer. */
static uint32_t ask_for_name(const struct gateway_name *told, size_t size)
{
	static const char *const names[GATEWAY_STEPS + 1];
	const struct step_link asks = { ASKS_FD, "the supervisor", names };
	struct step_msg msg = { 0 };
	struct cj_error err = { 0 };
	uint32_t open = 0;
	MUST_DO(step_tell(&asks, GATEWAY_NAME, told, size, NULL, 0, &err), err);
	if (step_await(&asks, GATEWAY_NAMED, &msg, &err) < 0)
		_exit(0); /* the supervisor has closed it */
	MUST(msg.size == sizeof(open) && msg.nfds == 0);
	memcpy(&open, msg.data, sizeof(open));
	return open;
}

static struct gateway_name name_with(const char *name, const char *const *addresses, size_t count)
{
	struct gateway_name told = { .count = count };
	(void)snprintf(told.text, sizeof(told.text), "%s", name);
	for (size_t i = 0; i < count; i++)
		MUST(ip_parse(addresses[i], &told.addresses[i]));
	return told;
}

static const char *const some_addresses[] = { "93.184.216.34", "10.0.0.1",   "2a00:1450:4001::1",
					      "127.0.0.1",     "198.18.0.3", "::ffff:10.0.0.1" };
#define SOME (sizeof(some_addresses) / sizeof(some_addresses[0]))

static void ask_for_names(const struct step_link *to_supervisor)
{
	const struct gateway_name listed = name_with("a.example.com", some_addresses, SOME);
	const struct gateway_name itself = name_with("example.com", some_addresses, SOME);
	const struct gateway_name other = name_with("other.example", some_addresses, 1);
	const struct gateway_name empty = name_with("", some_addresses, 1);
	const struct gateway_name no_address = name_with("a.example.com", NULL, 0);
	const struct gateway_name not_listed = name_with("example.com", NULL, 0);
	struct gateway_name aliased = name_with("b.example.com", some_addresses + 4, 1);
	aliased.aliases.count = 2;
	(void)snprintf(aliased.aliases.names[0], sizeof(aliased.aliases.names[0]), "any.example");
	(void)snprintf(aliased.aliases.names[1], sizeof(aliased.aliases.names[1]),
		       "a.denied.example");
	(void)to_supervisor;
	MUST(ask_for_name(&listed, sizeof(listed)) == 5); /* the first and the third */
	MUST(ask_for_name(&listed, sizeof(listed)) == 5);
	MUST(ask_for_name(&itself, sizeof(itself)) == 0);
	MUST(ask_for_name(&empty, sizeof(empty)) == 0);
	MUST(ask_for_name(&no_address, sizeof(no_address)) == GATEWAY_NAME_LISTED);
	MUST(ask_for_name(&not_listed, sizeof(not_listed)) == 0);
	MUST(ask_for_name(&other, sizeof(other)) == 1);
	MUST(ask_for_name(&aliased, sizeof(aliased)) == GATEWAY_NAME_DENIED);
	aliased.aliases.count = 1;
	MUST(ask_for_name(&aliased, sizeof(aliased)) == 0); /* a closed address */
}

static struct network *drained_live(void)
{
	struct denials denials;
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&live_spec, &n, &err), err);
	MUST_DO(network_await(n, &err), err);
	MUST_DO(network_take_denials(n, &denials, &err), err);
	return n;
}

static void body_names(void)
{
	static const char *const open[][2] = { { "93.184.216.34", "443" },
					       { "2a00:1450:4001::1", "443" },
					       { "93.184.216.34", "0" } };
	struct network *n = drained_live();
	MUST(state_of(n) == NETWORK_READY && n->names->count == 3);
	for (size_t i = 0; i < 3; i++) {
		const struct names_open *o = &n->names->open[i];
		char text[IP_TEXT_MAX];
		MUST(strcmp(ip_format(&o->endpoint.first, text), open[i][0]) == 0);
		MUST(o->endpoint.first_port == strtol(open[i][1], NULL, 10));
		MUST(!o->is_new && o->until_ms > __real_clock_ms());
	}
	network_destroy(&n);
}

static void body_names_not_loaded(void)
{
	struct network *n = drained_live();
	MUST(state_of(n) == NETWORK_READY && n->names->count == 2);
	for (size_t i = 0; i < 2; i++)
		MUST(!n->names->open[i].is_new && n->names->open[i].until_ms == 0);
	MUST(warnings == 1 && strstr(warned, "'a.example.com' stay closed: "));
	network_destroy(&n);
}

/* The one that is too much is closed; what is open already is in the answer. */
static void ask_for_one_too_many(const struct step_link *to_supervisor)
{
	static const char *const known[] = { "93.184.216.34" }, *const more[] = { "93.184.216.35" };
	const struct gateway_name full = name_with("a.example.com", more, 1);
	const struct gateway_name open = name_with("a.example.com", known, 1);
	(void)to_supervisor;
	MUST(ask_for_name(&full, sizeof(full)) == GATEWAY_NAME_LATER);
	MUST(ask_for_name(&full, sizeof(full)) == GATEWAY_NAME_LATER);
	MUST(ask_for_name(&open, sizeof(open)) == 1);
}

static void body_names_full(void)
{
	struct denials denials;
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&live_spec, &n, &err), err);
	MUST_DO(network_await(n, &err), err);
	for (uint32_t i = 0; i < NAMES_OPEN_MAX; i++) {
		struct names_open *o = &n->names->open[n->names->count++];
		*o = (struct names_open){ .endpoint = { .first_port = 443, .last_port = 443 },
					  .until_ms = UINT64_MAX };
		MUST(ip_parse("93.184.216.34", &o->endpoint.first));
		o->endpoint.first.bytes[0] = (uint8_t)(i / 256 + 93);
		o->endpoint.first.bytes[2] ^= (uint8_t)i;
		o->endpoint.last = o->endpoint.first;
	}
	MUST_DO(network_take_denials(n, &denials, &err), err);
	MUST(state_of(n) == NETWORK_READY && n->names->count == NAMES_OPEN_MAX);
	MUST(warnings == 1);
	MUST(strcmp(warned, "the addresses of 'a.example.com' stay closed: a jail has at most 4096 "
			    "open ones") == 0);
	network_destroy(&n);
}

static void an_address_too_many_stays_closed_and_is_warned_of_once(void **state)
{
	(void)state;
	taken_over = ask_for_one_too_many;
	in_own_namespace(body_names_full);
	taken_over = NULL;
}

static void ask_for_a_name_that_can_not_be_loaded(const struct step_link *to_supervisor)
{
	const struct gateway_name listed = name_with("a.example.com", some_addresses, SOME);
	(void)to_supervisor;
	MUST(ask_for_name(&listed, sizeof(listed)) == GATEWAY_NAME_LATER);
}

static void a_gateway_opens_public_addresses_of_listed_names_only(void **state)
{
	(void)state;
	taken_over = ask_for_names;
	in_own_namespace(body_names);
	taken_over = ask_for_a_name_that_can_not_be_loaded;
	with_failing("loader_open_names", ENFILE, body_names_not_loaded);
	taken_over = NULL;
}

/* Without an address it is a question, and of those that are answered with no a denial is made. */
#define MANY_NAMES (DENIALS_NAMES_MAX + 40)

static void ask_for_many_names(const struct step_link *to_supervisor)
{
	(void)to_supervisor;
	for (unsigned i = 0; i < MANY_NAMES; i++) {
		struct gateway_name asked = { .count = 0 };
		(void)snprintf(asked.text, sizeof(asked.text), "n%u.example", i);
		MUST(ask_for_name(&asked, sizeof(asked)) == 0);
	}
}

/* For each of the two logs. */
static void body_many_names(void)
{
	struct denials denials;
	struct cj_error err = { 0 };
	struct network *n = NULL;
	uint64_t sum = 0;
	MUST_DO(build(&live_spec, &n, &err), err);
	MUST_DO(network_await(n, &err), err);
	MUST_DO(network_take_denials(n, &denials, &err), err);
	MUST(state_of(n) == NETWORK_READY && denials.count == DENIALS_NAMES_MAX + 1);
	for (size_t i = 0; i < denials.count; i++) {
		MUST(denials.items[i].class == NET_NAME && denials.items[i].address.family == 0);
		MUST((denials.items[i].name[0] == '\0') == (i == DENIALS_NAMES_MAX));
		sum += denials.items[i].count;
	}
	MUST(sum == 2 * MANY_NAMES);
	network_destroy(&n);
}

static void denied_names_that_are_in_no_row_are_counted(void **state)
{
	(void)state;
	taken_over = ask_for_many_names;
	in_own_namespace(body_many_names);
	taken_over = NULL;
}

/* Each with this many addresses, for the two entries of the list and the answer itself. */
#define ASKS_SECOND (4096 / 3 / SOME)

static void ask_too_often(const struct step_link *to_supervisor)
{
	static unsigned asked;
	const struct gateway_name listed = name_with("a.example.com", some_addresses, SOME);
	(void)to_supervisor;
	for (unsigned i = 0; i < 300; i++, asked++)
		MUST(ask_for_name(&listed, sizeof(listed)) ==
		     (asked < ASKS_SECOND ? 5 : GATEWAY_NAME_LATER));
}

static void body_too_often(void)
{
	struct denials denials;
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&live_spec, &n, &err), err);
	MUST_DO(network_await(n, &err), err);
	frozen_ms = __real_clock_ms();
	MUST_DO(network_take_denials(n, &denials, &err), err);
	MUST(state_of(n) == NETWORK_READY && n->names->count == 2);
	network_destroy(&n);
}

static void the_addresses_that_a_gateway_opens_in_a_second_are_bounded(void **state)
{
	(void)state;
	taken_over = ask_too_often;
	in_own_namespace(body_too_often);
	taken_over = NULL;
}

static struct gateway_name bad_name;
static size_t bad_size;
static const struct network_spec *bad_spec;

static void ask_for_bad_name(const struct step_link *to_supervisor)
{
	(void)to_supervisor;
	(void)ask_for_name(&bad_name, bad_size);
	MUST(!"answered");
}

static void body_bad_name(void)
{
	struct denials denials;
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(bad_spec, &n, &err), err);
	MUST_DO(network_await(n, &err), err);
	MUST_DO(network_take_denials(n, &denials, &err), err);
	expect_lost(n, "any more: receive a");
	MUST(!n->names || n->names->count == 0);
	network_destroy(&n);
}

static void with_bad_name(const struct network_spec *spec, const struct gateway_name *told,
			  size_t size)
{
	bad_name = *told;
	bad_size = size;
	bad_spec = spec;
	taken_over = ask_for_bad_name;
	in_own_namespace(body_bad_name);
	taken_over = NULL;
}

static void each_name_of_a_gateway_is_checked(void **state)
{
	const struct gateway_name good = name_with("a.example.com", some_addresses, 2);
	struct gateway_name bad = good;
	(void)state;

	with_bad_name(&live_spec, &good, sizeof(good) - 1);
	with_bad_name(&public_spec, &good, sizeof(good)); /* without a live list */
	bad.count = RESOLVER_ADDRESSES_MAX + 1;
	with_bad_name(&live_spec, &bad, sizeof(bad));
	bad.count = SIZE_MAX;
	with_bad_name(&live_spec, &bad, sizeof(bad));
	bad = good;
	bad.addresses[1].family = 0;
	with_bad_name(&live_spec, &bad, sizeof(bad));
	bad.addresses[1].family = 7;
	with_bad_name(&live_spec, &bad, sizeof(bad));
	bad = good;
	memset(bad.text, 'a', sizeof(bad.text));
	with_bad_name(&live_spec, &bad, sizeof(bad));
	bad = good;
	bad.aliases.count = RESOLVER_ALIASES_MAX + 1;
	with_bad_name(&live_spec, &bad, sizeof(bad));
	bad.aliases.count = 2;
	memcpy(bad.aliases.names[1], "a", 3);
	with_bad_name(&live_spec, &bad, sizeof(bad));
	memset(bad.aliases.names[1], 'a', sizeof(bad.aliases.names[1]));
	with_bad_name(&live_spec, &bad, sizeof(bad));
	for (size_t count = 0; count <= 2; count += 2) {
		bad = name_with("A.example.com", some_addresses, count);
		with_bad_name(&live_spec, &bad, sizeof(bad));
		bad = name_with("a\x1b[31m.example.com", some_addresses, count);
		with_bad_name(&live_spec, &bad, sizeof(bad));
	}
}

/* --- another list --------------------------------------------------------------------------- */

static const struct network_spec open_spec = {
	.mode = NETWORK_PUBLIC, .uplink = UPLINK_NONE, .is_live = true, .ports = ports, .nports = 1
};
static const char *some_targets[] = { "*.example.com:443", "8.8.8.8", "plain.example" };

static int change(struct network *n, size_t count, bool is_list)
{
	struct cj_error err = { 0 };
	trace[0] = '\0';
	replaced = 0;
	const struct network_lists lists = { is_list,
					     .allow = { .items = some_targets, .count = count } };
	return network_change(n, &lists, &err);
}

static void expect_list(const struct network *n, size_t names, size_t endpoints, bool is_list)
{
	MUST(n->rules.is_list == is_list && n->rules.nallow == names);
	MUST(n->rules.endpoints->count == endpoints);
	MUST(n->names->rules.allow == n->rules.allow && n->names->rules.nallow == names);
	MUST(n->names->rules.endpoints == n->rules.endpoints);
}

static struct network *built_open(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&open_spec, &n, &err), err);
	MUST_DO(network_await(n, &err), err);
	MUST(strcmp(trace, "serve0 ") == 0);
	return n;
}

/* Names are judged before other rules close what they lead to, and any is answered only when all
 * is open. */
static void body_changed(void)
{
	struct network *n = built_open();
	MUST(!applied.is_list && applied.has_dns && applied.has_names);
	MUST(change(n, 3, true) == 0 && strcmp(trace, "judge1 list1 list1 ") == 0);
	expect_list(n, 3, 1, true); /* plain.example is not looked up */
	MUST(names_may_ask(&n->names->rules, "a.example.com"));
	MUST(names_may_ask(&n->names->rules, "plain.example"));
	MUST(change(n, 0, true) == 0 && strcmp(trace, "judge1 list1 list1 ") == 0);
	expect_list(n, 0, 0, true);
	MUST(change(n, 0, false) == 0 && strcmp(trace, "list0 list0 judge0 ") == 0);
	expect_list(n, 0, 0, false);
	MUST(state_of(n) == NETWORK_READY && n->gateway.pidfd >= 0);
	network_destroy(&n);
}

/* Also without a list, names are judged while one of them is denied. */
static void body_denied(void)
{
	static const char *denied[] = { "*.evil.example", "9.9.9.9" };
	const struct network_lists some = { false, .deny = { .items = denied, .count = 2 } },
				   none = { false };
	struct cj_error err = { 0 };
	struct network *n = built_open();
	trace[0] = '\0';
	replaced = failing_replacements = 0;
	MUST_DO(network_change(n, &some, &err), err);
	MUST(strcmp(trace, "judge1 list0 list0 ") == 0);
	MUST(n->names->rules.ndeny == 2 && n->rules.endpoints->ndenied == 1);
	MUST(!names_may_ask(&n->names->rules, "a.evil.example"));
	MUST(names_may_ask(&n->names->rules, "example.com"));
	trace[0] = '\0';
	replaced = 0;
	failing_replacements = 1;
	MUST(network_change(n, &none, &err) == -ENOBUFS && strcmp(trace, "list0 ") == 0);
	MUST(!names_may_ask(&n->names->rules, "a.evil.example") && n->rules.ndeny == 2);
	trace[0] = '\0';
	replaced = failing_replacements = 0;
	MUST(network_change(n, &none, &err) == 0 && strcmp(trace, "list0 list0 judge0 ") == 0);
	failing_replacements = 1;
	trace[0] = '\0';
	replaced = 0;
	MUST(network_change(n, &some, &err) == -ENOBUFS);
	MUST(strcmp(trace, "judge1 list0 judge0 ") == 0 && n->rules.ndeny == 0);
	network_destroy(&n);
}

static void body_changed_early(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(create(&open_spec, &n, &err), err);
	MUST(change(n, 2, true) == 0 && strcmp(trace, "") == 0); /* there is nothing to tell */
	expect_list(n, 2, 1, true);
	MUST_DO(network_build(n, &err), err);
	MUST(applied.is_list && applied.has_dns && applied.has_names && applied.nallowed == 1);
	if (n->is_building) { /* the rules are loaded; the gateway serves no names yet */
		MUST(change(n, 3, true) == 0 && strcmp(trace, "list1 list1 ") == 0);
		expect_list(n, 3, 1, true);
	}
	MUST_DO(network_await(n, &err), err);
	MUST(strstr(trace, "serve1 ") != NULL && state_of(n) == NETWORK_READY);
	network_destroy(&n);
}

static void a_network_takes_another_list_at_any_time(void **state)
{
	(void)state;
	in_own_namespace(body_changed);
	in_own_namespace(body_changed_early);
	in_own_namespace(body_denied);
}

static void body_not_changed(void)
{
	static const char *bad[] = { "8.8.8.8", "*.com" }, *closed[] = { "10.0.0.1" };
	const struct network_lists bad_allow = { true, .allow = { .items = bad, .count = 2 } },
				   bad_deny = { false, .deny = { .items = bad, .count = 2 } },
				   closed_allow = { true,
						    .allow = { .items = closed, .count = 1 } };
	struct cj_error err = { 0 };
	struct network *n = built_open();
	trace[0] = '\0';
	MUST(network_change(n, &bad_allow, &err) == -EINVAL);
	MUST(network_change(n, &bad_deny, &err) == -EINVAL);
	MUST(network_change(n, &closed_allow, &err) == -EINVAL); /* allow_private stays */
	MUST(strcmp(trace, "") == 0);
	expect_list(n, 0, 0, false);

	failing_replacements = 1; /* the jail's table */
	MUST(change(n, 3, true) == -ENOBUFS && strcmp(trace, "judge1 list1 judge0 ") == 0);
	expect_list(n, 0, 0, false);
	failing_replacements = 2; /* the gateway's: the jail's gets the old rules again */
	MUST(change(n, 3, true) == -ENOBUFS);
	MUST(strcmp(trace, "judge1 list1 list1 list0 judge0 ") == 0);
	expect_list(n, 0, 0, false);
	MUST(state_of(n) == NETWORK_READY);

	failing_replacements = 0; /* and they were the ones that are loaded */
	MUST(change(n, 3, true) == 0);
	failing_replacements = 1;
	MUST(change(n, 0, false) == -ENOBUFS && strcmp(trace, "list0 ") == 0);
	expect_list(n, 3, 1, true);
	failing_replacements = 6; /* nor can the old ones be loaded: all is closed */
	MUST(change(n, 0, false) == -ENOBUFS && strcmp(trace, "list0 list0 list1 ") == 0);
	MUST(state_of(n) == NETWORK_FAILED);
	network_destroy(&n);
}

static void body_not_live(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST(change(n, 0, true) == -EOPNOTSUPP && strcmp(trace, "") == 0);
	network_destroy(&n);
}

static struct network *built_without_loader(void)
{
	trace[0] = '\0';
	struct network *n = built_open();
	failing_replacements = 0;
	MUST(sys_pidfd_send_signal(n->loader.pidfd, SIGKILL) == 0);
	warnings = 0;
	return n;
}

static void expect_closed(struct network *n)
{
	struct cj_error err = { 0 };
	MUST(state_of(n) == NETWORK_FAILED && loader_has_ended(&n->loader));
	MUST(n->gateway.pidfd == -1 && network_uplink(n) == UPLINK_NONE);
	MUST(warnings == 1 && strstr(warned, "nothing leads out of the jail's network any more"));
	network_lose_gateway(n, &err); /* again: no harm */
	MUST_DO(network_proceed(n, &err), err);
	MUST_DO(network_serve(n, &err), err);
	warnings = 0;
	(void)network_report(n);
	MUST(warnings == 1 && strstr(warned, "the count of denied packets may be too low"));
}

/* What the last order has done is not known. */
static void body_loader_lost(void)
{
	struct cj_error err = { 0 };
	struct denials denials;
	const int before = count_fds();
	struct network *n = built_without_loader();
	MUST(change(n, 3, true) == -EPIPE);
	expect_closed(n);
	MUST(change(n, 3, true) == -EPIPE);
	network_destroy(&n);
	MUST(count_fds() == before);

	n = built_without_loader();
	MUST(network_take_denials(n, &denials, &err) == -EPIPE);
	expect_closed(n);
	network_destroy(&n);
	MUST(count_fds() == before);
}

static void body_loader_lost_while_building(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(create(&open_spec, &n, &err), err);
	MUST_DO(network_build(n, &err), err);
	MUST(sys_pidfd_send_signal(n->loader.pidfd, SIGKILL) == 0);
	MUST(change(n, 3, true) == -EPIPE);
	MUST(!network_is_building(n) && state_of(n) == NETWORK_FAILED);
	MUST_DO(network_proceed(n, &err), err);
	MUST(state_of(n) == NETWORK_FAILED);
	network_destroy(&n);
}

static void without_its_loader_nothing_leads_out_of_a_network_that_changes(void **state)
{
	(void)state;
	in_own_namespace(body_loader_lost);
	in_own_namespace(body_loader_lost_while_building);
}

static void a_list_that_can_not_be_loaded_leaves_the_one_before(void **state)
{
	(void)state;
	in_own_namespace(body_not_changed);
	in_own_namespace(body_not_live);
}

static void body_none(void)
{
	static const struct network_spec spec = { .ports = ports, .nports = 1 };
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&spec, &n, &err), err);
	MUST(!network_is_filtered(n) && warnings == 0);
	MUST_DO(network_await(n, &err), err);
	MUST(state_of(n) == NETWORK_UNUSED);
	network_destroy(&n);
}

static void without_a_network_only_connected_ports_work(void **state)
{
	(void)state;
	in_own_namespace(body_none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_network_is_built_served_reported_and_removed),
		cmocka_unit_test(each_failing_part_fails_the_network_and_leaves_nothing),
		cmocka_unit_test(a_failure_while_waiting_releases_the_network),
		cmocka_unit_test(
		    each_failing_part_of_a_late_network_leaves_the_loopback_and_a_reason),
		cmocka_unit_test(a_network_that_is_not_used_is_not_built),
		cmocka_unit_test(a_network_that_the_program_asks_for_is_built_without_waiting),
		cmocka_unit_test(a_kernel_without_rules_or_links_gives_no_network_and_a_warning),
		cmocka_unit_test(a_gateway_that_ends_early_takes_the_uplink_with_it),
		cmocka_unit_test(each_message_of_a_gateway_is_checked),
		cmocka_unit_test(what_a_gateway_reports_is_in_the_result),
		cmocka_unit_test(a_gateway_opens_public_addresses_of_listed_names_only),
		cmocka_unit_test(an_address_too_many_stays_closed_and_is_warned_of_once),
		cmocka_unit_test(denied_names_that_are_in_no_row_are_counted),
		cmocka_unit_test(the_addresses_that_a_gateway_opens_in_a_second_are_bounded),
		cmocka_unit_test(each_name_of_a_gateway_is_checked),
		cmocka_unit_test(a_network_takes_another_list_at_any_time),
		cmocka_unit_test(a_list_that_can_not_be_loaded_leaves_the_one_before),
		cmocka_unit_test(without_its_loader_nothing_leads_out_of_a_network_that_changes),
		cmocka_unit_test(without_a_network_only_connected_ports_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
