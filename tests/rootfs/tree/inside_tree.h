/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inside_tree - build a struct tree_spec in a child of the test, in namespaces of its own, and look
 * at it from there: like inside.h, which has the checks, for a root file system that the test made.
 *
 * As root the tree is built twice: without and with a user namespace.  Elsewhere only with one.
 */
#pragma once

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "rootfs/tree/sysctls.h"
#include "rootfs/tree/tree.h"
#include "tests/forked.h"
#include "tests/rootfs/inside.h"

struct tree_case {
	struct tree_spec spec;
	const struct sysctl *sysctls;
	size_t nsysctls;
	void (*host)(void *); /* in the runtime, in a mount namespace that plays the host */
	pid_t (*attack)(
	    void *);           /* in the runtime, before the child exists; this process is killed */
	void (*after)(void *); /* in the runtime, after the child's end */
	void (*hook)(void *);  /* in init, between tree_build() and tree_finish() */
	void (*body)(void *);  /* in init, at the end */
	void *arg;
	int kept_namespaces; /* CLONE_NEW* that init does not get */
};

#define OPS(list) (list), sizeof(list) / sizeof((list)[0])

/* An operation on a new file system, or a bind. */
#define FS(where, what, ...)                                                                       \
	{                                                                                          \
		.kind = TREE_FS, .path = (where), .type = (what), __VA_ARGS__                      \
	}
#define BIND_AT(where, from, ...)                                                                  \
	{                                                                                          \
		.kind = TREE_BIND, .path = (where), .source = (from), __VA_ARGS__                  \
	}

/* The four that every container has. */
#define USUAL_MOUNTS                                                                               \
	FS("/proc", "proc", ), FS("/dev", "tmpfs", ), FS("/sys", "sysfs", ),                       \
	    FS("/dev/mqueue", "mqueue", )

static inline void tree_stage(const char *stage, int rc, const struct cj_error *err, int before)
{
	if (rc < 0)
		stage_failed(stage, err, before);
}

/* Process 1 of the new namespaces. */
static inline void tree_init(const struct tree_case *c, struct tree_sources *sources,
			     const struct sysctl_host *host, int before)
{
	struct cj_error err = { 0 };
	const struct tree_spec *spec = &c->spec;
	int rc = tree_open_sources(spec, sources, &err);
	if (rc < 0)
		tree_close(&sources);
	tree_stage("open", rc, &err, before);
	int root_fd = tree_build(spec, sources, &err);
	if (root_fd < 0)
		tree_close(&sources);
	tree_stage("build", root_fd, &err, before);
	if (c->hook)
		c->hook(c->arg);
	tree_stage("finish", tree_finish(spec, sources, root_fd, &err), &err, before + 64);
	tree_stage("sysctls", sysctls_write(c->sysctls, c->nsysctls, host, &err), &err,
		   before + 64);
	tree_close(&sources);
	tree_stage("enter", tree_enter(spec, root_fd, &err), &err, before + 1);
	cj_close(&root_fd);
	tree_stage("seal", tree_seal(spec, &err), &err, before);
	check(open_count() == before);
	if (c->body)
		c->body(c->arg);
	inside_result->end = ENDED_FINE;
	_exit(0);
}

#define TREE_NAMESPACES                                                                            \
	(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET | CLONE_NEWCGROUP)

/* One id: the caller's is root inside. */
static inline int enter_user_namespace(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];
	if (unshare(CLONE_NEWUSER) < 0)
		return -1;
	put_text("/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	put_text("/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	put_text("/proc/self/gid_map", map);
	return 0;
}

/* Between the runtime and init: makes the namespaces. */
static inline void tree_middle(const struct tree_case *c, bool has_user_ns,
			       struct tree_sources *sources, const struct sysctl_host *host,
			       int before)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (has_user_ns && enter_user_namespace() < 0)
		_exit(2);
	if (unshare(TREE_NAMESPACES & ~c->kept_namespaces) < 0)
		_exit(2);
	pid_t pid = test_fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		tree_init(c, sources, host, before);
	}
	int status;
	_exit(pid > 0 && waitpid(pid, &status, 0) == pid ? 0 : 1);
}

static inline void tree_runtime(const struct tree_case *c, bool has_user_ns)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct cj_error err = { 0 };
	struct sysctl_host host;
	struct tree_sources *sources = NULL;
	if (c->host && unshare(CLONE_NEWNS) < 0)
		_exit(2);
	if (c->host)
		c->host(c->arg);
	int before = open_count();
	tree_stage("host", sysctls_look_at_host(&host, &err), &err, before);
	tree_stage("outside", tree_open_outside(&c->spec, "/", &sources, &err), &err, before);
	pid_t attacker = c->attack ? c->attack(c->arg) : -1;
	pid_t pid = test_fork();
	if (pid == 0)
		tree_middle(c, has_user_ns, sources, &host, before);
	int status;
	bool has_ended = pid > 0 && waitpid(pid, &status, 0) == pid;
	if (attacker > 0)
		(void)kill(attacker, SIGKILL);
	if (has_ended && c->after && inside_result->end == ENDED_FINE)
		c->after(c->arg);
	_exit(has_ended ? 0 : 1);
}

static inline void try_tree(const struct tree_case *c, bool has_user_ns)
{
	share_result();
	*inside_result = (struct inside_result){ .end = ENDED_NO_NAMESPACES };
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		tree_runtime(c, has_user_ns);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (inside_result->end == ENDED_NO_NAMESPACES && !getenv("CEJAIL_TEST_STRICT")) {
		print_message("skipped: this host allows no user namespaces\n");
		skip();
	}
}

static inline void run_tree_once(const struct tree_case *c, bool has_user_ns)
{
	try_tree(c, has_user_ns);
	if (inside_result->end == ENDED_STAGE)
		print_error("user namespace %d, %s: %s (%s)\n", has_user_ns, inside_result->stage,
			    inside_result->err.msg, inside_result->err.hint);
	if (inside_result->end == ENDED_CHECK)
		print_error("user namespace %d, line %d: %s\n", has_user_ns, inside_result->line,
			    inside_result->check);
	assert_int_equal(inside_result->end, ENDED_FINE);
}

static inline void run_tree(const struct tree_case *c)
{
	if (has_ids())
		run_tree_once(c, false);
	run_tree_once(c, true);
}

static inline void expect_tree_failure(const struct tree_case *c, const char *stage,
				       const char *part)
{
	for (int has_user_ns = !has_ids(); has_user_ns <= 1; has_user_ns++) {
		try_tree(c, has_user_ns);
		if (inside_result->end != ENDED_STAGE || !strstr(inside_result->err.msg, part))
			print_error("user namespace %d, %s: %s\n", has_user_ns,
				    inside_result->stage ? inside_result->stage : "no failure",
				    inside_result->err.msg);
		assert_int_equal(inside_result->end, ENDED_STAGE);
		assert_string_equal(inside_result->stage, stage);
		assert_non_null(strstr(inside_result->err.msg, part));
		assert_true(inside_result->leaked <= 0);
	}
}

/* --- what is there ---------------------------------------------------------------------- */

static inline bool has_magic(const char *path, long magic)
{
	struct statfs fs;
	return statfs(path, &fs) == 0 && fs.f_type == magic;
}

static inline bool is_device_node(const char *path, unsigned major_number, unsigned minor_number)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISCHR(st.st_mode) &&
	       st.st_rdev == makedev(major_number, minor_number);
}

static inline bool is_link_to(const char *path, const char *target)
{
	char found[PATH_MAX];
	ssize_t size = readlink(path, found, sizeof(found));
	return size == (ssize_t)strlen(target) && memcmp(found, target, (size_t)size) == 0;
}

/* The options of the topmost mount at `path`, and what follows " - ", in out. */
static inline bool mount_line(const char *path, char *out, size_t size)
{
	char line[1024], place[512];
	bool found = false;
	FILE *file = fopen("/proc/self/mountinfo", "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*s %*s %*s %511s", place) != 1 || strcmp(place, path) != 0)
			continue;
		(void)snprintf(out, size, "%s", line);
		found = true;
	}
	if (file)
		fclose(file);
	return found;
}

static inline bool mount_has(const char *path, const char *part)
{
	char line[1024];
	return mount_line(path, line, sizeof(line)) && strstr(line, part) != NULL;
}

static inline void make_dir(const char *place, const char *name)
{
	assert_int_equal(mkdir(at(place, name), 0755), 0);
}
