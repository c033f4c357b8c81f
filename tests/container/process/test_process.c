/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child becomes what a configuration says, in a user namespace of its own, and executes programs
 * of this host that show what came of it.
 */
#include "runtime/container/process/process.h"

#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "tests/forked.h"
#include "tests/patience.h"
#include "tests/temp_dir.h"

#define TEXTS(list)                                                                                \
	{                                                                                          \
		.items = (list), .count = sizeof(list) / sizeof((list)[0]) - 1                     \
	}
#define NO_NAMESPACE 255 /* the status of a child that may not have a user namespace */

static const char *environment[] = { "PATH=/bin:/usr/bin", "MARK=here", NULL };

/* What a child tries, and what came back. */
struct trial {
	struct oci_config config;
	struct oci_process process;
	struct process_context context;
	int (*before)(void); /* in the child, before it becomes anything; < 0 ends it */
	bool adjusts;

	int status;      /* of the program; 1: *message has the error of process_...() */
	char text[8192]; /* what the program or the failing child wrote */
};

static struct trial begin(void)
{
	return (struct trial){
		.config = { .oci_version = "1.2.0" },
		.process = { .env = TEXTS(environment), .cwd = "/" },
		.context = { .has_user_namespace = true },
	};
}

static int inside(const struct trial *t, struct process *p, int go_fd, struct cj_error *err)
{
	char byte;
	if (t->before && t->before() < 0)
		return cj_fail(err, errno, "prepare the child");
	if (process_become(p, NULL, err) < 0 || process_find(p, err) < 0)
		return -err->code;
	if (t->adjusts && read(go_fd, &byte, 1) != 0)
		return cj_fail(err, EPIPE, "wait for the parent");
	return process_execute(p, err);
}

static void write_map(pid_t pid, const char *file, const char *text)
{
	char path[64];
	struct cj_error err;
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	(void)!fd_put_file(AT_FDCWD, path, text, &err);
}

/* As root ids 0 to 9 are mapped, else id 0 alone. */
static bool map_ids(pid_t pid)
{
	char text[64];
	bool is_root = geteuid() == 0;
	if (!is_root)
		write_map(pid, "setgroups", "deny");
	(void)snprintf(text, sizeof(text), "0 %u %d\n", geteuid(), is_root ? 10 : 1);
	write_map(pid, "uid_map", text);
	(void)snprintf(text, sizeof(text), "0 %u %d\n", getegid(), is_root ? 10 : 1);
	write_map(pid, "gid_map", text);
	return true;
}

static _Noreturn void child(const struct trial *t, struct process *p, int out_fd, int ready_fd,
			    int go_fd)
{
	struct cj_error err = { 0 };
	char byte;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		_exit(NO_NAMESPACE);
	(void)close(ready_fd);
	if (read(go_fd, &byte, 1) != 1 || dup2(out_fd, STDOUT_FILENO) < 0 ||
	    setresuid(0, 0, 0) < 0 || setresgid(0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		_exit(254);
	if (inside(t, p, go_fd, &err) < 0)
		(void)!write(STDOUT_FILENO, err.msg, strlen(err.msg));
	_exit(1);
}

static bool is_ready(int fd)
{
	char byte;
	return read(fd, &byte, 1) == 0; /* its only writer has closed it */
}

/* Runs the trial; the error of process_prepare() or process_adjust() goes to *err, too. */
static int run(struct trial *t, struct cj_error *err)
{
	auto_arena struct arena arena = { 0 };
	auto_process struct process *p = NULL;
	int out[2], ready[2], go[2];
	*err = (struct cj_error){ 0 };
	if (process_prepare(&t->config, &t->process, &t->context, &arena, &p, err) < 0)
		return -err->code;
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);

	pid_t pid = test_fork();
	if (pid == 0) {
		(void)close(go[1]);
		child(t, p, out[1], ready[1], go[0]);
	}
	(void)close(out[1]);
	(void)close(ready[1]);
	(void)close(go[0]);
	int rc = 0;
	if (is_ready(ready[0]) && map_ids(pid)) {
		const struct process_state state = {
			.id = "one", .status = "created", .bundle = "/b", .container_pid = pid
		};
		rc = process_describe(p, &state, pid, err);
		(void)!write(go[1], "", 1);
	}
	if (rc == 0 && t->adjusts)
		rc = process_adjust(p, pid, err);
	(void)close(go[1]);

	size_t used = 0;
	for (ssize_t got; (got = read(out[0], t->text + used, sizeof(t->text) - 1 - used)) > 0;)
		used += (size_t)got;
	t->text[used] = '\0';
	(void)close(out[0]);
	(void)close(ready[0]);
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	t->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	return rc;
}

static void run_well(struct trial *t)
{
	struct cj_error err;
	if (run(t, &err) < 0)
		fail_msg("%s", err.msg);
	if (t->status == NO_NAMESPACE)
		skip();
	if (t->status != 0)
		fail_msg("status %d: %s", t->status, t->text);
}

static void says(const struct trial *t, const char *line)
{
	if (!strstr(t->text, line))
		fail_msg("no '%s' in: %s", line, t->text);
}

static const char *status_args[] = { "cat", "/proc/self/status", NULL };

static void nothing_asked_for_is_nothing_granted(void **state)
{
	struct trial t = begin();
	(void)state;
	t.process.args = (struct strings)TEXTS(status_args);
	run_well(&t);
	says(&t, "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"
		 "CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n");
	says(&t, "NoNewPrivs:\t0\n");
	says(&t, "Seccomp:\t0\n");
	says(&t, "Umask:\t0022\n");
}

static const char *some_caps[] = { "CAP_CHOWN", "CAP_KILL", NULL };

static void root_has_the_capabilities_that_were_asked_for(void **state)
{
	struct trial t = begin();
	(void)state;
	t.process.args = (struct strings)TEXTS(status_args);
	t.process.capabilities = (struct oci_capabilities){ .is_given = true,
							    .bounding = TEXTS(some_caps),
							    .effective = TEXTS(some_caps),
							    .permitted = TEXTS(some_caps) };
	t.process.no_new_privileges = true;
	t.process.user.umask = (struct oci_u64){ true, 0077 };
	run_well(&t);
	says(&t, "CapInh:\t0000000000000000\nCapPrm:\t0000000000000021\nCapEff:\t0000000000000021\n"
		 "CapBnd:\t0000000000000021\nCapAmb:\t0000000000000000\n");
	says(&t, "NoNewPrivs:\t1\n");
	says(&t, "Umask:\t0077\n");
}

static void a_user_has_ambient_capabilities_only_when_asked_for(void **state)
{
	static const uint32_t groups[] = { 4, 5 };
	struct trial t = begin();
	(void)state;
	if (geteuid() != 0)
		skip(); /* there is no second id to become */
	t.process.args = (struct strings)TEXTS(status_args);
	t.process.user = (struct oci_user){ .uid = 2, .gid = 3, .groups = groups, .ngroups = 2 };
	t.process.capabilities = (struct oci_capabilities){ .is_given = true,
							    .bounding = TEXTS(some_caps),
							    .effective = TEXTS(some_caps),
							    .permitted = TEXTS(some_caps) };
	run_well(&t);
	says(&t, "Groups:\t4 5 \n");
	says(&t, "CapPrm:\t0000000000000000\n");
	says(&t, "CapBnd:\t0000000000000021\n");

	t.process.capabilities.inheritable = (struct strings)TEXTS(some_caps);
	t.process.capabilities.ambient = (struct strings)TEXTS(some_caps);
	run_well(&t);
	says(&t,
	     "CapInh:\t0000000000000021\nCapPrm:\t0000000000000021\nCapEff:\t0000000000000021\n");
}

static void an_id_that_is_not_mapped_is_an_error(void **state)
{
	static const uint32_t groups[] = { 77 };
	struct trial t = begin();
	struct cj_error err;
	(void)state;
	t.process.args = (struct strings)TEXTS(status_args);
	t.process.user.uid = 4321;
	assert_int_equal(run(&t, &err), 0);
	if (t.status == NO_NAMESPACE)
		skip();
	assert_int_equal(t.status, 1);
	says(&t, "become user 4321: Invalid argument");

	t.process.user = (struct oci_user){ .groups = groups, .ngroups = 1 };
	assert_int_equal(run(&t, &err), 0);
	assert_int_equal(t.status, 1);
	says(&t, "set 1 additional groups");
}

static int leave_root(void)
{
	int fd = open("/usr", O_PATH | O_DIRECTORY); /* not close-on-exec: what a bug would leave */
	return fd < 0 || dup2(fd, 99) < 0 ? -1 : chroot("/proc");
}

/* The descriptor of another root's directory: CVE-2024-21626. */
static void a_working_directory_outside_the_root_is_refused(void **state)
{
	struct trial t = begin();
	struct cj_error err;
	(void)state;
	t.before = leave_root;
	t.process.args = (struct strings)TEXTS(status_args);
	t.process.cwd = "/self/fd/99";
	assert_int_equal(run(&t, &err), 0);
	if (t.status == NO_NAMESPACE)
		skip();
	assert_int_equal(t.status, 1);
	says(&t, "process.cwd: '/self/fd/99' is outside the container's root");
}

static const char *fds_args[] = { "ls", "/proc/self/fd", NULL };

static int open_more(void)
{
	return dup2(STDOUT_FILENO, 3) < 0 || dup2(STDOUT_FILENO, 4) < 0 ||
		       dup2(STDOUT_FILENO, 77) < 0
		   ? -1
		   : 0;
}

static void only_streams_and_preserved_descriptors_stay_open(void **state)
{
	struct trial t = begin();
	struct cj_error err;
	(void)state;
	t.before = open_more;
	t.process.args = (struct strings)TEXTS(fds_args);
	run_well(&t);
	assert_string_equal(t.text, "0\n1\n2\n3\n"); /* 3 is of ls itself */

	t.context.preserved_fds = 100;
	assert_int_equal(run(&t, &err), -EBADF);
	assert_non_null(strstr(err.msg, "is not open, and --preserve-fds"));
	int keep[2];
	for (int i = 0; i < 2; i++) {
		keep[i] = fcntl(3 + i, F_DUPFD_CLOEXEC, 50);
		assert_int_equal(dup2(STDERR_FILENO, 3 + i), 3 + i);
	}
	t.context.preserved_fds = 2;
	run_well(&t);
	assert_string_equal(t.text, "0\n1\n2\n3\n4\n5\n");

	/* A descriptor of our own is no preserved one. */
	assert_int_equal(fcntl(4, F_SETFD, FD_CLOEXEC), 0);
	assert_int_equal(run(&t, &err), -EBADF);
	for (int i = 0; i < 2; i++) {
		if (keep[i] >= 0)
			assert_int_equal(dup3(keep[i], 3 + i, O_CLOEXEC), 3 + i);
		else
			(void)close(3 + i);
		(void)close(keep[i]);
	}
}

static const char *shell_args[] = { "sh", "-c",
				    "echo $MARK; uname -m; ulimit -n; ulimit -Hn; "
				    "cat /proc/self/oom_score_adj; pwd; umask",
				    NULL };

static void limits_priorities_and_personality_are_set(void **state)
{
	static const struct oci_rlimit limits[] = { { RLIMIT_NOFILE, 50, 60 } };
	struct trial t = begin();
	(void)state;
	t.process.args = (struct strings)TEXTS(shell_args);
	t.process.rlimits = limits;
	t.process.nrlimits = 1;
	t.process.oom_score_adj = (struct oci_i64){ true, 321 };
	t.process.cwd = "/usr";
	t.process.scheduler = (struct oci_scheduler){ .is_given = true, .policy = SCHED_BATCH };
	t.process.io_priority =
	    (struct oci_io_priority){ .is_given = true, .io_class = IOPRIO_CLASS_BE, .level = 7 };
	t.config.on_linux.personality.is_given = true;
	t.config.on_linux.personality.domain = PER_LINUX32;
	t.adjusts = true;
	run_well(&t);
	assert_string_equal(t.text, "here\ni686\n50\n60\n321\n/usr\n0022\n");
}

static void a_limit_that_can_not_be_set_is_an_error(void **state)
{
	static const struct oci_rlimit limits[] = { { RLIMIT_NOFILE, UINT64_MAX, UINT64_MAX } };
	struct trial t = begin();
	struct cj_error err;
	(void)state;
	t.process.args = (struct strings)TEXTS(shell_args);
	t.process.rlimits = limits;
	t.process.nrlimits = 1;
	t.adjusts = true;
	int rc = run(&t, &err);
	if (t.status == NO_NAMESPACE)
		skip();
	assert_int_equal(rc, -EPERM);
	assert_non_null(strstr(err.msg, "process.rlimits"));
}

static const char *missing_args[] = { "no-such-program", NULL };

static void a_missing_program_is_an_error_before_execve(void **state)
{
	struct trial t = begin();
	struct cj_error err;
	(void)state;
	t.process.args = (struct strings)TEXTS(missing_args);
	assert_int_equal(run(&t, &err), 0);
	if (t.status == NO_NAMESPACE)
		skip();
	assert_int_equal(t.status, 1);
	says(&t, "executable file not found in $PATH: 'no-such-program'");
}

static const char *self_args[] = { "/proc/self/exe", NULL };

static void our_own_program_is_not_executed(void **state)
{
	struct trial t = begin();
	struct cj_error err;
	(void)state;
	t.process.args = (struct strings)TEXTS(self_args);
	assert_int_equal(run(&t, &err), 0);
	if (t.status == NO_NAMESPACE)
		skip();
	assert_int_equal(t.status, 1);
	says(&t, "leads to cejail-oci itself");
}

static void expect_no_module(struct trial *t, const char *message)
{
	struct cj_error err;
	t->process.args = (struct strings)TEXTS(shell_args);
	assert_int_equal(run(t, &err), -ENOTSUP);
	assert_non_null(strstr(err.msg, message));
}

static void apparmor_where_there_is_none_is_an_error(void **state)
{
	struct trial t = begin();
	(void)state;
	if (access("/sys/module/apparmor/parameters/enabled", F_OK) == 0)
		skip();
	t.process.apparmor_profile = "some-profile";
	expect_no_module(&t, "'some-profile' can't be applied: AppArmor is not enabled");
}

static void selinux_where_there_is_none_is_an_error(void **state)
{
	struct trial t = begin();
	(void)state;
	if (access("/sys/fs/selinux/enforce", F_OK) == 0)
		skip();
	t.process.selinux_label = "a:b:c:s0";
	expect_no_module(&t, "process.selinuxLabel: 'a:b:c:s0' can't be applied: "
			     "SELinux is not enabled");
	t.process.selinux_label = NULL;
	t.config.on_linux.mount_label = "a:b:c:s0";
	expect_no_module(&t, "linux.mountLabel: 'a:b:c:s0' can't be applied");
}

/* --- the filter -------------------------------------------------------------------- */

static const char *uname_name[] = { "uname", NULL };
static const char *uname_args[] = { "uname", "-s", NULL };

static void the_filter_applies_with_and_without_no_new_privs(void **state)
{
	const struct oci_seccomp_rule rule = { .names = TEXTS(uname_name),
					       .action = POLICY_ERRNO,
					       .errno_ret = { true, ENOANO } };
	struct trial t = begin();
	struct cj_error err;
	(void)state;
	t.process.args = (struct strings)TEXTS(uname_args);
	t.config.on_linux.seccomp = (struct oci_seccomp){ .is_given = true,
							  .default_action = POLICY_ALLOW,
							  .flags = SECCOMP_FILTER_FLAG_TSYNC,
							  .rules = &rule,
							  .nrules = 1 };
	for (int i = 0; i < 2; i++) {
		t.process.no_new_privileges = i == 0;
		assert_int_equal(run(&t, &err), 0);
		if (t.status == NO_NAMESPACE)
			skip();
		assert_int_equal(t.status, 1); /* of uname(1), which can't */
		assert_string_equal(t.text, "");
	}
	t.process.args = (struct strings)TEXTS(status_args);
	run_well(&t);
	says(&t, "Seccomp:\t2\nSeccomp_filters:\t1\n");
	says(&t, "NoNewPrivs:\t0\n");
	says(&t, "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* The agent: receives text and listener, answers every call with ENOANO.  Exits with 0 when the
 * text is right. */
static _Noreturn void agent(int listen_fd)
{
	char text[4096] = "";
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec bytes = { text, sizeof(text) - 1 };
	struct msghdr message = { .msg_iov = &bytes,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int listener = -1, sock_fd = accept(listen_fd, NULL, NULL);
	if (recvmsg(sock_fd, &message, MSG_CMSG_CLOEXEC) <= 0 || !CMSG_FIRSTHDR(&message))
		_exit(2);
	memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(listener));

	struct pollfd waiting = { .fd = listener, .events = POLLIN };
	while (poll(&waiting, 1, patience_ms(60000)) == 1 && waiting.revents & POLLIN) {
		struct seccomp_notif call = { 0 };
		struct seccomp_notif_resp answer = { 0 };
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0)
			continue;
		answer.id = call.id;
		if (call.data.nr == SYS_uname)
			answer.error = -ENOANO;
		else
			answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
	_exit(strstr(text, "\"fds\":[\"seccompFd\"]") && strstr(text, "\"metadata\":\"some\"") &&
		      strstr(text, "\"state\":{\"ociVersion\":\"1.2.0\",\"id\":\"one\","
				   "\"status\":\"created\",\"pid\":") &&
		      strstr(text, "\"bundle\":\"/b\"")
		  ? 0
		  : 3);
}

/* Also execve(2) and sendmsg(2) are notified: the listener must be on its way by then. */
static const char *notified[] = { "uname", "execve", "sendmsg", "write", NULL };

static void an_agent_receives_the_listener_and_answers(void **state)
{
	char path[100];
	const struct oci_seccomp_rule rule = { .names = TEXTS(notified), .action = POLICY_NOTIFY };
	struct trial t = begin();
	struct cj_error err;
	int status;
	(void)state;
	(void)snprintf(path, sizeof(path), "%s/agent", temp_dir);
	int listen_fd = listen_at(path);
	pid_t pid = test_fork();
	if (pid == 0)
		agent(listen_fd);

	t.process.args = (struct strings)TEXTS(uname_args);
	t.process.no_new_privileges = true;
	t.config.on_linux.seccomp = (struct oci_seccomp){ .is_given = true,
							  .default_action = POLICY_ALLOW,
							  .rules = &rule,
							  .nrules = 1,
							  .notifies = true,
							  .listener_path = path,
							  .listener_metadata = "some" };
	int rc = run(&t, &err);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(listen_fd);
	(void)unlink(path);
	assert_int_equal(rc, 0);
	if (t.status == NO_NAMESPACE)
		skip();
	assert_int_equal(t.status, 1); /* uname(1): the agent refused */
	assert_string_equal(t.text, "");
	assert_int_equal(status, 0);

	assert_int_equal(run(&t, &err), -ENOENT); /* the agent has gone */
	assert_non_null(strstr(err.msg, "seccomp agent"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_asked_for_is_nothing_granted),
		cmocka_unit_test(root_has_the_capabilities_that_were_asked_for),
		cmocka_unit_test(a_user_has_ambient_capabilities_only_when_asked_for),
		cmocka_unit_test(an_id_that_is_not_mapped_is_an_error),
		cmocka_unit_test(a_working_directory_outside_the_root_is_refused),
		cmocka_unit_test(only_streams_and_preserved_descriptors_stay_open),
		cmocka_unit_test(limits_priorities_and_personality_are_set),
		cmocka_unit_test(a_limit_that_can_not_be_set_is_an_error),
		cmocka_unit_test(a_missing_program_is_an_error_before_execve),
		cmocka_unit_test(our_own_program_is_not_executed),
		cmocka_unit_test(apparmor_where_there_is_none_is_an_error),
		cmocka_unit_test(selinux_where_there_is_none_is_an_error),
		cmocka_unit_test(the_filter_applies_with_and_without_no_new_privs),
		cmocka_unit_test(an_agent_receives_the_listener_and_answers),
	};
	return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
