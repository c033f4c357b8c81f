/* SPDX-License-Identifier: Apache-2.0 */
/* The fuzzer's bytes, taken from the front: numbers, chunks, texts. */
#pragma once

#include <assert.h>

struct bytes {
	const uint8_t *at;
	size_t left;
};

/* 0 past the end. */
static inline uint8_t bytes_u8(struct bytes *b)
{
	if (b->left == 0)
		return 0;
	b->left--;
	return *b->at++;
}

static inline uint16_t bytes_u16(struct bytes *b)
{
	unsigned high = bytes_u8(b);
	return (uint16_t)(high << 8 | bytes_u8(b));
}

/* At most `size`, what there is. */
static inline struct bytes bytes_take(struct bytes *b, size_t size)
{
	struct bytes taken = { b->at, size < b->left ? size : b->left };
	b->at += taken.left;
	b->left -= taken.left;
	return taken;
}

/* Up to `end`, which is dropped. */
static inline struct bytes bytes_until(struct bytes *b, uint8_t end)
{
	const uint8_t *found = b->left > 0 ? memchr(b->at, end, b->left) : NULL;
	struct bytes taken = bytes_take(b, found ? (size_t)(found - b->at) : b->left);
	(void)bytes_u8(b);
	return taken;
}

/* A copy with a NUL behind, in a block of exactly that size: a read past it is seen. */
static inline char *bytes_text(struct bytes b)
{
	char *text = malloc(b.left + 1);
	assert(text);
	if (b.left > 0)
		memcpy(text, b.at, b.left);
	text[b.left] = '\0';
	return text;
}
