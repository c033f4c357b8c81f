/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside - build a tree in a child of the test and look at it from there.
 *
 * run_inside() does what supervisor and init do, as far as the tree needs it: new
 * namespaces, id maps, then the stages of rootfs.h, then `body`.  The body reports
 * with check() and ends by returning; cmocka's asserts stay in the parent.
 */
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "rootfs/rootfs.h"
#include "runtime/base/scope.h"
#include "tests/forked.h"

#define INSIDE_ID 1000
#define HOST_ID   0x70001234 /* what root maps it to, as idmap.c would */

/* --- what there is at a path, inside or outside ---------------------------------------- */

static inline bool exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

static inline bool may_create(const char *path)
{
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	return fd >= 0;
}

/* A regular file, and no link to one. */
static inline bool reads_as(const char *path, const char *expected)
{
	char text[256];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	cj_close(&fd);
	return got >= 0 && (text[got] = '\0', strcmp(text, expected) == 0);
}

/* --- the tree --------------------------------------------------------------------------- */

enum inside_end { ENDED_FINE, ENDED_CHECK, ENDED_STAGE, ENDED_NO_NAMESPACES };

struct inside_result {
	enum inside_end end;
	const char *stage; /* ENDED_STAGE */
	struct cj_error err;
	char check[160]; /* ENDED_CHECK: the condition that did not hold */
	int line;
	int leaked; /* descriptors more than before, after a stage failed */
	int calls;  /* for fault injection: wrapped calls made */
};

static struct inside_result *inside_result;

/* What must hold inside; the first that does not is shown by the parent. */
#define check(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			check_failed(#condition, __LINE__);                                        \
	} while (0)

static inline void check_failed(const char *condition, int line)
{
	inside_result->end = ENDED_CHECK;
	inside_result->line = line;
	(void)snprintf(inside_result->check, sizeof(inside_result->check), "%s (%s)", condition,
		       strerror(errno));
	_exit(1);
}

static inline int open_count(void)
{
	int n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static inline void stage_failed(const char *stage, const struct cj_error *err, int before)
{
	inside_result->end = ENDED_STAGE;
	inside_result->stage = stage;
	inside_result->err = *err;
	inside_result->leaked = open_count() - before;
	_exit(1);
}

static inline void become_inside(bool may_setgroups)
{
	check(!may_setgroups || setgroups(0, NULL) == 0);
	check(setresgid(INSIDE_ID, INSIDE_ID, INSIDE_ID) == 0);
	check(setresuid(INSIDE_ID, INSIDE_ID, INSIDE_ID) == 0);
}

/* Process 1 of the new namespaces. */
static inline void inside_init(const struct rootfs_spec *spec, bool may_setgroups,
			       void (*body)(void *), void *arg)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct cj_error err = { 0 };
	struct rootfs_sources *sources = NULL;
	int before = open_count();
	if (rootfs_open_sources(spec, &sources, &err) < 0)
		stage_failed("open", &err, before);
	become_inside(may_setgroups);
	int root_fd = rootfs_build(spec, &sources, &err);
	check(sources == NULL);
	if (root_fd < 0)
		stage_failed("build", &err, before);
	int rc = rootfs_enter(root_fd, &err);
	cj_close(&root_fd);
	if (rc < 0)
		stage_failed("enter", &err, before);
	int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = rootfs_mask_proc(proc_fd, INSIDE_ID, &err);
	cj_close(&proc_fd);
	if (rc < 0)
		stage_failed("mask", &err, before);
	check(open_count() == before);
	if (body)
		body(arg);
	inside_result->end = ENDED_FINE;
	_exit(0);
}

static inline void put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t put = fd < 0 ? -1 : write(fd, text, strlen(text));
	if (put < 0)
		(void)fprintf(stderr, "write '%s' to '%s': %s\n", text, path, strerror(errno));
	cj_close(&fd);
}

/* Does our own user namespace have this id?  Inside a container it may have one alone. */
static inline bool is_mapped(unsigned id)
{
	unsigned first, count;
	bool found = false;
	FILE *file = fopen("/proc/self/uid_map", "re");
	while (file && fscanf(file, "%u %*u %u", &first, &count) == 2)
		found = found || (id >= first && id - first < count);
	if (file)
		fclose(file);
	return found;
}

/* Root that has ids to give away, as opposed to root of a namespace of one id. */
static inline bool has_ids(void)
{
	return geteuid() == 0 && is_mapped(HOST_ID) && is_mapped(INSIDE_ID);
}

/* An ordinary user: another than root where there is one. */
static inline uid_t user_id(void)
{
	return has_ids() ? INSIDE_ID : geteuid();
}

static inline void write_maps(pid_t pid, uid_t caller)
{
	char path[64], text[64];
	bool is_root = caller == 0 && has_ids();
	unsigned host = is_root ? HOST_ID : caller;
	if (!is_root) {
		(void)snprintf(path, sizeof(path), "/proc/%d/setgroups", pid);
		put_text(path, "deny");
	}
	(void)snprintf(text, sizeof(text), "%d %u 1", INSIDE_ID, host);
	(void)snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	put_text(path, text);
	(void)snprintf(path, sizeof(path), "/proc/%d/gid_map", pid);
	put_text(path, text);
}

/* Between the parent and init: takes the caller's ids, makes the namespaces. */
static inline void inside_outer(const struct rootfs_spec *spec, uid_t caller, const int ready[2],
				const int mapped[2], void (*body)(void *), void *arg)
{
	bool may_setgroups = caller == 0 && has_ids();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (caller != geteuid() &&
	    (setgroups(0, NULL) < 0 || setresgid(caller, caller, caller) < 0 ||
	     setresuid(caller, caller, caller) < 0))
		_exit(2);
	int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	char byte = unshare(flags) == 0 ? 'y' : 'n';
	/* Without namespaces nobody writes the maps, and the pipe's other end is ours, too. */
	if (write(ready[1], &byte, 1) != 1 || byte != 'y' || read(mapped[0], &byte, 1) != 1)
		_exit(2);

	pid_t pid = test_fork();
	if (pid == 0) {
		close(ready[0]), close(ready[1]), close(mapped[0]), close(mapped[1]);
		inside_init(spec, may_setgroups, body, arg);
	}
	int status;
	_exit(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1);
}

/* Where parent and child see it. */
static inline void share_result(void)
{
	if (!inside_result)
		inside_result = mmap(NULL, sizeof(*inside_result), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(inside_result, MAP_FAILED);
}

/* Runs it all; the result is in *inside_result.  Skips the test where there are no namespaces. */
static inline void try_inside(const struct rootfs_spec *spec, uid_t caller, void (*body)(void *),
			      void *arg)
{
	share_result();
	*inside_result = (struct inside_result){ .end = ENDED_NO_NAMESPACES };

	int ready[2], mapped[2];
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(mapped, O_CLOEXEC), 0);
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		inside_outer(spec, caller, ready, mapped, body, arg);

	char byte = 'n';
	assert_int_equal(read(ready[0], &byte, 1), 1);
	if (byte == 'y') {
		write_maps(pid, caller);
		assert_int_equal(write(mapped[1], &byte, 1), 1);
	}
	close(ready[0]), close(ready[1]), close(mapped[0]), close(mapped[1]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (byte != 'y' && !getenv("CEJAIL_TEST_STRICT")) {
		print_message("skipped: this host allows no user namespaces\n");
		skip();
	}
	assert_int_equal(byte, 'y');
}

static inline void run_inside(const struct rootfs_spec *spec, uid_t caller, void (*body)(void *),
			      void *arg)
{
	try_inside(spec, caller, body, arg);
	if (inside_result->end == ENDED_STAGE)
		print_error("caller %u, %s: %s (%s)\n", caller, inside_result->stage,
			    inside_result->err.msg, inside_result->err.hint);
	if (inside_result->end == ENDED_CHECK)
		print_error("caller %u, line %d: %s\n", caller, inside_result->line,
			    inside_result->check);
	assert_int_equal(inside_result->end, ENDED_FINE);
}

/* As root and as an ordinary user when we can be both, else as who we are. */
static inline void run_as_each(const struct rootfs_spec *spec, void (*body)(void *), void *arg)
{
	if (has_ids())
		run_inside(spec, 0, body, arg);
	run_inside(spec, user_id(), body, arg);
}

/* The stage must fail with a message that has `part` in it. */
static inline void expect_failure(const struct rootfs_spec *spec, const char *stage,
				  const char *part)
{
	try_inside(spec, geteuid(), NULL, NULL);
	assert_int_equal(inside_result->end, ENDED_STAGE);
	assert_string_equal(inside_result->stage, stage);
	if (!strstr(inside_result->err.msg, part))
		print_error("message: %s\n", inside_result->err.msg);
	assert_non_null(strstr(inside_result->err.msg, part));
	assert_int_equal(inside_result->leaked, 0);
}

static inline struct rootfs_spec host_spec(void)
{
	return (struct rootfs_spec){
		.kind = ROOT_HOST,
		.scratch_bytes = 8 << 20,
		.scratch_inodes = 1024,
		.hostname = "box1",
		.uid = INSIDE_ID,
		.gid = INSIDE_ID,
	};
}

/* --- a directory of the test's own --------------------------------------------- */

/* A place in /tmp that an ordinary user can reach; end_place() removes it. */
static inline char *make_place(void)
{
	char *path = strdup("/tmp/cejail-rootfs-XXXXXX");
	assert_non_null(path);
	assert_non_null(mkdtemp(path));
	assert_int_equal(chmod(path, 0755), 0);
	return path;
}

static inline const char *at(const char *place, const char *name)
{
	static char paths[8][PATH_MAX];
	static unsigned turn;
	char *path = paths[turn++ % 8];
	(void)snprintf(path, PATH_MAX, "%s/%s", place, name);
	return path;
}

static inline void make_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static inline void remove_below(int dir_fd)
{
	DIR *dir = fdopendir(dir_fd);
	for (struct dirent *e; dir && (e = readdir(dir));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), e->d_name, 0) == 0)
			continue;
		int fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
		if (fd >= 0)
			remove_below(fd);
		(void)unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
	}
	if (dir)
		closedir(dir);
}

static inline void end_place(char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		remove_below(fd);
	(void)rmdir(path);
	free(path);
}
