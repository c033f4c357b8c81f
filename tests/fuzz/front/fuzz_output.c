/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_output - any bytes, in any pieces, as what a program writes: kept, passed on to a terminal,
 * told as events, put into the result.
 *
 * Asserted: what is kept is the beginning and the end, each whole, and no more than the cap; to a
 * terminal goes the same escaped text however it was cut; events and the result are JSON, one a
 * line, and the events together hold every byte.
 */
#include <sys/mman.h>

#include "runtime/base/scope.h"
#include "runtime/jail/relay.h"
#include "tests/fuzz/bytes.h"

/* the front end is in no library */
#include "runtime/run/report/events.c"
#include "runtime/run/report/result.c"

#define PIECES_MAX 12

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* --- files in memory, the same for all inputs ------------------------------------------- */

static int open_memory(void)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	assert(fd >= 0);
	return fd;
}

static void empty(int fd)
{
	int rc = ftruncate(fd, 0);
	assert(rc == 0 && lseek(fd, 0, SEEK_SET) == 0);
}

/* The caller's to free; a NUL behind. */
static char *read_memory(int fd, size_t *out_size)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char *text = malloc((size_t)size + 1);
	assert(text && pread(fd, text, (size_t)size, 0) == size);
	text[size] = '\0';
	*out_size = (size_t)size;
	return text;
}

/* --- what is kept ------------------------------------------------------------------------ */

static bool begins_with(struct bytes all, const char *text, size_t size)
{
	return size <= all.left && memcmp(all.at, text, size) == 0;
}

static bool ends_with(struct bytes all, const char *text, size_t size)
{
	return size <= all.left && memcmp(all.at + all.left - size, text, size) == 0;
}

static void check_kept(const struct capture *c, struct bytes all)
{
	size_t size, kept;
	auto_free char *text = capture_text(c, &size, &kept);
	assert(text && c->total == all.left && text[size] == '\0');
	if (!capture_is_truncated(c)) {
		assert(kept == size && size == all.left && begins_with(all, text, size));
		return;
	}
	assert(kept <= c->cap && kept < all.left && size > kept);
	/* where the program's own bytes may have been parted by the line that says so */
	bool is_found = false;
	for (size_t head = 0; head <= kept && !is_found; head++)
		is_found = begins_with(all, text, head) && text[head] == '\n' &&
			   ends_with(all, text + size - (kept - head), kept - head);
	assert(is_found);
}

/* --- what a terminal gets ------------------------------------------------------------------- */

/* All of it at once, the slow way. */
static char *escape_all(struct bytes all)
{
	char *out = malloc(4 * all.left + 16);
	size_t used = 0;
	assert(out);
	out[0] = '\0';
	while (all.left > 0) {
		size_t taken = text_escape(all.at, all.left, true, out + used, 4 * all.left + 13);
		assert(taken > 0);
		used += strlen(out + used);
		(void)bytes_take(&all, taken);
	}
	return out;
}

static void check_terminal(struct bytes all, size_t piece)
{
	static int in_fd = -1, out_fd = -1;
	static struct relay r;
	if (in_fd < 0)
		in_fd = open_memory(), out_fd = open_memory();
	empty(in_fd);
	empty(out_fd);
	relay_init(&r);
	r.in_fd = in_fd;
	r.out_fd = out_fd;
	r.escape = true;
	auto_free char *expected = escape_all(all);
	for (off_t at = 0; r.in_fd >= 0;) {
		const uint8_t *fresh;
		size_t size;
		struct bytes next = bytes_take(&all, piece);
		assert(pwrite(in_fd, next.at, next.left, at) == (ssize_t)next.left);
		at += (off_t)next.left;
		if (relay_fill(&r, &fresh, &size) == RELAY_END)
			relay_end_in(&r);
		else
			relay_pass(&r);
		(void)relay_flush(&r);
	}
	assert(!relay_has_pending(&r));
	size_t size;
	auto_free char *got = read_memory(out_fd, &size);
	assert(size == strlen(expected) && memcmp(got, expected, size) == 0);
}

/* --- what is told -------------------------------------------------------------------------- */

static unsigned digit(char c)
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = strchr(digits, c);
	assert(c != '\0' && at);
	return (unsigned)(at - digits);
}

static size_t decode_base64(const char *text, uint8_t *out)
{
	size_t used = 0;
	assert(strlen(text) % 4 == 0);
	for (; *text; text += 4) {
		uint32_t bits = digit(text[0]) << 18 | digit(text[1]) << 12;
		bits |= text[2] == '=' ? 0 : digit(text[2]) << 6;
		bits |= text[3] == '=' ? 0 : digit(text[3]);
		out[used++] = (uint8_t)(bits >> 16);
		if (text[2] != '=')
			out[used++] = (uint8_t)(bits >> 8);
		if (text[3] != '=')
			out[used++] = (uint8_t)bits;
	}
	return used;
}

/* The bytes of "text" or "base64" of an object: the next ones of `all`. */
static void take_told(const struct json_node *o, struct bytes *all)
{
	const struct json_node *text = json_get(o, "text"), *base64 = json_get(o, "base64");
	assert((text != NULL) != (base64 != NULL));
	auto_free uint8_t *decoded = malloc(all->left + 4);
	size_t size = text ? strlen(text->text) : decode_base64(base64->text, decoded);
	const void *bytes = text ? (const void *)text->text : decoded;
	assert(size <= all->left && memcmp(bytes, all->at, size) == 0);
	(void)bytes_take(all, size);
}

static void check_lines(char *lines, struct bytes all)
{
	for (char *end; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
		auto_arena struct arena a = { 0 };
		const struct json_node *o, *type;
		struct cj_error err = { 0 };
		int rc = json_parse("event", lines, (size_t)(end - lines), &a, &o, &err);
		assert(rc == 0 && (type = json_get(o, "type")) != NULL);
		if (strcmp(type->text, "stdout") == 0)
			take_told(o, &all);
		else
			assert(strcmp(type->text, "result") == 0 && end[1] == '\0');
	}
	assert(all.left == 0 && lines[0] == '\0');
}

static void check_result(const char *text, size_t size, const struct capture *c)
{
	auto_arena struct arena a = { 0 };
	const struct json_node *o, *out;
	struct cj_error err = { 0 };
	size_t shown_size, kept;
	auto_free char *shown = capture_text(c, &shown_size, &kept);
	int rc = json_parse("result", text, size, &a, &o, &err);
	assert(rc == 0 && (out = json_get(o, "stdout")) != NULL);
	struct bytes expected = { (const uint8_t *)shown, shown_size };
	take_told(out, &expected);
	assert(expected.left == 0 &&
	       json_get(out, "truncated")->boolean == capture_is_truncated(c));
}

static void check_told(struct events *e, const struct outcome *o, struct bytes all)
{
	const struct result_about about = { .profile_name = "", .profile_sha256 = "" };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error err = { 0 };
	struct blob text;
	int rc = result_write(w, o, &about, &err);
	assert(rc == 0);
	rc = json_writer_take(w, &text, &err);
	assert(rc == 0);
	check_result(text.bytes, text.size, &o->output[0]);
	rc = events_finish(e, text.bytes, text.size, &err);
	assert(rc == 0);
	size_t size;
	auto_free char *lines = read_memory(e->fd, &size);
	assert(strlen(lines) == size);
	check_lines(lines, all);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static int events_fd = -1;
	struct bytes b = { bytes, size };
	size_t cap = 1 + bytes_u8(&b), piece = 1 + bytes_u8(&b);
	struct bytes all = b;
	struct outcome o;
	struct events e;

	if (b.left / piece >= PIECES_MAX) /* an event each takes time */
		piece = b.left / PIECES_MAX + 1;
	if (events_fd < 0)
		events_fd = open_memory();
	empty(events_fd);
	events_init(&e, events_fd);
	outcome_init(&o, "fuzz", cap);
	outcome_decide(&o, STATUS_EXITED);
	while (b.left > 0) {
		struct bytes next = bytes_take(&b, piece);
		int rc = capture_add(&o.output[0], next.at, next.left);
		assert(rc == 0);
		events_add_output(&e, 0, next.at, next.left);
	}
	check_kept(&o.output[0], all);
	check_told(&e, &o, all);
	check_terminal(all, piece);
	outcome_fini(&o);
	events_fini(&e);
	return 0;
}
