/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types - media types of files, by content; the name only chooses among what the content may be.
 *
 * The content is untrusted.  Nothing is called an image, PDF, HTML, SVG or JSON that does not begin
 * like one, and nothing is called text that is not UTF-8.  That a file begins like a PNG does not
 * mean that it is a valid one.
 */
#pragma once

/* As much of a file as decides. */
#define TYPE_HEAD_MAX (64u << 10)

/* The type of content that begins with a signature: "image/png"; NULL: it has none. */
const char *type_of_signature(const void *head, size_t size);

/*
 * type_of - the type of a file whose first `size` bytes these are.  `name`: it may be a path.
 * `is_whole`: there are no more.  "application/octet-stream" if nothing is known.
 */
const char *type_of(const char *name, const void *head, size_t size, bool is_whole);
