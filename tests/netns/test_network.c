/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network: each part fails once and nothing is held; what a kernel lacks leaves the jail without a
 * network, never with one that nobody judges.
 */
#include "netns/network.h"

#include <dirent.h>
#include <errno.h>

#include "netns/dns/resolver.h"
#include "netns/firewall/firewall.h"
#include "netns/forward.h"
#include "netns/rtnetlink/hostaddrs.h"
#include "netns/rtnetlink/links.h"
#include "tests/netns/namespaces.h"

/* WRAP: hostaddrs_open firewall_apply_jail firewall_apply_gateway denials_listen uplink_start */
/* WRAP: links_join forward_create uplink_await resolver_create uplink_kind_of */

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

FAILS(hostaddrs_open, (struct hostaddrs * *out, struct cj_error *err), (out, err))
FAILS(firewall_apply_jail, (int fd, const struct firewall_spec *spec, struct cj_error *err),
      (fd, spec, err))
FAILS(firewall_apply_gateway, (int fd, const struct firewall_spec *spec, struct cj_error *err),
      (fd, spec, err))
FAILS(denials_listen, (int fd, struct cj_error *err), (fd, err))
FAILS(uplink_start,
      (const struct uplink_spec *spec, struct uplink **out, char why[static UPLINK_WHY_MAX],
       struct cj_error *err),
      (spec, out, why, err))
FAILS(links_join, (int gateway, int jail, const struct links_spec *spec, struct cj_error *err),
      (gateway, jail, spec, err))
FAILS(forward_create,
      (const int *fds, const uint16_t *ports, size_t n, struct forward **out, struct cj_error *err),
      (fds, ports, n, out, err))
FAILS(uplink_await, (struct uplink * u, char why[static UPLINK_WHY_MAX], struct cj_error *err),
      (u, why, err))
FAILS(resolver_create,
      (int udp, int tcp, const char *path, struct resolver **out, struct cj_error *err),
      (udp, tcp, path, out, err))

/* An uplink of no kind at all that leads somewhere: then names are served. */
static bool pretends_uplink;
enum uplink_kind __real_uplink_kind_of(const struct uplink *u);
enum uplink_kind __wrap_uplink_kind_of(const struct uplink *u);
enum uplink_kind __wrap_uplink_kind_of(const struct uplink *u)
{
	return pretends_uplink ? UPLINK_PASTA : __real_uplink_kind_of(u);
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

static int count_fds(void)
{
	int n = 0;
	DIR *dir = opendir("/proc/self/fd");
	MUST(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Init's part and the supervisor's in one process: both have the capabilities here. */
static int build(const struct network_spec *spec, struct network **out, struct cj_error *err)
{
	struct network_handles handles;
	MUST_DO(network_open(spec, &handles, err), *err);
	const struct network_setup setup = { spec, &nowhere, 1, callbacks };
	int rc = network_build(&setup, &handles, out, err);
	for (size_t i = 0; i < SLOT_COUNT; i++)
		MUST(handles.fds[i] == -1); /* taken, or closed */
	return rc;
}

static bool has_link(const char *name)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s", name);
	return access(path, F_OK) == 0;
}

static void body_whole(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	int before = count_fds();
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST(network_is_filtered(n) && has_link(LINK_JAIL));
	MUST_DO(network_await(n, &err), err);
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

static void each_failing_part_fails_the_network_and_leaves_nothing(void **state)
{
	(void)state;
	static const char *const parts[] = { "hostaddrs_open",         "firewall_apply_jail",
					     "firewall_apply_gateway", "denials_listen",
					     "uplink_start",           "links_join",
					     "forward_create" };
	failing_code = EIO;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		failing = parts[i];
		in_own_namespace(body_failing);
	}
	failing = "";
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
	failing_code = EIO;
	failing = "uplink_await";
	in_own_namespace(body_failing_late);
	failing = "resolver_create";
	pretends_uplink = true;
	in_own_namespace(body_failing_late);
	pretends_uplink = false;
	failing = "";
}

static void body_lacking(void)
{
	struct cj_error err = { 0 };
	struct network *n = NULL;
	int before = count_fds();
	MUST_DO(build(&public_spec, &n, &err), err);
	MUST(!network_is_filtered(n) && warnings == 1);
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
	failing_code = EOPNOTSUPP;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		failing = parts[i];
		in_own_namespace(body_lacking);
	}
	failing = "";
}

static void body_none(void)
{
	static const struct network_spec spec = { .ports = ports, .nports = 1 };
	struct cj_error err = { 0 };
	struct network *n = NULL;
	MUST_DO(build(&spec, &n, &err), err);
	MUST(!network_is_filtered(n) && !has_link(LINK_JAIL) && warnings == 0);
	MUST_DO(network_await(n, &err), err);
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
		cmocka_unit_test(a_kernel_without_rules_or_links_gives_no_network_and_a_warning),
		cmocka_unit_test(without_a_network_only_connected_ports_work),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
