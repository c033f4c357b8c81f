/* SPDX-License-Identifier: Apache-2.0 */
/* Where profiles are found, and which files are not taken. */
/* WRAP: open access stat */
#include "tests/profiles/profile_home.h"

/* Nobody may search this one; NULL: none. */
static const char *closed_dir;

static bool is_closed(const char *path)
{
	if (!closed_dir || strncmp(path, closed_dir, strlen(closed_dir)) != 0)
		return false;
	errno = EACCES;
	return true;
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	return is_closed(path) ? -1 : __real_access(path, mode);
}

int __real_stat(const char *path, struct stat *out);
int __wrap_stat(const char *path, struct stat *out);
int __wrap_stat(const char *path, struct stat *out)
{
	return is_closed(path) ? -1 : __real_stat(path, out);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
	va_list more;
	va_start(more, flags);
	mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0;
	va_end(more);
	return is_closed(path) ? -1 : __real_open(path, flags, mode);
}

static void a_path_with_a_slash_is_a_file(void **state)
{
	(void)state;
	char path[256];
	put_profile("mine", "{\"pids\": 3}");
	path_of("mine", path, sizeof(path));
	struct config c;
	load(&c, path);
	assert_int_equal(c.limits.pids, 3);
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
	assert_load_says("absent", "'cejail profile list'");
	assert_load_says("pyton", "did you mean 'python'?");
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

static void a_file_of_somebody_else_is_refused(void **state)
{
	(void)state;
	char path[256];
	if (geteuid() != 0) {
		print_message("skipped: only root can give a file away\n");
		skip();
	}
	path_of("theirs", path, sizeof(path));
	put_file(path, "{}", 0644);
	assert_int_equal(chown(path, 12345, 0), 0);
	assert_load_says("theirs", "belongs to user 12345, who is neither you nor root");
	assert_load_says("theirs", "XDG_CONFIG_HOME may still be another user's");
}

static void another_type_of_file_is_refused_without_waiting(void **state)
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

static void your_own_directory_that_is_closed_is_none(void **state)
{
	(void)state;
	put_profile("python", "{\"pids\": 3}");
	closed_dir = dir;
	struct config c;
	load(&c, "python");
	assert_int_equal(c.limits.pids, 64); /* the shipped one's */
	config_fini(&c);
	closed_dir = NULL;
}

static void the_administrators_directory_is_never_passed_over(void **state)
{
	(void)state;
	closed_dir = "/etc/cejail/profiles";
	assert_load_says("python", "open '/etc/cejail/profiles/python.json': Permission denied");
	closed_dir = NULL;
}

static void an_absent_directory_is_looked_for_once(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	auto_arena struct arena a = { 0 };
	struct profile_source child = { 0 }, again = { 0 };
	struct profile_dirs dirs = { 0 };
	assert_int_equal(profile_dirs_find(&a, &dirs, &err), 0);
	assert_int_equal(profile_source_read("python", 0, &a, &child, &err), 0);
	/* each but the last, which the search reads without a question */
	assert_int_equal(child.known_dirs, (1u << (dirs.count - 1)) - 1);
	assert_int_equal(child.absent_dirs & 1,
			 0); /* the caller's is there, without this profile */
	again.known_dirs = child.known_dirs;
	again.absent_dirs = child.absent_dirs | 1;
	put_profile("python", "{\"pids\": 3}");
	assert_int_equal(profile_source_read("python", 0, &a, &again, &err), 0);
	assert_string_equal(again.path, child.path);
	again = (struct profile_source){ 0 };
	assert_int_equal(profile_source_read("python", 0, &a, &again, &err), 0);
	assert_string_not_equal(again.path, child.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOME_TEST(a_path_with_a_slash_is_a_file),
		HOME_TEST(names_cannot_lead_out_of_the_directories),
		HOME_TEST(a_file_others_may_write_is_refused),
		HOME_TEST(a_file_of_somebody_else_is_refused),
		HOME_TEST(another_type_of_file_is_refused_without_waiting),
		HOME_TEST(a_file_that_is_too_large_is_refused),
		HOME_TEST(a_seccomp_file_lies_beside_its_profile),
		HOME_TEST(your_own_directory_that_is_closed_is_none),
		HOME_TEST(the_administrators_directory_is_never_passed_over),
		HOME_TEST(an_absent_directory_is_looked_for_once),
	};
	return cmocka_run_group_tests(tests, home_setup, home_teardown);
}
