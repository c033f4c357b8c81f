/* SPDX-License-Identifier: Apache-2.0 */
/* A request's body: what is taken, what is refused and in which words, which jail fits it. */
#include "tests/run/request/asked.h"

#include <fcntl.h>

#include "rootfs/files/inputs.h"
#include "runtime/base/scope.h"
#include "tests/json_file.h"

static void assert_refused(struct asked *a, const char *text, int code, const char *message)
{
	struct request before = a->request;
	assert_int_equal(parse(a, text), -code);
	assert_string_equal(a->err.msg, message);
	assert_memory_equal(&before, &a->request, sizeof(before)); /* nothing is half-filled */
}

/* --- the examples that the schema's test reads, too ------------------------------------ */

/* Both halves of reading: the form, and the values of the settings. */
static int read_whole(struct asked *a, const struct json_node *example)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text;
	assert_non_null(w);
	json_put_node(w, example);
	assert_int_equal(json_writer_take(w, &text, &a->err), 0);
	int rc = request_parse(text, &caps, &a->arena, &a->request, &a->err);
	config_fini(&a->config);
	if (rc == 0)
		rc = request_apply(&a->request, true, &a->config, &a->err);
	return rc;
}

static void the_reader_agrees_with_the_schema(void **state)
{
	struct asked *a = *state;
	auto_arena struct arena arena = { 0 };
	const struct json_node *examples = json_of_file("tests/service/requests.json", &arena);
	const struct json_node *good = json_get(examples, "good"), *bad = json_get(examples, "bad");
	assert_true(good->count > 10 && bad->count > 50);
	for (const struct json_node *n = good->child; n; n = n->next)
		if (read_whole(a, n) < 0)
			fail_msg("requests.json:%u: %s", n->line, a->err.msg);
	for (const struct json_node *n = bad->child; n; n = n->next)
		if (read_whole(a, n) == 0)
			fail_msg("requests.json:%u: it is taken", n->line);
}

/* The schema's own keys come first, then the table's rows that a request may have. */
static void the_schema_names_each_key_and_nothing_more(void **state)
{
	static const char *const own[] = { "profile", "id",        "code",  "command",   "args",
					   "stdin",   "args_json", "files", "artifacts", "tools" };
	(void)state;
	auto_arena struct arena arena = { 0 };
	const struct json_node *root = json_of_file("profiles/schema/request.json", &arena);
	const struct json_node *keys = json_get(root, "properties");
	const struct json_node *network =
	    json_get(json_get(json_get(keys, "network"), "oneOf")->child->next, "properties");
	const struct json_node *calls = json_get(json_get(keys, "calls"), "properties");
	size_t named = COUNT(own) + 2, in_network = 0, in_calls = 0;
	for (size_t i = 0; i < COUNT(own); i++)
		assert_non_null(json_get(keys, own[i]));
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		if (s->scope == SCOPE_NO_REQUEST)
			continue;
		bool is_network = strncmp(s->key, "network.", 8) == 0;
		bool is_call = strncmp(s->key, "calls.", 6) == 0;
		if (!json_get(is_network ? network
			      : is_call  ? calls
					 : keys,
			      is_network ? s->key + 8
			      : is_call  ? s->key + 6
					 : s->key))
			fail_msg("the schema has no '%s'", s->key);
		named += !is_network && !is_call;
		in_network += is_network;
		in_calls += is_call;
	}
	assert_int_equal(keys->count, named);
	assert_int_equal(network->count, in_network);
	assert_int_equal(calls->count, in_calls);
}

/* --- the program ------------------------------------------------------------------------- */

static void a_program_and_its_data_are_taken_apart(void **state)
{
	struct asked *a = *state;
	assert_taken(a, "{\"profile\": \"python\", \"id\": \"run-1\", \"code\": \"print(1)\\n\","
			" \"args\": [\"x\", \"\"], \"stdin\": {\"base64\": \"AAH/\"},"
			" \"args_json\": {\"n\": [1.50, \"\\u00e9\"]}, \"artifacts\": true}");
	const struct request *r = &a->request;
	assert_string_equal(r->profile, "python");
	assert_string_equal(r->id, "run-1");
	assert_true(r->has_code && !r->is_command && r->has_stdin && r->wants_artifacts);
	assert_int_equal(r->code.size, 9);
	assert_memory_equal(r->code.bytes, "print(1)\n", 9);
	assert_int_equal(r->args.count, 2);
	assert_string_equal(r->args.items[1], "");
	assert_int_equal(r->stdin_bytes.size, 3);
	assert_memory_equal(r->stdin_bytes.bytes, "\0\1\xff", 3);
	assert_string_equal(r->args_json, "{\"n\":[1.50,\"\xc3\xa9\"]}");
	assert_int_equal(r->fit, FIT_INTERPRETER);
}

static void what_is_left_out_is_not_there(void **state)
{
	struct asked *a = *state;
	assert_taken(a, "{\"profile\": \"base\", \"command\": [\"ls\", \"-l\"]}");
	const struct request *r = &a->request;
	assert_true(r->is_command && !r->has_code && !r->has_stdin && !r->wants_artifacts);
	assert_null(r->id);
	assert_null(r->args_json);
	assert_int_equal(r->nfiles, 0);
	assert_string_equal(r->args.items[0], "ls");
	assert_null(r->args.items[2]);
	assert_int_equal(r->fit, FIT_JAIL);
}

static void files_are_named_by_their_place_in_the_jail(void **state)
{
	struct asked *a = *state;
	assert_taken(a, with(a, "\"files\": [{\"path\": \"./d//b\", \"text\": \"b\","
				" \"executable\": true},"
				" {\"base64\": \"AA==\", \"path\": \"/box/a\"}]"));
	assert_int_equal(a->request.nfiles, 2);
	assert_string_equal(a->request.files[0].target, "/box/a");
	assert_int_equal(a->request.files[0].size, 1);
	assert_int_equal(*(const char *)a->request.files[0].bytes, 0);
	assert_string_equal(a->request.files[1].target, "/box/d/b");
	assert_string_equal(a->request.files[1].bytes, "b");
	assert_false(a->request.files[0].is_executable);
	assert_true(a->request.files[1].is_executable);
}

static void bad_files_are_refused_with_their_name(void **state)
{
	static const char *const rows[][2] = {
		{ "{\"path\": \"a\", \"text\": \"\"}, {\"path\": \"/box/./a\", \"text\": \"\"}",
		  "request:1:45: files: '/box/a' is there twice" },
		{ "{\"path\": \"../a\", \"text\": \"\"}",
		  "request:1:55: files.path: '../a' has '..' in it; say where it is" },
		{ "{\"path\": \"/proc/1/mem\", \"text\": \"\"}",
		  "request:1:55: files.path: '/proc/1/mem': /proc is the jail's own" },
		{ "{\"path\": \"a\"}", "request:1:46: a file has either \"text\" or \"base64\"" },
		{ "{\"path\": \"a\", \"text\": \"\", \"base64\": \"\"}",
		  "request:1:46: a file has either \"text\" or \"base64\"" },
		{ "{\"text\": \"\"}", "request:1:46: files.path is missing" },
		{ "{\"path\": \"a\", \"mode\": 7}", "request:1:60: unknown key 'files.mode'" },
	};
	struct asked *a = *state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *files = arena_printf(&a->arena, "\"files\": [%s]", rows[i][0]);
		assert_non_null(files);
		assert_refused(a, with(a, files), EINVAL, rows[i][1]);
	}
}

static const char *joined(struct asked *a, const char *one, const char *other)
{
	char *text = arena_alloc(&a->arena, strlen(one) + strlen(other) + 1);
	assert_non_null(text);
	(void)stpcpy(stpcpy(text, one), other);
	return text;
}

static void more_files_than_may_be_are_refused(void **state)
{
	struct asked *a = *state;
	for (int count = REQUEST_FILES_MAX; count <= REQUEST_FILES_MAX + 1; count++) {
		const char *list = "";
		for (int i = 0; i < count; i++) {
			auto_free char *one = NULL;
			assert_true(asprintf(&one, "%s{\"path\": \"%d\", \"text\": \"\"}",
					     i ? "," : "", i) > 0);
			list = joined(a, list, one);
		}
		const char *text = joined(a, "{\"profile\": \"p\", \"code\": \"\", \"files\": [",
					  joined(a, list, "]}"));
		if (count == REQUEST_FILES_MAX)
			assert_taken(a, text);
		else
			assert_refused(a, text, EINVAL, "request:1:27930: files: more than 1000");
	}
}

/* --- sizes ----------------------------------------------------------------------------------- */

static const char *of_size(struct asked *a, const char *fmt_before, size_t size, const char *after)
{
	char *text = arena_alloc(&a->arena, strlen(fmt_before) + size + strlen(after) + 1);
	assert_non_null(text);
	char *end = stpcpy(text, fmt_before);
	memset(end, 'A', size);
	(void)stpcpy(end + size, after);
	return text;
}

/* Each cap, as text and as base64: just not passed, then passed by one. */
static void each_size_has_its_cap(void **state)
{
	static const struct {
		const char *before, *after, *message;
		size_t most;
	} rows[] = {
		{ "{\"profile\": \"p\", \"code\": \"", "\"}",
		  "request:1:26: code: more than 1000 bytes", 1000 },
		{ "{\"profile\": \"p\", \"code\": {\"base64\": \"", "==\"}}",
		  "request:1:37: code: more than 1000 bytes", 1334 },
		{ "{\"profile\": \"p\", \"code\": \"\", \"stdin\": \"", "\"}",
		  "request:1:39: stdin: more than 10 bytes", 10 },
		{ "{\"profile\": \"p\", \"code\": \"\", \"files\": [{\"path\": \"a\", \"text\": \"",
		  "\"}]}", "request:1:62: files.text: more than 100 bytes", 100 },
	};
	struct asked *a = *state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		/* base64 comes in fours */
		size_t one_more = rows[i].most + (strstr(rows[i].before, "64") ? 4 : 1);
		assert_taken(a, of_size(a, rows[i].before, rows[i].most, rows[i].after));
		assert_refused(a, of_size(a, rows[i].before, one_more, rows[i].after), EFBIG,
			       rows[i].message);
	}
}

static void a_whole_body_has_its_cap(void **state)
{
	static const char body[] = "{\"profile\": \"p\", \"code\": \"\"}";
	const struct request_caps few = { .body_bytes = sizeof(body) - 2 };
	const struct request_caps none = { .body_bytes = sizeof(body) - 1 };
	struct asked *a = *state;
	assert_int_equal(request_parse((struct blob){ body, strlen(body) }, &few, &a->arena,
				       &a->request, &a->err),
			 -EFBIG);
	assert_string_equal(a->err.msg, "request: more than 27 bytes");
	assert_int_equal(request_parse((struct blob){ body, strlen(body) }, &none, &a->arena,
				       &a->request, &a->err),
			 0);
}

static void arguments_as_data_have_their_cap(void **state)
{
	struct asked *a = *state;
	assert_taken(a, of_size(a, "{\"profile\": \"p\", \"code\": \"\", \"args_json\": \"",
				ARGS_JSON_MAX - 2, "\"}"));
	assert_refused(a,
		       of_size(a, "{\"profile\": \"p\", \"code\": \"\", \"args_json\": \"",
			       ARGS_JSON_MAX - 1, "\"}"),
		       EFBIG, "request:1:43: args_json: more than 1048576 bytes");
}

/* --- settings --------------------------------------------------------------------------------- */

static void what_is_refused_says_where_and_why(void **state)
{
	static const struct {
		const char *rest, *message, *hint;
	} rows[] = {
		{ "\"memroy\": 1", "request:1:36: unknown key 'memroy'", "did you mean 'memory'?" },
		{ "\"file_s\": 1", "request:1:36: unknown key 'file_s'", "did you mean 'files'?" },
		{ "\"ttyy\": 1", "request:1:36: unknown key 'ttyy'", "" },
		{ "\"tty\": true", "request:1:36: tty can't be asked for",
		  "it is the profile's or the command line's" },
		{ "\"network\": {\"mod\": 1}", "request:1:48: unknown key 'network.mod'",
		  "did you mean 'network.mode'?" },
		{ "\"id\": \"a b\"",
		  "request:1:42: id: 'a b' is not a name: 1 to 32 of a-z A-Z 0-9 _ -", "" },
		{ "\"stdin\": {\"base64\": \"A\"}", "request:1:56: stdin: this is not base64",
		  "RFC 4648, section 4: A-Z a-z 0-9 + /, padded with '=', no line ends" },
		{ "\"stdin\": {\"base64\": \"AA==\\n\"}", "request:1:56: stdin: this is not base64",
		  "RFC 4648, section 4: A-Z a-z 0-9 + /, padded with '=', no line ends" },
		{ "\"code\": \"\"", "request:1:36: duplicate key 'code'", "" },
		{ "\"command\": [\"a\"]", "request:1:1: code and command exclude each other", "" },
	};
	struct asked *a = *state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_refused(a, with(a, rows[i].rest), EINVAL, rows[i].message);
		assert_string_equal(a->err.hint, rows[i].hint);
	}
}

static void settings_go_onto_a_config(void **state)
{
	struct asked *a = *state;
	assert_taken(a, with(a, "\"timeout\": \"5s\", \"env\": {\"A\": \"b=c\"},"
				" \"network\": {\"mode\": \"public\", \"allow\": [\"h:1\"]}"));
	assert_int_equal(request_apply(&a->request, false, &a->config, &a->err), 0);
	assert_int_equal(a->config.run_limits.wall_ms, 5000);
	assert_int_equal(a->config.network, NETWORK_PUBLIC);
	assert_string_equal(a->config.env.items[0], "A=b=c");
	assert_string_equal(a->config.allow.items[0], "h:1");
	assert_null(a->config.command.items); /* a request's "command" is no template */
}

static void a_bad_value_is_reported_with_its_place(void **state)
{
	struct asked *a = *state;
	assert_taken(a, with(a, "\"memory\": \"many\""));
	assert_int_equal(request_apply(&a->request, true, &a->config, &a->err), -EINVAL);
	assert_non_null(strstr(a->err.msg, "request:1:46: memory: "));
}

/* One for each row of the host's; with the right, each goes onto the config. */
static void host_paths_need_the_right_to_name_them(void **state)
{
	static const char *const rows[][2] = {
		{ "file", "[\"/etc/passwd\"]" },
		{ "ro_bind", "[\"/etc\"]" },
		{ "bind", "[\"/etc\"]" },
		{ "overlay", "[\"/etc\"]" },
		{ "connect", "[\"unix:/run/x\"]" },
		{ "upstream", "[\"model=https://example.com\"]" },
		{ "network.allow_private", "{\"allow_private\": true}" },
		{ "rootfs", "\"/\"" },
		{ "seccomp", "\"default\"" },
		{ "cgroup_parent", "\"/sys/fs/cgroup/x\"" },
	};
	struct asked *a = *state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		int length = (int)strcspn(rows[i][0], ".");
		const char *rest =
		    arena_printf(&a->arena, "\"%.*s\": %s", length, rows[i][0], rows[i][1]);
		char message[128];
		assert_non_null(rest);
		assert_taken(a, with(a, rest));
		assert_int_equal(a->request.fit, FIT_COLD);
		assert_int_equal(request_apply(&a->request, false, &a->config, &a->err), -EACCES);
		(void)snprintf(message, sizeof(message), ": %s names something of the host",
			       rows[i][0]);
		assert_non_null(strstr(a->err.msg, message));
		assert_non_null(strstr(a->err.hint, "\"files\""));
		assert_int_equal(request_apply(&a->request, true, &a->config, &a->err), 0);
	}
	size_t rows_of_table = 0;
	for (size_t i = 0; i < settings_count; i++)
		rows_of_table += settings[i].scope == SCOPE_HOST;
	assert_int_equal(COUNT(rows), rows_of_table);
}

static void what_a_profile_insists_on_stays(void **state)
{
	struct asked *a = *state;
	assert_taken(a, with(a, "\"strict\": false, \"noexec\": false"));
	assert_int_equal(request_apply(&a->request, true, &a->config, &a->err), 0);
	a->config.strict = true;
	assert_int_equal(request_apply(&a->request, true, &a->config, &a->err), -EPERM);
	assert_non_null(strstr(a->err.msg, "strict is the profile's, and can't be taken back"));
	a->config.strict = false;
	a->config.noexec = true;
	assert_int_equal(request_apply(&a->request, true, &a->config, &a->err), -EPERM);
	assert_non_null(strstr(a->err.msg, "noexec is the profile's"));
}

static void the_artifacts_of_a_request_have_a_size(void **state)
{
	static const struct {
		const char *rest;
		uint64_t bytes;
		const char *msg; /* NULL: it is taken */
	} rows[] = {
		{ "\"artifacts\": true", 16u << 20, NULL },
		{ "\"artifacts\": false", 0, NULL },
		{ "\"artifacts\": \"inline\"", 16u << 20, NULL },
		{ "\"artifacts\": \"inline:2K\"", 2048, NULL },
		{ "\"artifacts\": \"inline:16M\"", 16u << 20, NULL },
		{ "\"artifacts\": \"inline:17M\"", 0, "artifacts: '17M'" },
		{ "\"artifacts\": \"inline:0\"", 0, "artifacts: " },
		{ "\"artifacts\": \"inline:\"", 0, "artifacts: " },
		{ "\"artifacts\": \"inlined\"", 0,
		  "artifacts: 'inlined' is neither 'inline[:SIZE]' nor" },
		{ "\"artifacts\": \"true\"", 0,
		  "artifacts: 'true' is neither 'inline[:SIZE]' nor" },
		{ "\"artifacts\": \"/dir\"", 0, "is neither 'inline[:SIZE]' nor" },
		{ "\"artifacts\": 1", 0, "artifacts must be a string or true or false" },
	};
	struct asked *a = *state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		int rc = parse(a, with(a, rows[i].rest));
		if (rows[i].msg) {
			assert_true(rc < 0);
			if (!strstr(a->err.msg, rows[i].msg))
				fail_msg("%s: %s", rows[i].rest, a->err.msg);
			continue;
		}
		assert_int_equal(rc, 0);
		assert_int_equal(a->request.artifacts_bytes, rows[i].bytes);
		assert_int_equal(a->request.wants_artifacts, rows[i].bytes > 0);
	}
}

static void the_fit_of_a_request_is_reported(void **state)
{
	static const struct {
		const char *rest;
		enum request_fit fit;
	} rows[] = {
		{ "\"timeout\": 1, \"max_output\": 1, \"on_output_limit\": \"kill\"",
		  FIT_INTERPRETER },
		{ "\"file_name\": \"a.py\", \"args\": [\"x\"], \"args_json\": 1", FIT_INTERPRETER },
		{ "\"stdin\": \"\", \"files\": [], \"artifacts\": true, \"id\": \"x\"",
		  FIT_INTERPRETER },
		{ "\"env\": {}", FIT_JAIL },
		{ "\"workdir\": \"/tmp\", \"timeout\": 1", FIT_JAIL },
		{ "\"memory\": \"64M\", \"env\": {}", FIT_COLD },
		{ "\"env\": {}, \"cpu_time\": 1", FIT_COLD },
		{ "\"network\": \"none\"", FIT_COLD },
	};
	struct asked *a = *state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_taken(a, with(a, rows[i].rest));
		if (a->request.fit != rows[i].fit)
			fail_msg("%s: %u", rows[i].rest, a->request.fit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_reader_agrees_with_the_schema),
		TEST(the_schema_names_each_key_and_nothing_more),
		TEST(a_program_and_its_data_are_taken_apart),
		TEST(what_is_left_out_is_not_there),
		TEST(files_are_named_by_their_place_in_the_jail),
		TEST(bad_files_are_refused_with_their_name),
		TEST(more_files_than_may_be_are_refused),
		TEST(each_size_has_its_cap),
		TEST(a_whole_body_has_its_cap),
		TEST(arguments_as_data_have_their_cap),
		TEST(what_is_refused_says_where_and_why),
		TEST(settings_go_onto_a_config),
		TEST(a_bad_value_is_reported_with_its_place),
		TEST(host_paths_need_the_right_to_name_them),
		TEST(what_a_profile_insists_on_stays),
		TEST(the_artifacts_of_a_request_have_a_size),
		TEST(the_fit_of_a_request_is_reported),
	};
	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}
