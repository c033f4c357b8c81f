/* SPDX-License-Identifier: Apache-2.0 */
/* The process outside: it makes the child, says who the child is, and returns its exit status. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/front/bwrap/bwrap.h"
#include "runtime/kernel/process/capabilities.h"
#include "runtime/kernel/process/spawn.h"
#include "runtime/kernel/seccomp/filter.h"

#define FILTER_BYTES_MAX (UINT16_MAX * sizeof(struct sock_filter))
#define DOCUMENT_MAX     512

void bwrap_print_error(const struct bwrap_config *c, const struct cj_error *err)
{
	const char *hint = err->hint;
	(void)fprintf(stderr, "%sbwrap: %s%s%s%s\n", c->has_level_prefix ? "<3>" : "", err->msg,
		      *hint ? " (" : "", hint, *hint ? ")" : "");
}

/* Links are resolved now, with the caller's rights; the child finds the result on the host. */
static int find_source(const char *path, struct arena *a, const char **out, struct cj_error *err)
{
	char real[PATH_MAX];
	if (!realpath(path, real))
		return cj_fail(err, errno, "Can't find source path %s", path);
	*out = arena_strdup(a, real);
	return *out ? 0 : cj_fail(err, ENOMEM, "copy a path");
}

static int find_layers(struct bwrap_op *op, struct arena *a, struct cj_error *err)
{
	for (size_t i = 0; i < op->layers.count; i++)
		if (find_source(op->layers.items[i], a, &op->layers.items[i], err) < 0)
			return -err->code;
	if (!op->source)
		return 0;
	int rc = find_source(op->source, a, &op->source, err);
	return rc < 0 ? rc : find_source(op->work, a, &op->work, err);
}

static int find_sources(struct bwrap_config *c, struct arena *a, struct cj_error *err)
{
	char by_fd[32];
	for (size_t i = 0; i < c->nops; i++) {
		struct bwrap_op *op = &c->ops[i];
		if (op->kind == BWRAP_OVERLAY && find_layers(op, a, err) < 0)
			return -err->code;
		if (op->kind != BWRAP_BIND)
			continue;
		(void)snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", op->fd);
		int rc = find_source(op->fd >= 0 ? by_fd : op->source, a, &op->source, err);
		if (rc == -ENOENT && op->may_be_missing)
			op->source = NULL;
		else if (rc < 0)
			return rc;
	}
	*err = (struct cj_error){ 0 };
	return 0;
}

static int read_filters(const struct bwrap_config *c, struct bwrap_start *s, struct arena *a,
			struct cj_error *err)
{
	s->filters = arena_array(a, c->nseccomp + 1, sizeof(*s->filters));
	s->nfilters = c->nseccomp;
	if (!s->filters)
		return cj_fail(err, ENOMEM, "list the seccomp programs");
	for (size_t i = 0; i < c->nseccomp; i++) {
		char *bytes = NULL;
		size_t size = 0;
		if (fd_read_all(c->seccomp_fds[i], FILTER_BYTES_MAX, a, &bytes, &size,
				"the seccomp program", err) < 0)
			return cj_wrap(err, "Can't read seccomp data");
		if (size == 0 || size % sizeof(struct sock_filter) != 0)
			return cj_reject(err, "Invalid seccomp data, must be multiple of 8");
		s->filters[i].len = (unsigned short)(size / sizeof(struct sock_filter));
		s->filters[i].filter = (struct sock_filter *)(void *)bytes;
		(void)close(c->seccomp_fds[i]); /* the program does not inherit it */
	}
	return 0;
}

/* Ours is the last: it permits no other one. */
static int add_filter(struct bwrap_start *s, struct arena *a, struct cj_error *err)
{
	struct filter filter;
	if (!s->config->limits.has_filter)
		return 0;
	filter_builtin(&filter);
	struct sock_filter *insns = arena_array(a, filter.ninsns, sizeof(*insns));
	if (!insns)
		return cj_fail(err, ENOMEM, "prepare the default filter");
	filter_settle(&filter, insns);
	s->filters[s->nfilters++] = (struct sock_fprog){ filter.ninsns, insns };
	return 0;
}

static int change_environment(const struct bwrap_config *c, struct cj_error *err)
{
	(void)unsetenv(BWRAP_VARIABLE); /* an inner bwrap is in our limits */
	for (size_t i = 0; i < c->nvariables; i++) {
		const struct bwrap_variable *v = &c->variables[i];
		int rc = !v->name   ? clearenv()
			 : v->value ? setenv(v->name, v->value, 1)
				    : unsetenv(v->name);
		if (rc != 0)
			return cj_fail(err, errno, "setenv failed");
	}
	return 0;
}

/* The program inherits the caller's descriptors, but none that an option has named. */
static int keep_from_program(const struct bwrap_config *c, struct cj_error *err)
{
	/* Only pid 1 can keep sync_fd open for as long as the sandbox. */
	const int fds[] = { c->is_pid_1 ? -1 : c->sync_fd, c->info_fd, c->status_fd, c->block_fd };
	const size_t nfds = COUNT_OF(fds);
	for (size_t i = 0; i < nfds + c->nops; i++) {
		int fd = i < nfds ? fds[i] : c->ops[i - nfds].fd;
		/* EBADF: it fails in its use, with bubblewrap's sentence. */
		if (fd > STDERR_FILENO && fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 && errno != EBADF)
			return cj_fail(err, errno, "keep fd %d from the command", fd);
	}
	return 0;
}

static int reject_spawn(int code, uid_t caller, struct cj_error *err)
{
	if (code == EPERM && caller != 0) {
		cj_refuse_as(err, code,
			     "No permissions to create a new namespace, likely because "
			     "the kernel does not allow non-privileged user namespaces");
		return cj_hint(err, "see cejail(1), HOST REQUIREMENTS");
	}
	if (code == ENOSPC)
		return cj_reject_as(err, code,
				    "Creating new namespace failed: nesting depth or "
				    "/proc/sys/user/max_*_namespaces exceeded (ENOSPC)");
	return cj_fail(err, code, "Creating new namespace failed");
}

/* Writes "begin, name: value, ..., end" with what the child's new namespaces are. */
static int write_document(int fd, pid_t pid, uint64_t namespaces, bool has_lines,
			  struct cj_error *err)
{
	static const struct {
		const char *name;
		uint64_t flag;
	} rows[] = {
		{ "cgroup", CLONE_NEWCGROUP }, { "ipc", CLONE_NEWIPC }, { "mnt", CLONE_NEWNS },
		{ "net", CLONE_NEWNET },       { "pid", CLONE_NEWPID }, { "uts", CLONE_NEWUTS },
	};
	const char *begin = has_lines ? "\n    " : " ", *end = has_lines ? "\n" : " ";
	char text[DOCUMENT_MAX], path[64];
	if (fd < 0)
		return 0;
	(void)snprintf(text, sizeof(text), "{%s\"child-pid\": %d", begin, (int)pid);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct stat st;
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, rows[i].name);
		if (namespaces & rows[i].flag && stat(path, &st) == 0)
			text_append(text, sizeof(text), ",%s\"%s-namespace\": %ju", begin,
				    rows[i].name, (uintmax_t)st.st_ino);
	}
	text_append(text, sizeof(text), "%s}\n", end);
	return fd_write_all(fd, text, strlen(text), "info", err) < 0
		   ? cj_fail(err, err->code, "Write to info_fd")
		   : 0;
}

/* The program's end comes by the pipe, or is the child's own. */
static int await_end(const struct bwrap_config *c, pid_t pid, int report_fd, struct cj_error *err)
{
	struct bwrap_report report = { 0 };
	char text[64];
	int status = 0;
	bool is_told = sys_read(report_fd, &report, sizeof(report)) == (ssize_t)sizeof(report);
	if (is_told && !report.has_failed)
		status = report.status;
	else if (sys_waitpid(pid, &status, 0) < 0)
		return cj_fail(err, errno, "wait for the child");
	if (report.has_failed)
		return BWRAP_FAILED;
	int length =
	    snprintf(text, sizeof(text), "{ \"exit-code\": %d }\n", child_exit_status(status));
	if (c->status_fd >= 0 &&
	    fd_write_all(c->status_fd, text, (size_t)length, "json-status-fd", err) < 0)
		return cj_fail(err, err->code, "Write to json_status_fd");
	return child_exit_status(status);
}

static pid_t spawn_once(const struct bwrap_start *s, struct bwrap_watch *w)
{
	const struct spawn_place place = { .cgroup_fd = -1 };
	return w ? bwrap_watch_spawn(w, s->namespaces)
		 : spawn_process(&place, s->namespaces, SIGCHLD, NULL);
}

/* The child; once more without what the kernel may lack or forbid, but not for want of memory. */
static pid_t spawn(const struct bwrap_config *c, struct bwrap_start *s, struct bwrap_watch *w)
{
	pid_t pid = spawn_once(s, w);
	if (pid >= 0 || !(c->namespaces & c->optional) ||
	    (errno != EINVAL && errno != EPERM && errno != ENOSPC))
		return pid;
	s->namespaces &= ~c->optional;
	return spawn_once(s, w);
}

static int start(struct bwrap_config *c, struct bwrap_start *s, struct bwrap_watch *w,
		 struct cj_error *err)
{
	int go[2], report[2];
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "pipe2");
	s->go_fd = go[0];
	s->report_fd = report[1];
	pid_t pid = -1;
	for (bool again = true; again;) {
		pid = spawn(c, s, w);
		if (pid < 0)
			return reject_spawn(errno, s->uid, err);
		if (pid == 0) {
			(void)close(go[1]);
			(void)close(report[0]);
			if (w)
				bwrap_watch_born(w, s->report_fd);
			bwrap_inside(s);
		}
		again = false;
		if (w && bwrap_watch_adopt(w, report[0], &again, err) < 0)
			return -err->code;
	}
	(void)signal(SIGPIPE, SIG_IGN); /* of this process alone: its writes fail with a message */
	/* What this process kept open, a reader outside would wait for. */
	struct bwrap_fds kept = {
		{ go[1], report[0], c->info_fd, c->status_fd, c->limits.result_fd }, 5
	};
	if (w)
		bwrap_watch_keep(w, &kept);
	if (fd_close_others(CHILD_FIRST_FD, kept.fds, kept.count) < 0)
		return cj_fail(err, errno, "close the caller's descriptors");
	if (write_document(c->info_fd, pid, s->namespaces, true, err) < 0 ||
	    write_document(c->status_fd, pid, s->namespaces, false, err) < 0)
		return -err->code;
	if (c->info_fd > STDERR_FILENO && c->info_fd != c->status_fd)
		(void)close(c->info_fd); /* its reader waits for the end */
	/* EPIPE: it has ended meanwhile, and has said why. */
	if (fd_write_all(go[1], "", 1, "the child", err) < 0 && err->code != EPIPE)
		return -err->code;
	(void)close(go[1]);
	return w ? bwrap_watch_end(w, s, report[0], err) : await_end(c, pid, report[0], err);
}

static int prepare(struct bwrap_config *c, struct bwrap_start *s, struct arena *a,
		   struct cj_error *err)
{
	/* A caller that ignores SIGCHLD would take the exit status from us: wait(2). */
	(void)signal(SIGCHLD, SIG_DFL);
	if (c->dies_with_parent && child_die_with_parent(-1, err) < 0)
		return -err->code;
	if (capabilities_of_self(&s->caps, err) < 0 || find_sources(c, a, err) < 0 ||
	    read_filters(c, s, a, err) < 0 || add_filter(s, a, err) < 0 ||
	    change_environment(c, err) < 0)
		return -err->code;
	return keep_from_program(c, err);
}

int bwrap_run(struct bwrap_config *c, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char directory[PATH_MAX], terminal[PATH_MAX] = "";
	struct bwrap_start s = {
		.config = c,
		.namespaces = CLONE_NEWNS | c->namespaces,
		.uid = getuid(),
		.gid = getgid(),
		.directory = getcwd(directory, sizeof(directory)),
		.tree = BWRAP_TREE_NULL,
	};
	struct bwrap_watch w = { 0 };
	const bool is_watched = bwrap_limits_watch(&c->limits);
	if (isatty(STDOUT_FILENO) && ttyname_r(STDOUT_FILENO, terminal, sizeof(terminal)) == 0)
		s.tree.terminal = terminal;
	int rc = prepare(c, &s, &a, err);
	if (rc == 0 && is_watched)
		rc = bwrap_watch_begin(&w, &s, err);
	if (rc == 0)
		rc = start(c, &s, is_watched ? &w : NULL, err);
	if (rc < 0)
		bwrap_watch_fail(&w, &s, err);
	bwrap_watch_fini(&w);
	return rc;
}
