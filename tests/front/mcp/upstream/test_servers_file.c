/* SPDX-License-Identifier: Apache-2.0 */
/* servers.json is read whole or refused with the place, the server and what to change. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/front/mcp/upstream/servers_file.h"

static int parse(struct servers_file *f, const char *text, struct cj_error *err)
{
	*err = (struct cj_error){ 0 };
	return servers_file_parse(f, "servers.json", text, strlen(text), err);
}

static void the_format_of_mcp_hosts_is_read(void **state)
{
	static const char text[] =
	    "{\"mcpServers\": {"
	    "\"github\": {\"command\": \"npx\", \"args\": [\"-y\", \"server\"], \"cwd\": \"/srv\","
	    "  \"env\": {\"TOKEN\": \"a=b\"}, \"type\": \"stdio\", \"allow\": [\"create_*\"],"
	    "  \"deny\": [\"x\"], \"timeout\": \"90s\"},"
	    "\"local\": {\"url\": \"http://localhost:8080/mcp\", \"headers\": {\"X-Key\": \"k\"}}}}";
	struct servers_file f;
	struct cj_error err;

	(void)state;
	assert_int_equal(parse(&f, text, &err), 0);
	assert_int_equal(f.count, 2);
	const struct server_spec *s = &f.servers[0];
	assert_string_equal(s->name, "github");
	assert_string_equal(s->command, "npx");
	assert_int_equal(s->args.count, 2);
	assert_string_equal(s->args.items[1], "server");
	assert_string_equal(s->env.items[0], "TOKEN=a=b");
	assert_string_equal(s->cwd, "/srv");
	assert_string_equal(s->allow.items[0], "create_*");
	assert_string_equal(s->deny.items[0], "x");
	assert_int_equal(s->timeout_ms, 90000);
	assert_string_equal(f.servers[1].url, "http://localhost:8080/mcp");
	assert_string_equal(f.servers[1].headers.items[0], "X-Key: k");
	assert_int_equal(f.servers[1].timeout_ms, 0);
	arena_fini(&f.arena);
}

static void the_members_of_a_jail_are_options(void **state)
{
	static const char text[] =
	    "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"jail\": {"
	    "  \"memory\": \"64M\", \"ro-bind\": [\"/a\", \"/b:/c\"], \"pids-limit\": 20,"
	    "  \"strict\": true, \"cache\": \"none\"}},"
	    "\"b\": {\"command\": \"x\", \"jail\": {\"strict\": false}},"
	    "\"c\": {\"command\": \"x\"}}}";
	static const char *const wanted[] = { "--memory=64M",    "--ro-bind=/a", "--ro-bind=/b:/c",
					      "--pids-limit=20", "--strict",     "--cache=none" };
	struct servers_file f;
	struct cj_error err;

	(void)state;
	if (parse(&f, text, &err) < 0)
		fail_msg("%s", err.msg);
	const struct strings *jail = &f.servers[0].jail;
	assert_int_equal(jail->count, sizeof(wanted) / sizeof(wanted[0]));
	for (size_t i = 0; i < jail->count; i++)
		assert_string_equal(jail->items[i], wanted[i]);
	assert_true(f.servers[0].is_jailed && f.servers[1].is_jailed && !f.servers[2].is_jailed);
	assert_int_equal(f.servers[1].jail.count, 0);
	arena_fini(&f.arena);
}

struct wrong {
	const char *text, *error;
};

static void assert_all_refused(const struct wrong *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct servers_file f;
		struct cj_error err;
		if (parse(&f, rows[i].text, &err) == 0)
			fail_msg("accepted: %s", rows[i].text);
		if (!strstr(err.msg, rows[i].error) || !strstr(err.msg, "servers.json:1:"))
			fail_msg("%s: %s", rows[i].text, err.msg);
		arena_fini(&f.arena);
	}
}

static void what_is_wrong_in_a_jail_is_named_with_its_place(void **state)
{
	static const struct wrong rows[] = {
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"jail\": true}}}",
		  "mcpServers.a.jail must be an object" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"jail\": {\"memry\": 1}}}}",
		  "unknown key 'mcpServers.a.jail.memry'" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"jail\": {\"memory\": \"much\"}}}}",
		  "servers.json:1:58: mcpServers.a.jail.memory: 'much'" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"jail\": {\"network\": \"all\"}}}}",
		  "mcpServers.a.jail.network: 'all' is neither" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"jail\": {\"bind\": \"/srv\"}}}}",
		  "mcpServers.a.jail.bind must be an array of strings" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"cwd\": \"/\", \"jail\": {}}}}",
		  "has a \"jail\", so \"cwd\" means nothing" },
		{ "{\"mcpServers\": {\"a\": {\"url\": \"http://127.0.0.1/\", \"jail\": {}}}}",
		  "\"jail\" mean nothing" },
	};

	(void)state;
	assert_all_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

static void what_is_wrong_is_named_with_its_place(void **state)
{
	static const struct wrong rows[] = {
		{ "[]", "must be an object" },
		{ "{}", "mcpServers" },
		{ "{\"mcpServers\": {}}", "names no server" },
		{ "{\"servers\": {}}", "unknown key 'servers'" },
		{ "{\"mcpServers\": {\"a\": 1}}", "mcpServers.a must be an object" },
		{ "{\"mcpServers\": {\"a\": {}}}", "'a' needs either \"command\" or \"url\"" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"url\": \"http://localhost/\"}}}",
		  "needs either" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"alow\": []}}}",
		  "unknown key 'mcpServers.a.alow'" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"\"}}}", "the value is empty" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"headers\": {\"A\": \"b\"}}}}",
		  "\"headers\" mean nothing" },
		{ "{\"mcpServers\": {\"a\": {\"url\": \"http://[::1]:8/\", \"args\": [\"b\"]}}}",
		  "mean nothing" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"type\": \"http\"}}}",
		  "another \"type\"" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"type\": \"sse\"}}}",
		  "unknown \"type\"" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"A=B\": \"c\"}}}}",
		  "'A=B' is no name of a variable" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"env\": {\"A\": 1}}}}",
		  "mcpServers.a.env.A must be a string" },
		{ "{\"mcpServers\": {\"a\": {\"url\": \"http://127.0.0.1/\", \"headers\": {\"A\": "
		  "\"b\\r\\nC: d\"}}}}",
		  "'A' is no HTTP header" },
		{ "{\"mcpServers\": {\"a\": {\"url\": \"http://127.0.0.1/\", \"headers\": "
		  "{\"transfer-encoding\": \"chunked\"}}}}",
		  "cejail itself sets the header 'transfer-encoding'" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"allow\": [\"[ab]\"]}}}",
		  "'[ab]' is no pattern" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"allow\": [\"b\", \"read_*\"], "
		  "\"deny\": [\"c\", \"read_all\"]}}}",
		  "the server 'a' allows 'read_*' and denies 'read_all'" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"allow\": [\"b\"], "
		  "\"deny\": [\"?\"]}}}",
		  "the server 'a' allows 'b' and denies '?'" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"allow\": [\"*\"], "
		  "\"deny\": [\"*\"]}}}",
		  "the server 'a' allows '*' and denies '*'" },
		{ "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"timeout\": \"soon\"}}}",
		  "mcpServers.a.timeout" },
		{ "{\"mcpServers\": {\"\": {\"command\": \"x\"}}}", "1 to 64 bytes" },
	};

	(void)state;
	assert_all_refused(rows, sizeof(rows) / sizeof(rows[0]));
}

static void only_urls_of_this_machine_are_accepted(void **state)
{
	static const struct {
		const char *url, *host, *path;
		unsigned port;
	} good[] = {
		{ "http://localhost", "localhost", "", 80 },
		{ "http://LOCALHOST:8080/mcp?a=b", "LOCALHOST", "/mcp?a=b", 8080 },
		{ "http://127.1.2.3/", "127.1.2.3", "/", 80 },
		{ "http://[::1]:65535/x", "[::1]", "/x", 65535 },
	};
	static const char *const bad[] = {
		"ftp://localhost/",
		"http://example.com/",
		"http://10.0.0.1/",
		"http://[::2]/",
		"http://[::1/",
		"http://localhost:0/",
		"http://localhost:65536/",
		"http://localhost:/",
		"http://localhost/a b",
		"http://localhost/\r\nA:b",
		"http://localhost@evil/",
		"http://127.0.0.1.evil.com/",
		"http://",
		"http://[",
	};
	struct server_address a;
	struct cj_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(servers_file_split_url(good[i].url, &a, &err), 0);
		assert_string_equal(a.host, good[i].host);
		assert_string_equal(a.path, good[i].path);
		assert_int_equal(a.port, good[i].port);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (servers_file_split_url(bad[i], &a, &err) == 0)
			fail_msg("accepted: %s", bad[i]);
	assert_true(servers_file_split_url("https://example.com/", &a, &err) < 0);
	assert_non_null(strstr(err.msg, "no TLS"));
	assert_non_null(strstr(err.hint, "mcp-remote"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_format_of_mcp_hosts_is_read),
		cmocka_unit_test(the_members_of_a_jail_are_options),
		cmocka_unit_test(what_is_wrong_in_a_jail_is_named_with_its_place),
		cmocka_unit_test(what_is_wrong_is_named_with_its_place),
		cmocka_unit_test(only_urls_of_this_machine_are_accepted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
