/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles, kept while their files stay the same. */
#include "runtime/service/config/profile_cache.h"

#include "tests/profiles/profile_home.h"

static struct profile_cache *known;

static int set_up(void **state)
{
	known = profile_cache_create();
	return known ? empty_dir(state) : -1;
}

static int tear_down(void **state)
{
	(void)state;
	profile_cache_destroy(&known);
	return 0;
}

static uint64_t pids_of(const char *name)
{
	const struct config *config = NULL;
	struct cj_error err = { 0 };

	assert_int_equal(profile_cache_get(known, name, &config, &err), 0);
	return config->limits.pids;
}

static void a_profile_is_cached_while_its_files_stay_the_same(void **state)
{
	const struct config *once = NULL, *again = NULL;
	struct cj_error err = { 0 };
	(void)state;

	put_profile("one", "{\"pids\": 5}");
	assert_int_equal(profile_cache_get(known, "one", &once, &err), 0);
	assert_int_equal(profile_cache_get(known, "one", &again, &err), 0);
	assert_ptr_equal(once->arena.head, again->arena.head);
	assert_int_not_equal(profile_cache_stamp(known, "one"), 0);
}

static void a_changed_file_is_read_again(void **state)
{
	(void)state;
	put_profile("one", "{\"pids\": 5}");
	assert_int_equal(pids_of("one"), 5);
	uint64_t before = profile_cache_stamp(known, "one");
	put_profile("one", "{\"pids\": 66}");
	assert_int_equal(pids_of("one"), 66);
	assert_int_not_equal(profile_cache_stamp(known, "one"), before);
}

static void the_stamp_looks_at_the_files_once_a_turn_and_the_settings_always(void **state)
{
	(void)state;
	put_profile("one", "{\"pids\": 5}");
	profile_cache_turn(known);
	uint64_t before = profile_cache_stamp(known, "one");
	put_profile("one", "{\"pids\": 66}");
	assert_int_equal(profile_cache_stamp(known, "one"), before);
	profile_cache_turn(known);
	uint64_t after = profile_cache_stamp(known, "one");
	assert_int_not_equal(after, before);
	put_profile("one", "{\"pids\": 777}");
	assert_int_equal(pids_of("one"), 777);
	assert_int_not_equal(profile_cache_stamp(known, "one"), after);
}

static void a_changed_parent_is_a_change(void **state)
{
	(void)state;
	put_profile("parent", "{\"pids\": 5}");
	put_profile("child", "{\"extends\": \"parent\", \"memory\": \"64M\"}");
	assert_int_equal(pids_of("child"), 5);
	uint64_t before = profile_cache_stamp(known, "child");
	put_profile("parent", "{\"pids\": 77}");
	assert_int_not_equal(profile_cache_stamp(known, "child"), before);
	assert_int_equal(pids_of("child"), 77);
}

static void a_new_file_that_overrides_a_profile_is_a_change(void **state)
{
	(void)state;
	uint64_t shipped = pids_of("python"), before = profile_cache_stamp(known, "python");

	assert_int_not_equal(shipped, 3);
	put_profile("python", "{\"pids\": 3, \"command\": [\"x\"]}");
	assert_int_not_equal(profile_cache_stamp(known, "python"), before);
	assert_int_equal(pids_of("python"), 3);
}

static void none_and_a_bad_one_have_no_stamp_and_say_why(void **state)
{
	const struct config *config = NULL;
	struct cj_error err = { 0 };
	(void)state;

	assert_int_equal(profile_cache_get(known, "nowhere", &config, &err), -ENOENT);
	assert_int_equal(profile_cache_stamp(known, "nowhere"), 0);
	put_profile("bad", "{\"pids\": 0}");
	assert_int_equal(profile_cache_get(known, "bad", &config, &err), -EINVAL);
	assert_int_equal(profile_cache_stamp(known, "bad"), 0);
	put_profile("bad", "{\"pids\": 9}");
	assert_int_equal(pids_of("bad"), 9);
}

static void more_than_can_be_kept_are_still_read(void **state)
{
	char name[32];
	(void)state;

	for (int round = 0; round < 2; round++)
		for (unsigned i = 0; i < PROFILE_CACHE_MAX + 10; i++) {
			(void)snprintf(name, sizeof(name), "p%u", i);
			if (round == 0)
				put_profile(name, "{\"pids\": 5}");
			assert_int_equal(pids_of(name), 5);
		}
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROW(a_profile_is_cached_while_its_files_stay_the_same),
		ROW(a_changed_file_is_read_again),
		ROW(the_stamp_looks_at_the_files_once_a_turn_and_the_settings_always),
		ROW(a_changed_parent_is_a_change),
		ROW(a_new_file_that_overrides_a_profile_is_a_change),
		ROW(none_and_a_bad_one_have_no_stamp_and_say_why),
		ROW(more_than_can_be_kept_are_still_read),
	};

	return cmocka_run_group_tests(tests, home_setup, home_teardown);
}
