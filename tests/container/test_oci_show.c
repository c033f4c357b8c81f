/* SPDX-License-Identifier: Apache-2.0 */
/* oci_show: what spec and features write is what the reader takes and what the runtime can do. */
#include "runtime/container/oci_show.h"

#include <setjmp.h>
#include <stdarg.h>
#include <strings.h>

#include <cmocka.h>
#include <sys/capability.h>

#include "runtime/base/scope.h"
#include "runtime/container/config/oci_config.h"

static void take_spec(const struct oci_show_caller *caller, struct arena *a, struct oci_config *out)
{
	auto_json_writer struct json_writer *w = json_writer_create(true);
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_non_null(w);
	assert_int_equal(oci_show_write(w, "spec", caller, &err), 0);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	text.bytes = arena_strndup(a, text.bytes, text.size); /* the configuration points into it */
	assert_non_null(text.bytes);
	if (oci_config_read("config.json", text.bytes, text.size, a, out, &err) < 0)
		fail_msg("%s", err.msg);
}

static void the_template_is_a_configuration(void **state)
{
	auto_arena struct arena a = { 0 };
	struct oci_config config;
	(void)state;

	take_spec(&(struct oci_show_caller){ 0 }, &a, &config);
	assert_string_equal(config.root_path, "rootfs");
	assert_string_equal(config.process.args.items[0], "sh");
	assert_true(config.process.no_new_privileges && config.root_is_readonly);
	assert_int_equal(config.process.capabilities.inheritable.count, 0);
	assert_int_equal(config.nmounts, 7);
	assert_false(config.on_linux.namespaces[OCI_NS_USER].is_wanted);
	assert_true(config.on_linux.namespaces[OCI_NS_CGROUP].is_wanted &&
		    config.on_linux.namespaces[OCI_NS_NETWORK].is_wanted);
	assert_true(config.on_linux.resources.ndevices == 1 &&
		    !config.on_linux.resources.devices[0].allow);
}

static void the_rootless_template_maps_the_caller_to_root(void **state)
{
	auto_arena struct arena a = { 0 };
	struct oci_config config;
	(void)state;

	take_spec(&(struct oci_show_caller){ true, 1000, 100 }, &a, &config);
	assert_true(config.on_linux.namespaces[OCI_NS_USER].is_wanted);
	assert_true(config.on_linux.uid_maps.count == 1 &&
		    config.on_linux.uid_maps.items[0].host_id == 1000 &&
		    config.on_linux.gid_maps.items[0].host_id == 100 &&
		    config.on_linux.gid_maps.items[0].size == 1);
	assert_int_equal(config.on_linux.resources.ndevices, 0);
}

static const struct json_node *take_features(struct arena *a)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	struct blob text = { 0 };

	assert_non_null(w);
	assert_int_equal(oci_show_write(w, "features", &(struct oci_show_caller){ 0 }, &err), 0);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	assert_int_equal(json_parse("features", text.bytes, text.size, a, &root, &err), 0);
	return root;
}

static void features_have_what_containerd_reads(void **state)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = take_features(&a), *on_linux, *node;
	bool has_rro = false, enabled = false;
	(void)state;

	assert_string_equal(json_get_text(root, "ociVersionMin"), "1.0.0");
	assert_string_equal(json_get_text(root, "ociVersionMax"), "1.3.0");
	assert_string_equal(json_get_text(json_get(root, "annotations"), "io.cejail.version"),
			    CJ_VERSION);
	node = json_get(root, "potentiallyUnsafeConfigAnnotations");
	assert_string_equal(node->child->text, "io.cejail.");
	for (node = json_get(root, "mountOptions")->child; node; node = node->next)
		has_rro |= strcmp(node->text, "rro") == 0;
	assert_true(has_rro);
	on_linux = json_get(root, "linux");
	assert_string_equal(json_get(on_linux, "namespaces")->child->text, "user");
	node = json_get(json_get(json_get(on_linux, "mountExtensions"), "idmap"), "enabled");
	enabled = node->boolean;
	assert_true(enabled);
	assert_true(json_get(json_get(on_linux, "selinux"), "enabled")->boolean);
	node = json_get(on_linux, "memoryPolicy");
	assert_string_equal(json_get(node, "modes")->child->text, "MPOL_DEFAULT");
	assert_int_equal(json_get(node, "flags")->count, 3);
	assert_true(json_get(json_get(on_linux, "intelRdt"), "schemata")->boolean);
}

static void features_name_every_capability(void **state)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *on_linux = json_get(take_features(&a), "linux");
	const struct json_node *written = json_get(on_linux, "capabilities")->child;
	cap_value_t cap = 0;
	(void)state;

	for (; written; written = written->next, cap++) {
		char *name = cap_to_name(cap);
		assert_non_null(name);
		assert_int_equal(strcasecmp(name, written->text), 0);
		(void)cap_free(name);
	}
	assert_int_equal(cap, CAP_LAST_CAP + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_template_is_a_configuration),
		cmocka_unit_test(the_rootless_template_maps_the_caller_to_root),
		cmocka_unit_test(features_have_what_containerd_reads),
		cmocka_unit_test(features_name_every_capability),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
