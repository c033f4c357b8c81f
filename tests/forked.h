/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forked - a child of a test that does not return into cmocka's runner.
 *
 * A failed assertion jumps into the runner, and so does the handler that cmocka installs for fatal
 * signals.  In a child, that runner would be a second one: it would run the later tests again.
 */
#pragma once

#include <signal.h>

/* Runs in: the child, first.  From here a failed assertion ends it by SIGABRT. */
static inline void leave_test_runner(void)
{
	static const int handled[] = { SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS };
	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		(void)signal(handled[i], SIG_DFL);
	(void)setenv("CMOCKA_TEST_ABORT", "1", 1);
}

/* fork(2); the child must leave by _exit(2) or execve(2). */
static inline pid_t test_fork(void)
{
	pid_t pid = fork();
	if (pid == 0)
		leave_test_runner();
	return pid;
}
