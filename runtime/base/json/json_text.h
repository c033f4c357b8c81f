/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_text - JSON as raw text: places in it, and our own look at it before any parser's.
 * Of use to json.c only.
 */
#pragma once

#include <stddef.h>

#include "runtime/base/error.h"

struct json_cursor {
	size_t at;
	unsigned line, column; /* of `at`, from 1; columns are characters */
};

#define JSON_CURSOR_BEGIN ((struct json_cursor){ .line = 1, .column = 1 })

/* Forward to offset `to`; every byte on the way is looked at once. */
void json_cursor_move(struct json_cursor *c, const char *text, size_t to);

/*
 * json_text_check - strict UTF-8, no control characters but blanks, no byte order mark, no
 * \u escape that means NUL or half of a surrogate pair.  Says nothing about the grammar.
 */
int json_text_check(const char *name, const char *text, size_t size, struct cj_error *err);
