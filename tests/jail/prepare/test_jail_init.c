/* SPDX-License-Identifier: Apache-2.0 */
/* ID-mapped clones for the overlays and the kept directory of a jail of root's. */
#include "runtime/jail/prepare/jail_init.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "runtime/base/scope.h"

#define HOST_ID 0x70004321
#define OWNER   4321

static const struct idmap unused_id = { .uid = HOST_ID, .gid = HOST_ID, .lock_fd = 0 };

static int open_count(void)
{
	int n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void an_ordinary_callers_files_need_no_id_map(void **state)
{
	(void)state;
	const struct idmap own = { .uid = geteuid(), .gid = getegid(), .lock_fd = -1 };
	const struct bind_spec bind = { BIND_OVERLAY, "/tmp", "/src" };
	const struct rootfs_spec spec = { .binds = &bind, .nbinds = 1 };
	int fds[OVERLAYS_MAX];
	size_t count = 7;
	struct cj_error err = { 0 };
	assert_int_equal(jail_init_shift(&spec, &own, fds, &count, &err), 0);
	assert_int_equal(count, 0);
}

/* Skips where this host, or this test's caller, can't make one. */
static void the_owner_becomes_the_jails_user_and_others_stay(void **state)
{
	(void)state;
	char place[] = "/tmp/cejail-shift-XXXXXX", other[64];
	assert_non_null(mkdtemp(place));
	(void)snprintf(other, sizeof(other), "%s/other", place);
	assert_int_equal(mkdir(other, 0755), 0);
	const struct bind_spec binds[] = {
		{ BIND_READ_ONLY, "/usr", "/a" },
		{ BIND_OVERLAY, place, "/b" },
		{ BIND_OVERLAY, place, "/c" },
		{ BIND_KEPT, place, "/d" },
	};
	const struct rootfs_spec spec = { .binds = binds, .nbinds = 4 };
	int fds[OVERLAYS_MAX], before = open_count();
	size_t count = 0;
	struct cj_error err = { 0 };
	bool is_able = chown(place, OWNER, OWNER) == 0 &&
		       jail_init_shift(&spec, &unused_id, fds, &count, &err) == 0;
	if (is_able) {
		struct stat st;
		assert_int_equal(count, 3);
		assert_int_equal(fstat(fds[1], &st), 0);
		assert_int_equal(st.st_uid, HOST_ID);
		assert_int_equal(st.st_gid, HOST_ID);
		assert_int_equal(fstatat(fds[0], "other", &st, 0), 0);
		assert_int_not_equal(st.st_uid, geteuid()); /* has no id there */
		assert_int_equal(mkdirat(fds[0], "new", 0755), -1);
		assert_int_equal(errno, EROFS);
		assert_int_equal(mkdirat(fds[2], "new", 0755), -1);
		assert_int_equal(errno, EOVERFLOW); /* writable, but not for our own id */
		cj_close(&fds[0]), cj_close(&fds[1]), cj_close(&fds[2]);
	}
	assert_int_equal(open_count(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no helper is left */
	(void)rmdir(other), (void)rmdir(place);
	if (!is_able)
		skip();
}

static void a_directory_that_can_not_be_mapped_is_named_and_nothing_stays_open(void **state)
{
	(void)state;
	static const char *const sources[] = { "/nonexistent", "/proc/self", "/proc/sys/vm" };
	int fds[OVERLAYS_MAX], before = open_count();
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		const struct bind_spec bind = { BIND_OVERLAY, sources[i], "/src" };
		const struct rootfs_spec spec = { .binds = &bind, .nbinds = 1 };
		size_t count;
		struct cj_error err = { 0 };
		assert_true(jail_init_shift(&spec, &unused_id, fds, &count, &err) < 0);
		assert_non_null(strstr(err.msg, "--overlay '"));
		assert_non_null(strstr(err.msg, sources[i]));
		assert_int_equal(open_count(), before);
	}
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_callers_files_need_no_id_map),
		cmocka_unit_test(the_owner_becomes_the_jails_user_and_others_stay),
		cmocka_unit_test(
		    a_directory_that_can_not_be_mapped_is_named_and_nothing_stays_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
