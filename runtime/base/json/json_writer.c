/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON into memory, over yajl's generator.
 *
 * yajl does the escaping and the layout; the bytes go to a buffer of ours, because yajl's own
 * does not look at what realloc(3) says.  yajl closes whatever is open, with whichever bracket
 * and even between a key and its value, so order is checked here.
 */
#include "runtime/base/json/json.h"

#include <inttypes.h>
#include <yajl/yajl_gen.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define WRITER_DEPTH_MAX 63 /* one bit each in is_object */

struct json_writer {
	yajl_gen yajl;
	struct byte_queue text;
	int rc;             /* the first failure, or 0 */
	uint64_t is_object; /* bit d: the container at depth d */
	unsigned depth;
	bool is_key_pending, is_begun; /* a key waits for its value; something was written */
	bool is_raw;                   /* what is printed stays as it is */
};

static void fail(struct json_writer *w, int rc)
{
	if (w->rc == 0)
		w->rc = rc;
}

static bool is_alive(const struct json_writer *w)
{
	return w && w->rc == 0;
}

static void append(struct json_writer *w, const char *bytes, size_t size)
{
	if (w->rc == 0)
		w->rc = byte_queue_add_text(&w->text, bytes, size);
}

/* DEL and C1, which JSON allows and a terminal obeys: U+007F to U+009F. */
static bool is_obeyed(const char *bytes, size_t size)
{
	const uint8_t *at = (const uint8_t *)bytes;
	return at[0] == 0x7f || (size > 1 && at[0] == 0xc2 && at[1] < 0xa0);
}

/* yajl's print callback: whole characters; those that yajl escapes come escaped. */
static void print(void *context, const char *bytes, size_t size)
{
	struct json_writer *w = context;
	size_t plain = 0;

	for (size_t i = 0; i < size && !w->is_raw; i++) {
		if (!is_obeyed(bytes + i, size - i))
			continue;
		append(w, bytes + plain, i - plain);
		i += bytes[i] != 0x7f; /* its second byte is the character */
		char escaped[8];
		int n = snprintf(escaped, sizeof(escaped), "\\u%04X", (uint8_t)bytes[i]);
		append(w, escaped, (size_t)n);
		plain = i + 1;
	}
	append(w, bytes + plain, size - plain);
}

struct json_writer *json_writer_create(bool pretty)
{
	struct json_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;

	w->yajl = yajl_gen_alloc(NULL);
	if (!w->yajl) {
		free(w);
		return NULL;
	}
	(void)yajl_gen_config(w->yajl, yajl_gen_print_callback, print, w);
	(void)yajl_gen_config(w->yajl, yajl_gen_validate_utf8, 1);
	if (pretty) {
		(void)yajl_gen_config(w->yajl, yajl_gen_beautify, 1);
		(void)yajl_gen_config(w->yajl, yajl_gen_indent_string, "  ");
	}
	return w;
}

void json_writer_destroy(struct json_writer **w)
{
	int saved = errno;

	if (*w) {
		yajl_gen_free((*w)->yajl);
		byte_queue_fini(&(*w)->text);
		free(*w);
	}
	*w = NULL;
	errno = saved;
}

static bool is_in_object(const struct json_writer *w)
{
	return w->depth > 0 && (w->is_object >> w->depth & 1) != 0;
}

static void check(struct json_writer *w, yajl_gen_status status)
{
	if (status != yajl_gen_status_ok)
		fail(w, -EINVAL);
}

/* True when a value may come here; a failure is a bug of the caller's and ends the writing. */
static bool begin_value(struct json_writer *w)
{
	if (!is_alive(w))
		return false;
	if (is_in_object(w) != w->is_key_pending || (w->depth == 0 && w->is_begun)) {
		fail(w, -EINVAL);
		return false;
	}
	w->is_key_pending = false;
	w->is_begun = true;
	return true;
}

static void open_container(struct json_writer *w, bool is_object)
{
	if (!begin_value(w))
		return;
	if (w->depth == WRITER_DEPTH_MAX) {
		fail(w, -EINVAL);
		return;
	}
	w->depth++;
	w->is_object &= ~(UINT64_C(1) << w->depth);
	w->is_object |= (uint64_t)is_object << w->depth;
	check(w, is_object ? yajl_gen_map_open(w->yajl) : yajl_gen_array_open(w->yajl));
}

static void close_container(struct json_writer *w, bool is_object)
{
	if (!is_alive(w))
		return;
	if (w->depth == 0 || is_in_object(w) != is_object || w->is_key_pending) {
		fail(w, -EINVAL);
		return;
	}
	w->depth--;
	check(w, is_object ? yajl_gen_map_close(w->yajl) : yajl_gen_array_close(w->yajl));
}

void json_open_object(struct json_writer *w)
{
	open_container(w, true);
}

void json_close_object(struct json_writer *w)
{
	close_container(w, true);
}

void json_open_array(struct json_writer *w)
{
	open_container(w, false);
}

void json_close_array(struct json_writer *w)
{
	close_container(w, false);
}

/* The text with U+FFFD for each byte that is not UTF-8; NULL: no memory. */
static char *mended(const char *text, size_t size, size_t *out_size)
{
	static const char replacement[] = "\xef\xbf\xbd";
	char *copy = malloc(3 * size + 1), *to = copy;

	while (copy && size > 0) {
		size_t good = utf8_prefix(text, size);

		memcpy(to, text, good);
		to += good;
		text += good;
		size -= good;
		if (size == 0)
			break;
		memcpy(to, replacement, 3);
		to += 3;
		text++;
		size--;
	}
	*out_size = copy ? (size_t)(to - copy) : 0;
	return copy;
}

/* A string of any bytes, as key or as value. */
static void put_text(struct json_writer *w, const char *text, size_t size)
{
	if (is_utf8(text, size)) {
		check(w, yajl_gen_string(w->yajl, (const unsigned char *)text, size));
		return;
	}
	auto_free char *copy = mended(text, size, &size);
	if (copy)
		check(w, yajl_gen_string(w->yajl, (const unsigned char *)copy, size));
	else
		fail(w, -ENOMEM);
}

void json_put_key(struct json_writer *w, const char *key)
{
	if (!is_alive(w))
		return;
	if (!is_in_object(w) || w->is_key_pending) {
		fail(w, -EINVAL);
		return;
	}
	w->is_key_pending = true;
	put_text(w, key, strlen(key));
}

void json_put_string(struct json_writer *w, const char *text)
{
	if (!text)
		json_put_null(w);
	else if (begin_value(w))
		put_text(w, text, strlen(text));
}

static void put_number(struct json_writer *w, const char *digits)
{
	if (begin_value(w))
		check(w, yajl_gen_number(w->yajl, digits, strlen(digits)));
}

/* yajl prints the bytes of a number as they are. */
void json_put_raw(struct json_writer *w, const char *text, size_t size)
{
	if (!begin_value(w))
		return;
	w->is_raw = true;
	check(w, yajl_gen_number(w->yajl, text, size));
	w->is_raw = false;
}

void json_put_u64(struct json_writer *w, uint64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRIu64, value);
	put_number(w, digits);
}

void json_put_i64(struct json_writer *w, int64_t value)
{
	char digits[24];

	(void)snprintf(digits, sizeof(digits), "%" PRId64, value);
	put_number(w, digits);
}

void json_put_milli(struct json_writer *w, uint64_t thousandths)
{
	char digits[32];
	int size = snprintf(digits, sizeof(digits), "%" PRIu64 ".%03" PRIu64, thousandths / 1000,
			    thousandths % 1000);

	while (digits[size - 1] == '0')
		digits[--size] = '\0';
	if (digits[size - 1] == '.')
		digits[--size] = '\0';
	put_number(w, digits);
}

void json_put_bool(struct json_writer *w, bool value)
{
	if (begin_value(w))
		check(w, yajl_gen_bool(w->yajl, value));
}

void json_put_null(struct json_writer *w)
{
	if (begin_value(w))
		check(w, yajl_gen_null(w->yajl));
}

void json_member_text(struct json_writer *w, const char *key, const char *text)
{
	json_put_key(w, key);
	json_put_string(w, text);
}

void json_member_filled(struct json_writer *w, const char *key, const char *text)
{
	json_member_text(w, key, text && text[0] != '\0' ? text : NULL);
}

void json_member_given(struct json_writer *w, const char *key, const char *text)
{
	if (text)
		json_member_text(w, key, text);
}

void json_member_u64(struct json_writer *w, const char *key, uint64_t value)
{
	json_put_key(w, key);
	json_put_u64(w, value);
}

void json_member_milli(struct json_writer *w, const char *key, uint64_t thousandths)
{
	json_put_key(w, key);
	json_put_milli(w, thousandths);
}

void json_member_known(struct json_writer *w, const char *key, bool is_known, uint64_t value)
{
	json_put_key(w, key);
	if (is_known)
		json_put_u64(w, value);
	else
		json_put_null(w);
}

void json_member_bool(struct json_writer *w, const char *key, bool value)
{
	json_put_key(w, key);
	json_put_bool(w, value);
}

void json_member_texts(struct json_writer *w, const char *key, const char *const *texts,
		       size_t count)
{
	json_member_array(w, key);
	for (size_t i = 0; i < count && texts[i]; i++)
		json_put_string(w, texts[i]);
	json_close_array(w);
}

void json_put_bytes(struct json_writer *w, const void *bytes, size_t size)
{
	if (is_utf8(bytes, size) && (size == 0 || !memchr(bytes, '\0', size))) {
		json_put_key(w, "text");
		if (begin_value(w))
			put_text(w, size > 0 ? bytes : "", size);
		return;
	}
	json_put_key(w, "base64");
	if (!begin_value(w))
		return;
	auto_free char *digits = malloc(4 * ((size + 2) / 3) + 1);
	if (digits)
		put_text(w, digits, text_base64(bytes, size, digits));
	else
		fail(w, -ENOMEM);
}

void json_member_object(struct json_writer *w, const char *key)
{
	json_put_key(w, key);
	json_open_object(w);
}

void json_member_array(struct json_writer *w, const char *key)
{
	json_put_key(w, key);
	json_open_array(w);
}

void json_member_node(struct json_writer *w, const char *key, const struct json_node *node)
{
	json_put_key(w, key);
	json_put_node(w, node);
}

/* Recurses as deep as json_parse() nests: JSON_DEPTH_MAX; NOLINTNEXTLINE(misc-no-recursion) */
void json_put_node(struct json_writer *w, const struct json_node *node)
{
	switch (node->type) {
	case JSON_BOOL:
		json_put_bool(w, node->boolean);
		break;
	case JSON_NUMBER:
		put_number(w, node->text);
		break;
	case JSON_STRING:
		json_put_string(w, node->text);
		break;
	case JSON_ARRAY:
		json_open_array(w);
		for (const struct json_node *m = node->child; m; m = m->next)
			json_put_node(w, m);
		json_close_array(w);
		break;
	case JSON_OBJECT:
		json_open_object(w);
		for (const struct json_node *m = node->child; m; m = m->next) {
			json_put_key(w, m->key);
			json_put_node(w, m);
		}
		json_close_object(w);
		break;
	case JSON_NULL:
	default:
		json_put_null(w);
		break;
	}
}

int json_writer_take(struct json_writer *w, struct blob *out, struct cj_error *err)
{
	if (!w)
		return cj_fail(err, ENOMEM, "write JSON");
	if (w->rc == 0 && (w->depth > 0 || !w->is_begun))
		fail(w, -EINVAL);
	if (w->rc < 0)
		return cj_fail(err, -w->rc, "write JSON");

	if (w->text.bytes[w->text.end - 1] == '\n') /* yajl's, when pretty */
		w->text.bytes[--w->text.end] = '\0';
	*out = (struct blob){ w->text.bytes, w->text.end };
	return 0;
}

char *json_writer_line(struct json_writer *w, size_t *out_size)
{
	struct cj_error ignored = { 0 };
	struct blob text = { 0 };
	char *line;

	if (json_writer_take(w, &text, &ignored) < 0 || asprintf(&line, "%s\n", text.bytes) < 0)
		return NULL;
	*out_size = text.size + 1;
	return line;
}

int json_print(struct json_writer *w, struct cj_error *err)
{
	struct blob text = { 0 };

	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	(void)printf("%.*s\n", (int)text.size, text.bytes);
	return 0;
}
