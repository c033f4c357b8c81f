/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a plan: each option, and each way to get it wrong. */
#include "tests/profiles/plan/plan_request.h"

static struct request *anew(struct request *r)
{
	config_fini(&r->c);
	config_init(&r->c);
	use_command(r);
	return r;
}

/* --- what the options come to -------------------------------------------------- */

static void without_options_there_is_no_network(void **state)
{
	struct request *r = anew(*state);
	assert_made(r);
	assert_int_equal(r->plan.network.mode, NETWORK_NONE);
	assert_int_equal(r->plan.network.uplink, UPLINK_AUTO);
	assert_int_equal(r->plan.network.nallow, 0);
	assert_int_equal(r->plan.network.nports, 0);
	assert_false(r->plan.network.allow_private);
}

static void the_public_network_is_planned(void **state)
{
	struct request *r = anew(*state);
	set(r, "network", "public");
	assert_made(r);
	assert_int_equal(r->plan.network.mode, NETWORK_PUBLIC);
	assert_int_equal(r->plan.network.nallow, 0); /* none listed: all that is public */
}

static void each_uplink_is_chosen_by_its_name(void **state)
{
	struct request *r = *state;
	for (unsigned kind = 0; kind < UPLINK_COUNT; kind++) {
		anew(r);
		set(r, "network", "public");
		set(r, "uplink", uplink_names[kind]);
		assert_made(r);
		assert_int_equal(r->plan.network.uplink, kind);
	}
}

static void a_network_is_built_on_first_use_unless_it_is_to_start_early(void **state)
{
	struct request *r = anew(*state);
	set(r, "network", "public");
	assert_made(r);
	assert_false(r->plan.network.starts_early);
	set(r, "network-start", "early");
	assert_made(r);
	assert_true(r->plan.network.starts_early);
	set(r, "network-start", "first-use");
	assert_made(r);
	assert_false(r->plan.network.starts_early);
}

/* A layer that is not there must refuse the run, so the rules are loaded before it starts. */
static void strict_builds_the_network_early(void **state)
{
	struct request *r = anew(*state);
	set(r, "network", "public");
	set(r, "network-start", "first-use");
	set(r, "strict", NULL);
	assert_made(r);
	assert_true(r->plan.network.starts_early);
}

static void targets_arrive_with_their_ports(void **state)
{
	struct request *r = anew(*state);
	set(r, "network", "public");
	set(r, "allow", "example.org:443");
	set(r, "allow", "192.0.2.0/24");
	set(r, "allow-private", NULL);
	assert_made(r);
	const struct network_spec *network = &r->plan.network;
	assert_int_equal(network->nallow, 2);
	assert_string_equal(network->allow[0].name, "example.org");
	assert_int_equal(network->allow[0].first_port, 443);
	assert_int_equal(network->allow[0].last_port, 443);
	assert_null(network->allow[1].name);
	assert_int_equal(network->allow[1].first_port, 0);
	assert_int_equal(network->allow[1].last_port, 65535);
	assert_true(network->allow_private);
}

static void the_most_targets_are_planned_and_one_more_is_not(void **state)
{
	struct request *r = anew(*state);
	set(r, "network", "public");
	for (unsigned i = 0; i < ALLOWLIST_MAX; i++)
		set(r, "allow", "example.org");
	assert_made(r);
	set(r, "allow", "example.org");
	assert_refused(r, "--allow: more than 64 destinations");
}

static void what_is_denied_is_planned_beside_a_list_and_without_one(void **state)
{
	struct request *r = anew(*state);
	const struct network_spec *network = &r->plan.network;
	set(r, "network", "public");
	assert_made(r);
	assert_false(network->is_live);
	set(r, "deny", "*.example.org");
	set(r, "deny", "192.0.2.0/24:443");
	assert_made(r);
	assert_int_equal(network->ndeny, 2);
	assert_true(network->deny[0].is_wildcard && network->deny[1].first_port == 443);
	assert_true(network->is_live); /* its name server filters */

	set(r, "allow", "www.example.org");
	set(r, "allow", "example.org");
	assert_made(r);
	/* an answer for either may have an alias below example.org */
	assert_true(network->is_live);
	assert_true(network->allow[0].is_live && network->allow[1].is_live);
	set(r, "allow", "*.example.net");
	assert_made(r);
	assert_true(network->is_live);
	set(r, "network", "none");
	r->c.profile_allow = 3;
	assert_made(r);
	assert_int_equal(network->ndeny, 0);
}

static void the_most_denied_targets_are_planned_and_one_more_is_not(void **state)
{
	struct request *r = anew(*state);
	set(r, "network", "public");
	for (unsigned i = 0; i < ALLOWLIST_MAX; i++)
		set(r, "deny", "example.org");
	assert_made(r);
	set(r, "deny", "example.org");
	assert_refused(r, "--deny: more than 64 destinations");
}

static void what_is_denied_is_denied_to_the_command_of_setup_too(void **state)
{
	struct request *r = anew(*state);
	set(r, "network", "public");
	set(r, "deny", "example.org");
	set(r, "setup", "true");
	set(r, "setup-allow", "*.example.org");
	assert_made(r);
	assert_int_equal(r->plan.network.ndeny, 1);
	assert_false(r->plan.setup.lists.is_list);
	assert_int_equal(r->plan.setup.lists.deny.count, 1);
	set(r, "network", "none");
	assert_made(r);
	assert_int_equal(r->plan.network.ndeny, 1);
	assert_int_equal(r->plan.setup.lists.deny.count, 0); /* nothing is open */
}

/* --- targets that can't work --------------------------------------------------- */

static void a_list_without_a_network_is_refused(void **state)
{
	struct request *r = anew(*state);
	set(r, "network", "none");
	set(r, "allow", "example.org");
	assert_refused(r, "--allow 'example.org': there is no network to open it in");
	assert_refused(r, "add --network public");
}

static void no_network_at_all_beats_a_profiles_list(void **state)
{
	struct request *r = anew(*state);
	set(r, "allow", "example.org");
	r->c.profile_allow = 1; /* as profile_load() notes */
	set(r, "network", "none");
	assert_made(r);
	assert_int_equal(r->plan.network.nallow, 0);
	set(r, "allow", "example.net");
	assert_refused(r, "--allow 'example.net': there is no network to open it in");
}

static void assert_unset(struct request *r, const char *option, const char *text, const char *said)
{
	struct cj_error err = { 0 };
	if (setting_set(&r->c, setting_by_option(option), option, text, &err) == 0)
		fail_msg("--%s '%s' was taken", option, text);
	if (!strstr(err.msg, said) || strncmp(err.msg, option, strlen(option)) != 0)
		fail_msg("'%s' does not say '%s: ... %s'", err.msg, option, said);
}

static void a_target_is_validated_when_it_is_read(void **state)
{
	static const char *const rows[][2] = {
		{ "", "names no host" },
		{ ":443", "names no host" },
		{ "example.org:0", "a port is a number from 1 to 65535" },
		{ "example.org:65536", "a port is a number from 1 to 65535" },
		{ "example.org:", "a port is a number from 1 to 65535" },
		{ "example.org:https", "a port is a number from 1 to 65535" },
		{ "https://example.org/", "is a URL" },
		{ "*.org", "a public suffix" },
		{ "a.*.example.org", "only at the beginning" },
		{ "10.0.0.1/8", "is no network" },
		{ "0x7f.1", "is no address in the accepted form" },
		{ "2130706433", "is no address in the accepted form" },
		{ "[2001:db8::1", "no closing bracket" },
		{ "a b", "is no host name" },
	};
	struct request *r = anew(*state);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t k = 0; k < 2; k++)
			assert_unset(r, k ? "allow" : "deny", rows[i][0], rows[i][1]);
	assert_unset(r, "deny", "example.org:443", "write example.org");
	assert_unset(r, "deny", "*.Example.org:443", "write *.example.org");
	assert_int_equal(r->c.allow.count + r->c.deny.count, 0);
}

static void an_unknown_uplink_is_refused_with_the_list(void **state)
{
	static const char *const wrong[] = { "bridge", "", "Pasta", "host ", "vpn" };
	struct request *r = anew(*state);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		for (unsigned kind = 0; kind < UPLINK_COUNT; kind++)
			assert_unset(r, "uplink", wrong[i], uplink_names[kind]);
	assert_int_equal(r->c.uplink, UPLINK_AUTO);
}

/* --- end points that are ports ------------------------------------------------- */

static void a_port_of_the_hosts_loopback_is_planned_in_every_mode(void **state)
{
	static const char *const modes[] = { "none", "public" };
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		anew(r);
		set(r, "network", modes[i]);
		set(r, "connect", "tcp:127.0.0.1:65535");
		set(r, "connect", "tcp:127.0.0.1:1");
		assert_made(r);
		assert_int_equal(r->plan.network.nports, 2);
		assert_int_equal(r->plan.network.ports[0], 65535);
		assert_int_equal(r->plan.network.ports[1], 1);
		assert_int_equal(r->plan.root.nbinds, 0);
	}
}

static void ports_and_sockets_are_told_apart(void **state)
{
	struct request *r = anew(*state);
	char text[128];
	(void)snprintf(text, sizeof(text), "unix:%s/open.sock:/run/x", top);
	set(r, "connect", "tcp:127.0.0.1:80");
	set(r, "connect", text);
	assert_made(r);
	assert_int_equal(r->plan.network.nports, 1);
	assert_int_equal(r->plan.root.nbinds, 1);
	assert_int_equal(r->plan.root.binds[0].kind, BIND_SOCKET);
}

static void a_port_named_twice_is_one_port(void **state)
{
	struct request *r = anew(*state);
	set(r, "connect", "tcp:127.0.0.1:80");
	set(r, "connect", "tcp:127.0.0.1:080"); /* the same number */
	set(r, "connect", "tcp:127.0.0.1:80");
	assert_made(r);
	assert_int_equal(r->plan.network.nports, 1);
	assert_int_equal(r->plan.network.ports[0], 80);
}

static void the_most_ports_are_planned_and_one_more_is_not(void **state)
{
	struct request *r = anew(*state);
	for (unsigned i = 1; i <= NETWORK_PORTS_MAX; i++) {
		char text[64];
		(void)snprintf(text, sizeof(text), "tcp:127.0.0.1:%u", i);
		set(r, "connect", text);
	}
	set(r, "connect", "tcp:127.0.0.1:1"); /* again: still sixteen */
	assert_made(r);
	assert_int_equal(r->plan.network.nports, NETWORK_PORTS_MAX);
	set(r, "connect", "tcp:127.0.0.1:17");
	assert_refused(r, "--connect: more than 16 'tcp:' end points");
}

static void an_end_point_that_is_no_port_of_the_hosts_loopback_is_refused(void **state)
{
	static const char *const rows[][2] = {
		{ "tcp:127.0.0.1:0", "a port is a number from 1 to 65535" },
		{ "tcp:127.0.0.1:65536", "a port is a number from 1 to 65535" },
		{ "tcp:127.0.0.1:", "a port is a number from 1 to 65535" },
		{ "tcp:127.0.0.1:+80", "a port is a number from 1 to 65535" },
		{ "tcp:127.0.0.1: 80", "a port is a number from 1 to 65535" },
		{ "tcp:127.0.0.1:80:90", "a port is a number from 1 to 65535" },
		{ "tcp:127.0.0.1:18446744073709551617", "a port is a number from 1 to 65535" },
		{ "tcp:10.0.0.1:80", "'tcp:10.0.0.1:80' is not 'tcp:127.0.0.1:PORT'" },
		{ "tcp:127.0.0.2:80", "is not 'tcp:127.0.0.1:PORT'" },
		{ "tcp:0.0.0.0:80", "is not 'tcp:127.0.0.1:PORT'" },
		{ "tcp:[::1]:80", "is not 'tcp:127.0.0.1:PORT'" },
		{ "tcp:localhost:80", "is not 'tcp:127.0.0.1:PORT'" },
		{ "tcp:80", "is not 'tcp:127.0.0.1:PORT'" },
		{ "tcp:", "is not 'tcp:127.0.0.1:PORT'" },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		anew(r);
		set(r, "connect", rows[i][0]);
		assert_refused(r, rows[i][1]);
		assert_memory_equal(r->err.msg, "--connect: ", 11);
	}
}

static void an_end_point_of_another_kind_is_refused(void **state)
{
	struct request *r = anew(*state);
	assert_unset(r, "connect", "udp:127.0.0.1:53", "neither 'unix:/PATH[:DST]' nor 'tcp:");
	assert_unset(r, "connect", "127.0.0.1:80", "neither 'unix:/PATH[:DST]' nor 'tcp:");
	assert_int_equal(r->c.connects.count, 0);
}

/* --- servers with keys ------------------------------------------------------------ */

static void an_upstream_is_planned_with_the_absolute_path_of_its_file(void **state)
{
	struct request *r = anew(*state);
	set(r, "upstream",
	    "model=https://api.example.com,header=Authorization:Bearer @/etc/passwd");
	set(r, "upstream", "other=http://127.0.0.1:8080,path=/v1/");
	assert_made(r);
	assert_int_equal(r->plan.network.nupstreams, 2);
	assert_string_equal(r->plan.network.upstreams[0].headers[0].file, "/etc/passwd");
	assert_string_equal(r->plan.network.upstreams[1].path, "/v1/");
	assert_int_equal(r->plan.network.mode, NETWORK_NONE);
}

static void an_upstream_without_its_file_or_with_a_name_twice_is_refused(void **state)
{
	struct request *r = anew(*state);
	set(r, "upstream", "model=https://h,header=Authorization:@/nowhere/key");
	assert_refused(r, "'/nowhere/key': No such file or directory");
	assert_memory_equal(r->err.msg, "--upstream: ", 12);
	anew(r);
	set(r, "upstream", "model=https://h");
	set(r, "upstream", "model=https://g");
	assert_refused(r, "--upstream: two have the name 'model'");
}

static void ports_and_upstreams_share_their_number(void **state)
{
	struct request *r = anew(*state);
	char text[64];
	for (unsigned i = 0; i < 8; i++) {
		(void)snprintf(text, sizeof(text), "tcp:127.0.0.1:%u", 8000 + i);
		set(r, "connect", text);
		(void)snprintf(text, sizeof(text), "u%u=https://h", i);
		set(r, "upstream", text);
	}
	assert_made(r);
	set(r, "upstream", "last=https://h");
	assert_refused(r, "--upstream: more than 16 with the ports of --connect");
}

/* --- the command that runs before the program ------------------------------------ */

static void without_a_list_of_its_own_a_setup_command_has_the_programs_network(void **state)
{
	struct request *r = anew(*state);
	set(r, "setup", "true");
	assert_made(r);
	assert_string_equal(r->plan.setup.command, "true");
	assert_int_equal(r->plan.setup.wall_ms, 5 * 60 * 1000);
	assert_false(r->plan.setup.has_network);
	assert_int_equal(r->plan.network.mode, NETWORK_NONE);
}

/* NONE and "": what the program has, and its list. */
static void a_list_of_its_own_is_changed_to_the_programs(void **state)
{
	static const struct {
		const char *mode, *allow;
		bool is_list;
	} cases[] = {
		{ "none", NULL, true },
		{ "public", NULL, false },
		{ "public", "example.org:443", true },
	};
	struct request *r = *state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		anew(r);
		set(r, "network", cases[i].mode);
		if (cases[i].allow)
			set(r, "allow", cases[i].allow);
		set(r, "setup", "true");
		set(r, "setup-allow", "example.com");
		assert_made(r);
		assert_int_equal(r->plan.network.mode, NETWORK_PUBLIC);
		assert_int_equal(r->plan.network.nallow, 1);
		assert_string_equal(r->plan.network.allow[0].text, "example.com");
		assert_true(r->plan.network.is_live && r->plan.network.allow[0].is_live);
		assert_true(r->plan.setup.has_network);
		assert_int_equal(r->plan.setup.lists.is_list, cases[i].is_list);
		assert_int_equal(r->plan.setup.lists.allow.count, cases[i].allow ? 1 : 0);
		if (cases[i].allow)
			assert_string_equal(r->plan.setup.lists.allow.items[0], cases[i].allow);
	}
}

/* --network none beats it, also after a command with a network. */
static void a_profiles_list_does_not_come_back_after_a_setup_command(void **state)
{
	struct request *r = anew(*state);
	set(r, "allow", "example.org");
	r->c.profile_allow = 1;
	set(r, "network", "none");
	set(r, "setup", "true");
	set(r, "setup-allow", "example.com");
	assert_made(r);
	assert_true(r->plan.setup.lists.is_list);
	assert_int_equal(r->plan.setup.lists.allow.count, 0);
}

static void a_list_without_a_setup_command_is_refused(void **state)
{
	struct request *r = anew(*state);
	set(r, "setup-allow", "example.com");
	assert_refused(r, "--setup-allow 'example.com': there is no command that it is for");
	set(r, "setup", "true");
	assert_made(r);
	set(r, "tty", NULL);
	assert_refused(r, "'--setup' and '--tty' exclude each other");
}

/* --- the plan shown ------------------------------------------------------------ */

static void the_shown_plan_has_the_network_whole(void **state)
{
	struct request *r = anew(*state);
	auto_arena struct arena a = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(true);
	const struct json_node *root = NULL, *network = NULL;
	struct blob text = { 0 };
	set(r, "network", "public");
	set(r, "uplink", "slirp4netns");
	set(r, "allow", "example.org:443");
	set(r, "network-start", "early");
	set(r, "connect", "tcp:127.0.0.1:8080");
	assert_made(r);
	assert_non_null(w);
	plan_write(w, &r->plan, &r->program);
	assert_int_equal(json_writer_take(w, &text, &r->err), 0);
	assert_int_equal(json_parse("plan", text.bytes, text.size, &a, &root, &r->err), 0);
	network = json_get(root, "network");
	assert_non_null(network);
	assert_string_equal(json_get(network, "mode")->text, "public");
	assert_string_equal(json_get(network, "uplink")->text, "slirp4netns");
	assert_string_equal(json_get(network, "start")->text, "early");
	assert_string_equal(json_get(network, "allow")->child->text, "example.org:443");
	assert_false(json_get(network, "allow_private")->boolean);
	assert_string_equal(json_get(network, "connect_ports")->child->text, "8080");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		REQUEST_TEST(without_options_there_is_no_network),
		REQUEST_TEST(the_public_network_is_planned),
		REQUEST_TEST(each_uplink_is_chosen_by_its_name),
		REQUEST_TEST(a_network_is_built_on_first_use_unless_it_is_to_start_early),
		REQUEST_TEST(strict_builds_the_network_early),
		REQUEST_TEST(targets_arrive_with_their_ports),
		REQUEST_TEST(the_most_targets_are_planned_and_one_more_is_not),
		REQUEST_TEST(what_is_denied_is_planned_beside_a_list_and_without_one),
		REQUEST_TEST(the_most_denied_targets_are_planned_and_one_more_is_not),
		REQUEST_TEST(what_is_denied_is_denied_to_the_command_of_setup_too),
		REQUEST_TEST(a_list_without_a_network_is_refused),
		REQUEST_TEST(no_network_at_all_beats_a_profiles_list),
		REQUEST_TEST(a_target_is_validated_when_it_is_read),
		REQUEST_TEST(an_unknown_uplink_is_refused_with_the_list),
		REQUEST_TEST(a_port_of_the_hosts_loopback_is_planned_in_every_mode),
		REQUEST_TEST(ports_and_sockets_are_told_apart),
		REQUEST_TEST(a_port_named_twice_is_one_port),
		REQUEST_TEST(the_most_ports_are_planned_and_one_more_is_not),
		REQUEST_TEST(an_end_point_that_is_no_port_of_the_hosts_loopback_is_refused),
		REQUEST_TEST(an_end_point_of_another_kind_is_refused),
		REQUEST_TEST(an_upstream_is_planned_with_the_absolute_path_of_its_file),
		REQUEST_TEST(an_upstream_without_its_file_or_with_a_name_twice_is_refused),
		REQUEST_TEST(ports_and_upstreams_share_their_number),
		REQUEST_TEST(without_a_list_of_its_own_a_setup_command_has_the_programs_network),
		REQUEST_TEST(a_list_of_its_own_is_changed_to_the_programs),
		REQUEST_TEST(a_profiles_list_does_not_come_back_after_a_setup_command),
		REQUEST_TEST(a_list_without_a_setup_command_is_refused),
		REQUEST_TEST(the_shown_plan_has_the_network_whole),
	};
	return cmocka_run_group_tests(tests, tree_setup, tree_teardown);
}
