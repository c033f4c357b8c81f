/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_return_value - any bytes as the file of a return value.
 *
 * Asserted: a failure has a message and no value; what is taken can be read again where it is
 * delivered: as a member of a result within an event, by the reader of `run --remote`.
 */
#undef NDEBUG
#include <assert.h>

#include "rootfs/files/return_value.h"
#include "runtime/base/scope.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_delivered(const struct json_node *value)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	struct blob text;

	assert(w);
	json_open_object(w);
	json_put_key(w, "result");
	json_open_object(w);
	json_put_key(w, "value");
	json_put_node(w, value);
	json_close_object(w);
	json_close_object(w);
	int rc = json_writer_take(w, &text, &err);
	assert(rc == 0 && !memchr(text.bytes, '\n', text.size));
	rc = json_parse_capped("again", text.bytes, text.size, &a, &root, &err);
	assert(rc == 0);
	const struct json_node *again = json_get(json_get(root, "result"), "value");
	assert(again && again->type == value->type && again->count == value->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *value = NULL;
	struct cj_error err = { 0 };

	if (return_value_parse("value", (const char *)bytes, size, &a, &value, &err) < 0)
		assert(err.code > 0 && err.msg[0] != '\0' && !value);
	else
		check_delivered(value);
	return 0;
}
