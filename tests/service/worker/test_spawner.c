/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: fork poll */
/*
 * The spawner and its workers: each does one job and tells it once, and nothing outlives whoever
 * ends, wherever.
 */
#include "runtime/service/worker/spawner.h"

#include "runtime/base/clock.h"
#include "tests/forked.h"
#include "tests/service/worker/workers.h"

static int forks_left = -1; /* below 0: as many as one likes */
static const enum tier all_tiers[] = { TIER_COLD, TIER_JAIL };
#define TIERS (sizeof(all_tiers) / sizeof(all_tiers[0]))

pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
	if (forks_left == 0) {
		errno = EAGAIN;
		return -1;
	}
	if (forks_left > 0)
		forks_left--;
	return __real_fork();
}

static int interrupts_left; /* of poll(2), in this process */

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (interrupts_left > 0) {
		interrupts_left--;
		errno = EINTR;
		return -1;
	}
	return __real_poll(fds, count, timeout_ms);
}

static const struct worker_life life = { .main = worker_main };

/* --- jobs --------------------------------------------------------------------------------------
 */

#define COMMAND(words) "{\"profile\":\"test\",\"command\":[" words "]}"
#define SHELL(script)  COMMAND("\"sh\",\"-c\",\"" script "\"")

static struct said run_one(struct spawner *s, enum tier tier, const char *body)
{
	struct worker w = asked_for(s, profile, tier);
	send_body(&w, body, false, false);
	return hear(&w);
}

static const char *output_of(const struct said *said)
{
	return word(json_get(result_of(said), "stdout"), "text");
}

static void each_tier_does_a_job(void **state)
{
	(void)state;
	struct spawner s = started();
	for (size_t i = 0; i < TIERS; i++) {
		const uint64_t begin_ms = clock_ms();
		struct said said =
		    run_one(&s, all_tiers[i], SHELL("echo out; echo no >&2; exit 3"));
		const uint64_t took_ms = clock_ms() - begin_ms + 1;
		assert_status(&said, "exited");
		assert_string_equal(word(said.line[0], "type"), "ready");
		assert_int_equal(said.lines, 3);
		assert_string_equal(output_of(&said), "out\n");
		struct summary sum = summary_of(&said);
		assert_int_equal(sum.totals.exit_code, 3);
		assert_int_equal(sum.totals.stdout_bytes, 4);
		assert_int_equal(sum.totals.stderr_bytes, 3);
		assert_true(sum.setup_us > 0 && sum.setup_us <= took_ms * 1000);
		assert_int_equal(strlen(sum.profile_sha256), 64);
		arena_fini(&said.arena);
	}
	spawner_end(&s);
	assert_no_process_left();
}

/* Its caller's rights were judged by the other one. */
static void a_profile_with_another_hash_than_the_validated_one_runs_nothing(void **state)
{
	(void)state;
	struct spawner s = started();
	struct cj_error err = { 0 };
	static const char body[] = SHELL("echo out");
	struct job job = { .id = "the-run", .body = (char *)body, .body_size = strlen(body) };

	(void)snprintf(job.profile_sha256, sizeof(job.profile_sha256), "%064d", 0);
	for (size_t i = 0; i < TIERS; i++) {
		struct worker w = asked_for(&s, profile, all_tiers[i]);
		assert_int_equal(worker_send_job(&w, &job, &err), 0);
		struct said said = hear(&w);
		assert_status(&said, "setup_error");
		const struct json_node *error = json_get(result_of(&said), "error");
		assert_string_equal(word(error, "stage"), "profile");
		assert_non_null(strstr(word(error, "message"), "has changed"));
		assert_string_equal(output_of(&said), "");
		arena_fini(&said.arena);
	}
	spawner_end(&s);
	assert_no_process_left();
}

static void code_and_input_reach_the_program(void **state)
{
	(void)state;
	struct spawner s = started();
	for (size_t i = 0; i < TIERS; i++) {
		struct said said =
		    run_one(&s, all_tiers[i],
			    "{\"profile\":\"test\",\"code\":\"cat; echo; ls -l /proc/self/fd | "
			    "wc -l\",\"stdin\":\"from the caller\"}");
		assert_status(&said, "exited");
		/* 0 to 2, what ls reads, and a line above */
		assert_string_equal(output_of(&said), "from the caller\n5\n");
		assert_int_equal(strlen(summary_of(&said).code_sha256), 64);
		arena_fini(&said.arena);
	}
	spawner_end(&s);
}

static void an_interpreter_waits_for_its_program(void **state)
{
	(void)state;
	struct spawner s = started();
	struct worker w = asked_for(&s, python, TIER_INTERPRETER);
	await_ready(&w);
	struct runs runs = await_runs(1);
	send_body(&w,
		  "{\"profile\":\"python\",\"code\":\"import sys; print(sys.argv[1:], "
		  "sys.stdin.read())\",\"args\":[\"a\"],\"stdin\":\"b\"}",
		  false, false);
	struct said said = hear(&w);
	assert_status(&said, "exited");
	assert_string_equal(output_of(&said), "['a'] b\n");
	arena_fini(&said.arena);

	w = asked_for(&s, python, TIER_INTERPRETER); /* one that another environment needs */
	send_body(&w, "{\"profile\":\"python\",\"code\":\"print(1)\",\"env\":{\"A\":\"b\"}}", false,
		  false);
	said = hear(&w);
	assert_status(&said, "setup_error");
	assert_non_null(strstr(summary_of(&said).error_message, "another 'env'"));
	arena_fini(&said.arena);

	w = asked_for(&s, profile, TIER_INTERPRETER); /* sh has no launcher */
	said = hear(&w);
	assert_int_equal(said.lines, 1);
	assert_string_equal(word(said.line[0], "type"), "unready");
	assert_string_equal(word(said.line[0], "stage"), "plan");
	arena_fini(&said.arena);
	spawner_end(&s);
	assert_nothing_left(&runs);
}

static void events_come_before_the_summary_and_the_result(void **state)
{
	(void)state;
	struct spawner s = started();
	for (size_t i = 0; i < TIERS; i++) {
		struct worker w = asked_for(&s, profile, all_tiers[i]);
		send_body(&w, SHELL("printf out; printf '\\\\342'"), true, false);
		struct said said = hear(&w);
		assert_status(&said, "exited");
		assert_string_equal(word(said.line[1], "type"), "start");
		assert_string_equal(word(said.line[1], "id"), "the-run");
		assert_string_equal(word(said.line[2], "type"), "stdout");
		(void)last(&said, 1, "summary");
		assert_true(said.lines >= 5);
		arena_fini(&said.arena);
	}
	spawner_end(&s);
}

static void a_second_job_is_not_done(void **state)
{
	(void)state;
	struct spawner s = started();
	for (size_t i = 0; i < TIERS; i++) {
		struct worker w = asked_for(&s, profile, all_tiers[i]);
		send_body(&w, SHELL("echo first"), false, false);
		send_body(&w, SHELL("echo second"), false, false);
		struct said said = hear(&w);
		assert_status(&said, "exited");
		assert_string_equal(output_of(&said), "first\n");
		arena_fini(&said.arena);
	}
	spawner_end(&s);
	assert_no_process_left();
}

static void twenty_do_their_jobs_side_by_side(void **state)
{
	(void)state;
	enum { MANY = 20 };
	struct spawner s = started();
	struct worker w[MANY];
	char body[256];

	for (int i = 0; i < MANY; i++)
		w[i] = asked_for(&s, profile, all_tiers[(size_t)i % TIERS]);
	for (int i = MANY - 1; i >= 0; i--) {
		(void)snprintf(body, sizeof(body), SHELL("echo number %d"), i);
		send_body(&w[i], body, i % 3 == 0, false);
	}
	for (int i = 0; i < MANY; i++) {
		struct said said = hear(&w[i]);
		assert_status(&said, "exited");
		(void)snprintf(body, sizeof(body), "number %d\n", i);
		assert_string_equal(output_of(&said), body);
		arena_fini(&said.arena);
	}
	spawner_end(&s);
	assert_no_process_left();
}

/* --- what fails ----------------------------------------------------------------------------------
 */

static void a_missing_profile_is_reported_by_every_tier(void **state)
{
	(void)state;
	struct spawner s = started();
	struct worker cold = asked_for(&s, "none-such", TIER_COLD);
	struct worker jail = asked_for(&s, "none-such", TIER_JAIL);

	send_body(&cold, SHELL("echo x"), false, true);
	struct said said = hear(&cold);
	assert_status(&said, "setup_error");
	assert_string_equal(summary_of(&said).error_stage, "profile");
	arena_fini(&said.arena);

	said = hear(&jail);
	assert_int_equal(said.lines, 1);
	assert_string_equal(word(said.line[0], "type"), "unready");
	assert_string_equal(word(said.line[0], "stage"), "profile");
	assert_non_null(strstr(word(said.line[0], "message"), "none-such"));
	arena_fini(&said.arena);
	spawner_end(&s);
	assert_no_process_left();
}

static void every_failure_is_one_result(void **state)
{
	(void)state;
	static const struct {
		const char *body, *stage;
	} rows[] = {
		{ "", "options" },
		{ "{\"profile\":", "options" },
		{ "{\"profile\":\"test\",\"command\":[\"true\"],\"tty\":true}", "options" },
		{ COMMAND("\"/no/such/program\""), "exec" },
	};
	struct spawner s = started();
	for (size_t i = 0; i < TIERS * (sizeof(rows) / sizeof(rows[0])); i++) {
		struct said said = run_one(&s, all_tiers[i % TIERS], rows[i / TIERS].body);
		const struct json_node *error = json_get(result_of(&said), "error");
		assert_string_equal(word(error, "stage"), rows[i / TIERS].stage);
		assert_string_equal(summary_of(&said).error_stage, rows[i / TIERS].stage);
		assert_string_equal(summary_of(&said).error_message, word(error, "message"));
		assert_null(strstr(word(error, "message"), "req-7"));
		arena_fini(&said.arena);
	}
	spawner_end(&s);
	assert_no_process_left();
}

static void a_job_that_needs_another_jail_is_refused_by_a_prepared_one(void **state)
{
	(void)state;
	static const char body[] =
	    "{\"profile\":\"test\",\"command\":[\"true\"],\"memory\":\"77M\"}";
	struct spawner s = started();
	struct said said = run_one(&s, TIER_JAIL, body);
	assert_status(&said, "setup_error");
	assert_non_null(strstr(summary_of(&said).error_message, "another 'limits'"));
	arena_fini(&said.arena);
	spawner_end(&s);
}

static void what_the_host_lacks_is_only_for_who_may_see_it(void **state)
{
	(void)state;
	struct spawner s = started();
	for (int may_see = 0; may_see <= 1; may_see++) {
		struct worker w = asked_for(&s, "none-such", TIER_COLD);
		send_body(&w, SHELL("true"), false, may_see);
		struct said said = hear(&w);
		const char *message = word(json_get(result_of(&said), "error"), "message");
		assert_non_null(strstr(summary_of(&said).error_message, "none-such"));
		assert_int_equal(strstr(message, "none-such") != NULL, may_see);
		assert_int_equal(strstr(message, "request req-7") != NULL, !may_see);
		arena_fini(&said.arena);
	}
	spawner_end(&s);
}

static void a_failed_fork_is_reported(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	struct spawner none = SPAWNER_NULL;

	forks_left = 0;
	assert_int_equal(spawner_start(&none, &life, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "fork the spawner"));
	forks_left = 1; /* its own */
	struct spawner s = started();
	forks_left = -1;
	for (int i = 0; i < 3; i++) { /* and it goes on */
		struct worker w = asked_for(&s, profile, TIER_COLD);
		struct said said = hear(&w);
		assert_int_equal(said.lines, 1);
		assert_string_equal(word(said.line[0], "type"), "unready");
		assert_string_equal(word(said.line[0], "stage"), "worker");
		assert_non_null(strstr(word(said.line[0], "message"), "fork a worker"));
		arena_fini(&said.arena);
	}
	spawner_end(&s);
	assert_no_process_left();
}

/* --- ends --- */

static void closing_the_control_pipe_cancels_the_run_and_the_result_still_arrives(void **state)
{
	(void)state;
	struct spawner s = started();
	for (size_t i = 0; i < TIERS; i++) {
		struct worker w = asked_for(&s, profile, all_tiers[i]);
		send_body(&w, SHELL("echo begun; sleep 100"), true, false);
		struct runs runs = await_runs(1);
		await_output(&w, "begun");
		cj_close(&w.control_fd);
		struct said said = hear(&w);
		assert_status(&said, "cancelled");
		assert_string_equal(output_of(&said), "begun\n");
		arena_fini(&said.arena);
		for (int n = 0; find_runs().count > 0 && n < PATIENCE_MS / 10; n++)
			(void)poll(NULL, 0, 10);
		assert_int_equal(find_runs().count, 0);
		assert_true(runs.count == 1);
	}
	spawner_end(&s);
	assert_no_process_left();
}

static void a_job_cancelled_at_once_has_a_result(void **state)
{
	(void)state;
	struct spawner s = started();
	for (size_t i = 0; i < TIERS * 8; i++) {
		struct worker w = asked_for(&s, profile, all_tiers[i % TIERS]);
		if (i % 3 == 0)
			await_ready(&w);
		send_body(&w, SHELL("sleep 100"), false, false);
		cj_close(&w.control_fd);
		struct said said = hear(&w);
		assert_status(&said, "cancelled");
		arena_fini(&said.arena);
	}
	spawner_end(&s);
	assert_no_process_left();
}

static void a_waiting_worker_exits_when_its_control_pipe_closes(void **state)
{
	(void)state;
	struct spawner s = started();
	for (size_t i = 0; i < TIERS; i++) {
		struct worker w = asked_for(&s, profile, all_tiers[i]);
		await_ready(&w);
		struct runs runs = find_runs();
		assert_int_equal(runs.count, all_tiers[i] == TIER_COLD ? 0 : 1);
		cj_close(&w.control_fd);
		struct said said = hear(&w);
		assert_int_equal(said.lines, 0);
		arena_fini(&said.arena);

		w = asked_for(&s, profile, all_tiers[i]);
		await_ready(&w);
		worker_close(&w);
	}
	spawner_end(&s);
	assert_nothing_left(&(struct runs){ 0 });
}

/* As `cejail kill` does it. */
static void a_waiting_worker_exits_on_sigterm(void **state)
{
	(void)state;
	struct spawner s = started();
	struct worker w = asked_for(&s, profile, TIER_JAIL);
	await_ready(&w);
	struct runs runs = await_runs(1);
	assert_int_equal(kill(runs.worker[0], SIGTERM), 0);
	struct said said = hear(&w);
	assert_int_equal(said.lines, 0);
	arena_fini(&said.arena);
	spawner_end(&s);
	assert_nothing_left(&runs);
}

static void a_spawner_whose_end_a_signal_interrupts_leaves_nothing(void **state)
{
	(void)state;
	struct spawner s = started();
	struct worker waiting = asked_for(&s, profile, TIER_JAIL);
	struct worker running = asked_for(&s, profile, TIER_COLD);
	await_ready(&waiting);
	send_body(&running, SHELL("sleep 100"), false, false);
	struct runs runs = await_runs(2);
	worker_close(&waiting);
	worker_close(&running);
	interrupts_left = 1;
	spawner_end(&s);
	interrupts_left = 0;
	assert_int_equal(s.pidfd, -1);
	assert_nothing_left(&runs); /* without a sweep */
}

/* What is killed, while one worker waits and one runs. */
enum victim { VICTIM_SPAWNER, VICTIM_WORKER, VICTIM_INIT, VICTIM_COUNT };

static void kill_one(enum victim victim, struct spawner *s, const struct runs *runs)
{
	for (size_t i = 0; i < runs->count; i++) {
		if (victim == VICTIM_WORKER)
			assert_int_equal(kill(runs->worker[i], SIGKILL), 0);
		if (victim == VICTIM_INIT)
			assert_int_equal(kill(runs->init[i], SIGKILL), 0);
	}
	if (victim == VICTIM_SPAWNER)
		assert_int_equal(kill(spawner_pid(s), SIGKILL), 0);
}

static void nothing_is_left_behind_by_a_kill_of_any_process(void **state)
{
	(void)state;
	for (enum victim victim = 0; victim < VICTIM_COUNT; victim++) {
		struct spawner s = started();
		struct worker waiting = asked_for(&s, profile, TIER_JAIL);
		struct worker running = asked_for(&s, profile, TIER_COLD);
		await_ready(&waiting);
		send_body(&running, SHELL("sleep 100 & echo begun; sleep 100"), true, false);
		struct runs runs = await_runs(2);
		await_output(&running, "begun");
		kill_one(victim, &s, &runs);

		struct said said = hear(&waiting);
		assert_int_equal(said.results, 0);
		arena_fini(&said.arena);
		said = hear(&running);
		assert_int_equal(said.results, victim == VICTIM_INIT);
		if (victim == VICTIM_INIT)
			assert_status(&said, "signaled");
		arena_fini(&said.arena);
		if (victim == VICTIM_SPAWNER) {
			assert_true(wait_readable(s.pidfd)); /* the server's epoll sees it */
			struct worker w;
			struct cj_error err = { 0 };
			const struct worker_order cold = { .profile = profile, .zygote_fd = -1 };
			assert_true(spawner_ask(&s, &cold, &w, &err) < 0);
		}
		spawner_end(&s);
		sweep();
		assert_nothing_left(&runs);
	}
}

static void a_server_that_is_killed_leaves_nothing(void **state)
{
	(void)state;
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t server = test_fork();
	assert_true(server >= 0);
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* should this test fail */
		struct spawner s = started();
		struct worker waiting = asked_for(&s, profile, TIER_JAIL);
		struct worker running = asked_for(&s, profile, TIER_COLD);
		await_ready(&waiting);
		send_body(&running, SHELL("sleep 100"), false, false);
		(void)!write(ends[1], "x", 1);
		(void)pause();
		_exit(0);
	}
	assert_true(wait_readable(ends[0]));
	struct runs runs = await_runs(2);
	assert_int_equal(kill(server, SIGKILL), 0);
	close(ends[0]);
	close(ends[1]);
	assert_nothing_left(&runs); /* the workers had time to clean up: no sweep */
}

static void the_spawner_ignores_signals_of_a_terminal(void **state)
{
	(void)state;
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	struct spawner s = started();
	pid_t pid = spawner_pid(&s);

	struct said said = run_one(&s, TIER_COLD, SHELL("true")); /* it has set itself up */
	arena_fini(&said.arena);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		assert_int_equal(kill(pid, signals[i]), 0);
	assert_int_equal(getsid(pid), pid);

	struct worker w = asked_for(&s, profile, TIER_COLD);
	send_body(&w, SHELL("kill -TERM $$; sleep 100"), false, false);
	said = hear(&w);
	assert_status(&said, "signaled"); /* nothing is ignored or blocked inside */
	assert_int_equal(summary_of(&said).totals.signal, SIGTERM);
	arena_fini(&said.arena);
	spawner_end(&s);
}

/* --- descriptors --- */

/* Does the process hold a descriptor of what `fd` names here? */
static bool holds(pid_t pid, int fd)
{
	struct stat ours, theirs;
	char path[64];
	assert_int_equal(fstat(fd, &ours), 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	auto_dir DIR *dir = opendir(path);
	if (!dir)
		return false; /* init's are for root alone */
	for (struct dirent *e; (e = readdir(dir));) {
		if (fstatat(dirfd(dir), e->d_name, &theirs, 0) == 0 &&
		    theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino)
			return true;
	}
	return false;
}

static void no_worker_has_a_descriptor_of_the_server(void **state)
{
	(void)state;
	int before = open(home, O_RDONLY | O_DIRECTORY); /* neither is close-on-exec */
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	struct spawner s = started();
	struct worker first = asked_for(&s, profile, TIER_JAIL);
	struct worker second = asked_for(&s, profile, TIER_JAIL);
	await_ready(&first);
	await_ready(&second);
	struct runs runs = await_runs(2);
	pid_t spawner = spawner_pid(&s);

	assert_true(holds(getpid(), listener)); /* the look itself works */
	for (size_t i = 0; i < runs.count; i++) {
		pid_t there[] = { spawner, runs.worker[i], runs.init[i] };
		for (size_t n = 0; n < 3; n++) {
			assert_false(holds(there[n], before));
			assert_false(holds(there[n], listener));
			assert_false(holds(there[n], s.sock_fd));
			assert_false(holds(there[n], first.sock_fd));
			assert_false(holds(there[n], second.sock_fd));
			if (n != 1)
				assert_false(holds(there[n], first.control_fd));
		}
	}
	assert_true(holds(runs.worker[0], first.control_fd) !=
		    holds(runs.worker[1], first.control_fd));
	close(before);
	close(listener);
	worker_close(&first);
	worker_close(&second);
	spawner_end(&s);
	assert_nothing_left(&runs);
}

/* --- set-up
 * -----------------------------------------------------------------------------------------------
 */

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_tier_does_a_job),
		TEST(a_profile_with_another_hash_than_the_validated_one_runs_nothing),
		TEST(code_and_input_reach_the_program),
		TEST(an_interpreter_waits_for_its_program),
		TEST(events_come_before_the_summary_and_the_result),
		TEST(a_second_job_is_not_done),
		TEST(twenty_do_their_jobs_side_by_side),
		TEST(a_missing_profile_is_reported_by_every_tier),
		TEST(every_failure_is_one_result),
		TEST(a_job_that_needs_another_jail_is_refused_by_a_prepared_one),
		TEST(what_the_host_lacks_is_only_for_who_may_see_it),
		TEST(a_failed_fork_is_reported),
		TEST(closing_the_control_pipe_cancels_the_run_and_the_result_still_arrives),
		TEST(a_job_cancelled_at_once_has_a_result),
		TEST(a_waiting_worker_exits_when_its_control_pipe_closes),
		TEST(a_waiting_worker_exits_on_sigterm),
		TEST(a_spawner_whose_end_a_signal_interrupts_leaves_nothing),
		TEST(nothing_is_left_behind_by_a_kill_of_any_process),
		TEST(a_server_that_is_killed_leaves_nothing),
		TEST(the_spawner_ignores_signals_of_a_terminal),
		TEST(no_worker_has_a_descriptor_of_the_server),
	};
	return cmocka_run_group_tests_name("spawner", tests, can_make_jails, remove_home);
}
