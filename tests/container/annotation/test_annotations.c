/* SPDX-License-Identifier: Apache-2.0 */
/* annotations: what is read, refused and ignored. */
#include "runtime/container/annotation/annotations.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int read_all(const struct oci_pair *items, size_t count, struct arena *a,
		    struct annotations *out, struct cj_error *err)
{
	const struct oci_pairs pairs = { items, count };

	return annotations_read(&pairs, a, out, err);
}

static void without_annotations_nothing_is_asked_for(void **state)
{
	static const struct oci_pair foreign[] = { { "com.example", "x" },
						   { "io.cejailx.network", "public" } };
	auto_arena struct arena a = { 0 };
	struct annotations out;
	struct cj_error err = { 0 };

	(void)state;
	assert_int_equal(read_all(foreign, 2, &a, &out, &err), 0);
	assert_false(out.has_network);
	assert_null(out.result);
	assert_null(out.profile);
}

static void all_of_them_are_read(void **state)
{
	static const struct oci_pair simple[] = { { ANNOTATION_NETWORK, "public" } };
	static const struct oci_pair list[] = {
		{ ANNOTATION_PRIVATE, "true" }, /* before the network: the order is the file's */
		{ ANNOTATION_NETWORK, "allow:example.org:443,10.0.0.0/8" },
		{ ANNOTATION_SERVERS, "10.96.0.10,2606:4700::1111" },
		{ ANNOTATION_RESULT, "a/" },
		{ ANNOTATION_PROFILE, "base" },
	};
	auto_arena struct arena a = { 0 };
	struct annotations out;
	struct cj_error err = { 0 };

	(void)state;
	assert_int_equal(read_all(simple, 1, &a, &out, &err), 0);
	assert_true(out.has_network && !out.is_list);
	assert_int_equal(read_all(list, 5, &a, &out, &err), 0);
	assert_true(out.has_network && out.is_list && out.may_be_private);
	assert_int_equal(out.nallow, 2);
	assert_string_equal(out.allow[0].name, "example.org");
	assert_int_equal(out.allow[0].first_port, 443);
	assert_null(out.allow[1].name);
	assert_int_equal(out.nname_servers, 2);
	assert_int_equal(out.name_servers[1].family, 6);
	assert_string_equal(out.result, "a/");
	assert_string_equal(out.profile, "base");
}

static void the_sandbox_of_a_pod_has_no_result(void **state)
{
	static const struct oci_pair items[] = {
		{ ANNOTATION_RESULT, "./" },
		{ "io.kubernetes.cri.container-type", "sandbox" },
	};
	static const struct oci_pair other[] = {
		{ ANNOTATION_RESULT, "./" },
		{ "io.kubernetes.cri.container-type", "container" },
	};
	auto_arena struct arena a = { 0 };
	struct annotations out;
	struct cj_error err = { 0 };

	(void)state;
	assert_int_equal(read_all(items, 2, &a, &out, &err), 0);
	assert_true(out.is_sandbox);
	assert_null(out.result);
	assert_int_equal(read_all(other, 2, &a, &out, &err), 0);
	assert_false(out.is_sandbox);
	assert_non_null(out.result);
}

static void what_can_not_be_honoured_is_refused(void **state)
{
	static const struct {
		struct oci_pair pair;
		const char *message;
	} rows[] = {
		{ { "io.cejail.", "" }, "unknown annotation" },
		{ { "io.cejail.networks", "public" }, "unknown annotation" },
		{ { ANNOTATION_NETWORK, "" }, "neither public" },
		{ { ANNOTATION_NETWORK, "Public" }, "neither public" },
		{ { ANNOTATION_NETWORK, "public,allow:x" }, "neither public" },
		{ { ANNOTATION_NETWORK, "allow:" }, ANNOTATION_NETWORK },
		{ { ANNOTATION_NETWORK, "allow:a," }, ANNOTATION_NETWORK },
		{ { ANNOTATION_NETWORK, "allow:0x7f.1" }, ANNOTATION_NETWORK },
		{ { ANNOTATION_NETWORK, "allow:*.example.org" }, "works only in cejail run" },
		{ { ANNOTATION_NETWORK, "allow:example.org,*.example.org:443" }, "name each host" },
		{ { ANNOTATION_NETWORK, "allow:*.org" }, "public suffix" },
		{ { ANNOTATION_SERVERS, "10.0.0.1" }, "is missing" },
		{ { ANNOTATION_SERVERS, "" }, "not an address" },
		{ { ANNOTATION_SERVERS, "127.0.0.1" }, "neither a public nor a private" },
		{ { ANNOTATION_SERVERS, "169.254.169.254" }, "neither a public nor a private" },
		{ { ANNOTATION_SERVERS, "::ffff:8.8.8.8" }, "neither a public nor a private" },
		{ { ANNOTATION_SERVERS, "8.8.8.8,8.8.8.8,8.8.8.8,8.8.8.8,8.8.8.8,8.8.8.8,8.8.8.8,"
					"8.8.8.8,8.8.8.8" },
		  "at most 8" },
		{ { ANNOTATION_PRIVATE, "true" }, "is missing" },
		{ { ANNOTATION_PRIVATE, "perhaps" }, ANNOTATION_PRIVATE },
		{ { ANNOTATION_RESULT, "" }, "empty" },
		{ { ANNOTATION_PROFILE, "/etc/passwd" }, "no name of a profile" },
		{ { ANNOTATION_PROFILE, "" }, "no name of a profile" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_arena struct arena a = { 0 };
		struct annotations out;
		struct cj_error err = { 0 };
		assert_int_equal(read_all(&rows[i].pair, 1, &a, &out, &err), -EINVAL);
		if (!strstr(err.msg, rows[i].message))
			fail_msg("'%s' is not in '%s'", rows[i].message, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_annotations_nothing_is_asked_for),
		cmocka_unit_test(all_of_them_are_read),
		cmocka_unit_test(the_sandbox_of_a_pod_has_no_result),
		cmocka_unit_test(what_can_not_be_honoured_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
