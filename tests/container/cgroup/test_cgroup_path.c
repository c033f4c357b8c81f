/* SPDX-License-Identifier: Apache-2.0 */
/* cgroupsPath: clean paths, and the names of scopes. */
#include "runtime/container/cgroup/container_cgroup.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void empty_components_and_dots_are_dropped(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "/a/b", "/a/b" },     { "//a///b/", "/a/b" },       { "a/b", "a/b" },
		{ "./a/./b/.", "a/b" }, { "/k8s.io/x", "/k8s.io/x" }, { "a..b/..c", "a..b/..c" },
		{ "/a:b:c", "/a:b:c" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[CGROUP_PATH_MAX];
		struct cj_error err = { 0 };
		assert_int_equal(cgroup_path_clean(rows[i][0], path, &err), 0);
		assert_string_equal(path, rows[i][1]);
	}
}

static void paths_that_lead_out_or_nowhere_are_refused(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "/a/../b", "'..'" }, { "..", "'..'" },
		{ "/a/..", "'..'" },   { "a/../../b", "'..'" },
		{ "/", "the root" },   { "//.//", "the root" },
		{ ".", "the root" },   { "a.slice:b:c", "--systemd-cgroup" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[CGROUP_PATH_MAX];
		struct cj_error err = { 0 };
		assert_int_equal(cgroup_path_clean(rows[i][0], path, &err), -EINVAL);
		assert_non_null(strstr(err.msg, rows[i][1]));
	}
}

static void a_path_of_every_length_fits_or_is_refused(void **state)
{
	(void)state;
	char text[CGROUP_PATH_MAX + 8], path[CGROUP_PATH_MAX];
	for (size_t size = 1; size < sizeof(text) - 1; size++) {
		struct cj_error err = { 0 };
		memset(text, 'x', size);
		text[0] = size % 2 ? '/' : 'x';
		text[size] = '\0';
		int rc = cgroup_path_clean(text, path, &err);
		if (size == 1 || size >= CGROUP_PATH_MAX)
			assert_int_equal(rc, -EINVAL);
		else
			assert_string_equal(path, text);
	}
}

static void a_scope_is_named_by_prefix_and_name(void **state)
{
	(void)state;
	static const struct {
		const char *path, *slice, *unit;
	} rows[] = {
		{ "machine.slice:libpod:abc", "machine.slice", "libpod-abc.scope" },
		{ "kube-pods.slice:cri-containerd:1", "kube-pods.slice", "cri-containerd-1.scope" },
		{ "::abc", "", "abc.scope" },
		{ ":crio:abc", "", "crio-abc.scope" },
		{ NULL, "", "cejail-oci-ID.scope" },
		{ "", "", "cejail-oci-ID.scope" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cgroup_scope_name name;
		struct cj_error err = { 0 };
		assert_int_equal(cgroup_path_scope(rows[i].path, "ID", &name, &err), 0);
		assert_string_equal(name.slice, rows[i].slice);
		assert_string_equal(name.unit, rows[i].unit);
	}
}

static void other_forms_and_names_that_systemd_refuses_are_refused(void **state)
{
	(void)state;
	char longest[400] = "x.slice:p:";
	memset(longest + 10, 'n', sizeof(longest) - 11);
	const char *const rows[] = {
		"/a/b",
		"a:b",
		"a.slice:b:c:d",
		"machine:libpod:abc",
		"machine.slice:libpod:",
		"../x.slice:a:b",
		"x.slice:a/b:c",
		"x.slice:a:b c",
		".slice:a:b",
		"x.slice:a:b@c",
		longest,
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cgroup_scope_name name;
		struct cj_error err = { 0 };
		assert_int_equal(cgroup_path_scope(rows[i], "ID", &name, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "cgroupsPath"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_components_and_dots_are_dropped),
		cmocka_unit_test(paths_that_lead_out_or_nowhere_are_refused),
		cmocka_unit_test(a_path_of_every_length_fits_or_is_refused),
		cmocka_unit_test(a_scope_is_named_by_prefix_and_name),
		cmocka_unit_test(other_forms_and_names_that_systemd_refuses_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
