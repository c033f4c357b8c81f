/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: unshare */
/* The network namespace that is made beside init, in a user namespace of the test's child. */
#include "runtime/jail/init/init.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/jail/jail_state.h"
#include "tests/failing.h"
#include "tests/forked.h"

FAILS(int, unshare, (int flags), (flags), -1, ENOSPC)

#define NO_USER_NAMESPACES 77

/* Shared with the child that tries. */
static struct tried {
	int rc;
	struct cj_error err;
} * tried;

static void try_in_child(void (*try)(void))
{
	*tried = (struct tried){ 0 };
	fail_at = 0;
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (__real_unshare(CLONE_NEWUSER) < 0)
			_exit(NO_USER_NAMESPACES);
		is_armed = true;
		try();
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_USER_NAMESPACES) {
		print_message("skipped: this host allows no user namespaces\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static ino_t own_namespace(void)
{
	struct stat st = { 0 };
	return stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
}

static void enter_it(void)
{
	struct net_namespace_maker m = { 0 };
	ino_t before = own_namespace();
	tried->rc = net_namespace_begin(&m, &tried->err);
	if (tried->rc == 0 && own_namespace() != before)
		(void)snprintf(tried->err.msg, sizeof(tried->err.msg), "init itself has moved");
	if (tried->rc == 0)
		tried->rc = net_namespace_enter(&m, &tried->err);
	if (before == 0 || own_namespace() == before)
		(void)snprintf(tried->err.msg, sizeof(tried->err.msg), "it is the host's");
}

static void init_enters_a_network_namespace_of_its_own(void **state)
{
	(void)state;
	try_in_child(enter_it);
	assert_string_equal(tried->err.msg, "");
	assert_int_equal(tried->rc, 0);
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };
	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid != 0;
}

/* A value that the child saved and wrote back would replace a later one of init's. */
static void watch_errno(void)
{
	volatile int *mine = &errno;
	for (int i = 0; i < 500 && tried->rc == 0; i++) {
		struct net_namespace_maker m = { 0 };
		tried->rc = net_namespace_begin(&m, &tried->err);
		for (int turn = 1; tried->rc == 0 && (turn % 64 != 0 || !has_ended(m.pid));
		     turn++) {
			*mine = turn;
			for (int look = 0; look < 100; look++)
				if (*mine != turn)
					tried->rc = 1;
		}
		if (tried->rc == 0)
			tried->rc = net_namespace_enter(&m, &tried->err);
	}
}

static void the_child_leaves_errno_to_init(void **state)
{
	(void)state;
	try_in_child(watch_errno);
	assert_string_equal(tried->err.msg, "");
	assert_int_equal(tried->rc, 0);
}

static void fail_meanwhile(void)
{
	struct net_namespace_maker m = { 0 };
	fail_at = 1;
	tried->rc = net_namespace_begin(&m, &tried->err);
	if (tried->rc < 0)
		return;
	(void)!cj_fail(&tried->err, EEXIST, "make the mount point");
	net_namespace_explain(&m, &tried->err);
	net_namespace_explain(&m, &tried->err); /* nothing is left to wait for */
}

static void when_both_fail_the_childs_error_is_the_cause(void **state)
{
	(void)state;
	try_in_child(fail_meanwhile);
	assert_int_equal(tried->rc, 0);
	assert_int_equal(tried->err.code, ENOSPC);
	assert_string_equal(tried->err.stage, "network");
	assert_non_null(strstr(tried->err.msg, "make the jail's network namespace"));
	assert_null(strstr(tried->err.msg, "mount point"));
}

static void fail_alone(void)
{
	struct net_namespace_maker m = { 0 };
	(void)!cj_fail(&tried->err, EEXIST, "make the mount point");
	net_namespace_explain(&m, &tried->err); /* not begun */
	struct cj_error begun = { 0 };
	tried->rc = net_namespace_begin(&m, &begun);
	if (tried->rc == 0)
		net_namespace_explain(&m, &tried->err);
}

static void init_keeps_its_own_error_when_the_child_succeeds(void **state)
{
	(void)state;
	try_in_child(fail_alone);
	assert_int_equal(tried->rc, 0);
	assert_int_equal(tried->err.code, EEXIST);
}

int main(void)
{
	tried =
	    mmap(NULL, sizeof(*tried), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tried == MAP_FAILED)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(init_enters_a_network_namespace_of_its_own),
		cmocka_unit_test(the_child_leaves_errno_to_init),
		cmocka_unit_test(when_both_fail_the_childs_error_is_the_cause),
		cmocka_unit_test(init_keeps_its_own_error_when_the_child_succeeds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
