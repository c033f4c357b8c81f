/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: found, read, merged, listed, chosen and shown. */
#include "profiles/profile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/scope.h"

/* A directory of the user's own profiles, empty before each test. */
static char home[] = "/tmp/cejail-profile-XXXXXX";
static char dir[sizeof(home) + 64];

static void path_of(const char *name, char *out, size_t size)
{
	(void)snprintf(out, size, "%s/%s.json", dir, name);
}

static void put_file(const char *path, const char *text, mode_t mode)
{
	struct cj_error err;
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), path, &err), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void put_profile(const char *name, const char *text)
{
	char path[256];
	path_of(name, path, sizeof(path));
	put_file(path, text, 0644);
}

static int home_setup(void **state)
{
	(void)state;
	if (!mkdtemp(home) || setenv("XDG_CONFIG_HOME", home, 1) < 0)
		return -1;
	char parent[sizeof(home) + 32];
	(void)snprintf(parent, sizeof(parent), "%s/cejail", home);
	(void)snprintf(dir, sizeof(dir), "%s/profiles", parent);
	return mkdir(parent, 0700) < 0 || mkdir(dir, 0700) < 0 ? -1 : 0;
}

static int empty_dir(void **state)
{
	(void)state;
	auto_dir DIR *d = opendir(dir);
	if (!d)
		return -1;
	const struct dirent *entry;
	while ((entry = readdir(d)))
		if (entry->d_name[0] != '.' && unlinkat(dirfd(d), entry->d_name, 0) < 0)
			(void)unlinkat(dirfd(d), entry->d_name, AT_REMOVEDIR);
	return 0;
}

static int home_teardown(void **state)
{
	(void)empty_dir(state);
	(void)rmdir(dir);
	*strrchr(dir, '/') = '\0';
	(void)rmdir(dir);
	return rmdir(home);
}

/* Loads and keeps the config for the test to look at; fails with the message. */
static void load(struct config *c, const char *name)
{
	struct cj_error err = { 0 };
	config_init(c);
	if (profile_load(c, name, &err) < 0)
		fail_msg("%s", err.msg);
}

static void assert_load_says(const char *name, const char *said)
{
	struct config c;
	struct cj_error err = { 0 };
	config_init(&c);
	assert_true(profile_load(&c, name, &err) < 0);
	if (!strstr(err.msg, said) && !strstr(err.hint, said))
		fail_msg("'%s (%s)' does not say '%s'", err.msg, err.hint, said);
	config_fini(&c);
}

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

/* --- the keys --------------------------------------------------------------- */

static void every_kind_of_value_is_read(void **state)
{
	(void)state;
	put_profile("all", "{\"memory\": \"64M\", \"pids\": 7, \"cpus\": 0.5, \"timeout\": 90,\n"
			   " \"writable\": true, \"env\": {\"A\": \"1\", \"B\": \"x=y\"},\n"
			   " \"ro_bind\": [\"/usr\"], \"network\": {\"mode\": \"public\",\n"
			   " \"allow\": [\"example.org:443\"]}, \"description\": \"d\"}");
	struct config c;
	load(&c, "all");
	assert_int_equal(c.memory_bytes, 64u << 20);
	assert_int_equal(c.pids, 7);
	assert_int_equal(c.millicpus, 500);
	assert_int_equal(c.wall_ms, 90000);
	assert_true(c.writable);
	assert_int_equal(c.env.count, 2);
	assert_string_equal(c.env.items[0], "A=1");
	assert_string_equal(c.env.items[1], "B=x=y");
	assert_string_equal(c.ro_binds.items[0], "/usr");
	assert_int_equal(c.network, NETWORK_PUBLIC);
	assert_string_equal(c.allow.items[0], "example.org:443");
	assert_string_equal(c.description, "d");
	assert_string_equal(c.profile_name, "all");
	config_fini(&c);
}

static void a_network_can_be_one_word(void **state)
{
	(void)state;
	put_profile("one", "{\"network\": \"public\"}");
	struct config c;
	load(&c, "one");
	assert_int_equal(c.network, NETWORK_PUBLIC);
	config_fini(&c);
}

static void an_unknown_key_is_told_with_place_and_neighbour(void **state)
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

static void a_value_of_the_wrong_kind_is_told(void **state)
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
	assert_text_says("{\"extends\": [\"base\"]}", "extends must be a string");
	assert_text_says("[]", "a profile is an object");
	assert_text_says("\"x\"", "a profile is an object");
}

static void a_value_out_of_range_is_told_with_its_place(void **state)
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
	assert_text_says("{\"command\": [\"sh\", \"-c\", \"x {file}\"]}", "a word of its own");
	assert_text_says("{\"command\": [\"\"]}", "the command, is empty");
	assert_text_says("{\"env\": {\"A B\": \"\"}}", "'A B' is not a variable's name");
	assert_text_says("{\"env\": {\"A=B\": \"\"}}", "has a '=' in its name");
	assert_text_says("{\"extends\": \"./base.json\"}", "is not a profile's name");
}

static void malformed_json_is_told_with_its_place(void **state)
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
	assert_int_equal(c.memory_bytes, 32u << 20);
	assert_int_equal(c.pids, 5);
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

static void a_profile_that_extends_itself_is_told_with_the_way_round(void **state)
{
	(void)state;
	put_profile("a", "{\"extends\": \"b\"}");
	put_profile("b", "{\"extends\": \"a\"}");
	put_profile("c", "{\"extends\": \"b\"}");
	assert_load_says("a", "'a' extends itself: a -> b -> a");
	assert_load_says("c", "'b' extends itself: b -> a -> b");
	put_profile("python", "{\"extends\": \"python\"}");
	assert_load_says("python", "'python' extends itself: python -> python");
	assert_load_says("python", "give yours a name of its own");
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

static void a_missing_parent_is_told_by_the_child(void **state)
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

/* --- files ------------------------------------------------------------------ */

static void a_path_with_a_slash_is_a_file(void **state)
{
	(void)state;
	char path[256];
	put_profile("mine", "{\"pids\": 3}");
	path_of("mine", path, sizeof(path));
	struct config c;
	load(&c, path);
	assert_int_equal(c.pids, 3);
	assert_string_equal(c.profile_name, path);
	config_fini(&c);
}

static void names_cannot_lead_out_of_the_directories(void **state)
{
	(void)state;
	assert_load_says("..", "is not a profile's name");
	assert_load_says("a.b", "is not a profile's name");
	assert_load_says("Python", "is not a profile's name");
	assert_load_says("", "is not a profile's name");
	assert_load_says("mine.json", "./mine.json");
	assert_load_says("absent", "there is no profile 'absent'");
}

static void a_file_others_may_write_is_refused(void **state)
{
	(void)state;
	char path[256];
	path_of("w", path, sizeof(path));
	put_file(path, "{}", 0666);
	assert_load_says("w", "can be written by others");
	assert_load_says(path, "can be written by others");
	put_file(path, "{}", 0664); /* root's, or a user's, own group: umask 002 */
	struct config c;
	load(&c, "w");
	config_fini(&c);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 0, 12345), 0);
		put_file(path, "{}", 0664);
		assert_load_says("w", "can be written by others");
	}
}

static void what_is_not_a_regular_file_is_refused_without_waiting(void **state)
{
	(void)state;
	char path[256], other[256];
	path_of("fifo", path, sizeof(path));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_load_says("fifo", "not a regular file");
	path_of("folder", path, sizeof(path));
	assert_int_equal(mkdir(path, 0700), 0);
	assert_load_says("folder", "not a regular file");
	put_profile("real", "{}");
	path_of("real", other, sizeof(other));
	path_of("alias", path, sizeof(path));
	assert_int_equal(symlink(other, path), 0);
	assert_load_says("alias", "symbolic link");
}

static void a_file_that_is_too_large_is_refused(void **state)
{
	(void)state;
	static char text[PROFILE_BYTES_MAX + 2];
	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, "{}", 2);
	put_profile("huge", text);
	assert_load_says("huge", "huge.json");
	text[PROFILE_BYTES_MAX] = '\0';
	put_profile("huge", text);
	struct config c;
	load(&c, "huge");
	config_fini(&c);
}

static void a_seccomp_file_lies_beside_its_profile(void **state)
{
	(void)state;
	put_profile("s", "{\"seccomp\": \"docker.json\"}");
	put_profile("t", "{\"seccomp\": \"/etc/docker.json\"}");
	put_profile("u", "{\"seccomp\": \"default\"}");
	char expected[256];
	path_of("docker", expected, sizeof(expected));
	struct config c;
	load(&c, "s");
	assert_string_equal(c.seccomp, expected);
	config_fini(&c);
	load(&c, "t");
	assert_string_equal(c.seccomp, "/etc/docker.json");
	config_fini(&c);
	load(&c, "u");
	assert_string_equal(c.seccomp, "default");
	config_fini(&c);
}

static void a_directory_that_cannot_be_searched_is_no_directory(void **state)
{
	(void)state;
	if (geteuid() == 0) /* may search everything */
		skip();
	assert_int_equal(chmod(dir, 0), 0);
	struct config c;
	load(&c, "python");
	config_fini(&c);
	assert_int_equal(chmod(dir, 0700), 0);
}

/* --- the shipped ones ------------------------------------------------------- */

static const char *const shipped[] = { "base", "ci", "node", "python", "shell" };
#define SHIPPED (sizeof(shipped) / sizeof(shipped[0]))

static void the_shipped_profiles_load(void **state)
{
	(void)state;
	for (size_t i = 0; i < SHIPPED; i++) {
		struct config c;
		load(&c, shipped[i]);
		assert_non_null(c.description);
		assert_int_equal(c.network, NETWORK_NONE);
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
	assert_int_equal(c.pids, 3);
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

/* --- showing ---------------------------------------------------------------- */

static char *show(const struct config *c)
{
	const char *text;
	size_t size;
	struct cj_error err = { 0 };
	auto_json_writer struct json_writer *w = json_writer_create(true);
	assert_non_null(w);
	profile_write(w, c);
	if (json_writer_take(w, &text, &size, &err) < 0)
		fail_msg("%s", err.msg);
	return strndup(text, size);
}

static void what_is_shown_reads_back_as_the_same(void **state)
{
	(void)state;
	put_profile("rich", "{\"extends\": \"ci\", \"memory\": 5000001, \"disk\": \"3G\","
			    " \"timeout\": \"1.5s\", \"cpu_time\": \"90m\", \"cpus\": 0.25,"
			    " \"env\": {\"X\": \"\\u00e9\\n\"}, \"bind\": [\"/a:/b\"],"
			    " \"on_output_limit\": \"kill\", \"network\": {\"allow\": [\"h\"]}}");
	const char *const names[] = { "base", "ci", "node", "python", "shell", "rich" };
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
#define TEST(name) cmocka_unit_test_setup(name, empty_dir)
	const struct CMUnitTest tests[] = {
		TEST(every_kind_of_value_is_read),
		TEST(a_network_can_be_one_word),
		TEST(an_unknown_key_is_told_with_place_and_neighbour),
		TEST(a_value_of_the_wrong_kind_is_told),
		TEST(a_value_out_of_range_is_told_with_its_place),
		TEST(malformed_json_is_told_with_its_place),
		TEST(a_child_overrides_its_parent),
		TEST(the_hash_is_over_the_chain_parents_first),
		TEST(a_profile_that_extends_itself_is_told_with_the_way_round),
		TEST(a_row_of_parents_has_an_end),
		TEST(a_missing_parent_is_told_by_the_child),
		TEST(a_parent_is_a_name_never_a_path),
		TEST(a_path_with_a_slash_is_a_file),
		TEST(names_cannot_lead_out_of_the_directories),
		TEST(a_file_others_may_write_is_refused),
		TEST(what_is_not_a_regular_file_is_refused_without_waiting),
		TEST(a_file_that_is_too_large_is_refused),
		TEST(a_seccomp_file_lies_beside_its_profile),
		TEST(a_directory_that_cannot_be_searched_is_no_directory),
		TEST(the_shipped_profiles_load),
		TEST(the_users_own_profile_comes_before_the_shipped_one),
		TEST(the_list_names_each_once_with_its_problem),
		TEST(an_extension_chooses_the_profile),
		TEST(a_choice_that_is_not_clear_is_not_made),
		TEST(what_is_shown_reads_back_as_the_same),
	};
	return cmocka_run_group_tests(tests, home_setup, home_teardown);
}
