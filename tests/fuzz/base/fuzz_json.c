/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_json - any bytes through the reader; what it takes, through the writer and back.
 *
 * Asserted: a failure has a message and no tree; a tree keeps its limits, its keys and texts are
 * strict UTF-8, each value stands where it says; written and read again it is the same.
 */
#include <assert.h>

#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The byte at line:column; both count from 1. */
static char at_place(const char *text, size_t size, unsigned line, unsigned column)
{
	size_t at = 0;

	for (; line > 1; line--) {
		const char *newline = memchr(text + at, '\n', size - at);

		assert(newline);
		at = (size_t)(newline - text) + 1;
	}
	for (column--; column > 0; column--) {
		assert(at < size);
		for (at++; at < size && ((uint8_t)text[at] & 0xc0) == 0x80; at++)
			;
	}
	assert(at < size);
	return text[at];
}

static void check_node(const struct json_node *node, const char *text, size_t size, size_t depth)
{
	static const char *const begins[JSON_TYPE_COUNT] = {
		[JSON_NULL] = "n",    [JSON_BOOL] = "tf", [JSON_NUMBER] = "-0123456789",
		[JSON_STRING] = "\"", [JSON_ARRAY] = "[", [JSON_OBJECT] = "{",
	};
	size_t count = 0;

	assert(depth <= JSON_DEPTH_MAX);
	assert(strchr(begins[node->type], at_place(text, size, node->line, node->column)));
	if (node->text)
		assert(is_utf8(node->text, strlen(node->text)));
	if (node->key) {
		assert(is_utf8(node->key, strlen(node->key)));
		assert(at_place(text, size, node->key_line, node->key_column) == '"');
	}
	for (const struct json_node *m = node->child; m; m = m->next, count++) {
		assert((m->key != NULL) == (node->type == JSON_OBJECT));
		assert(!m->key || json_get(node, m->key) == m); /* no duplicates */
		check_node(m, text, size, depth + 1);
	}
	assert(count == node->count);
}

/* The tree as text, the caller's to free. */
static char *write_tree(const struct json_node *node, bool pretty)
{
	auto_json_writer struct json_writer *w = json_writer_create(pretty);
	struct cj_error err;
	struct blob text;

	assert(w);
	json_put_node(w, node);
	int rc = json_writer_take(w, &text, &err);
	assert(rc == 0 && strlen(text.bytes) == text.size);
	return strdup(text.bytes);
}

static void check_round_trip(const struct json_node *node)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *again = NULL;
	struct cj_error err;
	auto_free char *pretty = write_tree(node, true);
	auto_free char *compact = write_tree(node, false);

	assert(pretty && compact);
	if (strlen(pretty) > JSON_BYTES_MAX) /* the indentation made it so */
		return;
	int rc = json_parse("pretty", pretty, strlen(pretty), &a, &again, &err);
	assert(rc == 0);
	auto_free char *compact_again = write_tree(again, false);
	assert(compact_again && strcmp(compact, compact_again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *root = NULL;
	struct cj_error err = { 0 };
	int rc = json_parse("input", (const char *)bytes, size, &a, &root, &err);

	if (rc < 0) {
		assert(!root && err.code == -rc && err.msg[0] != '\0');
		return 0;
	}
	assert(root);
	if (size < 4096) /* the look-ups above are slow on purpose */
		check_node(root, (const char *)bytes, size, 0);
	check_round_trip(root);
	return 0;
}
