/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_repl - any bytes on the channel of a session's interpreter.
 *
 * Asserted: the reader says the same however the bytes are cut; what it keeps lies within its
 * limits and within memory; a refusal has a message.
 */
#include <assert.h>

#include "runtime/session/repl/repl_channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Touches every byte that a result would have. */
static size_t add_up(const struct cell_outcome *cell)
{
	const char *const texts[] = { cell->value, cell->exception_type, cell->exception_message,
				      cell->traceback };
	size_t sum = cell->has_begun;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		sum += texts[i] ? strlen(texts[i]) : 0;
	assert(cell->ndisplays <= CELL_DISPLAYS_MAX);
	for (size_t i = 0; i < cell->ndisplays; i++) {
		const struct cell_display *d = &cell->displays[i];
		assert(strchr(d->type, '/') && d->size <= CELL_DISPLAY_BYTES_MAX);
		sum += d->size;
		for (size_t k = 0; k < d->size; k++)
			sum += d->bytes[k];
	}
	return sum;
}

static int read_all(const uint8_t *bytes, size_t size, size_t step, size_t *out_sum)
{
	auto_arena struct arena arena = { 0 };
	struct cell_outcome cell = { .number = 1 };
	struct repl_reader reader;
	struct cj_error err = { 0 };
	int rc = REPL_GOES_ON;
	repl_reader_init(&reader, &arena, &cell);
	for (size_t at = 0; at < size && rc == REPL_GOES_ON; at += step) {
		size_t n = size - at < step ? size - at : step;
		rc = repl_reader_take(&reader, bytes + at, n, &err);
	}
	assert(rc >= 0 || (err.code == EPROTO && err.msg[0]));
	*out_sum = add_up(&cell);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t whole, single;
	int rc = read_all(bytes, size, size ? size : 1, &whole);
	int other = read_all(bytes, size, 1, &single);
	/* Bytes behind an end are seen only together with it. */
	assert(whole == single);
	assert(rc == other || (rc == -EPROTO && other == REPL_ENDED));
	return 0;
}
