/* SPDX-License-Identifier: Apache-2.0 */
/* Which profiles there are, and which one a file asks for. */
#include "tests/profiles/profile_home.h"

static const char *const shipped[] = { "base", "ci",     "deno",        "java",
				       "node", "python", "python-data", "shell" };
#define SHIPPED (sizeof(shipped) / sizeof(shipped[0]))

static void the_shipped_profiles_load(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHIPPED; i++) {
		struct config c;
		load(&c, shipped[i]);
		assert_non_null(c.description);
		assert_int_equal(c.network, NETWORK_PUBLIC);
		assert_true(c.env.count >= 4);
		assert_int_equal(strlen(c.profile_sha256), 64);
		config_fini(&c);
	}
}

static void the_users_own_profile_comes_before_the_shipped_one(void **state)
{
	(void)state;
	put_profile("python", "{\"pids\": 3}");
	struct config c;
	load(&c, "python");
	assert_int_equal(c.limits.pids, 3);
	assert_int_equal(c.command.count, 0);
	config_fini(&c);
}

static const struct profile_entry *find(const struct profile_entry *list, size_t count,
					const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

static void the_list_names_each_once_with_its_problem(void **state)
{
	(void)state;
	put_profile("python", "{\"description\": \"mine\"}");
	put_profile("broken", "{\"pids\": }");
	put_profile("Not-A-Name", "{}");
	char path[256];
	(void)snprintf(path, sizeof(path), "%s/readme.txt", dir);
	put_file(path, "x", 0644);

	auto_arena struct arena a = { 0 };
	struct profile_entry *list;
	size_t count;
	struct cj_error err = { 0 };
	assert_int_equal(profile_list(&a, &list, &count, &err), 0);
	for (size_t i = 1; i < count; i++)
		assert_true(strcmp(list[i - 1].name, list[i].name) < 0);
	for (size_t i = 0; i < SHIPPED; i++)
		assert_non_null(find(list, count, shipped[i]));
	assert_string_equal(find(list, count, "python")->description, "mine");
	assert_memory_equal(find(list, count, "python")->path, dir, strlen(dir));
	assert_null(find(list, count, "python")->problem);
	assert_non_null(strstr(find(list, count, "broken")->problem, "broken.json:1:"));
	assert_null(find(list, count, "Not-A-Name"));
	assert_null(find(list, count, "readme"));
}

static void assert_chosen(const char *file, const char *expected)
{
	struct config c;
	const char *name = NULL;
	struct cj_error err = { 0 };
	config_init(&c);
	if (profile_for_file(&c, file, &name, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(name, expected);
	config_fini(&c);
}

static void assert_not_chosen(const char *file, const char *said)
{
	struct config c;
	const char *name = NULL;
	struct cj_error err = { 0 };
	config_init(&c);
	assert_int_equal(profile_for_file(&c, file, &name, &err), -EINVAL);
	assert_null(name);
	if (!strstr(err.msg, said))
		fail_msg("'%s' does not say '%s'", err.msg, said);
	assert_non_null(strstr(err.hint, "--profile"));
	config_fini(&c);
}

static void an_extension_chooses_the_profile(void **state)
{
	(void)state;
	assert_chosen("x.py", "python");
	assert_chosen("/a.b/x.mjs", "node");
	assert_chosen("a.tar.sh", "shell");
	put_profile("mine", "{\"extends\": \"python\"}"); /* does not inherit the choice */
	assert_chosen("x.py", "python");
	put_profile("other", "{\"extensions\": [\".rb\"]}");
	assert_chosen("x.rb", "other");
}

static void an_executable_file_without_a_profile_runs_as_itself(void **state)
{
	(void)state;
	char path[256];
	static const char *const names[] = { "prog", "tool.rb" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		put_file(path, "#!/bin/sh\n", 0644);
		assert_not_chosen(path, path);
		assert_int_equal(chmod(path, 0755), 0);
		assert_chosen(path, "base");
	}
	(void)snprintf(path, sizeof(path), "%s/x.py", dir);
	put_file(path, "", 0755);
	assert_chosen(path, "python");
	put_profile("broken", "{\"extensions\": [\".rb\"]"); /* it may be the one */
	(void)snprintf(path, sizeof(path), "%s/tool.rb", dir);
	assert_not_chosen(path, "broken.json");
	assert_not_chosen(dir, "has no extension");
}

static void a_choice_that_is_not_clear_is_not_made(void **state)
{
	(void)state;
	assert_not_chosen("x.rb", "no profile runs '.rb' files");
	assert_not_chosen("x", "has no extension");
	assert_not_chosen(".py", "has no extension");
	assert_not_chosen("a.py/x", "has no extension");
	put_profile("other", "{\"extensions\": [\".py\"]}");
	assert_not_chosen("x.py", "'other' and 'python' both run '.py' files");
	put_profile("broken", "{\"extensions\": [\".rb\"]");
	assert_not_chosen("x.rb", "broken.json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOME_TEST(the_shipped_profiles_load),
		HOME_TEST(the_users_own_profile_comes_before_the_shipped_one),
		HOME_TEST(the_list_names_each_once_with_its_problem),
		HOME_TEST(an_extension_chooses_the_profile),
		HOME_TEST(an_executable_file_without_a_profile_runs_as_itself),
		HOME_TEST(a_choice_that_is_not_clear_is_not_made),
	};
	return cmocka_run_group_tests(tests, home_setup, home_teardown);
}
