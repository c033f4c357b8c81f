/* SPDX-License-Identifier: Apache-2.0 */
/* uplink_helper, uplink_keeper: where helpers are looked for, what they get, how bad ones end. */
/* WRAP: clock_gettime mount execve ioctl links_configure_tap */
/* WRAP: loader_plug_host loader_configure_tap loader_look loader_unplug */
#include "netns/uplink/uplink_helper.h"

#include <sys/mount.h>

#include "tests/forked.h"
#include "tests/netns/uplink/uplink_lab.h"

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
static time_t clock_jump_s; /* added from the second look on */

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	static int looks;
	int rc = __real_clock_gettime(clock, out);
	if (clock_jump_s > 0 && looks++ > 0)
		out->tv_sec += clock_jump_s;
	return rc;
}

int __real_mount(const char *from, const char *to, const char *type, unsigned long flags,
		 const void *data);
int __wrap_mount(const char *from, const char *to, const char *type, unsigned long flags,
		 const void *data);
static bool mount_fails;

int __wrap_mount(const char *from, const char *to, const char *type, unsigned long flags,
		 const void *data)
{
	errno = EACCES;
	return mount_fails ? -1 : __real_mount(from, to, type, flags, data);
}

int __real_execve(const char *path, char *const *argv, char *const *env);
int __wrap_execve(const char *path, char *const *argv, char *const *env);
static bool execve_fails;

int __wrap_execve(const char *path, char *const *argv, char *const *env)
{
	errno = ENOEXEC;
	return execve_fails ? -1 : __real_execve(path, argv, env);
}

int __real_ioctl(int fd, unsigned long request, unsigned long argument);
int __wrap_ioctl(int fd, unsigned long request, unsigned long argument);
static unsigned long failing_ioctl;

int __wrap_ioctl(int fd, unsigned long request, unsigned long argument)
{
	errno = EPERM;
	return request == failing_ioctl ? -1 : __real_ioctl(fd, request, argument);
}

int __real_links_configure_tap(int gateway_fd, const struct links_tap_spec *spec,
			       struct cj_error *err);
int __wrap_links_configure_tap(int gateway_fd, const struct links_tap_spec *spec,
			       struct cj_error *err);
static int configurations_that_fail;

/* A failing one has done its work, so that something is left behind. */
int __wrap_links_configure_tap(int gateway_fd, const struct links_tap_spec *spec,
			       struct cj_error *err)
{
	int rc = __real_links_configure_tap(gateway_fd, spec, err);
	if (rc == 0 && configurations_that_fail-- > 0)
		return cj_fail(err, ENOBUFS, "configure the tap device");
	return rc;
}

/* --- helpers that are none ----------------------------------------------------------------------
 */

static char fake_dir[] = "/tmp/cejail-test-uplink-XXXXXX";

static int make_fake_dir(void **state)
{
	(void)state;
	/* a root caller's helper is a stranger, and must get in */
	return mkdtemp(fake_dir) && chmod(fake_dir, 0755) == 0 ? 0 : -1;
}

static void fake_path(char out[static 128], const char *name)
{
	(void)snprintf(out, 128, "%s/%s", fake_dir, name);
}

static int remove_fake_dir(void **state)
{
	static const char *const names[] = { "pasta", "pasta.avx2", "slirp4netns" };
	char path[128];
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fake_path(path, names[i]);
		(void)unlink(path); /* not every test made one */
	}
	return rmdir(fake_dir);
}

static void fake_helper(const char *name, const char *script)
{
	char path[128];
	fake_path(path, name);
	auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	CHECK(fd >= 0 && fchmod(fd, 0755) == 0 && dprintf(fd, "#!/bin/sh\n%s\n", script) > 0, "%s",
	      strerror(errno));
}

static void fake_pasta(const char *script)
{
	fake_helper("pasta", script);
}

/* What becomes of it, with the tun device there or not. */
static void expect_none_of(enum uplink_kind kind, const char *script, const char *words)
{
	struct cj_error err = { 0 };
	auto_fd int gateway_fd = make_gateway();
	if (!may_use_tun())
		skip_lab("no /dev/net/tun for everybody");
	fake_helper(uplink_names[kind], script);
	struct uplink_spec spec = { .kind = kind, .gateway_fd = gateway_fd, .path = fake_dir };
	struct uplink *u = start(&spec);
	CHECK(uplink_await(u, &err) == 0, "%s", err.msg);
	CHECK(uplink_kind_of(u) == UPLINK_NONE, "%s", uplink_names[uplink_kind_of(u)]);
	CHECK(strstr(uplink_why(u), words) != NULL, "'%s' is not in '%s'", words, uplink_why(u));
	CHECK(uplink_fd(u) == -1 && waitpid(-1, NULL, WNOHANG) < 0, "something is left");
	uplink_stop(&u);
}

static void expect_none(const char *script, const char *words)
{
	expect_none_of(UPLINK_PASTA, script, words);
}

static void die_at_start(void)
{
	expect_none("echo first >&2; printf 'no \\033[31mluck\\n\\n' >&2; exit 3",
		    "pasta ended at its start, exit status 3: 'no \\x1b[31mluck'");
}

static void talk_much(void)
{
	expect_none("i=0; while [ $i -lt 20000 ]; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa >&2; "
		    "i=$((i+1)); done; echo the end >&2; kill -9 $$",
		    "signal 9: 'the end'");
}

static void be_late(void)
{
	clock_jump_s = 3600;
	expect_none("exec sleep 1000", "pasta made no link in 15 s");
}

/* This program, as a helper: it takes the link and does not look at it. */
static int attach_only(void)
{
	struct ifreq r = { .ifr_name = LINK_UPLINK };
	r.ifr_flags = IFF_TAP | IFF_NO_PI;
	if (setns(STDIN_FILENO, CLONE_NEWNET) < 0)
		return 1;
	auto_fd int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0 || __real_ioctl(fd, TUNSETIFF, (unsigned long)&r) < 0)
		return 2;
	return pause();
}

static void copy_this_program(const char *name)
{
	char path[128], bytes[65536];
	fake_path(path, name);
	auto_fd int in_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	auto_fd int out_fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	CHECK(in_fd >= 0 && out_fd >= 0 && fchmod(out_fd, 0755) == 0, "%s", strerror(errno));
	for (ssize_t got; (got = read(in_fd, bytes, sizeof(bytes))) > 0;)
		CHECK(write(out_fd, bytes, (size_t)got) == got, "%s", strerror(errno));
}

static void not_read(void)
{
	struct cj_error err = { 0 };
	bool is_decided = false;
	auto_fd int gateway_fd = make_gateway();
	if (!may_use_tun())
		skip_lab("no /dev/net/tun for everybody");
	copy_this_program("pasta");
	struct uplink *u = start(&(struct uplink_spec){
	    .kind = UPLINK_PASTA, .gateway_fd = gateway_fd, .path = fake_dir });
	for (int i = 0; i < PATIENCE_MS / 10 && !is_attached(gateway_fd); i++)
		(void)poll(NULL, 0, 10);
	CHECK(is_attached(gateway_fd), "it has no link");
	for (int i = 0; i < 20; i++) {
		CHECK(uplink_proceed(u, &is_decided, &err) == 0, "%s", err.msg);
		CHECK(!is_decided, "after %d looks: '%s'", i, uplink_why(u));
		(void)poll(NULL, 0, 10);
	}
	clock_jump_s = 3600;
	CHECK(uplink_await(u, &err) == 0, "%s", err.msg);
	CHECK(strcmp(uplink_why(u), "pasta read no packet in 15 s") == 0, "%s", uplink_why(u));
	CHECK(uplink_kind_of(u) == UPLINK_NONE && helper_lets_go(gateway_fd), "it lives on");
	uplink_stop(&u);
}

static void own_little(void)
{
	(void)setenv("SECRET", "x", 1);
	expect_none("e=$(tr '\\0' '\\n' </proc/$$/environ | grep -c SECRET); "
		    "c=$(sed -n 's/^CapEff:.//p' /proc/$$/status); "
		    "n=$(sed -n 's/^NoNewPrivs:.//p' /proc/$$/status); "
		    "[ $(ls -d /proc/[0-9]* | wc -l) -lt 9 ] && p=few || p=many; "
		    "h=$(ls -d /home /root /run /var /etc/passwd 2>/dev/null | wc -l); "
		    "touch /usr/x /x 2>/dev/null && w=1 || w=0; "
		    "echo env $e caps $c nnp $n uid $(id -u) pid $$ procs $p homes $h write $w >&2",
		    "env 0 caps 0000000000201000 nnp 1 uid 4000 pid 2 procs few homes 0 write 0");
}

/* It keeps what it gets while it reads packets.  With CAP_NET_ADMIN it could remove the rules. */
static void own_less(void)
{
	char path[128];
	expect_none_of(UPLINK_SLIRP4NETNS,
		       "for set in Inh Prm Eff Amb; do "
		       "s=$s$(sed -n \"s/^Cap$set:.//p\" /proc/$$/status),; done; echo $s >&2",
		       "'0000000000200000,0000000000200000,0000000000200000,0000000000200000,'");
	fake_path(path, "slirp4netns"); /* later tests want the real one */
	(void)unlink(path);
}

static void have_no_descriptor(void)
{
	int leaks[] = { 4, 77 }; /* the shell has 3 for the list, 10 or 255 for the script */
	for (size_t i = 0; i < sizeof(leaks) / sizeof(leaks[0]); i++)
		CHECK(dup2(STDERR_FILENO, leaks[i]) == leaks[i], "%s", strerror(errno));
	expect_none("cd /proc/$$/fd; e=; "
		    "for f in *; do case $f in 0|1|2|3|10|255) ;; *) e=\"$e $f\" ;; esac; done; "
		    "echo too many: ${e:-none} >&2",
		    "too many: none'");
}

static void get_no_root(void)
{
	mount_fails = true; /* as where a security module forbids it */
	expect_none("exit 0", "private: Permission denied");
}

static void get_no_program(void)
{
	execve_fails = true;
	expect_none("exit 0", "pasta': Exec format error'");
}

static void get_no_tap(void)
{
	failing_ioctl = TUNSETPERSIST;
	expect_none("exit 0", "pasta: make 'uplink' persistent: Operation not permitted");
}

static unsigned tap_index(int gateway_fd)
{
	struct ifreq r = { .ifr_name = LINK_UPLINK };
	return ioctl(gateway_fd, SIOCGIFINDEX, &r) == 0 ? (unsigned)r.ifr_ifindex : 0;
}

/* Expects slirp4netns where the pasta first in `path` fails, and that packets leave. */
static void fall_to_slirp4netns(const char *path, const char *words, bool is_same_tap)
{
	struct cj_error err = { 0 };
	auto_fd int gateway_fd = make_gateway();
	if (uplink_probe(UPLINK_SLIRP4NETNS, NULL, &err) < 0 ||
	    uplink_probe(UPLINK_PASTA, path, &err) < 0)
		skip_lab(err.msg);
	make_world();
	struct uplink_spec spec = { .kind = UPLINK_AUTO, .gateway_fd = gateway_fd, .path = path };
	struct uplink *u = start(&spec);
	if (uplink_kind_of(u) == UPLINK_HOST)
		skip_lab("the host uplink is to be had");
	unsigned first = tap_index(gateway_fd);
	CHECK(uplink_await(u, &err) == 0, "%s", err.msg);
	CHECK(uplink_kind_of(u) == UPLINK_SLIRP4NETNS, "%s", uplink_why(u));
	CHECK(strstr(uplink_why(u), words), "%s", uplink_why(u));
	CHECK(first != 0 && (tap_index(gateway_fd) == first) == is_same_tap, "the tap device");

	auto_fd int world_fd = listen_at(WORLD, PORT);
	(void)world_fd;
	int code = from_gateway(gateway_fd, try_connect, WORLD, PATIENCE_MS);
	CHECK(code == 0, "%s", strerror(code));
	uplink_stop(&u);
}

static void fall_to_the_next(void)
{
	char path[256];
	fake_pasta("exit 9");
	(void)snprintf(path, sizeof(path), "%s:%s", fake_dir, UPLINK_HELPER_PATH);
	fall_to_slirp4netns(path, "pasta ended at its start, exit status 9", true);
}

static void fall_after_half_a_configuration(void)
{
	configurations_that_fail = 1;
	fall_to_slirp4netns(NULL, "pasta: configure the tap device: No buffer space", false);
}

/* The shell is the helper, and ends; the real pasta is what it leaves behind. */
static void die_later(void)
{
	struct cj_error err = { 0 };
	char real[UPLINK_PATH_MAX], script[UPLINK_PATH_MAX + 128];
	auto_fd int gateway_fd = make_gateway();
	if (uplink_probe(UPLINK_PASTA, NULL, &err) < 0)
		skip_lab(err.msg);
	make_world();
	CHECK(uplink_helper_find(uplink_helper_of(UPLINK_PASTA), NULL, real, &err) == 0, "%s",
	      err.msg);
	/* a job in the background reads /dev/null unless it is told */
	(void)snprintf(script, sizeof(script),
		       "exec 3<&0; %s \"$@\" <&3 & sleep 15; "
		       "echo tired >&2; exit 4",
		       real);
	fake_pasta(script);
	struct uplink_spec spec = { .kind = UPLINK_PASTA,
				    .gateway_fd = gateway_fd,
				    .path = fake_dir };
	struct uplink *u = start(&spec);
	CHECK(uplink_await(u, &err) == 0, "%s", err.msg);
	CHECK(uplink_kind_of(u) == UPLINK_PASTA, "%s", uplink_why(u));

	struct pollfd death = { .fd = uplink_fd(u), .events = POLLIN };
	CHECK(poll(&death, 1, PATIENCE_MS) == 1, "its death shows");
	uplink_lost(u);
	CHECK(strcmp(uplink_why(u), "pasta ended, exit status 4: 'tired'") == 0, "%s",
	      uplink_why(u));
	CHECK(uplink_kind_of(u) == UPLINK_NONE && helper_lets_go(gateway_fd),
	      "what it left lives on");
	uplink_stop(&u);
}

LAB_TEST(a_helper_that_dies_at_its_start_has_the_last_word, die_at_start)
LAB_TEST(a_helper_that_talks_much_is_not_held_up, talk_much)
LAB_TEST(a_helper_that_is_late_is_given_up, be_late)
LAB_TEST(a_helper_is_ready_when_it_reads_and_not_when_it_has_the_link, not_read)
LAB_TEST(pasta_has_two_capabilities_and_no_home, own_little)
LAB_TEST(slirp4netns_has_no_capability_over_the_rules, own_less)
LAB_TEST(a_helper_inherits_no_descriptor, have_no_descriptor)
LAB_TEST(a_helper_that_dies_later_has_the_last_word_and_leaves_nothing, die_later)
LAB_TEST(a_keeper_without_a_root_starts_nothing, get_no_root)
LAB_TEST(a_helper_that_can_not_be_executed_is_named, get_no_program)
LAB_TEST(a_helper_without_a_tap_device_is_not_started, get_no_tap)
LAB_TEST(auto_goes_on_with_the_same_tap_device_when_the_first_helper_dies, fall_to_the_next)
LAB_TEST(auto_goes_on_with_a_new_tap_device_when_the_first_is_half_configured,
	 fall_after_half_a_configuration)

/* --- where they are looked for
 * -------------------------------------------------------------------- */

static void a_missing_helper_is_named_with_its_package(void **state)
{
	struct cj_error err = { 0 };
	(void)state;
	assert_int_equal(uplink_probe(UPLINK_PASTA, "/nonexistent:relative:", &err), -ENOENT);
	assert_string_equal(err.msg, "pasta is not installed");
	assert_non_null(strstr(err.hint, "install"));
	assert_non_null(strstr(err.hint, "passt"));
}

static void a_helper_that_others_may_write_is_refused(void **state)
{
	struct cj_error err = { 0 };
	char path[128];
	(void)state;
	fake_pasta("exit 0");
	fake_path(path, "pasta");
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(uplink_probe(UPLINK_PASTA, fake_dir, &err), -EPERM);
	assert_non_null(strstr(err.msg, "others may change it"));
}

static bool processor_has_avx2(void)
{
	static char text[4096 + 1]; /* the first processor */
	auto_fd int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, 4096) > 0 && strstr(text, " avx2 ");
}

static void assert_chosen(enum uplink_kind kind, const char *name)
{
	char path[UPLINK_PATH_MAX], wanted[128];
	fake_path(path, uplink_names[kind]);
	fake_path(wanted, name);
	uplink_helper_choose_build(uplink_helper_of(kind), path);
	assert_string_equal(path, wanted);
}

static void the_build_of_pasta_for_this_processor_is_executed_at_once(void **state)
{
	char path[128];
	(void)state;
	fake_path(path, "pasta.avx2");
	assert_chosen(UPLINK_PASTA, "pasta"); /* it is not there */
	fake_helper("pasta.avx2", "exit 0");
	assert_chosen(UPLINK_PASTA, processor_has_avx2() ? "pasta.avx2" : "pasta");
	assert_chosen(UPLINK_SLIRP4NETNS, "slirp4netns");
	assert_int_equal(chmod(path, 0777), 0); /* others may change it */
	assert_chosen(UPLINK_PASTA, "pasta");
	assert_int_equal(chmod(path, 0644), 0); /* it can't be executed */
	assert_chosen(UPLINK_PASTA, "pasta");
	assert_int_equal(unlink(path), 0); /* later tests want the plain one */
}

/* Root hides a device that everybody may open, in a mount namespace of its own. */
static bool refuse_tun(void)
{
	struct stat st;
	if (stat("/dev/net/tun", &st) < 0 || (st.st_mode & 0006) == 0)
		return true;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", "/dev/net", "tmpfs", 0, "mode=0755") < 0)
		return false;
	return mknod("/dev/net/tun", S_IFCHR | 0600, st.st_rdev) == 0;
}

static int say_why_not(void)
{
	struct cj_error err = { 0 };
	if (!refuse_tun())
		return 77;
	bool is_named = uplink_helper_try_tun(&err) == -EACCES &&
			strstr(err.msg, "'/dev/net/tun' can't be opened") &&
			strstr(err.msg, ": Permission denied") &&
			strstr(err.hint, "chmod 666 /dev/net/tun");
	return is_named ? 0 : 1;
}

static void a_refused_tun_device_is_named_with_its_remedy(void **state)
{
	int status;
	(void)state;
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(say_why_not());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip(); /* everybody may open it, and we are not root */
	assert_int_equal(status, 0);
}

static void a_helpers_version_names_its_path(void **state)
{
	struct cj_error err = { 0 };
	char out[UPLINK_WHY_MAX];
	(void)state;
	if (uplink_probe(UPLINK_SLIRP4NETNS, NULL, &err) == -ENOENT && strstr(err.msg, "installed"))
		skip();
	assert_int_equal(uplink_helper_version(UPLINK_SLIRP4NETNS, out, sizeof(out), &err), 0);
	assert_non_null(strstr(out, "/slirp4netns (slirp4netns version "));
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[0], "pasta") == 0)
		return attach_only();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_helper_is_named_with_its_package),
		cmocka_unit_test(a_helper_that_others_may_write_is_refused),
		cmocka_unit_test(the_build_of_pasta_for_this_processor_is_executed_at_once),
		cmocka_unit_test(a_refused_tun_device_is_named_with_its_remedy),
		cmocka_unit_test(a_helpers_version_names_its_path),
		cmocka_unit_test(a_helper_that_dies_at_its_start_has_the_last_word),
		cmocka_unit_test(a_helper_that_talks_much_is_not_held_up),
		cmocka_unit_test(a_helper_that_is_late_is_given_up),
		cmocka_unit_test(a_helper_is_ready_when_it_reads_and_not_when_it_has_the_link),
		cmocka_unit_test(pasta_has_two_capabilities_and_no_home),
		cmocka_unit_test(slirp4netns_has_no_capability_over_the_rules),
		cmocka_unit_test(a_helper_inherits_no_descriptor),
		cmocka_unit_test(a_helper_that_dies_later_has_the_last_word_and_leaves_nothing),
		cmocka_unit_test(a_keeper_without_a_root_starts_nothing),
		cmocka_unit_test(a_helper_that_can_not_be_executed_is_named),
		cmocka_unit_test(a_helper_without_a_tap_device_is_not_started),
		cmocka_unit_test(auto_goes_on_with_the_same_tap_device_when_the_first_helper_dies),
		cmocka_unit_test(
		    auto_goes_on_with_a_new_tap_device_when_the_first_is_half_configured),
	};
	return cmocka_run_group_tests(tests, make_fake_dir, remove_fake_dir);
}
