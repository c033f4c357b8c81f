/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: read, merged along their chain, shown. */
#include "tests/profiles/profile_home.h"

static void assert_text_says(const char *text, const char *said)
{
	struct config c;
	struct cj_error err = { 0 };
	const char *extends;
	config_init(&c);
	if (profile_read_text(&c, "x.json", text, strlen(text), &extends, &err) == 0)
		fail_msg("'%s' was taken", text);
	if (!strstr(err.msg, said) && !strstr(err.hint, said))
		fail_msg("'%s (%s)' does not say '%s'", err.msg, err.hint, said);
	config_fini(&c);
}

static void every_kind_of_value_is_read(void **state)
{
	(void)state;
	put_profile(
	    "all",
	    "{\"memory\": \"64M\", \"pids\": 7, \"cpus\": 0.5, \"timeout\": 90,\n"
	    " \"writable\": true, \"env\": {\"A\": \"1\", \"B\": \"x=y\"},\n"
	    " \"ro_bind\": [\"/usr\"], \"network\": {\"mode\": \"public\",\n"
	    " \"uplink\": \"host\", \"start\": \"early\", \"allow\": [\"example.org:443\"],\n"
	    " \"allow_private\": true}, \"description\": \"d\"}");
	struct config c;
	load(&c, "all");
	assert_int_equal(c.limits.memory_bytes, 64u << 20);
	assert_int_equal(c.limits.pids, 7);
	assert_int_equal(c.limits.millicpus, 500);
	assert_int_equal(c.run_limits.wall_ms, 90000);
	assert_true(c.writable);
	assert_int_equal(c.env.count, 2);
	assert_string_equal(c.env.items[0], "A=1");
	assert_string_equal(c.env.items[1], "B=x=y");
	assert_string_equal(c.ro_binds.items[0], "/usr");
	assert_int_equal(c.network, NETWORK_PUBLIC);
	assert_int_equal(c.uplink, UPLINK_HOST);
	assert_int_equal(c.network_start, NETWORK_START_EARLY);
	assert_string_equal(c.allow.items[0], "example.org:443");
	assert_true(c.allow_private);
	assert_string_equal(c.description, "d");
	assert_string_equal(c.profile_name, "all");
	config_fini(&c);
}

static void network_may_be_a_string(void **state)
{
	(void)state;
	put_profile("one", "{\"network\": \"public\"}");
	put_profile("shut", "{\"extends\": \"one\", \"network\": \"none\"}");
	struct config c;
	load(&c, "one");
	assert_int_equal(c.network, NETWORK_PUBLIC);
	config_fini(&c);
	load(&c, "shut");
	assert_int_equal(c.network, NETWORK_NONE);
	config_fini(&c);
}

static void an_unknown_key_is_refused_with_its_place_and_a_suggestion(void **state)
{
	(void)state;
	assert_text_says("{\n \"memroy\": \"1G\"}", "x.json:2:");
	assert_text_says("{\n \"memroy\": \"1G\"}", "unknown key 'memroy'");
	assert_text_says("{\n \"memroy\": \"1G\"}", "did you mean 'memory'?");
	assert_text_says("{\"network\": {\"mod\": \"none\"}}", "unknown key 'network.mod'");
	assert_text_says("{\"network.mode\": \"none\"}", "unknown key 'network.mode'");
	assert_text_says("{\"json\": true}", "unknown key 'json'");
	assert_text_says("{\"id\": \"x\"}", "unknown key 'id'");
}

static void a_value_of_the_wrong_type_is_refused(void **state)
{
	(void)state;
	assert_text_says("{\"memory\": true}", "memory must be a string or a number");
	assert_text_says("{\"memory\": [1]}", "memory must be a string or a number");
	assert_text_says("{\"memory\": null}", "memory must be a string or a number");
	assert_text_says("{\"description\": 1}", "description must be a string");
	assert_text_says("{\"writable\": \"yes\"}", "writable must be true or false");
	assert_text_says("{\"command\": \"sh x\"}", "command must be an array of strings");
	assert_text_says("{\"command\": [1]}", "command must be an array of strings");
	assert_text_says("{\"env\": [\"A=1\"]}", "env must be an object");
	assert_text_says("{\"env\": {\"A\": 1}}", "env must be an object");
	assert_text_says("{\"network\": [\"none\"]}", "network.mode must be a string");
	assert_text_says("{\"network\": {\"uplink\": 1}}", "network.uplink must be a string");
	assert_text_says("{\"network\": {\"allow\": \"h\"}}", "network.allow must be an array");
	assert_text_says("{\"network\": {\"allow_private\": \"yes\"}}",
			 "network.allow_private must be true or false");
	assert_text_says("{\"extends\": [\"base\"]}", "extends must be a string");
	assert_text_says("[]", "a profile is an object");
	assert_text_says("\"x\"", "a profile is an object");
}

static void a_value_out_of_range_is_refused_with_its_place(void **state)
{
	(void)state;
	assert_text_says("{\"pids\":\n   0}", "x.json:2:4: pids: '0'");
	assert_text_says("{\"memory\": \"1K\"}", "memory: '1K' is too little");
	assert_text_says("{\"memory\": 1.5}", "memory: '1.5'");
	assert_text_says("{\"pids\": 1e3}", "pids: '1e3'");
	assert_text_says("{\"pids\": -1}", "pids: '-1'");
	assert_text_says("{\"cpus\": 99999}", "cpus: '99999'");
	assert_text_says("{\"extensions\": [\"py\"]}", "'py' is not an extension");
	assert_text_says("{\"extensions\": [\"./x\"]}", "'./x' is not an extension");
	assert_text_says("{\"file_name\": \"../main.py\"}", "is not a file name");
	assert_text_says("{\"file_name\": \"a/b\"}", "is not a file name");
	assert_text_says("{\"command\": [\"sh\", \"-c\", \"x {file}\"]}", "an argument of its own");
	assert_text_says("{\"command\": [\"\"]}", "the program, is empty");
	assert_text_says("{\"env\": {\"A B\": \"\"}}", "'A B' is not a variable's name");
	assert_text_says("{\"env\": {\"A=B\": \"\"}}", "has a '=' in its name");
	assert_text_says("{\"extends\": \"./base.json\"}", "is not a profile's name");
}

static void malformed_json_is_refused_with_its_place(void **state)
{
	(void)state;
	assert_text_says("", "x.json:1:1");
	assert_text_says("{", "x.json:1:");
	assert_text_says("{\"pids\": 1,\n \"pids\": 2}", "x.json:2:2: duplicate key 'pids'");
	assert_text_says("{} {}", "x.json:1:4");
	assert_text_says("{\"description\": \"a\\u0000b\"}", "x.json:1:");
	assert_text_says("{\"description\": \"\xff\"}", "x.json:1:");
	assert_text_says("{/* c */}", "x.json:1:2");
}

/* --- extends ---------------------------------------------------------------- */

static void a_child_overrides_its_parent(void **state)
{
	(void)state;
	put_profile("p",
		    "{\"memory\": \"64M\", \"pids\": 5, \"command\": [\"a\", \"b\", \"{file}\"],"
		    " \"env\": {\"A\": \"1\", \"B\": \"2\"}, \"ro_bind\": [\"/usr\"],"
		    " \"extensions\": [\".p\"]}");
	put_profile("c", "{\"extends\": \"p\", \"memory\": \"32M\", \"command\": [\"c\"],"
			 " \"env\": {\"B\": \"3\", \"C\": \"4\"}, \"ro_bind\": [\"/etc\"]}");
	struct config c;
	load(&c, "c");
	assert_int_equal(c.limits.memory_bytes, 32u << 20);
	assert_int_equal(c.limits.pids, 5);
	assert_int_equal(c.command.count, 1);
	assert_string_equal(c.command.items[0], "c");
	assert_int_equal(c.env.count, 3);
	assert_string_equal(c.env.items[0], "A=1");
	assert_string_equal(c.env.items[1], "B=3");
	assert_string_equal(c.env.items[2], "C=4");
	assert_int_equal(c.ro_binds.count, 2);
	assert_string_equal(c.extensions.items[0], ".p");
	config_fini(&c);
}

static void the_hash_is_over_the_chain_parents_first(void **state)
{
	(void)state;
	put_profile("p", "{\"pids\": 5}");
	put_profile("c", "{\"extends\": \"p\"}");
	char expected[SHA256_HEX_MAX];
	const char bytes[] = "{\"pids\": 5}{\"extends\": \"p\"}";
	sha256_hex(bytes, sizeof(bytes) - 1, expected);
	struct config c;
	load(&c, "c");
	assert_string_equal(c.profile_sha256, expected);
	config_fini(&c);
}

static void a_profile_that_extends_itself_is_refused_with_the_cycle(void **state)
{
	(void)state;
	put_profile("a", "{\"extends\": \"b\"}");
	put_profile("b", "{\"extends\": \"a\"}");
	put_profile("c", "{\"extends\": \"b\"}");
	assert_load_says("a", "'a' extends itself: a -> b -> a");
	assert_load_says("c", "'b' extends itself: b -> a -> b");
	put_profile("lonely", "{\"extends\": \"lonely\"}");
	assert_load_says("lonely", "'lonely' extends itself: lonely -> lonely");
}

static void a_profile_that_extends_its_own_name_extends_the_one_that_it_hides(void **state)
{
	(void)state;
	struct config c;
	put_profile("base",
		    "{\"extends\": \"base\", \"pids\": 5, \"accept_weaker\": [\"limits\"]}");
	load(&c, "python"); /* the shipped one extends base */
	assert_int_equal(c.limits.pids, 5);
	assert_true(c.base_env.count > 0); /* of the base that is hidden, and once */
	assert_true(c.base_env.count <= c.env.count);
	assert_true(strings_has(&c.accept_weaker, "limits"));
	config_fini(&c);
	put_profile("base", "{\"accept_weaker\": [\"luck\"]}");
	assert_load_says("base", "'luck' is not one of: limits, landlock, network, network_filter, "
				 "syscall_report, hostname, record");
}

static void a_row_of_parents_has_an_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= PROFILE_EXTENDS_MAX; i++) {
		char name[8], text[64];
		(void)snprintf(name, sizeof(name), "p%u", i);
		(void)snprintf(text, sizeof(text), "{\"extends\": \"p%u\"}", i + 1);
		put_profile(name, i < PROFILE_EXTENDS_MAX ? text : "{}");
	}
	struct config c;
	load(&c, "p0"); /* eight parents are as many as there may be */
	config_fini(&c);
	put_profile("q", "{\"extends\": \"p0\"}");
	assert_load_says("q", "'q' extends more than 8 others");
}

static void a_missing_parent_is_reported_with_the_childs_name(void **state)
{
	(void)state;
	put_profile("c", "{\"extends\": \"absent\"}");
	assert_load_says("c", "c.json: extends: there is no profile 'absent'");
}

static void a_parent_is_a_name_never_a_path(void **state)
{
	(void)state;
	char path[256], text[300];
	path_of("victim", path, sizeof(path));
	put_profile("victim", "{}");
	(void)snprintf(text, sizeof(text), "{\"extends\": \"%s\"}", path);
	put_profile("c", text);
	assert_load_says("c", "is not a profile's name");
}

/* --- showing ---------------------------------------------------------------- */

static char *show(const struct config *c)
{
	struct blob text;
	struct cj_error err = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(true);
	assert_non_null(w);
	profile_write(w, c);
	if (json_writer_take(w, &text, &err) < 0)
		fail_msg("%s", err.msg);
	return strndup(text.bytes, text.size);
}

static void a_shown_profile_reads_back_as_the_same(void **state)
{
	(void)state;
	put_profile("rich", "{\"extends\": \"ci\", \"memory\": 5000001, \"disk\": \"3G\","
			    " \"timeout\": \"1.5s\", \"cpu_time\": \"90m\", \"cpus\": 0.25,"
			    " \"env\": {\"X\": \"\\u00e9\\n\"}, \"bind\": [\"/a:/b\"],"
			    " \"on_output_limit\": \"kill\", \"network\": {\"allow\": [\"h\"]},"
			    " \"audit\": \"required\"}");
	const char *const names[] = {
		"base", "ci", "node", "python", "python-data", "shell", "rich"
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct config c, again;
		struct cj_error err = { 0 };
		const char *extends;
		load(&c, names[i]);
		auto_free char *first = show(&c);
		config_init(&again);
		if (profile_read_text(&again, "shown", first, strlen(first), &extends, &err) < 0)
			fail_msg("%s in %s", err.msg, first);
		assert_null(extends);
		auto_free char *second = show(&again);
		assert_string_equal(first, second);
		config_fini(&c);
		config_fini(&again);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOME_TEST(every_kind_of_value_is_read),
		HOME_TEST(network_may_be_a_string),
		HOME_TEST(an_unknown_key_is_refused_with_its_place_and_a_suggestion),
		HOME_TEST(a_value_of_the_wrong_type_is_refused),
		HOME_TEST(a_value_out_of_range_is_refused_with_its_place),
		HOME_TEST(malformed_json_is_refused_with_its_place),
		HOME_TEST(a_child_overrides_its_parent),
		HOME_TEST(the_hash_is_over_the_chain_parents_first),
		HOME_TEST(a_profile_that_extends_itself_is_refused_with_the_cycle),
		HOME_TEST(a_profile_that_extends_its_own_name_extends_the_one_that_it_hides),
		HOME_TEST(a_row_of_parents_has_an_end),
		HOME_TEST(a_missing_parent_is_reported_with_the_childs_name),
		HOME_TEST(a_parent_is_a_name_never_a_path),
		HOME_TEST(a_shown_profile_reads_back_as_the_same),
	};
	return cmocka_run_group_tests(tests, home_setup, home_teardown);
}
