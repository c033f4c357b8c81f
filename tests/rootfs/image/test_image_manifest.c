/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON documents of an image. */
#include "rootfs/image/image_manifest.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "rootfs/image/image_store.h"

#define HEX  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DESC "\"digest\": \"sha256:" HEX "\", \"size\": 7"
#define OCI  "application/vnd.oci.image."
#define CONF "\"config\": {\"mediaType\": \"" OCI "config.v1+json\", " DESC "}"
#define TAR  "{\"mediaType\": \"" OCI "layer.v1.tar+zstd\", " DESC "}"

static struct arena arena;
static struct cj_error err;

static int teardown(void **state)
{
	(void)state;
	arena_fini(&arena);
	err = (struct cj_error){ 0 };
	return 0;
}

static int index_of(const char *text, struct image_descriptors *out)
{
	return image_index_parse("index.json", text, strlen(text), &arena, out, &err);
}

static int manifest_of(const char *text, struct image_manifest *out)
{
	return image_manifest_parse("manifest", text, strlen(text), &arena, out, &err);
}

static int config_of(const char *text, struct image_config *out)
{
	return image_config_parse("config", text, strlen(text), &arena, out, &err);
}

static void an_index_lists_manifests_with_their_platforms(void **state)
{
	(void)state;
	struct image_descriptors list;
	assert_int_equal(
	    index_of("{\"schemaVersion\": 2, \"x\": [1], \"manifests\": ["
		     "{\"mediaType\": \"m\", " DESC
		     ", \"platform\": {\"architecture\": \"arm\", \"os\": "
		     "\"linux\", \"variant\": \"v7\"}},"
		     "{" DESC
		     ", \"annotations\": {\"org.opencontainers.image.ref.name\": \"latest\", "
		     "\"other\": \"x\"}}]}",
		     &list),
	    0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0].sha256, HEX);
	assert_int_equal(list.items[0].size, 7);
	assert_string_equal(list.items[0].architecture, "arm");
	assert_null(list.items[1].architecture);
	assert_string_equal(list.items[1].ref, "latest");
	assert_string_equal(list.items[1].media_type, "");
}

static void a_document_of_the_wrong_form_is_refused(void **state)
{
	(void)state;
	static const char *const rows[] = {
		"",
		"[]",
		"{\"schemaVersion\": 2}",
		"{\"schemaVersion\": 1, \"manifests\": []}",
		"{\"manifests\": []}",
		"{\"schemaVersion\": 2, \"manifests\": {}}",
		"{\"schemaVersion\": 2, \"manifests\": [7]}",
		"{\"schemaVersion\": 2, \"manifests\": [{\"digest\": \"sha256:" HEX "\"}]}",
		"{\"schemaVersion\": 2, \"manifests\": [{\"size\": 7}]}",
		"{\"schemaVersion\": 2, \"manifests\": [{\"digest\": \"sha512:" HEX
		"\", \"size\": 7}]}",
		"{\"schemaVersion\": 2, \"manifests\": [{\"digest\": \"sha256:../../x\", \"size\": 7}]}",
		"{\"schemaVersion\": 2, \"manifests\": [{\"digest\": \"sha256:" HEX
		"\", \"size\": -1}]}",
		"{\"schemaVersion\": 2, \"mediaType\": \"" OCI
		"manifest.v1+json\", \"manifests\": []}",
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct image_descriptors list;
		assert_int_equal(index_of(rows[i], &list), -EINVAL);
		assert_memory_equal(err.msg, "index.json", 10);
	}
}

static void an_index_has_a_limit(void **state)
{
	(void)state;
	static char text[JSON_BYTES_MAX];
	struct image_descriptors list;
	size_t used =
	    (size_t)snprintf(text, sizeof(text), "{\"schemaVersion\": 2, \"manifests\": [");
	for (size_t i = 0; i <= IMAGE_LIST_MAX; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s{" DESC "}",
					 i > 0 ? "," : "");
	(void)snprintf(text + used, sizeof(text) - used, "]}");
	assert_int_equal(index_of(text, &list), -E2BIG);
}

static void a_manifest_has_a_configuration_and_layers(void **state)
{
	(void)state;
	struct image_manifest m;
	assert_int_equal(
	    manifest_of("{\"schemaVersion\": 2, " CONF ", \"layers\": [" TAR ", " TAR "]}", &m), 0);
	assert_int_equal(m.layers.count, 2);
	assert_string_equal(m.config.sha256, HEX);
}

static void a_layer_or_configuration_of_another_type_is_refused(void **state)
{
	(void)state;
	static const char *const rows[] = {
		"{\"schemaVersion\": 2, " CONF ", \"layers\": [{\"mediaType\": \"application/"
		"vnd.oci.image.layer.nondistributable.v1.tar\", " DESC "}]}",
		"{\"schemaVersion\": 2, " CONF ", \"layers\": [{" DESC "}]}",
		"{\"schemaVersion\": 2, \"config\": {\"mediaType\": \"application/vnd.oci.empty.v1+json\", " DESC
		"}, \"layers\": []}",
		"{\"schemaVersion\": 2, \"mediaType\": \"" OCI "index.v1+json\", " CONF
		", \"layers\": []}",
		"{\"schemaVersion\": 2, \"layers\": []}",
		"{\"schemaVersion\": 2, " CONF "}",
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct image_manifest m;
		assert_int_equal(manifest_of(rows[i], &m), -EINVAL);
	}
}

static void layers_have_a_limit(void **state)
{
	(void)state;
	char text[32768];
	struct image_manifest m;
	size_t used =
	    (size_t)snprintf(text, sizeof(text), "{\"schemaVersion\": 2, " CONF ", \"layers\": [");
	for (size_t i = 0; i <= IMAGE_LAYERS_MAX; i++)
		used +=
		    (size_t)snprintf(text + used, sizeof(text) - used, "%s" TAR, i > 0 ? "," : "");
	(void)snprintf(text + used, sizeof(text) - used, "]}");
	assert_int_equal(manifest_of(text, &m), -E2BIG);
}

static void a_configuration_is_read_and_null_is_absent(void **state)
{
	(void)state;
	struct image_config c;
	assert_int_equal(
	    config_of("{\"architecture\": \"amd64\", \"os\": \"linux\", \"rootfs\": {\"type\": "
		      "\"layers\", \"diff_ids\": [\"sha256:" HEX
		      "\"]}, \"config\": {\"User\": \"app\", "
		      "\"Env\": [\"A=1\", \"B=\"], \"Entrypoint\": null, \"Cmd\": [\"sh\", \"\"], "
		      "\"WorkingDir\": \"/w\", \"Labels\": {\"a\": \"b\"}}}",
		      &c),
	    0);
	assert_string_equal(c.diff_ids.items[0], HEX);
	assert_int_equal(c.env.count, 2);
	assert_int_equal(c.entrypoint.count, 0);
	assert_int_equal(c.cmd.count, 2);
	assert_string_equal(c.user, "app");
	assert_string_equal(c.workdir, "/w");
	assert_int_equal(config_of("{\"rootfs\": {\"diff_ids\": null}, \"config\": null}", &c), 0);
	assert_string_equal(c.user, "");
	assert_string_equal(c.architecture, "");
}

static void a_variable_without_a_value_is_refused(void **state)
{
	(void)state;
	struct image_config c;
	assert_int_equal(config_of("{\"rootfs\": {}, \"config\": {\"Env\": [\"A\"]}}", &c),
			 -EINVAL);
	assert_int_equal(config_of("{\"rootfs\": {}, \"config\": {\"Env\": [\"=A\"]}}", &c),
			 -EINVAL);
	assert_int_equal(config_of("{\"config\": {}}", &c), -EINVAL);
}

static void a_docker_archive_lists_images(void **state)
{
	(void)state;
	static const char text[] = "[{\"Config\": \"a.json\", \"RepoTags\": [\"a:1\", \"a:2\"], "
				   "\"Layers\": [\"x/layer.tar\"]}, {\"Config\": \"b.json\", "
				   "\"RepoTags\": null, \"Layers\": []}]";
	struct image_archive list;
	size_t chosen = 9;
	assert_int_equal(
	    image_archive_parse("manifest.json", text, strlen(text), &arena, &list, &err), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0].layers.items[0], "x/layer.tar");
	assert_int_equal(image_choose_archived(&list, NULL, &chosen, &err), -EINVAL);
	assert_non_null(strstr(err.hint, "--ref"));
	assert_int_equal(image_choose_archived(&list, "a:2", &chosen, &err), 0);
	assert_int_equal(chosen, 0);
	assert_int_equal(image_choose_archived(&list, "b", &chosen, &err), -EINVAL);
	assert_int_equal(image_archive_parse("manifest.json", "{}", 2, &arena, &list, &err),
			 -EINVAL);
}

static void the_image_for_this_machine_is_chosen(void **state)
{
	(void)state;
	struct image_descriptor items[] = {
		{ .architecture = "s390x", .os = "linux", .ref = "one" },
		{ .architecture = image_architecture(), .os = "windows", .ref = "one" },
		{ .architecture = image_architecture(), .os = "linux", .ref = "one" },
		{ .architecture = "unknown", .os = "unknown", .ref = "one" },
	};
	struct image_descriptors list = { items, 4 };
	size_t chosen;
	assert_int_equal(image_choose(&list, NULL, &chosen, &err), 0);
	assert_int_equal(chosen, 2);
	assert_int_equal(image_choose(&list, "one", &chosen, &err), 0);
	assert_int_equal(image_choose(&list, "two", &chosen, &err), -EINVAL);
	items[0].architecture = NULL;
	items[0].os = NULL;
	assert_int_equal(image_choose(&list, NULL, &chosen, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "2 images"));
	list.count = 0;
	assert_int_equal(image_choose(&list, NULL, &chosen, &err), -EINVAL);
}

static void a_layout_has_a_known_version(void **state)
{
	(void)state;
	static const char good[] = "{\"imageLayoutVersion\": \"1.0.0\"}";
	static const char bad[] = "{\"imageLayoutVersion\": \"2.0.0\"}";
	assert_int_equal(image_layout_parse("oci-layout", good, strlen(good), &err), 0);
	assert_int_equal(image_layout_parse("oci-layout", bad, strlen(bad), &err), -EINVAL);
	assert_int_equal(image_layout_parse("oci-layout", "{}", 2, &err), -EINVAL);
}

/* --- the store's record ----------------------------------------------------------------- */

static struct image_record sample(void)
{
	static const char *layers[] = { HEX, NULL }, *env[] = { "A=1", NULL };
	return (struct image_record){ .schema = IMAGE_SCHEMA,
				      .name = "sample",
				      .digest = HEX,
				      .architecture = "amd64",
				      .bytes = 5,
				      .entries = 6,
				      .layers = { layers, 1 },
				      .env = { env, 1 },
				      .workdir = "/w",
				      .user = "app",
				      .uid = 12 };
}

static int record_of(const struct image_record *r, struct image_record *out)
{
	struct json_writer *w = json_writer_create(false);
	struct blob text;
	assert_non_null(w);
	image_record_write(w, r);
	assert_int_equal(json_writer_take(w, &text, &err), 0);
	int rc = image_record_parse("record", text.bytes, text.size, &arena, out, &err);
	json_writer_destroy(&w);
	return rc;
}

static void a_record_is_read_as_it_was_written(void **state)
{
	(void)state;
	struct image_record out, r = sample();
	assert_int_equal(record_of(&r, &out), 0);
	assert_string_equal(out.name, "sample");
	assert_string_equal(out.layers.items[0], HEX);
	assert_string_equal(out.env.items[0], "A=1");
	assert_int_equal(out.command.count, 0);
	assert_int_equal(out.uid, 12);
}

static void a_record_that_names_other_files_is_refused(void **state)
{
	(void)state;
	static const char *up[] = { "../../../../etc", NULL };
	struct image_record out, r = sample();
	r.layers.items = up;
	assert_int_equal(record_of(&r, &out), -EINVAL);
	r = sample();
	r.layers.count = 0;
	assert_int_equal(record_of(&r, &out), -EINVAL);
	r = sample();
	r.name = "../x";
	assert_int_equal(record_of(&r, &out), -EINVAL);
	r = sample();
	r.schema = "cejail.image/9";
	assert_int_equal(record_of(&r, &out), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
		TEST(an_index_lists_manifests_with_their_platforms),
		TEST(a_document_of_the_wrong_form_is_refused),
		TEST(an_index_has_a_limit),
		TEST(a_manifest_has_a_configuration_and_layers),
		TEST(a_layer_or_configuration_of_another_type_is_refused),
		TEST(layers_have_a_limit),
		TEST(a_configuration_is_read_and_null_is_absent),
		TEST(a_variable_without_a_value_is_refused),
		TEST(a_docker_archive_lists_images),
		TEST(the_image_for_this_machine_is_chosen),
		TEST(a_layout_has_a_known_version),
		TEST(a_record_is_read_as_it_was_written),
		TEST(a_record_that_names_other_files_is_refused),
#undef TEST
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
