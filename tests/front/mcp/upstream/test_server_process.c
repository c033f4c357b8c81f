/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper of an MCP server: what it kills and reaps at the end, in which order. */
/* WRAP: kill sys_waitpid */
#include "runtime/front/mcp/upstream/server_process.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "tests/patience.h"

#define STEPS_MAX 64

/* What the keeper did, which is a process of its own: shared with it. */
static struct {
	unsigned count;
	struct {
		pid_t killed_group, reaped; /* one of them is 0 */
	} steps[STEPS_MAX];
} * seen;
static pid_t test_pid;

static void note(pid_t killed_group, pid_t reaped)
{
	if (getpid() == test_pid || seen->count == STEPS_MAX)
		return;
	seen->steps[seen->count].killed_group = killed_group;
	seen->steps[seen->count].reaped = reaped;
	seen->count++;
}

int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig)
{
	if (pid < 0 && sig == SIGKILL)
		note(-pid, 0);
	return __real_kill(pid, sig);
}

pid_t __real_sys_waitpid(pid_t pid, int *out_status, int options);
pid_t __wrap_sys_waitpid(pid_t pid, int *out_status, int options);
pid_t __wrap_sys_waitpid(pid_t pid, int *out_status, int options)
{
	pid_t reaped = __real_sys_waitpid(pid, out_status, options);

	if (reaped > 0)
		note(0, reaped);
	return reaped;
}

static int set_up(void **state)
{
	(void)state;
	test_pid = getpid();
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return seen == MAP_FAILED ? -1 : 0;
}

/* Runs a shell's script that writes when it is ready.  `stops`: cejail ends the server. */
static int run_server(const char *script, bool stops)
{
	auto_arena struct arena a = { 0 };
	struct server_spec spec = { .name = "test", .command = "/bin/sh" };
	struct server_process p = SERVER_PROCESS_NULL;
	struct cj_error err = { 0 };
	char byte;
	int status = -1;

	memset(seen, 0, sizeof(*seen));
	assert_int_equal(strings_add(&spec.args, &a, "-c"), 0);
	assert_int_equal(strings_add(&spec.args, &a, script), 0);
	assert_int_equal(server_process_start(&spec, &p, &err), 0);
	assert_int_equal(sys_read(p.stdout_fd, &byte, 1), 1);
	if (stops)
		server_process_stop(&p);
	struct pollfd end = { .fd = p.pidfd, .events = POLLIN };
	assert_int_equal(poll(&end, 1, patience_ms(30000)), 1);
	assert_true(server_process_has_ended(&p, &status));
	server_process_fini(&p);
	return status;
}

/* Once the server is reaped, the kernel may give its number to another process group. */
static void the_group_of_a_server_is_killed_before_the_server_is_reaped(void **state)
{
	static const struct {
		const char *script;
		bool stops;
	} rows[] = {
		{ "sleep 600 & echo up; exit 3", false },
		{ "sleep 600 & echo up; cat; exit 3", true },
		{ "trap '' TERM; sleep 600 & echo up; wait", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_not_equal(run_server(rows[i].script, rows[i].stops), 0);
		assert_in_range(seen->count, 3, STEPS_MAX); /* the group, the server, sleep(1) */
		pid_t server = seen->steps[0].killed_group;
		assert_true(server > 0);
		assert_int_equal(seen->steps[1].reaped, server);
		for (unsigned j = 1; j < seen->count; j++)
			assert_int_equal(seen->steps[j].killed_group, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_group_of_a_server_is_killed_before_the_server_is_reaped,
				       set_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
