/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_client_name - any bytes as what a client sends to a server whose name is checked.
 *
 * The first byte: where the rest is cut in two.  Asserted: nothing passes before a name was asked
 * about and allowed; a name has the letters of host names, no empty label and at most 255 bytes;
 * what is refused once stays refused; cut anywhere, the same bytes pass, and the same names are
 * asked about.
 */
#include <assert.h>

#include "netns/relay/client_name.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct asked {
	size_t count, allowed;
	uint64_t sum; /* of all names */
};

/* A name with an 'x' is refused. */
static bool may(void *context, const char *name)
{
	struct asked *a = context;
	assert(strlen(name) > 0 && strlen(name) < CLIENT_NAME_MAX);
	assert(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(name));
	assert(name[0] != '.' && name[strlen(name) - 1] != '.' && !strstr(name, ".."));
	for (const char *c = name; *c; c++)
		a->sum = a->sum * 31 + (unsigned char)*c;
	a->count++;
	a->allowed += !strchr(name, 'x');
	return !strchr(name, 'x');
}

/* In memory of its own, so that no byte behind them is read. */
static ssize_t read_copy(struct client_stream *s, const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size > 0 ? size : 1);
	assert(copy);
	if (size > 0)
		memcpy(copy, bytes, size);
	const struct asked *a = s->context;
	ssize_t passed = client_stream_read(s, copy, size);
	free(copy);
	assert(passed >= -1 && passed <= (ssize_t)size);
	assert(passed <= 0 || a->allowed > 0);
	assert(passed >= 0 || s->is_denied == (a->allowed < a->count));
	assert(passed < 0 || a->allowed == a->count);
	return passed;
}

static ssize_t read_cut(const uint8_t *bytes, size_t size, size_t cut, struct asked *asked)
{
	struct client_stream s = { .may = may, .context = asked };
	ssize_t first = read_copy(&s, bytes, cut);
	if (first < 0)
		return -1;
	ssize_t second = read_copy(&s, bytes + first, size - (size_t)first);
	return second < 0 ? -1 : first + second;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (size == 0)
		return 0;
	const size_t cut = (size_t)bytes[0] % size;
	struct asked once = { 0 }, twice = { 0 };
	const ssize_t whole = read_cut(bytes + 1, size - 1, 0, &once);
	assert(read_cut(bytes + 1, size - 1, cut, &twice) == whole);
	assert(once.count == twice.count && once.sum == twice.sum);
	return 0;
}
