/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kept part of one output stream.
 *
 * The head fills first and stays; then the tail is a ring of the newest bytes.  Both
 * grow by doubling up to half of the cap each, so a quiet program costs nothing and
 * a loud one costs the cap.
 */
#include "runtime/jail/outcome.h"

#include <inttypes.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define ROOM_FIRST 4096
#define MARKER_MAX 64 /* "\n[... 18446744073709551615 bytes left out ...]\n" */

void capture_init(struct capture *c, size_t cap)
{
	*c = (struct capture){ .cap = cap };
}

void capture_fini(struct capture *c)
{
	free(c->head);
	free(c->tail);
	*c = (struct capture){ 0 };
}

static size_t head_cap(const struct capture *c)
{
	return c->cap - c->cap / 2;
}

static size_t tail_cap(const struct capture *c)
{
	return c->cap / 2;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The next room that holds `wanted` bytes; wanted is never above cap. */
static size_t next_room(size_t room, size_t wanted, size_t cap)
{
	size_t next = room ? room : ROOM_FIRST;

	while (next < wanted && next <= cap / 2)
		next *= 2;
	return next < wanted ? cap : smaller(next, cap);
}

static int head_grow(struct capture *c, size_t wanted)
{
	if (wanted <= c->head_room)
		return 0;

	size_t room = next_room(c->head_room, wanted, head_cap(c));
	uint8_t *head = realloc(c->head, room);
	if (!head)
		return -ENOMEM;
	c->head = head;
	c->head_room = room;
	return 0;
}

/* Copies the ring, oldest byte first. */
static void tail_copy(const struct capture *c, uint8_t *out)
{
	size_t before_wrap = smaller(c->tail_size, c->tail_room - c->tail_start);

	if (c->tail_size == 0)
		return;
	memcpy(out, c->tail + c->tail_start, before_wrap);
	memcpy(out + before_wrap, c->tail, c->tail_size - before_wrap);
}

static int tail_grow(struct capture *c, size_t wanted)
{
	if (wanted <= c->tail_room)
		return 0;

	size_t room = next_room(c->tail_room, wanted, tail_cap(c));
	uint8_t *tail = malloc(room);
	if (!tail)
		return -ENOMEM;
	tail_copy(c, tail);
	free(c->tail);
	c->tail = tail;
	c->tail_room = room;
	c->tail_start = 0;
	return 0;
}

/*
 * Bytes that do not fit go on to the tail.  Without memory the head ends here, so that it never has
 * a gap.
 */
static int head_add(struct capture *c, const uint8_t *bytes, size_t size, size_t *out_taken)
{
	size_t room = head_cap(c) > c->head_size ? head_cap(c) - c->head_size : 0;
	size_t n = smaller(size, room);

	*out_taken = 0;
	if (n == 0)
		return 0;
	if (head_grow(c, c->head_size + n) < 0) {
		c->cap = 2 * c->head_size;
		return -ENOMEM;
	}
	memcpy(c->head + c->head_size, bytes, n);
	c->head_size += n;
	*out_taken = n;
	return 0;
}

static int tail_add(struct capture *c, const uint8_t *bytes, size_t size)
{
	if (size == 0 || tail_cap(c) == 0)
		return 0;

	size_t wanted = smaller(size, tail_cap(c) - smaller(c->tail_size, tail_cap(c)));
	int rc = tail_grow(c, c->tail_size + wanted);
	if (c->tail_room == 0)
		return rc;

	size_t n = smaller(size, c->tail_room); /* without memory: into the existing ring */
	bytes += size - n;
	/* The oldest bytes make room. */
	size_t room = c->tail_room - c->tail_size, gone = n > room ? n - room : 0;
	c->tail_start = (c->tail_start + gone) % c->tail_room;
	c->tail_size -= gone;

	size_t end = (c->tail_start + c->tail_size) % c->tail_room;
	size_t before_wrap = smaller(n, c->tail_room - end);
	memcpy(c->tail + end, bytes, before_wrap);
	memcpy(c->tail, bytes + before_wrap, n - before_wrap);
	c->tail_size += n;
	return rc;
}

int capture_add(struct capture *c, const void *bytes, size_t size)
{
	size_t taken = 0;

	c->total += size;
	int head_rc = head_add(c, bytes, size, &taken);
	int tail_rc = tail_add(c, (const uint8_t *)bytes + taken, size - taken);
	return head_rc < 0 ? head_rc : tail_rc;
}

bool capture_is_truncated(const struct capture *c)
{
	return c->total > c->head_size + c->tail_size;
}

bool capture_ends_line(const struct capture *c)
{
	if (c->tail_size > 0)
		return c->tail[(c->tail_start + c->tail_size - 1) % c->tail_room] == '\n';
	return c->head_size == 0 || c->head[c->head_size - 1] == '\n';
}

/* How many bytes of a cut character stand before the rest, if the rest is UTF-8. */
static size_t tail_stray(const uint8_t *bytes, size_t size)
{
	size_t stray = 0;

	while (stray < size && stray < 3 && (bytes[stray] & 0xc0) == 0x80)
		stray++;
	return is_utf8(bytes + stray, size - stray) ? stray : 0;
}

char *capture_text(const struct capture *c, size_t *out_size, size_t *out_kept)
{
	size_t head_size = c->head_size, tail_size = c->tail_size;
	uint8_t *text = malloc(head_size + MARKER_MAX + tail_size + 1);
	if (!text)
		return NULL;

	if (head_size > 0)
		memcpy(text, c->head, head_size);
	size_t used = head_size;
	if (!capture_is_truncated(c)) {
		tail_copy(c, text + used);
		used += tail_size;
	} else {
		uint8_t *tail = text + head_size + MARKER_MAX;

		tail_copy(c, tail);
		/* Without a character that was cut at the end, if the rest is UTF-8. */
		size_t whole = head_size - utf8_unfinished(text, head_size);
		head_size = is_utf8(text, whole) ? whole : head_size;
		size_t stray = tail_stray(tail, tail_size);
		tail_size -= stray;
		used = head_size;
		used += (size_t)snprintf((char *)text + used, MARKER_MAX,
					 "\n[... %" PRIu64 " bytes left out ...]\n",
					 c->total - head_size - tail_size);
		memmove(text + used, tail + stray, tail_size);
		used += tail_size;
	}
	text[used] = '\0';
	*out_size = used;
	*out_kept = head_size + tail_size;
	return (char *)text;
}
