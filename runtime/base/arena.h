/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena - memory that is freed together.
 *
 * Everything a config, a plan or a JSON document points to lives in its arena;
 * freeing the arena frees the lot, so half-built values need no destructor.
 * Zero-initialise a struct arena to begin.  Not for secrets: nothing is wiped.
 */
#pragma once

#include <stdarg.h>

struct arena_block;

struct arena {
	struct arena_block *head; /* newest first; NULL: empty */
};

/* Zeroed memory, aligned for any type.  NULL when there is none (errno ENOMEM). */
void *arena_alloc(struct arena *a, size_t size) __attribute__((warn_unused_result));

/* A zeroed array of `count` items of `size`; NULL on overflow or no memory. */
void *arena_array(struct arena *a, size_t count, size_t size) __attribute__((warn_unused_result));

/* A copy with its NUL.  NULL when there is no memory. */
char *arena_strdup(struct arena *a, const char *text) __attribute__((warn_unused_result));
char *arena_strndup(struct arena *a, const char *text, size_t size)
    __attribute__((warn_unused_result));
char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((warn_unused_result, format(printf, 2, 3)));

/*
 * arena_grow - `count` items with room for one more: the array itself, or a copy of twice the size.
 * An array that grows by one item at a time comes from here only.  NULL: no memory.
 */
void *arena_grow(struct arena *a, const void *items, size_t count, size_t size)
    __attribute__((warn_unused_result));

/*
 * arena_append - put an item behind the `count` ones of the array `items`, which are variables or
 * members, and count it.  False: there is no memory, and nothing has changed.
 */
#define arena_append(arena, items, count, ...)                                                     \
	({                                                                                         \
		void *grown_ = arena_grow(arena, items, count, sizeof(*(items)));                  \
		if (grown_) {                                                                      \
			__typeof__(*(items)) item_ = (__VA_ARGS__);                                \
			(items) = grown_;                                                          \
			memcpy((char *)grown_ + (count)++ * sizeof(item_), &item_, sizeof(item_)); \
		}                                                                                  \
		grown_ != NULL;                                                                    \
	})

/* Frees everything; the arena is empty and usable again. */
void arena_fini(struct arena *a);

/* Frees what `to` had and gives it all of `from`, which is empty and usable then. */
void arena_move(struct arena *to, struct arena *from);

#define auto_arena __attribute__((cleanup(arena_fini)))

/* A list of strings that grows in an arena; `items` always ends in a NULL. */
struct strings {
	const char **items; /* NULL while empty */
	size_t count;
};

/* Appends `text` itself (borrowed; it must live as long as the arena).  -ENOMEM, also where `text`
 * is NULL, because there was no memory for it. */
int strings_add(struct strings *list, struct arena *a, const char *text)
    __attribute__((warn_unused_result));
/* Appends copies of all texts of `from`.  -ENOMEM. */
int strings_add_all(struct strings *list, struct arena *a, const struct strings *from)
    __attribute__((warn_unused_result));

/* Is one of them this text? */
bool strings_has(const struct strings *list, const char *text);

void strings_sort(struct strings *list);

/* The item with the name of `text`, NAME=VALUE; NULL: there is none. */
const char **strings_find_variable(const struct strings *list, const char *text);

#define STRINGS_SENTENCE_MAX 512 /* with its NUL; it may quote names of the program */

/* Appends a formatted sentence, cut to STRINGS_SENTENCE_MAX.  -ENOMEM. */
int strings_vprintf(struct strings *list, struct arena *a, const char *fmt, va_list ap)
    __attribute__((warn_unused_result, format(printf, 3, 0)));
