/* SPDX-License-Identifier: Apache-2.0 */
/* What a zygote must not have, from /proc.  Acts; runs in the zygote. */
#include "runtime/jail/zygote/zygote_check.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/base/scope.h"

/* A directory has two links more than it has tasks: proc(5). */
int zygote_check_threads(struct cj_error *err)
{
	struct stat st;
	if (stat("/proc/self/task", &st) < 0)
		return cj_fail(err, errno, "count the threads of the zygote");
	if (st.st_nlink == 2 + 1)
		return 0;
	cj_refuse_as(err, EBUSY, "the interpreter has %ju threads, so it can't be forked",
		     (uintmax_t)st.st_nlink - 2);
	return cj_hint(err, "preload no module that starts a thread");
}

#define FLAGS "VmFlags:"

/*
 * "sh" is VM_SHARED.  The kernel clears it for a file that was opened read-only, which no
 * mprotect(2) can make writable: proc_pid_smaps(5).
 */
static bool is_shared(const char *line)
{
	return strncmp(line, FLAGS, strlen(FLAGS)) == 0 && strstr(line, " sh") != NULL;
}

int zygote_check_memory(struct cj_error *err)
{
	char line[512];
	bool has_flags = false;
	auto_file FILE *maps = fopen("/proc/self/smaps", "re");
	if (!maps)
		return cj_fail(err, errno, "read the mappings of the zygote");
	while (fgets(line, sizeof(line), maps)) {
		has_flags |= strncmp(line, FLAGS, strlen(FLAGS)) == 0;
		if (!is_shared(line))
			continue;
		cj_refuse_as(err, EBUSY, "the interpreter would share memory with its forks");
		return cj_hint(err, "preload no module that maps shared memory");
	}
	if (ferror(maps) || !has_flags)
		return cj_fail(err, EIO, "read the mappings of the zygote");
	return 0;
}
