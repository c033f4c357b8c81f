/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: fsopen fsconfig fsmount move_mount mount umount2 mkdirat mknodat symlinkat chdir fchdir */
/* WRAP: sys_openat2 sys_open_tree sys_mount_setattr sys_pivot_root */
/*
 * Every call that builds the tree is made to fail once: the stage it is in fails, names the
 * error, and leaves no descriptor behind.  No failure is passed over, so no half tree is used.
 */
#include "tests/rootfs/inside.h"

#include <sys/mount.h>

#include "runtime/base/sys.h"
#include "tests/failing.h"

#define WRAP(type, name, parameters, arguments) FAILS(type, name, parameters, arguments, -1, EIO)

WRAP(int, fsopen, (const char *type, unsigned flags), (type, flags))
WRAP(int, fsconfig, (int fd, unsigned command, const char *key, const void *value, int aux),
     (fd, command, key, value, aux))
WRAP(int, fsmount, (int fd, unsigned flags, unsigned attrs), (fd, flags, attrs))
WRAP(int, move_mount, (int from, const char *f, int to, const char *t, unsigned flags),
     (from, f, to, t, flags))
WRAP(int, mount,
     (const char *source, const char *target, const char *type, unsigned long flags,
      const void *data),
     (source, target, type, flags, data))
WRAP(int, umount2, (const char *target, int flags), (target, flags))
WRAP(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))
WRAP(int, mknodat, (int fd, const char *path, mode_t mode, dev_t dev), (fd, path, mode, dev))
WRAP(int, symlinkat, (const char *target, int fd, const char *path), (target, fd, path))
WRAP(int, chdir, (const char *path), (path))
WRAP(int, fchdir, (int fd), (fd))
WRAP(int, sys_openat2, (int fd, const char *path, int flags, mode_t mode, uint64_t resolve),
     (fd, path, flags, mode, resolve))
WRAP(int, sys_open_tree, (int fd, const char *path, unsigned flags), (fd, path, flags))
WRAP(int, sys_mount_setattr, (int fd, const char *path, unsigned flags, struct mount_attr *attr),
     (fd, path, flags, attr))
WRAP(int, sys_pivot_root, (const char *root, const char *old), (root, old))

static void fail_each_call_as(const struct rootfs_spec *spec, uid_t caller)
{
	share_result();
	calls = &inside_result->calls;
	is_armed = true;
	fail_at = 0;
	run_inside(spec, caller, NULL, NULL);
	int needed = inside_result->calls;
	assert_true(needed > 60);

	for (fail_at = 1; fail_at <= needed; fail_at++) {
		try_inside(spec, caller, NULL, NULL);
		if (inside_result->end != ENDED_STAGE)
			print_error("call %d of %d failed unnoticed\n", fail_at, needed);
		assert_int_equal(inside_result->end, ENDED_STAGE);
		assert_int_equal(inside_result->err.code, EIO);
		assert_non_null(strstr(inside_result->err.msg, "Input/output error"));
		if (inside_result->leaked != 0)
			print_error("call %d: %s\n", fail_at, inside_result->err.msg);
		assert_int_equal(inside_result->leaked, 0);
	}
}

static void fail_each_call(const struct rootfs_spec *spec)
{
	fail_each_call_as(spec, geteuid());
}

static void every_failing_call_fails_a_host_root_and_leaves_nothing(void **state)
{
	(void)state;
	struct bind_spec bind = { BIND_READ_ONLY, "/usr", "/box/deep/usr" };
	struct rootfs_spec spec = host_spec();
	spec.tty = true;
	spec.binds = &bind;
	spec.nbinds = 1;
	fail_each_call(&spec);
}

static void every_failing_call_fails_a_writable_host_root_and_leaves_nothing(void **state)
{
	(void)state;
	struct rootfs_spec spec = host_spec();
	spec.writable = true;
	spec.python = "/usr/bin/python3";
	spec.packages = ".local/lib/python3.11/site-packages";
	fail_each_call(&spec);
}

static void every_failing_call_fails_an_overlay_and_leaves_nothing(void **state)
{
	(void)state;
	char *place = make_place();
	struct bind_spec bind = { BIND_OVERLAY, place, "/srv/src" };
	struct rootfs_spec spec = host_spec();
	if (has_ids()) /* root's own is for the supervisor: test_overlays.c */
		assert_int_equal(chown(place, INSIDE_ID, INSIDE_ID), 0);
	spec.binds = &bind;
	spec.nbinds = 1;
	fail_each_call_as(&spec, user_id());
	end_place(place);
}

static void every_failing_call_fails_a_layered_root_and_leaves_nothing(void **state)
{
	(void)state;
	char *place = make_place();
	const char *layers[] = { place, "/usr" };
	struct bind_spec bind = { BIND_READ_ONLY, "/usr", "/srv/usr" };
	struct rootfs_spec spec = host_spec();
	spec.kind = ROOT_LAYERS;
	spec.layers = (struct strings){ .items = layers, .count = 2 };
	spec.binds = &bind;
	spec.nbinds = 1;
	fail_each_call(&spec);
	end_place(place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failing_call_fails_a_host_root_and_leaves_nothing),
		cmocka_unit_test(every_failing_call_fails_a_writable_host_root_and_leaves_nothing),
		cmocka_unit_test(every_failing_call_fails_an_overlay_and_leaves_nothing),
		cmocka_unit_test(every_failing_call_fails_a_layered_root_and_leaves_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
