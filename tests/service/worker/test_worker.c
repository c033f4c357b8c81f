/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker does before it has a request: it loads the profile as it is now, and sweeps. */
#include "tests/service/worker/workers.h"

static const struct worker_life life = { .main = worker_main };

static void put_profile(const char *variable)
{
	char text[512];
	(void)snprintf(text, sizeof(text),
		       "{\"command\": [\"sh\", \"{file}\", \"{args}\"], \"timeout\": \"60s\", "
		       "\"env\": {\"PATH\": \"/usr/bin:/bin\", \"WHICH\": \"%s\"}, " COMMON "}",
		       variable);
	if (write_profile(profile, "test.json", text) < 0)
		fail_msg("the profile can't be written");
}

static struct said said_by(struct spawner *s, enum tier tier)
{
	struct worker w = asked_for(s, profile, tier);
	send_body(&w, "{\"profile\":\"test\",\"code\":\"printf $WHICH\"}", false, false);
	return hear(&w);
}

static const char *output_of(const struct said *said)
{
	return word(json_get(result_of(said), "stdout"), "text");
}

static void each_worker_has_the_profile_as_it_is_when_it_is_ordered(void **state)
{
	(void)state;
	struct spawner s = started();
	static const char *const versions[] = { "first", "second", "second", "third-and-longer" };
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		put_profile(versions[i]);
		for (enum tier tier = TIER_COLD; tier <= TIER_JAIL; tier++) {
			struct said said = said_by(&s, tier);
			assert_status(&said, "exited");
			assert_string_equal(output_of(&said), versions[i]);
			arena_fini(&said.arena);
		}
	}
	assert_int_equal(unlink(profile), 0);
	struct worker w = asked_for(&s, profile, TIER_JAIL);
	struct said said = hear(&w);
	assert_int_equal(said.lines, 1);
	assert_string_equal(word(said.line[0], "type"), "unready");
	assert_string_equal(word(said.line[0], "stage"), "profile");
	arena_fini(&said.arena);
	put_profile("again");
	said = said_by(&s, TIER_JAIL);
	assert_status(&said, "exited");
	arena_fini(&said.arena);
	spawner_end(&s);
	assert_no_process_left();
}

/* What one request has changed in its worker's copy is not in the next worker's. */
static void a_request_changes_no_other_workers_profile(void **state)
{
	(void)state;
	struct spawner s = started();
	put_profile("profile");
	for (int turn = 0; turn < 2; turn++) {
		struct worker w = asked_for(&s, profile, TIER_COLD);
		send_body(&w,
			  "{\"profile\":\"test\",\"code\":\"printf $WHICH\","
			  "\"env\":{\"WHICH\":\"request\"}}",
			  false, false);
		struct said said = hear(&w);
		assert_string_equal(output_of(&said), "request");
		arena_fini(&said.arena);
		said = said_by(&s, turn == 0 ? TIER_COLD : TIER_JAIL);
		assert_string_equal(output_of(&said), "profile");
		arena_fini(&said.arena);
	}
	spawner_end(&s);
	assert_no_process_left();
}

static void a_prepared_worker_removes_what_a_killed_run_has_left(void **state)
{
	(void)state;
	struct spawner s = started();
	struct cj_error err = { 0 };
	char name[PLAN_ID_MAX + 16], id[PLAN_ID_MAX];
	auto_fd int dir_fd = record_open_dir(&err);
	(void)snprintf(id, sizeof(id), "left-%d", (int)getpid());
	(void)snprintf(name, sizeof(name), "runs/%s.json", id);
	const struct record left = {
		.id = id, .profile = "test", .cgroup_path = "", .started_ms = 1
	};
	for (int i = 0; i < 2; i++) {
		struct worker w = asked_for(&s, profile, TIER_JAIL);
		await_ready(&w);
		if (i == 0) { /* for the second one */
			int fd = record_create(dir_fd, &left, &err);
			assert_true(fd >= 0);
			close(fd);
		}
		worker_close(&w);
	}
	assert_int_equal(faccessat(dir_fd, name, F_OK, 0), -1);
	assert_int_equal(errno, ENOENT);
	spawner_end(&s);
	assert_no_process_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_worker_has_the_profile_as_it_is_when_it_is_ordered),
		TEST(a_request_changes_no_other_workers_profile),
		TEST(a_prepared_worker_removes_what_a_killed_run_has_left),
	};
	return cmocka_run_group_tests_name("worker", tests, can_make_jails, remove_home);
}
