/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, descriptors and CPU time of this process.  Acts: reads /proc/self. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/service/operations/metrics.h"

/* proc(5): the second number of /proc/self/statm is that of resident pages. */
static uint64_t look_at_memory(void)
{
	auto_arena struct arena a = { 0 };
	struct cj_error unused = { 0 };
	char *text, *rest;
	size_t size;

	if (fd_read_file(AT_FDCWD, "/proc/self/statm", 4096, &a, &text, &size, &unused) < 0)
		return 0;
	(void)strtoull(text, &rest, 10);
	long page = sysconf(_SC_PAGESIZE);
	return strtoull(rest, NULL, 10) * (uint64_t)(page > 0 ? page : 0);
}

static uint64_t count_fds(void)
{
	uint64_t count = 0;
	auto_dir DIR *dir = opendir("/proc/self/fd");
	if (!dir)
		return 0;
	for (const struct dirent *e; (e = readdir(dir)) != NULL;)
		count += e->d_name[0] != '.';
	return count > 0 ? count - 1 : 0; /* without the descriptor of this directory */
}

static uint64_t microseconds(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

void process_usage_look(struct process_usage *out)
{
	struct rusage used = { 0 };
	(void)getrusage(RUSAGE_SELF, &used); /* cannot fail: getrusage(2) */
	*out = (struct process_usage){
		.resident_bytes = look_at_memory(),
		.open_fds = count_fds(),
		.cpu_us = microseconds(used.ru_utime) + microseconds(used.ru_stime),
	};
}
