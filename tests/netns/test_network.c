/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network: each part fails once and nothing is held; what a kernel lacks leaves the jail without a
 * network, never with one that nobody judges.
 */
#include "netns/network.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "netns/relay/resolver.h"
#include "netns/firewall/firewall.h"
#include "netns/relay/forward.h"
#include "netns/network_parts.h"
#include "netns/rtnetlink/hostaddrs.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/sys.h"
#include "tests/netns/init_side.h"
#include "tests/netns/namespaces.h"
#include "tests/netns/taken_over.h"

/* WRAP: gateway_start hostaddrs_open firewall_apply_jail firewall_apply_gateway denials_listen */
/* WRAP: uplink_start denials_receive */
/* WRAP: links_join forward_create uplink_await uplink_proceed resolver_create uplink_kind_of */

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

FAILS(gateway_start, (bool has_dns, int jail_fd, struct gateway *out, struct cj_error *err),
      (has_dns, jail_fd, out, err))
FAILS(hostaddrs_open, (struct hostaddrs * *out, struct cj_error *err), (out, err))
FAILS(firewall_apply_jail, (int fd, const struct firewall_spec *spec, struct cj_error *err),
      (fd, spec, err))
FAILS(firewall_apply_gateway, (int fd, const struct firewall_spec *spec, struct cj_error *err),
      (fd, spec, err))
FAILS(denials_listen, (int fd, struct cj_error *err), (fd, err))
FAILS(uplink_start, (const struct uplink_spec *spec, struct uplink **out, struct cj_error *err),
      (spec, out, err))
FAILS(links_join, (int gateway, int jail, const struct links_spec *spec, struct cj_error *err),
      (gateway, jail, spec, err))
FAILS(forward_create,
      (const int *fds, const uint16_t *ports, size_t n, struct forward **out, struct cj_error *err),
      (fds, ports, n, out, err))
FAILS(uplink_await, (struct uplink * u, struct cj_error *err), (u, err))
FAILS(uplink_proceed, (struct uplink * u, bool *decided, struct cj_error *err), (u, decided, err))
FAILS(resolver_create,
      (int udp, int tcp, const struct resolver_upstream *upstream, struct resolver **out,
       struct cj_error *err),
      (udp, tcp, upstream, out, err))

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
	static const char *const parts[] = { "gateway_start",       "hostaddrs_open",
					     "firewall_apply_jail", "firewall_apply_gateway",
					     "denials_listen",      "uplink_start",
					     "links_join",          "forward_create" };
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
	static const char *const parts[] = { "gateway_start",       "hostaddrs_open",
					     "firewall_apply_jail", "firewall_apply_gateway",
					     "denials_listen",      "uplink_start",
					     "links_join",          "uplink_proceed",
					     "resolver_create" };
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
	static const char *const parts[] = { "firewall_apply_jail", "firewall_apply_gateway",
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
	static const struct cj_error unprintable = { .code = EIO, .msg = "\x1b[31m" };
	static const struct {
		enum gateway_step step;
		const void *bytes;
		size_t size;
	} cases[] = {
		{ GATEWAY_DENIED, &class, sizeof(class) },
		{ GATEWAY_DENIED, &family, sizeof(family) },
		{ GATEWAY_DENIED, &family, sizeof(family) - 1 },
		{ GATEWAY_OPENED, "late", 4 },
		{ GATEWAY_STEPS, "none", 4 },
	};
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
		cmocka_unit_test(without_a_network_only_connected_ports_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
