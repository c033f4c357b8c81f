/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: mount */
/* A helper's root: what it sees of the host, and what not, wherever it is installed. */
#include "netns/uplink/uplink_parts.h"

#include <linux/limits.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/netns/namespaces.h"

static bool is_proc_refused; /* as in a container, where a new /proc would show what is masked */

int __real_mount(const char *source, const char *target, const char *type, unsigned long flags,
		 const void *data);
int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags,
		 const void *data);
int __wrap_mount(const char *source, const char *target, const char *type, unsigned long flags,
		 const void *data)
{
	if (is_proc_refused && type && strcmp(type, "proc") == 0) {
		errno = EPERM;
		return -1;
	}
	return __real_mount(source, target, type, flags, data);
}

static bool exists(const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0;
}

/* A helper in a folder of its own, below /tmp, which the root covers; and a secret beside it. */
static char place[] = "/tmp/cejail-uplink-root-XXXXXX";

static const char *in_place(const char *name)
{
	static char path[PATH_MAX];
	(void)snprintf(path, sizeof(path), "%s/%s", place, name);
	return path;
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	assert_true(fd >= 0);
	close(fd);
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(place) || chmod(place, 0755) < 0 || mkdir(in_place("bin"), 0755) < 0)
		return -1;
	make_file(in_place("bin/helper"));
	make_file(in_place("secret"));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(in_place("bin/helper"));
	unlink(in_place("secret"));
	rmdir(in_place("bin"));
	return rmdir(place);
}

/* Read-only all over, and nothing of the host's but programs and libraries. */
static void check_root(void)
{
	MUST(exists("/usr/bin") && exists("/dev/null") && exists("/proc/self"));
	MUST(!exists("/etc/passwd") && !exists("/home") && !exists("/root") && !exists("/run"));
	MUST(mkdir("/new", 0755) < 0 && errno == EROFS);
	MUST(open("/usr/cejail-test", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0 && errno == EROFS);
}

static void enter(const char *path)
{
	struct cj_error err = { 0 };
	MUST(unshare(CLONE_NEWNS) == 0);
	MUST_DO(uplink_enter_root(path, &err), err);
	check_root();
}

static void body_usual(void)
{
	enter("/usr/bin/helper");
	MUST(!exists(place));
}

static void body_own(void)
{
	enter(in_place("bin/helper"));
	MUST(exists(in_place("bin/helper")));
	MUST(!exists(in_place("secret")));
	MUST(open(in_place("bin/new"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0);
}

static void body_old_proc(void)
{
	is_proc_refused = true;
	enter("/usr/bin/helper");
}

static void body_missing(void)
{
	struct cj_error err = { 0 };
	MUST(unshare(CLONE_NEWNS) == 0);
	MUST(uplink_enter_root("/no/such/folder/helper", &err) == -ENOENT);
	MUST(strstr(err.msg, "/no/such/folder"));
}

static void a_helper_sees_programs_and_no_file_of_the_users(void **state)
{
	(void)state;
	in_own_namespace(body_usual);
}

static void a_helper_installed_elsewhere_sees_its_own_directory_too(void **state)
{
	(void)state;
	in_own_namespace(body_own);
}

static void if_a_new_proc_is_refused_the_old_one_is_used(void **state)
{
	(void)state;
	in_own_namespace(body_old_proc);
}

static void a_missing_directory_is_named(void **state)
{
	(void)state;
	in_own_namespace(body_missing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_helper_sees_programs_and_no_file_of_the_users),
		cmocka_unit_test(a_helper_installed_elsewhere_sees_its_own_directory_too),
		cmocka_unit_test(if_a_new_proc_is_refused_the_old_one_is_used),
		cmocka_unit_test(a_missing_directory_is_named),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
