/* SPDX-License-Identifier: Apache-2.0 */
/* The settings table: consistent in itself, and the same as what the documents say. */
#include "profiles/settings.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"

/* Applies one option as the command line would; the error, if any, stays in *err. */
static int set(struct config *c, const char *option, const char *text, struct cj_error *err)
{
	char named[64];
	(void)snprintf(named, sizeof(named), "--%s", option);
	const struct setting *s = setting_by_option(option);
	assert_non_null(s);
	*err = (struct cj_error){ 0 };
	return setting_set(c, s, named, text, err);
}

static void assert_refused(const char *option, const char *text, const char *said)
{
	struct config c;
	struct cj_error err;
	config_init(&c);
	assert_int_equal(set(&c, option, text, &err), -EINVAL);
	if (!strstr(err.msg, said))
		fail_msg("'%s' does not say '%s'", err.msg, said);
	assert_memory_equal(err.msg, "--", 2); /* it names the option */
	config_fini(&c);
}

/* --- the table -------------------------------------------------------------- */

static bool is_same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static void no_two_rows_share_a_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		for (size_t j = i + 1; j < settings_count; j++) {
			assert_false(is_same(settings[i].option, settings[j].option));
			assert_false(is_same(settings[i].key, settings[j].key));
			assert_false(settings[i].letter &&
				     settings[i].letter == settings[j].letter);
		}
	}
}

static void every_row_can_be_read_and_explained(void **state)
{
	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		assert_true(s->option || s->key);
		assert_non_null(s->parse);
		assert_non_null(s->help);
		assert_in_range(strlen(s->help), 1, 78);
		assert_true((s->kind == SETTING_FLAG) == (s->value == NULL));
		assert_true(s->max >= s->min);
		if (s->key && strcmp(s->key, "extends") != 0)
			assert_non_null(s->write);
	}
}

/* What a caller of the service may not have, and what needs the right to name host paths. */
static void requests_reach_no_further_than_they_may(void **state)
{
	static const char *const never[] = {
		"extends", "extensions",  "description", "command",
		"shell",   "interactive", "tty",         "audit",
	};
	static const char *const host[] = {
		"file",     "ro_bind",       "bind",
		"connect",  "overlay",       "rootfs",
		"seccomp",  "cgroup_parent", "network.allow_private",
		"upstream",
	};
	(void)state;
	size_t nhost = 0;
	for (size_t i = 0; i < settings_count; i++) {
		if (!settings[i].key)
			assert_int_equal(settings[i].scope, SCOPE_NO_REQUEST);
		nhost += settings[i].scope == SCOPE_HOST;
	}
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		assert_int_equal(setting_by_key(never[i])->scope, SCOPE_NO_REQUEST);
	for (size_t i = 0; i < sizeof(host) / sizeof(host[0]); i++)
		assert_int_equal(setting_by_key(host[i])->scope, SCOPE_HOST);
	assert_int_equal(nhost, sizeof(host) / sizeof(host[0]));
}

static void options_have_dashes_and_keys_underscores(void **state)
{
	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		if (settings[i].option)
			assert_null(strchr(settings[i].option, '_'));
		if (settings[i].key)
			assert_null(strchr(settings[i].key, '-'));
	}
}

static void every_row_is_found_by_each_of_its_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		if (s->option)
			assert_ptr_equal(setting_by_option(s->option), s);
		if (s->key)
			assert_ptr_equal(setting_by_key(s->key), s);
		if (s->letter)
			assert_ptr_equal(setting_by_letter(s->letter), s);
	}
	assert_null(setting_by_option("nope"));
	assert_null(setting_by_key("pids-limit"));
	assert_null(setting_by_letter('Z'));
	assert_null(setting_by_letter(0));
}

static void a_slip_of_the_pen_finds_its_neighbour(void **state)
{
	(void)state;
	assert_string_equal(setting_suggest_option("memroy"), "memory");
	assert_string_equal(setting_suggest_option("time-out"), "timeout");
	assert_string_equal(setting_suggest_option("netw"), "network"); /* not "network-start" */
	assert_string_equal(setting_suggest_option("network-s"), "network-start");
	assert_string_equal(setting_suggest_key("max-output"), "max_output");
	assert_null(setting_suggest_key("zzzzzzzzzzzz"));
}

/* --- what the documents say ------------------------------------------------- */

struct document {
	struct arena arena;
	char *text;
	size_t size;
};

static void document_open(struct document *d, const char *path)
{
	struct cj_error err = { 0 };
	*d = (struct document){ 0 };
	if (fd_read_file(AT_FDCWD, path, JSON_BYTES_MAX, &d->arena, &d->text, &d->size, &err) < 0)
		fail_msg("%s (run from the top of the tree)", err.msg);
}

/* The keys below "properties" of a schema object, in order. */
static const struct json_node *properties_of(const struct json_node *schema)
{
	const struct json_node *properties = schema ? json_get(schema, "properties") : NULL;
	assert_non_null(properties);
	return properties->child;
}

static void the_schema_has_the_tables_keys_in_order(void **state)
{
	(void)state;
	struct document d;
	const struct json_node *root;
	struct cj_error err = { 0 };
	document_open(&d, "profiles/schema/profile.json");
	if (json_parse("schema", d.text, d.size, &d.arena, &root, &err) < 0)
		fail_msg("%s", err.msg);

	const struct json_node *key = properties_of(root);
	const struct json_node *sub = NULL;
	assert_string_equal(key->key, "$schema"); /* of editors; no setting */
	key = key->next;
	for (size_t i = 0; i < settings_count; i++) {
		const char *name = settings[i].key;
		if (!name)
			continue;
		const char *dot = strchr(name, '.');
		if (dot) {
			if (!sub) {
				assert_memory_equal(key->key, name, (size_t)(dot - name));
				const struct json_node *forms = json_get(key, "oneOf");
				sub = properties_of(forms ? forms->child->next : key);
				key = key->next;
			}
			assert_string_equal(sub->key, dot + 1);
			sub = sub->next;
			continue;
		}
		assert_non_null(key);
		assert_string_equal(key->key, name);
		key = key->next;
	}
	assert_null(key);
	assert_null(sub);
	arena_fini(&d.arena);
}

static void the_manual_page_has_the_tables_keys_in_order(void **state)
{
	(void)state;
	struct document d;
	document_open(&d, "man/cejail-profile.5");

	const char *at = d.text;
	for (size_t i = 0; i < settings_count; i++) {
		if (!settings[i].key)
			continue;
		char entry[64];
		(void)snprintf(entry, sizeof(entry), "\n.It Cm %s ", settings[i].key);
		at = strstr(at, "\n.It Cm ");
		assert_non_null(at);
		if (strncmp(at, entry, strlen(entry)) != 0)
			fail_msg("expected '%s' at '%.32s'", entry + 1, at + 1);
		at++;
	}
	assert_null(strstr(at, "\n.It Cm "));
	arena_fini(&d.arena);
}

/* --- values ----------------------------------------------------------------- */

static void values_arrive_in_their_fields(void **state)
{
	(void)state;
	struct config c;
	struct cj_error err;
	config_init(&c);
	assert_int_equal(set(&c, "memory", "1G", &err), 0);
	assert_int_equal(set(&c, "timeout", "2m", &err), 0);
	assert_int_equal(set(&c, "cpu-time", "500ms", &err), 0);
	assert_int_equal(set(&c, "cpus", "0.5", &err), 0);
	assert_int_equal(set(&c, "pids-limit", "7", &err), 0);
	assert_int_equal(set(&c, "network", "public", &err), 0);
	assert_int_equal(set(&c, "uplink", "pasta", &err), 0);
	assert_int_equal(set(&c, "network-start", "early", &err), 0);
	assert_int_equal(set(&c, "allow", "example.org:443", &err), 0);
	assert_int_equal(set(&c, "allow-private", NULL, &err), 0);
	assert_int_equal(set(&c, "on-output-limit", "kill", &err), 0);
	assert_int_equal(set(&c, "writable", NULL, &err), 0);
	assert_int_equal(set(&c, "result-fd", "9", &err), 0);
	assert_int_equal(set(&c, "workdir", "/a//b/./c/", &err), 0);
	assert_int_equal(set(&c, "code", "", &err), 0);
	assert_int_equal(c.limits.memory_bytes, 1u << 30);
	assert_int_equal(c.run_limits.wall_ms, 120000);
	assert_int_equal(c.limits.cpu_ms, 500);
	assert_int_equal(c.limits.millicpus, 500);
	assert_int_equal(c.limits.pids, 7);
	assert_int_equal(c.network, NETWORK_PUBLIC);
	assert_int_equal(c.uplink, UPLINK_PASTA);
	assert_int_equal(c.network_start, NETWORK_START_EARLY);
	assert_string_equal(c.allow.items[0], "example.org:443");
	assert_true(c.allow_private);
	assert_int_equal(c.run_limits.on_output_limit, OUTPUT_KILL);
	assert_true(c.writable);
	assert_int_equal(c.result_fd, 9);
	assert_string_equal(c.workdir, "/a/b/c");
	assert_true(c.has_code);
	assert_string_equal(c.code, "");
	assert_int_equal(c.code_size, 0);
	config_fini(&c);
}

static struct strings *list_of(struct config *c, const struct setting *s)
{
	return (struct strings *)(void *)((char *)c + s->offset);
}

static void a_copys_lists_grow_without_the_originals(void **state)
{
	struct config original, copy;
	struct cj_error err = { 0 };
	size_t lists = 0;
	(void)state;

	config_init(&original);
	original.run_limits.wall_ms = 77;
	for (size_t i = 0; i < settings_count; i++)
		if (settings[i].kind == SETTING_LIST &&
		    list_of(&original, &settings[i])->count == 0)
			assert_int_equal(
			    strings_add(list_of(&original, &settings[i]), &original.arena, "one"),
			    0);
	assert_int_equal(config_copy(&copy, &original, &err), 0);
	assert_int_equal(copy.run_limits.wall_ms, 77);
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		if (s->kind != SETTING_LIST || list_of(&copy, s)->count > 1)
			continue;
		assert_string_equal(list_of(&copy, s)->items[0], "one");
		assert_int_equal(strings_add(list_of(&copy, s), &copy.arena, "two"), 0);
		assert_int_equal(list_of(&original, s)->count, 1);
		assert_null(list_of(&original, s)->items[1]);
		lists++;
	}
	assert_true(lists > 5);
	config_fini(&copy);
	config_fini(&original);
}

static void json_may_come_with_and_without_a_file(void **state)
{
	(void)state;
	struct config c;
	struct cj_error err;
	config_init(&c);
	assert_int_equal(set(&c, "json", NULL, &err), 0);
	assert_true(c.json);
	assert_null(c.json_file);
	assert_int_equal(set(&c, "json", "out.json", &err), 0);
	assert_string_equal(c.json_file, "out.json");
	config_fini(&c);
}

static void text_is_copied_not_borrowed(void **state)
{
	(void)state;
	struct config c;
	struct cj_error err;
	char text[] = "A=1";
	config_init(&c);
	assert_int_equal(set(&c, "env", text, &err), 0);
	text[2] = '2';
	assert_string_equal(c.env.items[0], "A=1");
	config_fini(&c);
}

static void a_variable_set_twice_is_one_variable(void **state)
{
	(void)state;
	struct config c;
	struct cj_error err;
	config_init(&c);
	assert_int_equal(set(&c, "env", "AB=1", &err), 0);
	assert_int_equal(set(&c, "env", "A=2", &err), 0);
	assert_int_equal(set(&c, "env", "AB=3", &err), 0);
	assert_int_equal(set(&c, "env", "A", &err), 0);
	assert_int_equal(c.env.count, 2);
	assert_string_equal(c.env.items[0], "AB=3");
	assert_string_equal(c.env.items[1], "A");
	config_fini(&c);
}

static void numbers_that_cannot_work_are_refused(void **state)
{
	(void)state;
	assert_refused("memory", "0", "at least");
	assert_refused("memory", "1K", "4M is the least");
	assert_refused("memory", "-1", "'-1'");
	assert_refused("memory", "99999999999999999999", "'99999999999999999999'");
	assert_refused("memory", "2000T", "1024T is the most");
	assert_refused("memory", "", "is not a size");
	assert_refused("disk", "1", "64K is the least");
	assert_refused("max-output", "1G", "256M is the most");
	assert_refused("pids-limit", "0", "at least 1");
	assert_refused("pids-limit", "99999999", "at most");
	assert_refused("nofile", "3", "at least 16");
	assert_refused("cpus", "0", "'0'");
	assert_refused("timeout", "0", "at least 1ms");
	assert_refused("timeout", "10 s", "'10 s'");
	assert_refused("result-fd", "0", "at least 1");
	assert_refused("result-fd", "4294967297", "at most");
}

static void values_that_cannot_work_are_refused(void **state)
{
	(void)state;
	assert_refused("network", "bridge", "neither 'public' nor 'none'");
	assert_refused("uplink", "bridge", "is no uplink: auto, host, pasta, slirp4netns or none");
	assert_refused("network-start", "late", "neither 'first-use' nor 'early'");
	assert_refused("allow", "example.org:0", "a port is a number from 1 to 65535");
	assert_refused("allow-private", "perhaps", "'perhaps'");
	assert_refused("on-output-limit", "pause", "neither 'truncate' nor 'kill'");
	assert_refused("env", "1A=2", "'1A' is not a variable's name");
	assert_refused("env", "=2", "is not a variable's name");
	assert_refused("env", "A-B=2", "'A-B' is not a variable's name");
	char name[258];
	memset(name, 'A', 256); /* one more than a profile can show */
	memcpy(name + 256, "=", 2);
	assert_refused("env", name, "longer than a variable's name may be: 255 bytes");
	assert_refused("workdir", "box", "not an absolute path");
	assert_refused("workdir", "/box/../etc", "'..'");
	assert_refused("id", "a/b", "is not a name");
	assert_refused("id", "-a", "is not a name");
	assert_refused("id", "123456789012345678901234567890123", "is not a name");
	assert_refused("connect", "/run/x.sock", "unix:/PATH");
	assert_refused("connect", "unix:x.sock", "unix:/PATH");
	assert_refused("rootfs", "", "empty");
	assert_refused("file", "", "empty");
	assert_refused("writable", "perhaps", "'perhaps'");
	assert_refused("memory", NULL, "a value is missing (SIZE)");
}

static void a_failed_setting_changes_nothing(void **state)
{
	(void)state;
	struct config c, before;
	struct cj_error err;
	config_init(&c);
	before = c;
	assert_int_equal(set(&c, "memory", "1K", &err), -EINVAL);
	assert_int_equal(set(&c, "cpus", "x", &err), -EINVAL);
	assert_int_equal(set(&c, "env", "1", &err), -EINVAL);
	before.arena = c.arena;
	assert_memory_equal(&c, &before, sizeof(c));
	config_fini(&c);
}

static void a_list_has_an_end(void **state)
{
	(void)state;
	struct config c;
	struct cj_error err;
	config_init(&c);
	for (unsigned i = 0; i < 1024; i++)
		assert_int_equal(set(&c, "file", "x", &err), 0);
	assert_int_equal(set(&c, "file", "x", &err), -EINVAL);
	config_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_two_rows_share_a_name),
		cmocka_unit_test(every_row_can_be_read_and_explained),
		cmocka_unit_test(requests_reach_no_further_than_they_may),
		cmocka_unit_test(options_have_dashes_and_keys_underscores),
		cmocka_unit_test(every_row_is_found_by_each_of_its_names),
		cmocka_unit_test(a_slip_of_the_pen_finds_its_neighbour),
		cmocka_unit_test(the_schema_has_the_tables_keys_in_order),
		cmocka_unit_test(the_manual_page_has_the_tables_keys_in_order),
		cmocka_unit_test(values_arrive_in_their_fields),
		cmocka_unit_test(a_copys_lists_grow_without_the_originals),
		cmocka_unit_test(json_may_come_with_and_without_a_file),
		cmocka_unit_test(text_is_copied_not_borrowed),
		cmocka_unit_test(a_variable_set_twice_is_one_variable),
		cmocka_unit_test(numbers_that_cannot_work_are_refused),
		cmocka_unit_test(values_that_cannot_work_are_refused),
		cmocka_unit_test(a_failed_setting_changes_nothing),
		cmocka_unit_test(a_list_has_an_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
