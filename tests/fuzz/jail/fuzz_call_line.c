/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_call_line - any bytes as a call of a program to a tool.
 *
 * Asserted: the id is one JSON value without a newline; the arguments are the bytes of one object
 * of the line, so that what the caller gets is one line of JSON; a refusal has a message.
 */
#include <assert.h>

#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/jail/supervise/call_line.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static enum json_type type_of(const char *text, size_t size)
{
	auto_arena struct arena arena = { 0 };
	const struct json_node *node;
	struct cj_error err = { 0 };
	assert(json_parse("value", text, size, &arena, &node, &err) == 0);
	return node->type;
}

static void check(const struct written_call *call, const char *line, size_t size)
{
	assert(call->name);
	assert(memchr(call->id, '\0', sizeof(call->id)));
	enum json_type id = type_of(call->id, strlen(call->id));
	assert(id == JSON_STRING || id == JSON_NUMBER);
	assert(type_of(call->arguments.bytes, call->arguments.size) == JSON_OBJECT);
	bool is_in_line = call->arguments.bytes > line &&
			  call->arguments.bytes + call->arguments.size <= line + size;
	assert(is_in_line ||
	       (call->arguments.size == 2 && memcmp(call->arguments.bytes, "{}", 2) == 0));
	assert(!memchr(call->arguments.bytes, '\n', call->arguments.size));
	assert(!memchr(call->arguments.bytes, '\r', call->arguments.size));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	auto_arena struct arena arena = { 0 };
	struct written_call call;
	struct cj_error err = { 0 };
	if (size > 0 && memchr(bytes, '\n', size))
		size = (size_t)((const uint8_t *)memchr(bytes, '\n', size) - bytes);
	auto_free char *line = malloc(size + 1);
	assert(line);
	if (size > 0)
		memcpy(line, bytes, size);
	if (call_line_read(line, size, &arena, &call, &err) == 0)
		check(&call, line, size);
	else
		assert(err.msg[0]);
	return 0;
}
