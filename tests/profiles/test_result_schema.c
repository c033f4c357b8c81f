/* SPDX-License-Identifier: Apache-2.0 */
/* The names in profiles/schema/result.json are those of the engine's tables. */
#include "runtime/jail/outcome.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"

static struct arena arena;
static const struct json_node *schema;

static int schema_setup(void **state)
{
	(void)state;
	char *text;
	size_t size;
	struct cj_error err = { 0 };
	if (fd_read_file(AT_FDCWD, "profiles/schema/result.json", JSON_BYTES_MAX, &arena, &text,
			 &size, &err) < 0 ||
	    json_parse("result.json", text, size, &arena, &schema, &err) < 0) {
		print_error("%s (run from the top of the tree)\n", err.msg);
		return -1;
	}
	return 0;
}

static int schema_teardown(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

/* Follows keys from the top; the last argument is NULL. */
static const struct json_node *at(const char *key, ...)
{
	const struct json_node *node = schema;
	va_list keys;
	va_start(keys, key);
	for (; key && node; key = va_arg(keys, const char *))
		node = json_get(node, key);
	va_end(keys);
	assert_non_null(node);
	return node;
}

static bool has_name(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* An array of exactly these names, in whatever order. */
static void assert_array(const struct json_node *array, const char *const *names, size_t n)
{
	assert_int_equal(array->count, n);
	for (const struct json_node *node = array->child; node; node = node->next)
		if (!has_name(names, n, node->text))
			fail_msg("the schema's '%s' is in no table", node->text);
}

static void assert_keys(const struct json_node *object, const char *const *names, size_t n)
{
	assert_int_equal(object->count, n);
	for (size_t i = 0; i < n; i++)
		if (!json_get(object, names[i]))
			fail_msg("the schema has no '%s'", names[i]);
}

static void the_schema_knows_every_status(void **state)
{
	(void)state;
	assert_array(at("properties", "status", "enum", NULL), status_names, STATUS_COUNT);
}

static void the_schema_knows_every_limit(void **state)
{
	(void)state;
	assert_keys(at("properties", "limits", "properties", NULL), limit_names, LIMIT_COUNT);
	assert_array(at("properties", "limits", "required", NULL), limit_names, LIMIT_COUNT);
	assert_array(at("$defs", "limit", "properties", "by", "enum", NULL), limit_enforcer_names,
		     LIMIT_ENFORCER_COUNT);
}

static void the_schema_knows_every_unit(void **state)
{
	(void)state;
	const struct json_node *units = at("$defs", "limit", "properties", "unit", "enum", NULL);
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		const struct json_node *node = units->child;
		while (node && strcmp(node->text, limit_units[i]) != 0)
			node = node->next;
		assert_non_null(node);
	}
}

static void the_schema_knows_every_layer(void **state)
{
	(void)state;
	assert_keys(at("properties", "layers", "properties", NULL), layer_names, LAYER_COUNT);
	assert_array(at("properties", "layers", "required", NULL), layer_names, LAYER_COUNT);
	assert_array(at("$defs", "layer", "enum", NULL), layer_state_names, LAYER_STATE_COUNT);
}

static void the_schema_knows_every_class_of_refusal(void **state)
{
	(void)state;
	assert_array(at("$defs", "refusal", "properties", "class", "enum", NULL), net_class_names,
		     NET_CLASS_COUNT);
}

/* The enum in a "null or one of these". */
static const struct json_node *enum_or_null(const struct json_node *node)
{
	const struct json_node *one_of = json_get(node, "oneOf");
	assert_non_null(one_of);
	assert_int_equal(one_of->count, 2);
	const struct json_node *values = json_get(one_of->child->next, "enum");
	assert_non_null(values);
	return values;
}

static bool has_text(const struct json_node *array, const char *text)
{
	for (const struct json_node *node = array->child; node; node = node->next)
		if (strcmp(node->text, text) == 0)
			return true;
	return false;
}

static void the_schema_knows_every_protocol(void **state)
{
	(void)state;
	const struct json_node *names =
	    enum_or_null(at("$defs", "refusal", "properties", "protocol", NULL));
	size_t found = 1; /* "ip", which is no number's own */
	assert_true(has_text(names, "ip"));
	for (unsigned number = 0; number < 256; number++) {
		const char *name = denial_protocol_name((uint8_t)number);
		if (!has_text(names, name))
			fail_msg("the schema has no '%s'", name);
		found += strcmp(name, "ip") != 0;
	}
	assert_int_equal(found, names->count);
}

static void the_schema_knows_every_uplink(void **state)
{
	(void)state;
	assert_array(enum_or_null(at("properties", "network", "properties", "uplink", NULL)),
		     uplink_names + UPLINK_HOST,
		     UPLINK_COUNT - UPLINK_HOST); /* "auto" is no answer */
}

static void the_schema_knows_every_state_of_a_network(void **state)
{
	(void)state;
	assert_array(enum_or_null(at("properties", "network", "properties", "state", NULL)),
		     network_state_names, NETWORK_STATE_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_schema_knows_every_status),
		cmocka_unit_test(the_schema_knows_every_limit),
		cmocka_unit_test(the_schema_knows_every_unit),
		cmocka_unit_test(the_schema_knows_every_layer),
		cmocka_unit_test(the_schema_knows_every_class_of_refusal),
		cmocka_unit_test(the_schema_knows_every_protocol),
		cmocka_unit_test(the_schema_knows_every_uplink),
		cmocka_unit_test(the_schema_knows_every_state_of_a_network),
	};
	return cmocka_run_group_tests(tests, schema_setup, schema_teardown);
}
