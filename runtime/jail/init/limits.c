/* SPDX-License-Identifier: Apache-2.0 */
/* setrlimit(2) from one table.  Acts. */
#include "runtime/jail/init/limits.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "runtime/base/files/system_file.h"

/* The input of the rows below. */
struct limits_wanted {
	const struct limits_spec *spec;
	bool pids_by_rlimit;
};

#define LEAVE RLIM_INFINITY /* a row that doesn't apply: the caller's limit stays */

static rlim_t want_nofile(const struct limits_wanted *w)
{
	return w->spec->nofile > 0 ? w->spec->nofile : LEAVE;
}

/* A page above the scratch's size: a full scratch is ENOSPC before SIGXFSZ kills the writer. */
static rlim_t want_fsize(const struct limits_wanted *w)
{
	return w->spec->fsize_bytes > 0 ? w->spec->fsize_bytes + 4096 : LEAVE;
}

/* Per process and in whole seconds, rounded up by one: the supervisor's own limit acts first. */
static rlim_t want_cpu(const struct limits_wanted *w)
{
	uint64_t ms = w->spec->cpu_ms;
	return ms > 0 ? ms / 1000 + (ms % 1000 > 0) + 1 : LEAVE;
}

/* Init has the same uid and is counted too. */
static rlim_t want_nproc(const struct limits_wanted *w)
{
	return w->pids_by_rlimit && w->spec->pids > 0 ? w->spec->pids + 1 : LEAVE;
}

static rlim_t want_core(const struct limits_wanted *w)
{
	(void)w; /* one value for every jail */
	return 1;
}

static rlim_t want_none(const struct limits_wanted *w)
{
	(void)w; /* one value for every jail */
	return 0;
}

/* Room for a few keys in memory that is not swapped, for gpg and ssh. */
static rlim_t want_memlock(const struct limits_wanted *w)
{
	(void)w; /* one value for every jail */
	return 64 << 10;
}

/* One POSIX queue of the default size needs 82 kB: mq_overview(7). */
static rlim_t want_msgqueue(const struct limits_wanted *w)
{
	(void)w; /* one value for every jail */
	return 128 << 10;
}

/* Each timer and queued signal is unswappable kernel memory, and also counts for the caller. */
static rlim_t want_sigpending(const struct limits_wanted *w)
{
	(void)w; /* one value for every jail */
	return 1024;
}

static const struct row {
	__rlimit_resource_t resource;
	const char *name; /* for messages */
	rlim_t (*want)(const struct limits_wanted *w);
} rows[] = {
	{ RLIMIT_NOFILE, "open files", want_nofile },
	{ RLIMIT_FSIZE, "file size", want_fsize },
	{ RLIMIT_CPU, "CPU time", want_cpu },
	{ RLIMIT_NPROC, "processes", want_nproc },
	{ RLIMIT_CORE, "core file", want_core },
	{ RLIMIT_MEMLOCK, "locked memory", want_memlock },
	{ RLIMIT_MSGQUEUE, "message queues", want_msgqueue },
	{ RLIMIT_SIGPENDING, "pending signals", want_sigpending },
	{ RLIMIT_NICE, "nice", want_none },
	{ RLIMIT_RTPRIO, "realtime priority", want_none },
	/*
	 * RLIMIT_STACK stays the caller's: it shapes the address space, and memory is counted.
	 * RLIMIT_DATA and RLIMIT_AS, too: they count what is reserved, touched or not, and
	 * AddressSanitizer reserves 14 TiB as private and writable.
	 */
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
static int refuse_lower(const struct row *row, rlim_t want, rlim_t hard, struct cj_error *err)
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

static int apply_row(const struct row *row, const struct limits_wanted *wanted,
		     struct cj_error *err)
{
	rlim_t want = row->want(wanted);
	struct rlimit limit;
	if (want == LEAVE)
		return 0;
	if (getrlimit(row->resource, &limit) < 0)
		return cj_fail(err, errno, "read the limit of %s", row->name);
	if (limit.rlim_max < want) {
		int rc = refuse_lower(row, want, limit.rlim_max, err);
		if (rc < 0)
			return rc;
		want = limit.rlim_max;
	}

	limit = (struct rlimit){ .rlim_cur = want, .rlim_max = want };
	if (setrlimit(row->resource, &limit) < 0)
		return cj_fail(err, errno, "limit %s to %ju", row->name, (uintmax_t)want);
	return 0;
}

int limits_apply(const struct limits_spec *limits, bool pids_by_rlimit, struct cj_error *err)
{
	const struct limits_wanted wanted = { .spec = limits, .pids_by_rlimit = pids_by_rlimit };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = apply_row(&rows[i], &wanted, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
