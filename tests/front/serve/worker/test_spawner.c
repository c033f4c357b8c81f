/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: fork */
/*
 * The spawner and its workers: each does one job and tells it once, and nothing outlives whoever
 * ends, wherever.
 */
#include "runtime/front/serve/worker/spawner.h"
#include "runtime/front/serve/worker/worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/record.h"

#define PATIENCE_MS 10000

/* A sanitizer's shadow is counted where no cgroup holds the memory: init would end. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY "128T"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEMORY "128T"
#endif
#endif
#ifndef MEMORY
#define MEMORY "256M"
#endif

static char home[] = "/tmp/cejail-test-XXXXXX";
static char profile[64], python[64];
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

/* --- a worker, as the server sees it --- */

static const struct worker_life life = { .main = worker_main };

static struct spawner started(void)
{
	struct spawner s = SPAWNER_NULL;
	struct cj_error err = { 0 };
	if (spawner_start(&s, &life, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static struct worker asked_for(struct spawner *s, const char *name, enum tier tier)
{
	struct worker w = WORKER_NULL;
	struct cj_error err = { 0 };
	const struct worker_wish wish = { .profile = name, .tier = tier, .zygote_fd = -1 };
	if (spawner_ask(s, &wish, &w, &err) < 0)
		fail_msg("%s", err.msg);
	return w;
}

static void send_body(struct worker *w, const char *body, bool wants_events, bool may_see)
{
	struct cj_error err = { 0 };
	const struct job job = {
		.id = "the-run",
		.trace = { "req-7", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
		.wants_events = wants_events,
		.may_name_host_paths = may_see,
		.body = body,
		.body_size = strlen(body),
	};
	if (worker_send_job(w, &job, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Everything it says until its end. */
struct said {
	struct arena arena;
	char *text;
	size_t size, lines, results;
	const struct json_node *line[64];
};

static bool wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, PATIENCE_MS) > 0;
}

static void read_to_end(int fd, struct said *said)
{
	enum { ROOM = 1 << 20 };
	said->text = arena_alloc(&said->arena, ROOM);
	assert_non_null(said->text);
	for (;;) {
		assert_true(wait_readable(fd));
		ssize_t got = read(fd, said->text + said->size, ROOM - 1 - said->size);
		if (got == 0 || (got < 0 && errno == ECONNRESET))
			return;
		assert_true(got > 0);
		said->size += (size_t)got;
	}
}

static const char *word(const struct json_node *object, const char *key)
{
	const struct json_node *node = object ? json_get(object, key) : NULL;
	return node && node->type == JSON_STRING ? node->text : "";
}

static struct said hear(struct worker *w)
{
	struct said said = { 0 };
	struct cj_error err = { 0 };

	read_to_end(w->sock_fd, &said);
	for (char *at = said.text, *end; (end = strchr(at, '\n')); at = end + 1) {
		assert_true(said.lines < 64);
		if (json_parse("line", at, (size_t)(end - at), &said.arena, &said.line[said.lines],
			       &err) < 0)
			fail_msg("%s: %.*s", err.msg, (int)(end - at), at);
		said.results += strcmp(word(said.line[said.lines++], "type"), "result") == 0;
	}
	assert_true(said.size == 0 || said.text[said.size - 1] == '\n');
	worker_close(w);
	return said;
}

static const struct json_node *last(const struct said *said, size_t back, const char *type)
{
	if (said->lines <= back ||
	    strcmp(word(said->line[said->lines - 1 - back], "type"), type) != 0)
		fail_msg("no '%s' line: %s", type, said->text);
	return said->line[said->lines - 1 - back];
}

static const struct json_node *result_of(const struct said *said)
{
	assert_int_equal(said->results, 1);
	return json_get(last(said, 0, "result"), "result");
}

static struct summary summary_of(const struct said *said)
{
	struct summary s = { 0 };
	struct cj_error err = { 0 };
	if (summary_read(last(said, 1, "summary"), &s, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static void assert_status(const struct said *said, const char *status)
{
	if (strcmp(word(result_of(said), "status"), status) != 0)
		fail_msg("not '%s': %s", status, said->text);
	assert_string_equal(status_names[summary_of(said).status], status);
	assert_string_equal(word(result_of(said), "id"), "the-run");
}

static void await_ready(struct worker *w)
{
	static const char ready[] = "{\"type\":\"ready\",\"zygote\":false}\n";
	char text[512] = "";
	assert_true(wait_readable(w->sock_fd));
	assert_true(read(w->sock_fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, ready);
}

/* Reads what it tells until the word is in it. */
static void await_output(struct worker *w, const char *wanted)
{
	char text[4096] = "";
	size_t size = 0;
	while (!strstr(text, wanted)) {
		assert_true(wait_readable(w->sock_fd));
		ssize_t got = read(w->sock_fd, text + size, sizeof(text) - 1 - size);
		assert_true(got > 0);
		size += (size_t)got;
	}
}

/* --- what is there, and what is left --- */

struct runs {
	size_t count;
	char id[32][PLAN_ID_MAX], cgroup[32][512];
	pid_t worker[32], init[32];
};

/* Those below this process: every supervisor of ours is a child of a child. */
static bool is_below_us(pid_t pid)
{
	for (int depth = 0; pid > 1 && depth < 4; depth++) {
		char path[64], text[512] = "";
		if (pid == getpid())
			return true;
		(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
			return false;
		const char *behind = strrchr(text, ')');
		if (!behind || sscanf(behind + 2, "%*c %d", &pid) != 1)
			return false;
	}
	return false;
}

static struct runs find_runs(void)
{
	struct runs runs = { 0 };
	struct cj_error err = { 0 };
	struct record_entry *entries = NULL;
	size_t count = 0;
	auto_arena struct arena arena = { 0 };
	auto_fd int dir_fd = record_open_dir(&err);

	assert_true(dir_fd >= 0);
	assert_int_equal(record_list(dir_fd, &arena, &entries, &count, &err), 0);
	for (size_t i = 0; i < count; i++) {
		const struct record *r = &entries[i].record;
		if (runs.count == 32 || !is_below_us(r->supervisor_pid))
			continue;
		(void)snprintf(runs.id[runs.count], PLAN_ID_MAX, "%s", r->id);
		(void)snprintf(runs.cgroup[runs.count], 512, "%s", r->cgroup_path);
		runs.worker[runs.count] = r->supervisor_pid;
		runs.init[runs.count++] = r->init_pid;
	}
	return runs;
}

static struct runs await_runs(size_t count)
{
	for (int i = 0; i < 1000; i++) {
		struct runs runs = find_runs();
		if (runs.count == count)
			return runs;
		(void)poll(NULL, 0, 10);
	}
	fail_msg("there are not %zu runs", count);
	return (struct runs){ 0 };
}

/* Orphans come to us (PR_SET_CHILD_SUBREAPER), so no child is no descendant. */
static void assert_no_process_left(void)
{
	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		pid_t pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0 && errno == ECHILD)
			return;
		if (pid == 0)
			(void)poll(NULL, 0, 10);
	}
	fail_msg("a process is left");
}

static void assert_nothing_left(const struct runs *runs)
{
	struct cj_error err = { 0 };
	char name[PLAN_ID_MAX + 8];
	auto_fd int dir_fd = record_open_dir(&err);

	assert_no_process_left();
	for (size_t i = 0; i < runs->count; i++) {
		(void)snprintf(name, sizeof(name), "%s.json", runs->id[i]);
		if (faccessat(dir_fd, name, F_OK, 0) == 0)
			fail_msg("the record '%s' is left", name);
		if (runs->cgroup[i][0] != '\0' && access(runs->cgroup[i], F_OK) == 0)
			fail_msg("the cgroup '%s' is left", runs->cgroup[i]);
	}
}

/* After a SIGKILL: what the next run and `cejail gc` do. */
static void sweep(void)
{
	struct cj_error err = { 0 };
	auto_fd int dir_fd = record_open_dir(&err);
	assert_no_process_left();
	if (record_sweep(dir_fd, &err) < 0)
		fail_msg("%s", err.msg);
}

static pid_t spawner_pid(const struct spawner *s)
{
	char path[64], text[512] = "";
	int pid = -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", s->pidfd);
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	const char *at = strstr(text, "Pid:");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "Pid: %d", &pid), 1);
	return pid;
}

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
		struct said said =
		    run_one(&s, all_tiers[i], SHELL("echo out; echo no >&2; exit 3"));
		assert_status(&said, "exited");
		assert_string_equal(word(said.line[0], "type"), "ready");
		assert_int_equal(said.lines, 3);
		assert_string_equal(output_of(&said), "out\n");
		struct summary sum = summary_of(&said);
		assert_int_equal(sum.exit_code, 3);
		assert_int_equal(sum.stdout_bytes, 4);
		assert_int_equal(sum.stderr_bytes, 3);
		assert_true(sum.setup_us > 0 && sum.setup_us < 10000000);
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
	struct job job = { .id = "the-run", .body = body, .body_size = strlen(body) };

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
	assert_non_null(strstr(summary_of(&said).error_message, "another 'memory_bytes'"));
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
		for (int n = 0; find_runs().count > 0 && n < 1000; n++)
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

static void a_spawner_that_is_ended_leaves_nothing(void **state)
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
	spawner_end(&s);
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
			const struct worker_wish cold = { .profile = profile, .zygote_fd = -1 };
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
	pid_t server = fork();
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
	assert_int_equal(summary_of(&said).signal, SIGTERM);
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

#define COMMON "\"memory\": \"" MEMORY "\", \"network\": {\"mode\": \"none\"}"

static int write_profile(char path[64], const char *name, const char *text)
{
	(void)snprintf(path, 64, "%s/%s", home, name);
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static int write_profiles(void)
{
	if (write_profile(profile, "test.json",
			  "{\"command\": [\"sh\", \"{file}\", \"{args}\"], \"timeout\": \"20s\", "
			  "\"env\": {\"PATH\": \"/usr/bin:/bin\"}, " COMMON "}") < 0)
		return -1;
	return write_profile(python, "python.json", "{\"extends\": \"python\", " COMMON "}");
}

/* Skips, with the reason, where no jail can be made. */
static int can_make_jails(void **state)
{
	(void)state;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (!mkdtemp(home) || write_profiles() < 0)
		return 1;
	if (geteuid() != 0)
		(void)setenv("XDG_RUNTIME_DIR", home, 1);
	struct spawner s = started();
	struct worker w = asked_for(&s, profile, TIER_JAIL);
	cj_close(&w.control_fd);
	struct said said = hear(&w);
	bool can = said.lines > 0 && strcmp(word(said.line[0], "type"), "ready") == 0;
	if (!can)
		print_message("skipped: %s\n", said.text);
	arena_fini(&said.arena);
	spawner_end(&s);
	if (can)
		return 0;
	return getenv("CEJAIL_TEST_STRICT") ? 1 : -1;
}

static int remove_home(void **state)
{
	(void)state;
	char path[128];
	(void)unlink(profile);
	(void)unlink(python);
	for (const char *const *name =
		 (const char *const[]){ "cejail/runs", "cejail/ids", "cejail", NULL };
	     *name; name++) {
		(void)snprintf(path, sizeof(path), "%s/%s", home, *name);
		(void)rmdir(path);
	}
	return rmdir(home);
}

/* Of a test that failed: the next one begins without. */
static int end_all(void **state)
{
	(void)state;
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	for (int i = 0; i < 1000 && waitpid(-1, NULL, WNOHANG) >= 0; i++) {
		auto_file FILE *children = fopen(path, "re");
		for (int pid; children && fscanf(children, "%d", &pid) == 1;)
			(void)kill(pid, SIGKILL);
		(void)poll(NULL, 0, 5);
	}
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, end_all)

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
		TEST(a_spawner_that_is_ended_leaves_nothing),
		TEST(nothing_is_left_behind_by_a_kill_of_any_process),
		TEST(a_server_that_is_killed_leaves_nothing),
		TEST(the_spawner_ignores_signals_of_a_terminal),
		TEST(no_worker_has_a_descriptor_of_the_server),
	};
	return cmocka_run_group_tests_name("spawner", tests, can_make_jails, remove_home);
}
