/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/init/init.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "profiles/plan/plan.h"
#include "runtime/base/files/system_file.h"

#define LEAVE RLIM_INFINITY /* a row that doesn't apply: the caller's limit stays */

struct limit_row {
	__rlimit_resource_t resource;
	const char *name; /* for messages */
	rlim_t want;
};

static bool core_goes_to_a_pipe(void)
{
	char pattern[256];
	ssize_t rc =
	    system_file_read(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern));
	return rc < 0 || pattern[0] == '|'; /* not readable: assume a pipe */
}

/*
 * A hard limit that is lower than wanted can't be raised inside a user namespace.  Lower is
 * stricter, so it is accepted, except for these rows.
 */
static int refuse_lower(const struct limit_row *row, rlim_t want, rlim_t hard, struct cj_error *err)
{
	int rc = 0;
	if (row->resource == RLIMIT_NOFILE) {
		rc = cj_reject(err, "nofile %ju is more than the hard limit %ju of this process",
			       (uintmax_t)want, (uintmax_t)hard);
		(void)cj_hint(err,
			      "lower --nofile, or raise the limit: 'ulimit -Hn', LimitNOFILE=");
	}
	/* With 0 a piped handler would still run, as root on the host (fs/coredump.c). */
	if (row->resource == RLIMIT_CORE && core_goes_to_a_pipe()) {
		rc = cj_reject(err, "the hard limit for core files is 0, and kernel.core_pattern "
				    "starts a program on the host");
		(void)cj_hint(err, "raise the limit to 1: 'ulimit -Hc 1', LimitCORE=1");
	}
	return rc;
}

static int apply_row(const struct limit_row *row, struct cj_error *err)
{
	rlim_t want = row->want;
	if (want == LEAVE)
		return 0;
	struct rlimit limit = { .rlim_cur = want, .rlim_max = want }, before;
	bool is_set = prlimit(0, row->resource, &limit, &before) == 0;
	int code = errno;
	if (is_set && before.rlim_max >= want)
		return 0;
	if (!is_set && getrlimit(row->resource, &before) < 0)
		return cj_fail(err, errno, "read the limit of %s", row->name);

	/* Only CAP_SYS_RESOURCE on the host raises a hard limit, and it is not for that. */
	bool is_lower = before.rlim_max < want;
	int rc = is_lower ? refuse_lower(row, want, before.rlim_max, err) : 0;
	if (rc < 0)
		return rc;
	if (is_lower && before.rlim_cur == before.rlim_max)
		return 0;
	limit = (struct rlimit){ .rlim_cur = before.rlim_max, .rlim_max = before.rlim_max };
	if (is_lower && setrlimit(row->resource, &limit) == 0)
		return 0;
	return cj_fail(err, is_lower ? errno : code, "limit %s to %ju", row->name, (uintmax_t)want);
}

static int apply_rows(const struct limit_row *rows, size_t count, struct cj_error *err)
{
	for (size_t i = 0; i < count; i++)
		if (apply_row(&rows[i], err) < 0)
			return -err->code;
	return 0;
}

int limits_apply_asked(const struct limits_spec *limits, bool pids_by_rlimit, struct cj_error *err)
{
	const uint64_t cpu_s = limits->cpu_ms / 1000 + (limits->cpu_ms % 1000 > 0);
	const struct limit_row rows[] = {
		{ RLIMIT_NOFILE, "open files", limits->nofile > 0 ? limits->nofile : LEAVE },
		/* A page above the scratch's size: a full scratch is ENOSPC before SIGXFSZ kills
		 * the writer. */
		{ RLIMIT_FSIZE, "file size",
		  limits->disk_bytes > 0 ? limits->disk_bytes + 4096 : LEAVE },
		/* Per process and in whole seconds, rounded up by one: the supervisor's own limit
		 * acts first. */
		{ RLIMIT_CPU, "CPU time", limits->cpu_ms > 0 ? cpu_s + 1 : LEAVE },
		/* Init has the same uid and is counted too. */
		{ RLIMIT_NPROC, "processes",
		  pids_by_rlimit && limits->pids > 0 ? limits->pids + 1 : LEAVE },
	};
	return apply_rows(rows, COUNT_OF(rows), err);
}

int limits_apply(const struct limits_spec *limits, bool pids_by_rlimit, struct cj_error *err)
{
	static const struct limit_row rows[] = {
		{ RLIMIT_CORE, "core file", 1 },
		/* Room for a few keys in memory that is not swapped, for gpg and ssh. */
		{ RLIMIT_MEMLOCK, "locked memory", 64 << 10 },
		/* One POSIX queue of the default size needs 82 kB: mq_overview(7). */
		{ RLIMIT_MSGQUEUE, "message queues", 128 << 10 },
		/* Each timer and queued signal is unswappable kernel memory, and also counts for
		 * the caller. */
		{ RLIMIT_SIGPENDING, "pending signals", 1024 },
		{ RLIMIT_NICE, "nice", 0 },
		{ RLIMIT_RTPRIO, "realtime priority", 0 },
		/*
		 * RLIMIT_STACK stays the caller's: it shapes the address space, and memory is
		 * counted.  RLIMIT_DATA and RLIMIT_AS, too: they count what is reserved, touched or
		 * not, and AddressSanitizer reserves 14 TiB as private and writable.
		 */
	};
	if (limits_apply_asked(limits, pids_by_rlimit, err) < 0)
		return -err->code;
	return apply_rows(rows, COUNT_OF(rows), err);
}
