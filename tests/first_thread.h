/* SPDX-License-Identifier: Apache-2.0 */
/* first_thread - a process whose first thread has ended while another lives.  Include it after
 * <cmocka.h>. */
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "runtime/base/files/system_file.h"
#include "tests/patience.h"

static inline void *wait_for_ever(void *unused)
{
	for (;;)
		(void)pause();
	return unused;
}

/* Runs in: the process, in its first thread. */
_Noreturn static inline void end_first_thread(void)
{
	pthread_t thread;
	if (pthread_create(&thread, NULL, wait_for_ever, NULL) == 0)
		(void)syscall(SYS_exit, 0);
	_exit(1);
}

/* proc_pid_stat(5): the state of the first thread. */
static inline void await_zombie(pid_t pid)
{
	char path[32], text[512] = "";
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int i = 0; i < patience_ms(6000) && !strstr(text, ") Z "); i++) {
		(void)usleep(10000);
		(void)!system_file_read(AT_FDCWD, path, text, sizeof(text));
	}
	assert_non_null(strstr(text, ") Z "));
}
