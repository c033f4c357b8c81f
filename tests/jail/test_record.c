/* SPDX-License-Identifier: Apache-2.0 */
/* Records: those of the living are listed, those of the dead swept, forged ones do no harm. */
#include "runtime/jail/record.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/process/process_usage_text.h"
#include "tests/forked.h"

/* WRAP: cgroup_remove_path pwrite flock sys_pidfd_open */

static char dir_path[64];
static int dir_fd = -1;

static struct {
	char path[512];
	uint64_t inode;
	unsigned calls;
	int rc;
} removed;

int __wrap_cgroup_remove_path(const char *path, uint64_t inode, struct cj_error *err);
int __wrap_cgroup_remove_path(const char *path, uint64_t inode, struct cj_error *err)
{
	removed.calls++;
	removed.inode = inode;
	(void)snprintf(removed.path, sizeof(removed.path), "%s", path);
	return removed.rc < 0 ? cj_fail(err, -removed.rc, "remove") : 0;
}

static bool disk_is_full;

ssize_t __real_pwrite(int fd, const void *buf, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *buf, size_t size, off_t at)
{
	errno = ENOSPC;
	return disk_is_full ? -1 : __real_pwrite(fd, buf, size, at);
}

/* A child that dies with us: after a failed test it must not keep the test's output open. */
static pid_t fork_child(void)
{
	pid_t pid = test_fork();
	if (pid == 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	return pid;
}

static unsigned flocks;
static void (*before_flock)(void); /* what happens between open(2) and flock(2), once */
static void (*before_pidfd)(void); /* and before pidfd_open(2) */

static void run_once(void (**hook)(void))
{
	void (*now)(void) = *hook;
	*hook = NULL;
	if (now)
		now();
}

int __real_flock(int fd, int operation);
int __wrap_flock(int fd, int operation);
int __wrap_flock(int fd, int operation)
{
	flocks++;
	run_once(&before_flock);
	return __real_flock(fd, operation);
}

int __real_sys_pidfd_open(pid_t pid);
int __wrap_sys_pidfd_open(pid_t pid);
int __wrap_sys_pidfd_open(pid_t pid)
{
	run_once(&before_pidfd);
	return __real_sys_pidfd_open(pid);
}

static int begin(void **state)
{
	(void)state;
	before_flock = before_pidfd = NULL;
	memset(&removed, 0, sizeof(removed));
	disk_is_full = false;
	(void)snprintf(dir_path, sizeof(dir_path), "/tmp/cejail-test-record.XXXXXX");
	if (!mkdtemp(dir_path))
		return -1;
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return mkdirat(dir_fd, "runs", 0700);
}

static int end(void **state)
{
	(void)state;
	auto_fd int runs_fd = openat(dir_fd, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_dir DIR *dir = fdopendir(dup(runs_fd));
	for (struct dirent *e; dir && (e = readdir(dir)) != NULL;)
		(void)unlinkat(runs_fd, e->d_name, 0); /* "." and ".." stay */
	(void)unlinkat(dir_fd, "swept", 0);
	if (unlinkat(dir_fd, "runs", AT_REMOVEDIR) < 0)
		return -1;
	cj_close(&dir_fd);
	return rmdir(dir_path);
}

static struct record record_of(const char *id)
{
	return (struct record){
		.id = id,
		.profile = "python",
		.cgroup_path = "",
		.started_ms = 1767323045678u,
	};
}

static int create(const char *id)
{
	struct record r = record_of(id);
	struct cj_error err = { 0 };
	int fd = record_create(dir_fd, &r, &err);
	r.init_pid = 4242;
	if (fd < 0 || record_complete(fd, &r, &err) < 0)
		print_message("%s\n", err.msg);
	return fd;
}

static uint64_t start_of(pid_t pid)
{
	char path[64], text[SYSTEM_FILE_SMALL];
	struct sample_stat stat;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	assert_true(system_file_read(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_true(process_usage_text_stat(text, &stat));
	return stat.start_ticks;
}

/* A process that has nothing to do with any run, and stays. */
static pid_t fork_bystander(void)
{
	pid_t pid = fork_child();
	if (pid == 0)
		for (;;)
			(void)pause();
	return pid;
}

static void assert_unharmed(pid_t bystander)
{
	int status = 0;
	assert_int_equal(waitpid(bystander, &status, WNOHANG), 0);
	assert_int_equal(kill(bystander, SIGKILL), 0);
	assert_int_equal(waitpid(bystander, &status, 0), bystander);
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

/* A record as a killed supervisor leaves it: complete and unlocked. */
static void leave_dead(const char *id, const char *cgroup, uint64_t inode)
{
	struct record r = record_of(id);
	struct cj_error err;
	r.cgroup_path = cgroup;
	r.cgroup_inode = inode;
	auto_fd int fd = record_create(dir_fd, &r, &err);
	assert_true(fd >= 0);
}

static void put(const char *name, const char *text)
{
	auto_fd int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static bool exists(const char *name)
{
	struct stat st;
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static size_t list(struct arena *a, struct record_entry **out)
{
	size_t count = 0;
	struct cj_error err = { 0 };
	assert_int_equal(record_list(dir_fd, a, out, &count, &err), 0);
	return count;
}

static int sweep(void)
{
	struct cj_error err = { 0 };
	int rc = record_sweep(dir_fd, &err);
	assert_true(rc >= 0);
	return rc;
}

static void a_jail_that_waits_is_listed_as_ready_until_it_starts(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	struct cj_error err = { 0 };
	struct record r = { .id = "ready", .profile = "p", .cgroup_path = "", .started_ms = 5 };
	int fd = record_create(dir_fd, &r, &err);
	assert_true(fd >= 0);
	for (int i = 0; i < 3; i++) {
		r.is_ready = i == 1;
		assert_int_equal(record_complete(fd, &r, &err), 0);
		assert_int_equal(list(&a, &entries), 1);
		assert_int_equal(entries[0].record.is_ready, i == 1);
	}
	record_remove(dir_fd, "ready", &fd);
}

static void a_record_without_the_mark_is_a_running_one(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	put("runs/old.json", "{\"id\":\"old\",\"profile\":\"p\",\"cgroup\":\"\",\"cgroup_inode\":0,"
			     "\"supervisor_pid\":1,\"supervisor_start\":1,\"init_pid\":2,"
			     "\"started_ms\":3}");
	assert_int_equal(list(&a, &entries), 1);
	assert_false(entries[0].record.is_ready);
	assert_int_equal(sweep(), 1);
}

static void a_record_is_listed_as_it_was_written(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	int fd = create("01JABCDEFGHJKMNPQRSTVWXYZ0");
	assert_true(fd >= 0);
	assert_int_equal(list(&a, &entries), 1);
	assert_string_equal(entries[0].record.id, "01JABCDEFGHJKMNPQRSTVWXYZ0");
	assert_string_equal(entries[0].record.profile, "python");
	assert_string_equal(entries[0].record.cgroup_path, "");
	assert_int_equal(entries[0].record.supervisor_pid, getpid());
	assert_true(entries[0].record.supervisor_start == start_of(getpid()));
	assert_int_equal(entries[0].record.init_pid, 4242);
	assert_true(entries[0].record.started_ms == 1767323045678u);
	assert_true(entries[0].is_alive);

	record_remove(dir_fd, "01JABCDEFGHJKMNPQRSTVWXYZ0", &fd);
	assert_int_equal(fd, -1);
	assert_int_equal(list(&a, &entries), 0);
	record_remove(dir_fd, "01JABCDEFGHJKMNPQRSTVWXYZ0", &fd);
}

static void a_record_is_private(void **state)
{
	(void)state;
	struct stat st;
	int fd = create("a");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	record_remove(dir_fd, "a", &fd);
}

static void many_records_are_all_listed(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	for (int i = 0; i < 70; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "run-%d", i);
		leave_dead(id, "", 7);
	}
	assert_int_equal(list(&a, &entries), 70);
	for (int i = 0; i < 70; i++)
		assert_false(entries[i].is_alive);
	assert_int_equal(sweep(), 70);
	assert_int_equal(list(&a, &entries), 0);
}

static void an_id_in_use_is_refused_and_a_dead_one_taken_over(void **state)
{
	(void)state;
	struct record r = record_of("a");
	struct cj_error err = { 0 };
	int fd = create("a");
	assert_int_equal(record_create(dir_fd, &r, &err), -EEXIST);
	assert_non_null(strstr(err.msg, "'a'"));
	assert_true(exists("runs/a.json"));
	cj_close(&fd); /* as when killed */

	fd = create("a");
	assert_true(fd >= 0);
	record_remove(dir_fd, "a", &fd);
}

static void a_dead_run_s_name_is_free_when_its_cgroup_is_gone(void **state)
{
	(void)state;
	struct record r = record_of("a");
	struct cj_error err = { 0 };
	leave_dead("a", "/sys/fs/cgroup/cejail/cejail-a", 7);
	removed.rc = -EBUSY;
	assert_int_equal(record_create(dir_fd, &r, &err), -EEXIST);
	assert_true(exists("runs/a.json"));

	removed.rc = removed.calls = 0;
	int fd = create("a");
	assert_true(fd >= 0);
	assert_int_equal(removed.calls, 1);
	record_remove(dir_fd, "a", &fd);
}

static void a_name_that_leads_elsewhere_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = { "",         "../a",
					   "a/b",      ".",
					   "a.b",      "a b",
					   "\xc3\xa4", "x23456789012345678901234567890123" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct record r = record_of(bad[i]);
		struct cj_error err = { 0 };
		assert_int_equal(record_create(dir_fd, &r, &err), -EINVAL);
		assert_int_equal(record_cancel(dir_fd, bad[i], &err), -ENOENT);
	}
}

static void a_record_that_cannot_be_written_leaves_nothing(void **state)
{
	(void)state;
	struct record r = record_of("a");
	struct cj_error err = { 0 };
	disk_is_full = true;
	assert_int_equal(record_create(dir_fd, &r, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "'a'"));
	assert_false(exists("runs/a.json"));
}

static void a_killed_owner_is_seen_as_dead_and_swept(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork_child();
	if (pid == 0) {
		int fd = create("victim");
		(void)!write(ready[1], "", fd >= 0);
		for (;;)
			(void)pause();
	}
	char byte;
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	assert_int_equal(list(&a, &entries), 1);
	assert_true(entries[0].is_alive);
	assert_int_equal(sweep(), 0);

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(list(&a, &entries), 1);
	assert_false(entries[0].is_alive);
	assert_int_equal(sweep(), 1);
	assert_int_equal(list(&a, &entries), 0);
}

static void a_sweep_ends_the_cgroup_that_was_recorded(void **state)
{
	(void)state;
	char leaf[128];
	struct stat st;
	(void)snprintf(leaf, sizeof(leaf), "%s/cejail-job1", dir_path);
	assert_int_equal(mkdir(leaf, 0700), 0);
	assert_int_equal(stat(leaf, &st), 0);
	leave_dead("job1", leaf, st.st_ino);
	assert_int_equal(sweep(), 1);
	assert_int_equal(removed.calls, 1);
	assert_string_equal(removed.path, leaf);
	assert_true(removed.inode == st.st_ino);
	assert_int_equal(rmdir(leaf), 0);
}

static void a_record_stays_until_its_cgroup_is_gone(void **state)
{
	(void)state;
	leave_dead("job1", "/sys/fs/cgroup/cejail/cejail-job1", 7);
	removed.rc = -EBUSY;
	assert_int_equal(sweep(), 0);
	assert_true(exists("runs/job1.json"));
	removed.rc = -EINVAL; /* it isn't a leaf at all: it never will be */
	assert_int_equal(sweep(), 1);
}

static void a_forged_cgroup_is_never_removed(void **state)
{
	(void)state;
	static const char *const forged[] = {
		"/sys/fs/cgroup/system.slice",
		"/sys/fs/cgroup/cejail/cejail-other",
		"/cejail-",
		"cejail-job1",
		"/sys/fs/cgroup/x-cejail-job1",
		"/cejail-job1",
	};
	for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		leave_dead("job1", forged[i], 7);
		assert_int_equal(sweep(), 1);
		assert_int_equal(removed.calls, 0);
	}
}

static void rubbish_is_not_listed_and_swept_only_when_it_could_be_a_record(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	static const char *const texts[] = {
		"{",
		"[]",
		"null",
		"{}",
		"{\"id\":\"other\"}",
		"{\"id\":\"r\",\"profile\":\"p\",\"cgroup\":\"\",\"cgroup_inode\":0,"
		"\"supervisor_pid\":-1,\"supervisor_start\":1,\"init_pid\":2,\"started_ms\":3}",
		"{\"id\":\"r\",\"profile\":\"p\",\"cgroup\":\"\",\"cgroup_inode\":0,"
		"\"supervisor_pid\":99999999999,\"supervisor_start\":1,\"init_pid\":2,\"started_ms\":3}",
	};
	put("runs/notes.txt", "mine");
	put("runs/.json", "{}");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		put("runs/r.json", texts[i]);
		assert_int_equal(list(&a, &entries), 0);
		assert_int_equal(sweep(), 1);
		assert_false(exists("runs/r.json"));
	}
	assert_int_equal(removed.calls, 0);
	assert_true(exists("runs/notes.txt"));
	assert_true(exists("runs/.json"));
}

static void a_huge_record_is_not_read(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	put("runs/huge.json", "{");
	auto_fd int fd = openat(dir_fd, "runs/huge.json", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_int_equal(list(&a, &entries), 0);
	assert_int_equal(sweep(), 1);
}

static void links_and_fifos_in_place_of_records_are_left_alone(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	char target[128];
	leave_dead("real", "", 7);
	(void)snprintf(target, sizeof(target), "%s/runs/real.json", dir_path);
	assert_int_equal(symlinkat(target, dir_fd, "runs/link.json"), 0);
	assert_int_equal(mkfifoat(dir_fd, "runs/fifo.json", 0600), 0);
	assert_int_equal(list(&a, &entries), 1);
	assert_int_equal(record_cancel(dir_fd, "fifo", &(struct cj_error){ 0 }), -ENOENT);
	int swept = sweep();
	assert_true(exists("runs/link.json"));
	assert_true(swept >= 1);
	assert_false(exists("runs/real.json"));
}

static void an_empty_record_is_swept_at_once(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	put("runs/young.json", "");
	assert_int_equal(list(&a, &entries), 0);
	assert_int_equal(sweep(), 1);
	assert_false(exists("runs/young.json"));
}

static void a_sweep_gets_there_first(void)
{
	assert_int_equal(sweep(), 1);
	assert_false(exists("runs/a.json"));
}

static void a_file_that_is_swept_before_its_maker_locks_it_is_made_again(void **state)
{
	(void)state;
	before_flock = a_sweep_gets_there_first;
	int fd = create("a");
	assert_true(fd >= 0);
	assert_null(before_flock);
	assert_true(exists("runs/a.json"));
	assert_int_equal(sweep(), 0);
	record_remove(dir_fd, "a", &fd);
}

static void a_record_names_its_cgroup_before_it_is_complete(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	struct cj_error err = { 0 };
	struct record r = record_of("a");
	r.cgroup_path = "/sys/fs/cgroup/cejail/cejail-a";
	int fd = record_create(dir_fd, &r, &err);
	assert_true(fd >= 0);
	assert_int_equal(list(&a, &entries), 1);
	assert_int_equal(record_cancel(dir_fd, "a", &err), -EAGAIN);

	r.cgroup_inode = UINT64_MAX;
	assert_int_equal(record_complete(fd, &r, &err), 0);
	assert_int_equal(list(&a, &entries), 1);
	assert_true(entries[0].record.cgroup_inode == UINT64_MAX);
	record_remove(dir_fd, "a", &fd);

	leave_dead("a", r.cgroup_path, 0); /* killed before it could complete it */
	removed.calls = 0;
	assert_int_equal(sweep(), 1);
	assert_int_equal(removed.calls, 1);
	assert_true(removed.inode == 0);
}

static void a_cancel_reaches_the_supervisor(void **state)
{
	(void)state;
	int ready[2], status = 0;
	struct cj_error err = { 0 };
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork_child();
	if (pid == 0) {
		int fd = create("victim");
		(void)!write(ready[1], "", fd >= 0);
		for (;;)
			(void)pause();
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]), (void)close(ready[1]);
	assert_int_equal(record_cancel(dir_fd, "victim", &err), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(record_cancel(dir_fd, "victim", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "'victim'"));
	assert_true(err.hint[0] != '\0');
}

static int create_for(const char *id, pid_t pid, uint64_t start)
{
	struct record r = record_of(id);
	struct cj_error err = { 0 };
	r.supervisor_pid = pid;
	r.supervisor_start = start;
	return record_create(dir_fd, &r, &err);
}

static void a_dead_run_is_not_cancelled_even_if_its_pid_is_reused(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	pid_t bystander = fork_bystander();
	int fd = create_for("old", bystander, start_of(bystander));
	cj_close(&fd);
	assert_int_equal(record_cancel(dir_fd, "old", &err), -ENOENT);
	assert_unharmed(bystander);
}

static void a_locked_record_signals_only_the_process_that_wrote_it(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	pid_t bystander = fork_bystander(); /* has its pid by now, and a sweep has the lock */
	int fd = create_for("swept", bystander, start_of(bystander) - 1);
	assert_true(fd >= 0);
	assert_int_equal(record_cancel(dir_fd, "swept", &err), -ENOENT);
	record_remove(dir_fd, "swept", &fd);
	assert_unharmed(bystander);
}

static int owner_fd = -1;

static void owner_dies(void)
{
	cj_close(&owner_fd);
}

static void a_supervisor_that_ends_while_its_pid_is_opened_is_not_signalled(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	pid_t bystander = fork_bystander(); /* has its pid by then */
	owner_fd = create_for("ending", bystander, start_of(bystander));
	before_pidfd = owner_dies;
	assert_int_equal(record_cancel(dir_fd, "ending", &err), -ENOENT);
	assert_unharmed(bystander);
}

static void name_passes_on(void)
{
	(void)unlinkat(dir_fd, "runs/reused.json", 0);
	owner_fd = create("reused");
}

static void a_name_that_passes_to_a_new_run_is_not_swept(void **state)
{
	(void)state;
	leave_dead("reused", "/sys/fs/cgroup/cejail/cejail-reused", 7);
	before_flock = name_passes_on; /* the old file is open by then */
	assert_int_equal(sweep(), 0);
	assert_true(owner_fd >= 0);
	assert_true(exists("runs/reused.json"));
	assert_int_equal(removed.calls, 0);
	record_remove(dir_fd, "reused", &owner_fd);
	assert_false(exists("runs/reused.json"));
}

static void a_record_of_pid_0_or_1_signals_no_process(void **state)
{
	(void)state;
	for (pid_t pid = 0; pid <= 1; pid++) {
		struct record r = record_of("odd");
		struct cj_error err = { 0 };
		r.supervisor_pid = pid;
		int fd = record_create(dir_fd, &r, &err);
		assert_true(fd >= 0);
		assert_int_equal(record_cancel(dir_fd, "odd", &err), -EAGAIN);
		record_remove(dir_fd, "odd", &fd);
	}
}

#define BATCH 64 /* as in record.c */

static int sweep_batch(void)
{
	struct cj_error err = { 0 };
	flocks = 0;
	int rc = record_sweep_batch(dir_fd, "", &err);
	assert_true(rc >= 0);
	assert_true(flocks <= BATCH);
	return rc;
}

/* Living ones, with a dead one behind every 50th; returns how many died. */
static int leave_crowd(int count, int *lock_fds)
{
	int dead = 0;
	for (int i = 0; i < count; i++) {
		char id[24];
		(void)snprintf(id, sizeof(id), "alive-%d", i);
		lock_fds[i] = create(id);
		assert_true(lock_fds[i] >= 0);
		if (i % 50 != 0)
			continue;
		(void)snprintf(id, sizeof(id), "dead-%d", i);
		leave_dead(id, "", 7);
		dead++;
	}
	return dead;
}

static void the_next_run_sweeps_all_that_is_dead_among_few_records(void **state)
{
	(void)state;
	int alive = create("alive");
	for (int i = 0; i < BATCH - 2; i++) {
		char id[24];
		(void)snprintf(id, sizeof(id), "dead-%d", i);
		leave_dead(id, "", 7);
	}
	assert_int_equal(sweep_batch(), BATCH - 2);
	assert_true(exists("runs/alive.json"));
	assert_false(exists("swept"));
	cj_close(&alive);
}

static void a_run_does_not_look_at_its_own_record(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	int own = create("own"), other = create("other");
	flocks = 0;
	assert_int_equal(record_sweep_batch(dir_fd, "own", &err), 0);
	assert_int_equal(flocks, 1);
	record_remove(dir_fd, "own", &own);
	record_remove(dir_fd, "other", &other);
}

static void runs_look_at_a_bounded_number_of_records_and_together_at_all(void **state)
{
	(void)state;
	int lock_fds[400], swept = 0, dead = leave_crowd(400, lock_fds);
	/* round after round, because the cursor must also come back to the beginning */
	for (int round = 0; round < 3; round++) {
		/* a batch in which something was removed is looked at once more */
		for (int i = 0; i < 2 * ((400 + dead) / BATCH + 2); i++)
			swept += sweep_batch();
		assert_int_equal(swept, (round + 1) * dead);
		for (int i = 0; i < dead; i++) {
			char id[24];
			(void)snprintf(id, sizeof(id), "again-%d", i);
			leave_dead(id, "", 7);
		}
	}
	assert_int_equal(sweep(), dead);
	for (int i = 0; i < 400; i++) {
		char id[24];
		(void)snprintf(id, sizeof(id), "alive-%d", i);
		record_remove(dir_fd, id, &lock_fds[i]);
	}
}

/* The directory is ours alone; but an older or newer cejail may have left it. */
static void rubbish_in_place_of_the_cursor_delays_no_sweep_for_ever(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "abc", "rubbish-of-more-than-8-bytes",
					     "\377\377\377\377\377\377\377\377",
					     "\377\377\377\377\377\377\377\177" };
	int lock_fds[150], dead = leave_crowd(150, lock_fds);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		int swept = 0;
		put("swept", texts[i]);
		for (int k = 0; k < 5; k++)
			swept += sweep_batch();
		assert_int_equal(swept, i == 0 ? dead : 1);
		leave_dead("one-more", "", 7);
	}
	assert_int_equal(unlinkat(dir_fd, "swept", 0), 0);
	assert_int_equal(symlinkat("runs/alive-1.json", dir_fd, "swept"), 0);
	(void)sweep_batch();
	auto_arena struct arena a = { 0 };
	struct record_entry *entries;
	(void)sweep();
	assert_int_equal(list(&a, &entries), 150);
	for (int i = 0; i < 150; i++)
		cj_close(&lock_fds[i]);
}

/* Creators, sweepers and listers at once: every creator gets its record, none is swept. */
static void concurrent_runs_never_lose_a_record(void **state)
{
	(void)state;
	pid_t sweeper = fork_child();
	if (sweeper == 0)
		for (bool all = true;; all = !all)
			(void)(all ? record_sweep(dir_fd, &(struct cj_error){ 0 })
				   : record_sweep_batch(dir_fd, "", &(struct cj_error){ 0 }));
	for (int round = 0; round < 300; round++) {
		char id[16], name[32];
		(void)snprintf(id, sizeof(id), "r-%d", round);
		(void)snprintf(name, sizeof(name), "runs/%s.json", id);
		int fd = create(id);
		assert_true(fd >= 0);
		assert_true(exists(name));
		record_remove(dir_fd, id, &fd);
		assert_false(exists(name));
	}
	assert_int_equal(kill(sweeper, SIGKILL), 0);
	assert_int_equal(waitpid(sweeper, NULL, 0), sweeper);
}

static void a_missing_directory_is_an_error(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	auto_fd int empty_fd = openat(dir_fd, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct record_entry *entries;
	struct cj_error err = { 0 };
	size_t count;
	assert_int_equal(record_list(empty_fd, &a, &entries, &count, &err), -ENOENT);
	assert_int_equal(record_sweep(empty_fd, &err), -ENOENT);
	assert_int_equal(record_sweep_batch(empty_fd, "", &err), -ENOENT);
	assert_non_null(strstr(err.msg, "'runs'"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_is_listed_as_it_was_written),
		TEST(a_jail_that_waits_is_listed_as_ready_until_it_starts),
		TEST(a_record_without_the_mark_is_a_running_one),
		TEST(a_record_is_private),
		TEST(many_records_are_all_listed),
		TEST(an_id_in_use_is_refused_and_a_dead_one_taken_over),
		TEST(a_dead_run_s_name_is_free_when_its_cgroup_is_gone),
		TEST(a_name_that_leads_elsewhere_is_refused),
		TEST(a_record_that_cannot_be_written_leaves_nothing),
		TEST(a_killed_owner_is_seen_as_dead_and_swept),
		TEST(a_sweep_ends_the_cgroup_that_was_recorded),
		TEST(a_record_stays_until_its_cgroup_is_gone),
		TEST(a_forged_cgroup_is_never_removed),
		TEST(rubbish_is_not_listed_and_swept_only_when_it_could_be_a_record),
		TEST(a_huge_record_is_not_read),
		TEST(links_and_fifos_in_place_of_records_are_left_alone),
		TEST(an_empty_record_is_swept_at_once),
		TEST(a_file_that_is_swept_before_its_maker_locks_it_is_made_again),
		TEST(a_record_names_its_cgroup_before_it_is_complete),
		TEST(a_cancel_reaches_the_supervisor),
		TEST(a_dead_run_is_not_cancelled_even_if_its_pid_is_reused),
		TEST(a_locked_record_signals_only_the_process_that_wrote_it),
		TEST(a_supervisor_that_ends_while_its_pid_is_opened_is_not_signalled),
		TEST(a_name_that_passes_to_a_new_run_is_not_swept),
		TEST(a_record_of_pid_0_or_1_signals_no_process),
		TEST(the_next_run_sweeps_all_that_is_dead_among_few_records),
		TEST(a_run_does_not_look_at_its_own_record),
		TEST(runs_look_at_a_bounded_number_of_records_and_together_at_all),
		TEST(rubbish_in_place_of_the_cursor_delays_no_sweep_for_ever),
		TEST(concurrent_runs_never_lose_a_record),
		TEST(a_missing_directory_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
