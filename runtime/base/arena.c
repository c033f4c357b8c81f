/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/arena.h"

#include <stdalign.h>

#define ARENA_BLOCK_BYTES 4000 /* a page less malloc's own words */

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	alignas(max_align_t) unsigned char data[];
};

static struct arena_block *block_add(struct arena *a, size_t size)
{
	size_t room = size > ARENA_BLOCK_BYTES ? size : ARENA_BLOCK_BYTES;
	struct arena_block *block = malloc(sizeof(*block) + room);
	if (!block)
		return NULL;

	*block = (struct arena_block){ .next = a->head, .size = room };
	a->head = block;
	return block;
}

void *arena_alloc(struct arena *a, size_t size)
{
	const size_t align = alignof(max_align_t);
	if (size > SIZE_MAX / 2) {
		errno = ENOMEM;
		return NULL;
	}
	size = (size + align - 1) & ~(align - 1);

	struct arena_block *block = a->head;
	if (!block || block->size - block->used < size)
		block = block_add(a, size);
	if (!block)
		return NULL;

	void *memory = block->data + block->used;
	block->used += size;
	return memset(memory, 0, size);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(count, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return arena_alloc(a, total);
}

char *arena_strndup(struct arena *a, const char *text, size_t size)
{
	char *copy = arena_alloc(a, size + 1);
	if (copy && size > 0)
		memcpy(copy, text, size);
	return copy;
}

char *arena_strdup(struct arena *a, const char *text)
{
	return arena_strndup(a, text, strlen(text));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int size = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);

	char *text = size < 0 ? NULL : arena_alloc(a, (size_t)size + 1);
	if (text)
		(void)vsnprintf(text, (size_t)size + 1, fmt, again);
	va_end(again);
	return text;
}

void arena_fini(struct arena *a)
{
	for (struct arena_block *block = a->head, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	a->head = NULL;
}

void arena_move(struct arena *to, struct arena *from)
{
	arena_fini(to);
	to->head = from->head;
	from->head = NULL;
}

#define ITEMS_MIN 8

void *arena_grow(struct arena *a, const void *items, size_t count, size_t size)
{
	/* Full at the minimum and at each power of two above it: where the last growth ended. */
	if (count > 0 && (count < ITEMS_MIN || (count & (count - 1)) != 0))
		return (void *)items;
	void *more = arena_array(a, count > 0 ? count * 2 : ITEMS_MIN, size);
	if (more && count > 0)
		memcpy(more, items, count * size);
	return more;
}

int strings_add(struct strings *list, struct arena *a, const char *text)
{
	size_t slots = list->items ? list->count + 1 : 0; /* the NULL counts */
	const char **items = text ? arena_grow(a, list->items, slots, sizeof(*items)) : NULL;
	if (!items)
		return -ENOMEM;
	list->items = items;
	list->items[list->count++] = text;
	list->items[list->count] = NULL;
	return 0;
}

int strings_add_all(struct strings *list, struct arena *a, const struct strings *from)
{
	for (size_t i = 0; i < from->count; i++)
		if (strings_add(list, a, arena_strdup(a, from->items[i])) < 0)
			return -ENOMEM;
	return 0;
}

bool strings_has(const struct strings *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i], text) == 0)
			return true;
	return false;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void strings_sort(struct strings *list)
{
	if (list->count > 0)
		qsort(list->items, list->count, sizeof(*list->items), compare_texts);
}

const char **strings_find_variable(const struct strings *list, const char *text)
{
	size_t size = strcspn(text, "=") + 1;
	for (size_t i = 0; i < list->count; i++)
		if (strncmp(list->items[i], text, size) == 0)
			return &list->items[i];
	return NULL;
}

int strings_vprintf(struct strings *list, struct arena *a, const char *fmt, va_list ap)
{
	char sentence[STRINGS_SENTENCE_MAX];
	(void)vsnprintf(sentence, sizeof(sentence), fmt, ap);

	return strings_add(list, a, arena_strdup(a, sentence));
}
