/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: zygote_check_memory libexec_find */
/*
 * A fork of a zygote is what a launcher is that init has executed: the same restrictions, the same
 * view of the jail, the same outcome.
 */
#include "tests/service/queue/zygotes.h"

#include <sched.h>
#include <sys/syscall.h>

#include "tests/forked.h"

/* --- it becomes the program ------------------------------------------------------------------ */

static void a_fork_of_the_zygote_becomes_the_program(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL,
		 "tr '\\0' '|' </tmp/words; echo; readlink /proc/self/cwd; echo $COLOUR; "
		 "echo err >&2; exit 7");
	spawn(&r);
	run_jail(&r);
	assert_output(&r, 1, "err\n");
	assert_output(&r, 0, "0|0|/box/main.sh|one|t w o|\n/box\nred\n");
	assert_int_equal(r.out.status, STATUS_EXITED);
	assert_int_equal(r.out.exit_code, 7);
	run_fini(&r);
}

static void jails_of_one_zygote_share_no_state(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, "kept=no; (" BECOME "); :",
		 "echo $kept; kept=yes; ls -A /box /tmp; echo x >/tmp/x; hostname");
	spawn(&r);
	for (int i = 0; i < 5; i++) {
		run_jail(&r);
		assert_output(&r, 0, "no\n/box:\nmain.sh\nout\n\n/tmp:\nwords\njail\n");
		outcome_fini(&r.out);
		outcome_init(&r.out, "zygote", OUTPUT);
	}
	run_fini(&r);
}

static void the_programs_signal_is_its_outcome(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "read -r pid rest </proc/self/stat; kill -TERM $pid; sleep 10");
	spawn(&r);
	run_jail(&r);
	assert_int_equal(r.out.status, STATUS_SIGNALED);
	assert_int_equal(r.out.signal, SIGTERM);
	run_fini(&r);
}

static void denied_calls_of_a_fork_are_reported(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "unshare -U true 2>/dev/null; exit 0");
	spawn(&r);
	run_jail(&r);
	if (r.out.layers[LAYER_SYSCALL_REPORT] == LAYER_ON) {
		assert_int_equal(r.out.ndenied, 1);
		assert_non_null(strstr(r.out.denied[0].name, "unshare"));
	}
	run_fini(&r);
}

static void a_limit_ends_a_fork_as_any_program(void **state)
{
	(void)state;
	struct run r;
	run_init(&r, NULL, "while :; do :; done");
	r.program.limits.wall_ms = 300;
	spawn(&r);
	run_jail(&r);
	assert_int_equal(r.out.status, STATUS_TIMEOUT);
	run_fini(&r);
}

/* --- it is restricted like a launcher that was executed --------------------------------- */

/*
 * What /proc says of the shell that runs this, without what differs between two jails: sizes,
 * switch counts, pids, numbers of namespaces and mounts, the jail's id on the host.  The shell
 * itself reads its status, because it blocks signals while it starts a program.  P is the pid:
 * $$ is the zygote's.
 */
#define FACTS                                                                                                             \
	"exec 2>&1; read -r p rest </proc/self/stat; P=/proc/$p; "                                                        \
	"while read -r line; do case $line in Vm*|Rss*|*ctxt*|Huge*|FDSize*|NS*|State*|Tgid*|*Pid:*) ;; "                 \
	"*) echo \"$line\";; esac; done <$P/status; "                                                                     \
	"cat $P/limits $P/cgroup $P/uid_map $P/gid_map $P/setgroups $P/oom_score_adj $P/loginuid "                        \
	"$P/sessionid $P/personality $P/comm $P/coredump_filter; "                                                        \
	"cut -d' ' -f 4- $P/mountinfo | sed 's/[ug]id=[0-9]*//g' | sort; "                                                \
	"tr '\\0' '|' <$P/cmdline; tr -s '\\0' '|' <$P/environ; echo; "                                                   \
	"cut -d' ' -f 7,8 $P/stat; ls $P/fd; readlink $P/cwd $P/root $P/exe; umask; trap; env | grep -v -e PWD= -e ^_=; " \
	"ls -ld $P/fd $P/mem | cut -c 1-20; ls -l $P/fd >/tmp/fds; sed 's/.*-> //; s/[0-9]*//g' /tmp/fds; "               \
	"grep -c zygote.so $P/maps; cat $P/timens_offsets"

static char *facts(bool is_fork)
{
	struct run r;
	run_init(&r, is_fork ? NULL : BECOME, FACTS);
	r.plan.uses_zygote = is_fork;
	if (is_fork)
		spawn(&r);
	int rc = is_fork ? warm(&r) : prepare(&r);
	if (!is_fork)
		rc = jail_warm(r.jail, JAIL_NO_ZYGOTE, &r.launcher, &r.err);
	finish(&r, rc);
	char *text = output(&r, 0);
	run_fini(&r);
	return text;
}

static const char *next_line(char **rest)
{
	return *rest ? strsep(rest, "\n") : NULL;
}

static void a_fork_has_what_an_executed_launcher_has(void **state)
{
	(void)state;
	auto_free char *executed = facts(false), *forked = facts(true);
	char *left = executed, *right = forked;
	size_t lines = 0;
	for (const char *one, *other; (one = next_line(&left)) != NULL; lines++) {
		other = next_line(&right);
		assert_non_null(other);
		/* The launcher's own command; and a fork has zygote.so mapped: SECURITY.md. */
		if (strncmp(one, "/bin/sh|", 8) == 0 || (strcmp(one, "0") == 0 && *other >= '1'))
			continue;
		assert_string_equal(other, one);
	}
	assert_null(next_line(&right));
	assert_true(lines > 80);
}

/* 0: unknown. */
static pid_t child_of(pid_t parent)
{
	char path[96], text[64] = "";
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return 0;
	return (pid_t)strtol(text, NULL, 10);
}

static ssize_t name_of(pid_t pid, const char *namespace, char out[static 64])
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, namespace);
	return readlink(path, out, 64);
}

/* Only who may trace init sees its namespaces. */
static void a_fork_is_in_all_namespaces_of_init(void **state)
{
	(void)state;
	static const char *const names[] = { "user", "mnt", "net",  "ipc",
					     "uts",  "pid", "time", "cgroup" };
	for (int mode = 0; mode < 2; mode++) {
		struct run r;
		char text[64];
		run_init(&r, NULL, "");
		r.plan.network.mode = mode == 0 ? NETWORK_NONE : NETWORK_PUBLIC;
		r.plan.network.uplink = UPLINK_NONE;
		spawn(&r);
		assert_int_equal(warm(&r), 0);
		pid_t init = r.jail->init_pid, launcher = child_of(init);
		bool may_look = launcher > 0 && name_of(init, "mnt", text) > 0;
		for (size_t i = 0; may_look && i < sizeof(names) / sizeof(names[0]); i++) {
			char its[64] = "", inits[64] = "", ours[64] = "";
			assert_true(name_of(launcher, names[i], its) > 0);
			assert_true(name_of(init, names[i], inits) > 0);
			assert_true(name_of(getpid(), names[i], ours) > 0);
			assert_memory_equal(its, inits, sizeof(its));
			if (strcmp(names[i], "time") != 0)
				assert_memory_not_equal(its, ours, sizeof(its));
		}
		run_fini(&r);
		assert_true(may_look || geteuid() != 0);
	}
}

static void assert_refused(const char *code, const char *expected)
{
	struct run r;
	run_init(&r, NULL, code);
	spawn(&r);
	run_jail(&r);
	auto_free char *text = output(&r, 0);
	if (!strstr(text, expected))
		fail_msg("'%s' is not in '%s'", expected, text);
	run_fini(&r);
}

static void the_zygotes_program_is_on_a_read_only_mount(void **state)
{
	(void)state;
	assert_refused("read -r p rest </proc/self/stat; chmod 755 /proc/$p/exe 2>&1",
		       "Read-only file system");
	assert_refused("read -r p rest </proc/self/stat; chown 1000 /proc/$p/exe 2>&1",
		       "Read-only file system");
}

/* --- a fork of the test itself ---------------------------------------------------------- */

/* Compares what the C library remembers with what the kernel says. */
static void print_own_view(void)
{
	cpu_set_t one;
	unsigned cpu = 0;
	char text[128];
	(void)syscall(SYS_getcpu, &cpu, NULL, NULL);
	for (int i = 0; i < CPU_SETSIZE; i++) {
		CPU_ZERO(&one);
		CPU_SET(i, &one);
		if (sched_setaffinity(0, sizeof(one), &one) == 0 && sched_getcpu() != i)
			_exit(3);
	}
	pid_t pid = test_fork();
	if (pid == 0)
		_exit(getppid() == syscall(SYS_getppid) && getpid() == gettid() ? 0 : 4);
	int status;
	if (waitpid(pid, &status, 0) != pid || status != 0)
		_exit(5);
	int size = snprintf(text, sizeof(text), "%d %d %d %u %u\n", getppid(),
			    getsid(0) == getpid(), getpid() == gettid(), getuid(), getgid());
	(void)!write(STDOUT_FILENO, text, (size_t)size);
}

static void the_c_library_knows_its_new_process(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, NULL, print_own_view);
	run_jail(&r);
	assert_int_equal(r.out.exit_code, 0);
	assert_output(&r, 0, "1 1 1 1000 1000\n");
	run_fini(&r);
}

static void open_network_socket(void)
{
	bool is_open = socket(AF_INET, SOCK_STREAM, 0) == ZYGOTE_SOCK_FD;
	(void)!write(STDOUT_FILENO, is_open ? "open" : "none", 4);
}

static void a_fork_has_its_network_on_first_use(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct run r;
		run_own_init(&r, NULL, i == 0 ? print_own_view : open_network_socket);
		r.plan.network.mode = NETWORK_PUBLIC;
		r.plan.network.uplink = UPLINK_NONE;
		run_jail(&r);
		assert_int_equal(r.out.network.state, i == 0 ? NETWORK_UNUSED : NETWORK_READY);
		assert_output(&r, 0, i == 0 ? "1 1 1 1000 1000\n" : "open");
		run_fini(&r);
	}
}

static void (*signalled)(int);
static void count_signal(int signal)
{
	(void)signal;
	_exit(6);
}

static void keep_handler_and_mask(void)
{
	sigset_t one;
	signalled = count_signal;
	(void)signal(SIGUSR1, signalled);
	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR2);
	(void)sigprocmask(SIG_SETMASK, &one, NULL);
}

static void print_signals(void)
{
	struct sigaction usr1, pipe;
	sigset_t blocked;
	(void)sigaction(SIGUSR1, NULL, &usr1);
	(void)sigaction(SIGPIPE, NULL, &pipe);
	(void)sigprocmask(SIG_BLOCK, NULL, &blocked);
	bool is_kept = usr1.sa_handler == count_signal && pipe.sa_handler == SIG_IGN &&
		       sigismember(&blocked, SIGUSR2) && !sigismember(&blocked, SIGUSR1);
	(void)!write(STDOUT_FILENO, is_kept ? "kept" : "lost", 4);
}

static void an_interpreters_signals_stay_as_it_set_them(void **state)
{
	(void)state;
	struct run r;
	run_own_init(&r, keep_handler_and_mask, print_signals);
	assert_int_equal(kill(r.zygote.pid, SIGUSR1), 0); /* waits in the zygote for ever */
	run_jail(&r);
	assert_output(&r, 0, "kept");
	run_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fork_of_the_zygote_becomes_the_program),
		cmocka_unit_test(jails_of_one_zygote_share_no_state),
		cmocka_unit_test(the_programs_signal_is_its_outcome),
		cmocka_unit_test(denied_calls_of_a_fork_are_reported),
		cmocka_unit_test(a_limit_ends_a_fork_as_any_program),
		cmocka_unit_test(a_fork_has_what_an_executed_launcher_has),
		cmocka_unit_test(a_fork_is_in_all_namespaces_of_init),
		cmocka_unit_test(the_zygotes_program_is_on_a_read_only_mount),
		cmocka_unit_test(the_c_library_knows_its_new_process),
		cmocka_unit_test(a_fork_has_its_network_on_first_use),
		cmocka_unit_test(an_interpreters_signals_stay_as_it_set_them),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
