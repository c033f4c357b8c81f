/* SPDX-License-Identifier: Apache-2.0 */
/* Options of mounts: what each does, and which contradict each other. */
#include "runtime/container/plan/mount_options.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <sys/mount.h>

/* Splits at commas; the parts live in the arena. */
static struct strings split(const char *text, struct arena *a)
{
	struct strings list = { 0 };
	while (*text) {
		size_t size = strcspn(text, ",");
		assert_int_equal(strings_add(&list, a, arena_strndup(a, text, size)), 0);
		text += size;
		text += *text == ',';
	}
	return list;
}

static struct mount_options parse(const char *text, struct arena *a)
{
	struct strings list = split(text, a);
	struct mount_options out;
	struct cj_error err = { 0 };
	int rc = mount_options_parse(&list, a, &out, &err);
	if (rc < 0)
		print_error("%s: %s\n", text, err.msg);
	assert_int_equal(rc, 0);
	return out;
}

static void refuse(const char *text, const char *part)
{
	struct arena a = { 0 };
	struct strings list = split(text, &a);
	struct mount_options out;
	struct cj_error err = { 0 };
	if (mount_options_parse(&list, &a, &out, &err) != -EINVAL)
		print_error("%s is not refused\n", text);
	assert_int_equal(err.code, EINVAL);
	if (!strstr(err.msg, part))
		print_error("%s: %s\n", text, err.msg);
	assert_non_null(strstr(err.msg, part));
	arena_fini(&a);
}

#define ATIME MOUNT_ATTR__ATIME

static void each_option_has_its_attribute(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		struct tree_attrs attrs;
	} rows[] = {
		{ "", { 0 } },
		{ "defaults,async,norelatime,rnostrictatime", { 0 } },
		{ "ro", { .set = MOUNT_ATTR_RDONLY } },
		{ "rw", { 0 } },
		{ "rro", { .set_below = MOUNT_ATTR_RDONLY } },
		{ "rrw", { .clear_below = MOUNT_ATTR_RDONLY } },
		{ "nosuid,nodev,noexec",
		  { .set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC } },
		{ "suid,dev,exec",
		  { .clear = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC } },
		{ "rnosuid,rnodev,rnoexec",
		  { .set_below = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC } },
		{ "rsuid,rdev,rexec",
		  { .clear_below = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC } },
		{ "nodiratime,nosymfollow",
		  { .set = MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW } },
		{ "diratime,symfollow",
		  { .clear = MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW } },
		{ "rnodiratime,rnosymfollow",
		  { .set_below = MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW } },
		{ "rdiratime,rsymfollow",
		  { .clear_below = MOUNT_ATTR_NODIRATIME | MOUNT_ATTR_NOSYMFOLLOW } },
		{ "noatime", { .set = MOUNT_ATTR_NOATIME, .clear = ATIME } },
		{ "strictatime", { .set = MOUNT_ATTR_STRICTATIME, .clear = ATIME } },
		{ "relatime", { .clear = ATIME } },
		{ "atime,relatime", { .clear = ATIME } },
		{ "rnoatime", { .set_below = MOUNT_ATTR_NOATIME, .clear_below = ATIME } },
		{ "rstrictatime", { .set_below = MOUNT_ATTR_STRICTATIME, .clear_below = ATIME } },
		{ "rrelatime,ratime", { .clear_below = ATIME } },
		{ "private", { .propagation = MS_PRIVATE } },
		{ "rprivate", { .propagation = MS_PRIVATE, .propagates_below = true } },
		{ "slave", { .propagation = MS_SLAVE } },
		{ "rslave,slave", { .propagation = MS_SLAVE, .propagates_below = true } },
		{ "shared", { .propagation = MS_SHARED } },
		{ "shared,rshared", { .propagation = MS_SHARED, .propagates_below = true } },
		{ "unbindable", { .propagation = MS_UNBINDABLE } },
		{ "runbindable", { .propagation = MS_UNBINDABLE, .propagates_below = true } },
		{ "ro,rrw", { .set = MOUNT_ATTR_RDONLY, .clear_below = MOUNT_ATTR_RDONLY } },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct arena a = { 0 };
		struct mount_options o = parse(rows[i].text, &a);
		const struct tree_attrs *wanted = &rows[i].attrs;
		if (o.attrs.set != wanted->set || o.attrs.clear != wanted->clear)
			print_error("'%s'\n", rows[i].text);
		assert_int_equal(o.attrs.set, wanted->set);
		assert_int_equal(o.attrs.clear, wanted->clear);
		assert_int_equal(o.attrs.set_below, wanted->set_below);
		assert_int_equal(o.attrs.clear_below, wanted->clear_below);
		assert_int_equal(o.attrs.propagation, wanted->propagation);
		assert_int_equal(o.attrs.propagates_below, wanted->propagates_below);
		assert_int_equal(o.ndata, 0);
		assert_false(o.is_bind || o.copies_up || o.has_idmap);
		arena_fini(&a);
	}
}

static void binds_and_maps_are_recursive_with_an_r(void **state)
{
	(void)state;
	struct arena a = { 0 };
	struct mount_options o = parse("bind", &a);
	assert_true(o.is_bind && !o.is_recursive);
	o = parse("rbind,bind", &a);
	assert_true(o.is_bind && o.is_recursive);
	o = parse("idmap", &a);
	assert_true(o.has_idmap && !o.idmap_is_recursive);
	o = parse("ridmap", &a);
	assert_true(o.has_idmap && o.idmap_is_recursive);
	o = parse("tmpcopyup", &a);
	assert_true(o.copies_up);
	o = parse("ro", &a);
	assert_true(o.is_read_only && !o.is_writable);
	o = parse("rw", &a);
	assert_true(!o.is_read_only && o.is_writable);
	arena_fini(&a);
}

static void what_is_no_mount_option_is_data(void **state)
{
	(void)state;
	struct arena a = { 0 };
	struct mount_options o = parse("mode=755,newinstance,,gid=5,a==b,sync,empty=,ROX", &a);
	static const struct mounts_option wanted[] = {
		{ "mode", "755" }, { "newinstance", NULL }, { "gid", "5" },  { "a", "=b" },
		{ "sync", NULL },  { "empty", "" },         { "ROX", NULL },
	};
	assert_int_equal(o.ndata, sizeof(wanted) / sizeof(wanted[0]));
	for (size_t i = 0; i < o.ndata; i++) {
		assert_string_equal(o.data[i].key, wanted[i].key);
		assert_int_equal(o.data[i].value == NULL, wanted[i].value == NULL);
		if (wanted[i].value)
			assert_string_equal(o.data[i].value, wanted[i].value);
	}
	arena_fini(&a);
	refuse("=755", "option '=755' has no name");
}

static void only_options_of_file_systems_are_data_that_a_bind_ignores(void **state)
{
	(void)state;
	static const char *const data[] = { "mode", "sync", "lazytime", "lowerdir", "context" };
	static const char *const others[] = { "nosuid", "ro", "MODE", "nosuidd", "remount", "" };
	for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++)
		assert_true(mount_options_is_data(data[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(mount_options_is_data(others[i]));
	assert_string_equal(mount_options_nearest("rnosuidd"), "rnosuid");
	assert_string_equal(mount_options_nearest("seclable"), "seclabel");
	assert_null(mount_options_nearest("copy-symlink"));
}

static void contradictions_are_refused(void **state)
{
	(void)state;
	refuse("ro,rw", "option 'rw' contradicts an earlier one");
	refuse("rw,nosuid,ro", "option 'ro' contradicts");
	refuse("rro,rrw", "option 'rrw' contradicts");
	refuse("nosuid,suid", "option 'suid' contradicts");
	refuse("exec,noexec", "option 'noexec' contradicts");
	refuse("noatime,strictatime", "option 'strictatime' contradicts");
	refuse("noatime,relatime", "option 'relatime' contradicts");
	refuse("relatime,noatime", "option 'noatime' contradicts");
	refuse("rprivate,rslave", "option 'rslave' contradicts");
	refuse("shared,private", "option 'private' contradicts");
	refuse("remount", "option 'remount' has no meaning");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_option_has_its_attribute),
		cmocka_unit_test(binds_and_maps_are_recursive_with_an_r),
		cmocka_unit_test(what_is_no_mount_option_is_data),
		cmocka_unit_test(only_options_of_file_systems_are_data_that_a_bind_ignores),
		cmocka_unit_test(contradictions_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
