/* SPDX-License-Identifier: Apache-2.0 */
/*
 * caller - a long-lived process that uses the engine again and again, as a service does.  Acts.
 *
 *	caller RUNS EVERY [TOGETHER]
 *
 * Makes RUNS jails, TOGETHER at a time (1), whose programs end in every way there is, and some that
 * can't be made.  Prints what this process holds as a JSON line before the first jail and after
 * each EVERY jails.  A run that does not end as it should is reported on standard error, and the
 * exit status is 1.
 */
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "profiles/plan/plan.h"
#include "runtime/base/error.h"
#include "runtime/kernel/ids/idmap.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/outcome.h"

#define TOGETHER_MAX 64
#define WALL_MS      60000
#define SHORT_MS     50 /* for the program that would sleep */

/* Programs and how they end. */
static const struct way {
	const char *argv[4];
	uint64_t wall_ms;
	const char *workdir;
	enum status status;
	int exec_errno;
	int start_errno; /* jail_start() itself fails */
} ways[] = {
	{ { "/bin/true" }, WALL_MS, "/box", STATUS_EXITED },
	{ { "/bin/sh", "-c", "echo out; echo err >&2; exit 3" }, WALL_MS, "/box", STATUS_EXITED },
	{ { "/bin/sh", "-c", "head -c 200000 /dev/zero" }, WALL_MS, "/box", STATUS_EXITED },
	{ { "/bin/sh", "-c", "kill -9 $$" }, WALL_MS, "/box", STATUS_SIGNALED },
	{ { "/bin/sleep", "100" }, SHORT_MS, "/box", STATUS_TIMEOUT },
	{ { "/bin/sh", "-c", "sleep 100 & sleep 100 & echo x" }, WALL_MS, "/box", STATUS_EXITED },
	{ { "/no/such/program" }, WALL_MS, "/box", STATUS_EXITED, .exec_errno = ENOENT },
	{ { "/bin/true" }, WALL_MS, "/no/such/directory", STATUS_EXITED, .start_errno = ENOENT },
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static const struct jail_io no_io = {
	.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
};

static struct plan make_plan(void)
{
	return (struct plan){
		.profile_name = "test",
		.profile_sha256 = "",
		.root = { .kind = ROOT_HOST,
			  .scratch_bytes = 1 << 20,
			  .scratch_inodes = 1024,
			  .hostname = "jail",
			  .uid = IDMAP_INSIDE_UID,
			  .gid = IDMAP_INSIDE_GID },
		.limits = { .memory_bytes = 64 << 20,
			    .millicpus = 1000,
			    .pids = 16,
			    .nofile = 64,
			    .disk_bytes = 1 << 20 },
	};
}

/* --- what this process holds ------------------------------------------------------- */

/* Entries of a directory of /proc, the one that reads it not counted; of links only those to
 * `what`. */
static unsigned count_entries(const char *path, const char *what)
{
	DIR *dir = opendir(path);
	unsigned count = 0;
	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		char target[256] = "";
		if (e->d_name[0] == '.')
			continue;
		ssize_t size = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		target[size > 0 ? size : 0] = '\0';
		count += !what || strstr(target, what);
	}
	(void)closedir(dir);
	return count;
}

static long status_field(const char *field)
{
	char line[256];
	long value = -1;
	FILE *file = fopen("/proc/self/status", "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, field, strlen(field)) == 0)
			value = strtol(line + strlen(field), NULL,
				       strcmp(field, "SigBlk:") == 0 ? 16 : 10);
	(void)fclose(file);
	return value;
}

static unsigned count_children(void)
{
	char path[64], text[4096];
	unsigned count = 0;
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(text, 1, sizeof(text), file) : 0;
	for (size_t i = 0; i < size; i++)
		count += text[i] == ' ';
	if (file)
		(void)fclose(file);
	return count;
}

static unsigned count_mappings(void)
{
	char line[1024];
	unsigned count = 0;
	FILE *file = fopen("/proc/self/maps", "re");
	while (file && fgets(line, sizeof(line), file))
		count++;
	if (file)
		(void)fclose(file);
	return count;
}

static void print_holdings(unsigned runs)
{
	(void)printf("{\"runs\": %u, \"fds\": %u, \"pidfds\": %u, \"epolls\": %u, \"rss_kb\": %ld, "
		     "\"data_kb\": %ld, \"threads\": %ld, \"children\": %u, \"mappings\": %u, "
		     "\"blocked\": %ld}\n",
		     runs, count_entries("/proc/self/fd", NULL) - 1,
		     count_entries("/proc/self/fd", "pidfd"),
		     count_entries("/proc/self/fd", "eventpoll"), status_field("VmRSS:"),
		     status_field("VmData:"), status_field("Threads:"), count_children(),
		     count_mappings(), status_field("SigBlk:"));
	(void)fflush(stdout);
}

/* --- runs ----------------------------------------------------------------------------- */

static int complain(const struct way *way, const char *what, const struct cj_error *err)
{
	(void)fprintf(stderr, "caller: %s: %s: %s\n", way->argv[0], what, err->msg);
	return -1;
}

static int judge(const struct way *way, const struct outcome *out)
{
	if (out->exec_errno == way->exec_errno &&
	    (way->exec_errno != 0 || out->status == way->status))
		return 0;
	(void)fprintf(stderr, "caller: %s: status %u, expected %u\n", way->argv[0], out->status,
		      way->status);
	return -1;
}

/* A started or failed jail to its end. */
static int finish_run(struct jail *jail, const struct way *way, const char *id)
{
	struct program program = { .workdir = way->workdir,
				   .limits = { .wall_ms = way->wall_ms, .output_bytes = 4096 } };
	struct cj_error err = { 0 };
	struct outcome out;
	while (program.argv.count < 3 && way->argv[program.argv.count])
		program.argv.count++;
	program.argv.items = (const char **)way->argv;

	int rc = jail_start(jail, &program, &no_io, &err);
	if (rc < 0)
		return rc == -way->start_errno ? 0 : complain(way, "start", &err);
	outcome_init(&out, id, 4096);
	rc = jail_wait(jail, &out, &err);
	rc = rc < 0 ? complain(way, "wait", &err) : judge(way, &out);
	outcome_fini(&out);
	return rc;
}

/* As many jails as asked for, prepared together, ended in the other order. */
static int run_batch(unsigned first, unsigned together)
{
	struct plan plans[TOGETHER_MAX];
	struct jail *jails[TOGETHER_MAX] = { NULL };
	char ids[TOGETHER_MAX][PLAN_ID_MAX];
	int rc = 0;

	for (unsigned i = 0; i < together; i++) {
		const struct way *way = &ways[(first + i) % WAYS];
		struct cj_error err = { 0 };
		plans[i] = make_plan();
		(void)snprintf(ids[i], sizeof(ids[i]), "test-%d-%u", getpid(), first + i);
		if (jail_prepare(&plans[i], ids[i], &jails[i], &err) < 0)
			rc = complain(way, "prepare", &err);
	}
	for (unsigned i = together; i-- > 0;) {
		if (jails[i] && finish_run(jails[i], &ways[(first + i) % WAYS], ids[i]) < 0)
			rc = -1;
		jail_destroy(&jails[i]);
	}
	return rc;
}

int main(int argc, char **argv)
{
	unsigned runs = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned every = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	unsigned together = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
	int rc = 0;
	if (runs == 0 || every == 0 || together == 0 || together > TOGETHER_MAX) {
		(void)fprintf(stderr, "usage: caller RUNS EVERY [TOGETHER]\n");
		return 2;
	}
	print_holdings(0);
	for (unsigned done = 0; done < runs; done += together) {
		if (run_batch(done, together) < 0)
			rc = 1;
		if ((done / every) != ((done + together) / every))
			print_holdings(done + together);
	}
	return rc;
}
