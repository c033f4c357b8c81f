/* SPDX-License-Identifier: Apache-2.0 */
/* workers - a spawner and its workers, as the server sees them; the proof that nothing is left. */
#pragma once

#include "runtime/service/worker/spawner.h"
#include "runtime/service/worker/work.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/record.h"
#include "tests/patience.h"
#include "tests/sanitizer.h"

#define PATIENCE_MS patience_ms(60000)

/* The sanitizer's shadow is counted where no cgroup holds the memory: init would end. */
#if HAS_SANITIZER
#define MEMORY "128T"
#else
#define MEMORY "256M"
#endif

static char home[] = "/tmp/cejail-test-XXXXXX";
static char profile[64], python[64];

/* The test's own: with a keeper of sessions, or without. */
static const struct worker_life life;

static inline struct spawner started(void)
{
	struct spawner s = SPAWNER_NULL;
	struct cj_error err = { 0 };
	if (spawner_start(&s, &life, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static inline struct worker asked_for(struct spawner *s, const char *name, enum tier tier)
{
	struct worker w = WORKER_NULL;
	struct cj_error err = { 0 };
	const struct worker_order wish = { .profile = name, .tier = tier, .zygote_fd = -1 };
	if (spawner_ask(s, &wish, &w, &err) < 0)
		fail_msg("%s", err.msg);
	return w;
}

static inline void send_body(struct worker *w, const char *body, bool wants_events, bool may_see)
{
	struct cj_error err = { 0 };
	const struct job job = {
		.id = "the-run",
		.trace = { "req-7", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "" },
		.wants_events = wants_events,
		.may_name_host_paths = may_see,
		.body = (char *)body,
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

static inline bool wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, PATIENCE_MS) > 0;
}

static inline void read_to_end(int fd, struct said *said)
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

static inline const char *word(const struct json_node *object, const char *key)
{
	const struct json_node *node = object ? json_get(object, key) : NULL;
	return node && node->type == JSON_STRING ? node->text : "";
}

static inline struct said hear(struct worker *w)
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

static inline const struct json_node *last(const struct said *said, size_t back, const char *type)
{
	if (said->lines <= back ||
	    strcmp(word(said->line[said->lines - 1 - back], "type"), type) != 0)
		fail_msg("no '%s' line: %s", type, said->text);
	return said->line[said->lines - 1 - back];
}

static inline const struct json_node *result_of(const struct said *said)
{
	if (said->results != 1)
		fail_msg("%zu results: %s", said->results, said->text);
	return json_get(last(said, 0, "result"), "result");
}

static inline struct summary summary_of(const struct said *said)
{
	struct summary s = { 0 };
	struct cj_error err = { 0 };
	if (summary_read(last(said, 1, "summary"), &s, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static inline void assert_status(const struct said *said, const char *status)
{
	if (strcmp(word(result_of(said), "status"), status) != 0)
		fail_msg("not '%s': %s", status, said->text);
	assert_string_equal(status_names[summary_of(said).totals.status], status);
	assert_string_equal(word(result_of(said), "id"), "the-run");
}

static inline void await_ready(struct worker *w)
{
	static const char ready[] = "{\"type\":\"ready\",\"zygote\":false}\n";
	char text[512] = "";
	assert_true(wait_readable(w->sock_fd));
	assert_true(read(w->sock_fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, ready);
}

/* Reads what it tells until the word is in it. */
static inline void await_output(struct worker *w, const char *wanted)
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
static inline bool is_below_us(pid_t pid)
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

static inline struct runs find_runs(void)
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

static inline struct runs await_runs(size_t count)
{
	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		struct runs runs = find_runs();
		if (runs.count == count)
			return runs;
		(void)poll(NULL, 0, 10);
	}
	fail_msg("there are not %zu runs", count);
	return (struct runs){ 0 };
}

/* Orphans come to us (PR_SET_CHILD_SUBREAPER), so no child is no descendant. */
static inline void assert_no_process_left(void)
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

/* If a sweep of another test removes it now, rmdir(2) here succeeds before it has gone. */
static inline bool cgroup_goes(const char *path)
{
	for (int i = 0; i < PATIENCE_MS / 10 && access(path, F_OK) == 0; i++)
		(void)poll(NULL, 0, 10);
	return access(path, F_OK) < 0;
}

static inline void assert_nothing_left(const struct runs *runs)
{
	struct cj_error err = { 0 };
	char name[PLAN_ID_MAX + 8];
	auto_fd int dir_fd = record_open_dir(&err);

	assert_no_process_left();
	for (size_t i = 0; i < runs->count; i++) {
		(void)snprintf(name, sizeof(name), "%s.json", runs->id[i]);
		if (faccessat(dir_fd, name, F_OK, 0) == 0)
			fail_msg("the record '%s' is left", name);
		if (runs->cgroup[i][0] != '\0' && !cgroup_goes(runs->cgroup[i]))
			fail_msg("the cgroup '%s' is left", runs->cgroup[i]);
	}
}

/* After a SIGKILL: what the next run and `cejail gc` do. */
static inline void sweep(void)
{
	struct cj_error err = { 0 };
	auto_fd int dir_fd = record_open_dir(&err);
	assert_no_process_left();
	if (record_sweep(dir_fd, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline pid_t spawner_pid(const struct spawner *s)
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

/* --- set-up --- */

#define COMMON "\"memory\": \"" MEMORY "\", \"network\": {\"mode\": \"none\"}"

static inline int write_profile(char path[64], const char *name, const char *text)
{
	(void)snprintf(path, 64, "%s/%s", home, name);
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
}

static inline int write_profiles(void)
{
	if (write_profile(profile, "test.json",
			  "{\"command\": [\"sh\", \"{file}\", \"{args}\"], \"timeout\": \"60s\", "
			  "\"env\": {\"PATH\": \"/usr/bin:/bin\"}, " COMMON "}") < 0)
		return -1;
	return write_profile(python, "python.json", "{\"extends\": \"python\", " COMMON "}");
}

/* Skips, with the reason, where no jail can be made. */
static inline int can_make_jails(void **state)
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

static inline int remove_home(void **state)
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
static inline int end_all(void **state)
{
	(void)state;
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	for (int i = 0; i < patience_ms(1000) && waitpid(-1, NULL, WNOHANG) >= 0; i++) {
		auto_file FILE *children = fopen(path, "re");
		for (int pid; children && fscanf(children, "%d", &pid) == 1;)
			(void)kill(pid, SIGKILL);
		(void)poll(NULL, 0, 5);
	}
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, end_all)
