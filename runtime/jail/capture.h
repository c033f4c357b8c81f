/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture - one output stream: its head, its tail, and the number of its bytes.
 *
 * Memory is bounded by the cap, grows only as output comes, and every byte is counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capture {
	uint64_t total; /* bytes of the stream */
	size_t cap;     /* bytes that are kept: half as head, half as tail */
	uint8_t *head;
	size_t head_size, head_room;
	uint8_t *tail; /* ring */
	size_t tail_size, tail_start, tail_room;
};

void capture_init(struct capture *c, size_t cap);
void capture_fini(struct capture *c);

/* -ENOMEM: the bytes are counted but not kept. */
int capture_add(struct capture *c, const void *bytes, size_t size);

bool capture_is_truncated(const struct capture *c);

/* True for an empty stream, or if its last kept byte is a newline. */
bool capture_ends_line(const struct capture *c);

/*
 * Head, then (if something was left out) a line "\n[... N bytes left out ...]\n", then the tail,
 * as one malloc'ed block with a NUL behind; cut so that no UTF-8 character is split where the
 * stream is UTF-8.  *out_kept counts only the program's own bytes.  NULL: no memory.
 */
char *capture_text(const struct capture *c, size_t *out_size, size_t *out_kept);
