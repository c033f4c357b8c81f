/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON text to tree, over yajl's streaming callbacks.
 *
 * yajl 2.1 is old and trusting, so it sees only what has passed json_text_check() (its decoder
 * once crashed on half a surrogate pair: CVE-2017-16516).  What is left to it is the grammar. Depth
 * and number of values are ours to count, too.  yajl_tree is never used: it recurses.
 *
 * Position: yajl says where a token ended, never where it began.  Between two tokens there are
 * only blanks, ',' and ':', so a cursor that skips these finds the beginning, and the cursor
 * counts lines on its way: every byte is looked at once.
 */
#include "runtime/base/json/json.h"

#include <yajl/yajl_parse.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"

/* --- places in a text, and our own look at it before yajl's --- */

struct json_cursor {
	size_t at;
	unsigned line, column; /* of `at`, from 1; columns are characters */
};

#define JSON_CURSOR_BEGIN ((struct json_cursor){ .line = 1, .column = 1 })

/* A container whose end has not come yet. */
struct open_node {
	struct json_node *node, *last; /* last: newest member */
};

struct reader {
	const char *name, *text;
	size_t size;
	struct arena *arena;
	struct cj_error *err;
	yajl_handle yajl;
	bool at_end; /* yajl_complete_parse() runs: its offsets are no longer ours */
	struct json_cursor cursor;
	struct open_node open[JSON_DEPTH_MAX];
	size_t depth, nodes;
	struct json_node *root;
	struct json_node key; /* the next member's key and where it is */
};

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))

/*
 * Eight characters of ASCII, none of them a control character or a backslash: most of a long text,
 * and nothing in it to look at.  A byte below n is one whose subtraction borrows.
 */
static bool are_plain_bytes(const char *text)
{
	uint64_t bytes, backslash;

	memcpy(&bytes, text, sizeof(bytes));
	backslash = bytes ^ EACH_BYTE('\\');
	uint64_t controls = (bytes - EACH_BYTE(0x20)) & ~bytes;
	uint64_t backslashes = (backslash - EACH_BYTE(1)) & ~backslash;
	return ((bytes | controls | backslashes) & EACH_BYTE(0x80)) == 0;
}

/* Forward to offset `to`; every byte on the way is looked at once. */
static void cursor_move(struct json_cursor *c, const char *text, size_t to)
{
	while (c->at < to) {
		if (to - c->at >= 8 && are_plain_bytes(text + c->at)) {
			c->at += 8;
			c->column += 8;
			continue;
		}
		uint8_t byte = (uint8_t)text[c->at++];

		if (byte == '\n') {
			c->line++;
			c->column = 1;
		} else if ((byte & 0xc0) != 0x80) {
			c->column++;
		}
	}
}

int json_refuse(const char *name, unsigned line, unsigned column, struct cj_error *err,
		const char *fmt, ...)
{
	char msg[CJ_ERROR_MSG_MAX];

	(void)text_format(msg, fmt);
	return cj_reject(err, "%s:%u:%u: %s", name, line, column, msg);
}

/* The message with the place of the byte `at`. */
#define REFUSE_AT(r, at, ...)                                                                      \
	({                                                                                         \
		struct json_cursor place = JSON_CURSOR_BEGIN;                                      \
		cursor_move(&place, (r)->text, at);                                                \
		json_refuse((r)->name, place.line, place.column, (r)->err, __VA_ARGS__);           \
	})

/* The value of four hexadecimal digits, -1 when they are none. */
static int hex4(const char *digits, size_t left)
{
	int value = 0;

	if (left < 4)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		const int digit = text_hex_digit(digits[i]);
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

static bool is_low_surrogate(int unit)
{
	return unit >= 0xdc00 && unit <= 0xdfff;
}

/* The size of the escape that begins at `at` (2, 6 or 12 bytes), or an error. */
static int check_escape(const struct reader *r, size_t at)
{
	const char *p = r->text + at;
	size_t left = r->size - at;

	if (left < 2 || p[1] != 'u')
		return 2;
	int unit = hex4(p + 2, left - 2);
	if (unit < 0)
		return 2; /* the parser says what is wrong with it */
	if (unit == 0)
		return REFUSE_AT(r, at, "'\\u0000' is not allowed in a string");
	if (unit < 0xd800 || unit > 0xdfff)
		return 6;
	if (!is_low_surrogate(unit) && left >= 12 && p[6] == '\\' && p[7] == 'u' &&
	    is_low_surrogate(hex4(p + 8, left - 8)))
		return 12;
	return REFUSE_AT(r, at, "'%.6s' is half of a surrogate pair", p);
}

/*
 * Strict UTF-8, no control characters but blanks, no byte order mark, no \u escape that means NUL
 * or half of a surrogate pair.  Says nothing about the grammar.
 */
static int json_text_check(const struct reader *r)
{
	if (r->size >= 3 && memcmp(r->text, "\xef\xbb\xbf", 3) == 0)
		return REFUSE_AT(r, 0, "a byte order mark; write the file as UTF-8 without it");

	size_t whole = utf8_prefix(r->text, r->size);
	if (whole < r->size)
		return REFUSE_AT(r, whole, "byte 0x%02x is not UTF-8", (uint8_t)r->text[whole]);
	/* The parser refuses a backslash outside of a string, so this does not look where strings
	 * are. */
	size_t at = 0;
	while (at < r->size) {
		if (r->size - at >= 8 && are_plain_bytes(r->text + at)) {
			at += 8;
			continue;
		}
		uint8_t byte = (uint8_t)r->text[at];
		if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r')
			return REFUSE_AT(r, at, "control character 0x%02x is not allowed", byte);
		int step = byte == '\\' ? check_escape(r, at) : 1;
		if (step < 0)
			return step;
		at += (size_t)step;
	}
	return 0;
}

/* --- the parser --- */

static bool is_between(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':';
}

/* To the first byte of the next token, or the end. */
static void skip_between(struct reader *r)
{
	size_t to = r->cursor.at;

	while (to < r->size && is_between(r->text[to]))
		to++;
	cursor_move(&r->cursor, r->text, to);
}

/* Behind the token that a callback is about. */
static void skip_token(struct reader *r)
{
	size_t to = r->at_end ? r->size : yajl_get_bytes_consumed(r->yajl);

	cursor_move(&r->cursor, r->text, to);
}

/* For a callback: 0 ends the parse, *err says why. */
static int no_memory(struct reader *r)
{
	(void)!cj_fail(r->err, ENOMEM, "%s: read JSON", r->name);
	return 0;
}

static void attach(struct reader *r, struct json_node *node)
{
	if (r->depth == 0) {
		r->root = node;
		return;
	}
	struct open_node *parent = &r->open[r->depth - 1];

	if (parent->last)
		parent->last->next = node;
	else
		parent->node->child = node;
	parent->last = node;
	parent->node->count++;
	if (parent->node->type == JSON_OBJECT) {
		node->key = r->key.key;
		node->key_line = r->key.line;
		node->key_column = r->key.column;
	}
}

/* A new value at the token that begins here; the cursor ends up behind it. */
static struct json_node *add(struct reader *r, enum json_type type)
{
	skip_between(r);
	struct json_cursor begin = r->cursor;
	skip_token(r);

	if (r->nodes == JSON_NODES_MAX) {
		(void)!cj_fail(r->err, EFBIG, "%s:%u:%u: more than %u values", r->name, begin.line,
			       begin.column, JSON_NODES_MAX);
		return NULL;
	}
	struct json_node *node = arena_alloc(r->arena, sizeof(*node));
	if (!node) {
		(void)no_memory(r);
		return NULL;
	}
	r->nodes++;
	node->begin = begin.at;
	node->end = r->cursor.at; /* of a container its end comes later */
	node->type = type;
	node->line = begin.line;
	node->column = begin.column;
	attach(r, node);
	return node;
}

static int add_text(struct reader *r, enum json_type type, const char *text, size_t size)
{
	struct json_node *node = add(r, type);
	if (!node)
		return 0;
	node->text = arena_strndup(r->arena, text, size);
	return node->text ? 1 : no_memory(r);
}

static int open_container(struct reader *r, enum json_type type)
{
	struct json_node *node = add(r, type);
	if (!node)
		return 0;
	if (r->depth == JSON_DEPTH_MAX) {
		(void)!json_reject(r->name, node, r->err, "nested deeper than %d levels",
				   JSON_DEPTH_MAX);
		return 0;
	}
	r->open[r->depth++] = (struct open_node){ .node = node };
	return 1;
}

static const struct json_node *close_container(struct reader *r)
{
	struct json_node *node = r->open[--r->depth].node;
	skip_token(r);
	node->end = r->cursor.at;
	return node;
}

/* By key, and among equal keys by place. */
static int compare_members(const void *a, const void *b)
{
	const struct json_node *x = *(const struct json_node *const *)a;
	const struct json_node *y = *(const struct json_node *const *)b;
	int order = strcmp(x->key, y->key);

	if (order != 0)
		return order;
	if (x->key_line != y->key_line)
		return x->key_line < y->key_line ? -1 : 1;
	return x->key_column < y->key_column ? -1 : 1;
}

/*
 * Sorted, equal keys are neighbours: n log n whatever the keys are, where a hash table would
 * want a secret to be safe from chosen ones.
 */
static int check_members(struct reader *r, const struct json_node *object)
{
	if (object->count < 2)
		return 1;
	/* The table is one of pointers; NOLINTNEXTLINE(bugprone-sizeof-expression) */
	auto_free const struct json_node **members = calloc(object->count, sizeof(*members));
	size_t n = 0;

	if (!members)
		return no_memory(r);
	for (const struct json_node *m = object->child; m; m = m->next)
		members[n++] = m;
	/* The table is one of pointers; NOLINTNEXTLINE(bugprone-sizeof-expression) */
	qsort(members, n, sizeof(*members), compare_members);
	for (size_t i = 1; i < n; i++) {
		if (strcmp(members[i - 1]->key, members[i]->key) == 0) {
			(void)!json_reject_key(r->name, members[i], r->err, "duplicate key '%s'",
					       members[i]->key);
			return 0;
		}
	}
	return 1;
}

static int on_null(void *context)
{
	return add(context, JSON_NULL) != NULL;
}

static int on_boolean(void *context, int value)
{
	struct json_node *node = add(context, JSON_BOOL);
	if (node)
		node->boolean = value != 0;
	return node != NULL;
}

static int on_number(void *context, const char *text, size_t size)
{
	return add_text(context, JSON_NUMBER, text, size);
}

static int on_string(void *context, const unsigned char *text, size_t size)
{
	return add_text(context, JSON_STRING, (const char *)text, size);
}

static int on_open_object(void *context)
{
	return open_container(context, JSON_OBJECT);
}

static int on_key(void *context, const unsigned char *text, size_t size)
{
	struct reader *r = context;

	skip_between(r);
	r->key = (struct json_node){ .line = r->cursor.line, .column = r->cursor.column };
	skip_token(r);
	r->key.key = arena_strndup(r->arena, (const char *)text, size);
	return r->key.key ? 1 : no_memory(r);
}

static int on_close_array(void *context)
{
	struct reader *r = context;

	(void)close_container(r);
	return 1;
}

static int on_close_object(void *context)
{
	struct reader *r = context;

	return check_members(r, close_container(r));
}

static int on_open_array(void *context)
{
	return open_container(context, JSON_ARRAY);
}

/* yajl_number set: numbers come as their text, always */
static const yajl_callbacks callbacks = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number,
	.yajl_string = on_string,
	.yajl_start_map = on_open_object,
	.yajl_map_key = on_key,
	.yajl_end_map = on_close_object,
	.yajl_start_array = on_open_array,
	.yajl_end_array = on_close_array,
};

/*
 * yajl uses what it gets from malloc(3) without a look.  What it wants is bounded by the size of
 * the text, and ending here is better than writing near address 0.
 */
static void *demand(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void *yajl_demand_malloc(void *context, size_t size)
{
	(void)context;
	return demand(malloc(size));
}

static void *yajl_demand_realloc(void *context, void *memory, size_t size)
{
	(void)context;
	return demand(realloc(memory, size));
}

static void yajl_release(void *context, void *memory)
{
	(void)context;
	free(memory);
}

/* The grammar is broken by a token after the last good one, or by the end of the text. */
static int refuse_syntax(struct reader *r)
{
	char why[128];
	size_t consumed = r->at_end ? r->size : yajl_get_bytes_consumed(r->yajl);
	size_t last_good = r->cursor.at;

	/* yajl's message without its prefix and newline: "parse error: unallowed token ...\n". */
	unsigned char *text = yajl_get_error(r->yajl, 0, NULL, 0);
	const char *message = text ? (const char *)text : "";
	const char *colon = strstr(message, ": ");
	if (colon)
		message = colon + 2;
	(void)snprintf(why, sizeof(why), "%.*s", (int)strcspn(message, "\n"), message);
	if (text)
		yajl_free_error(r->yajl, text);
	if (!r->at_end && consumed > last_good && r->text[consumed - 1] != '\0' &&
	    strchr(",:[]{}", r->text[consumed - 1]))
		cursor_move(&r->cursor, r->text, consumed - 1); /* itself one that is skipped */
	else
		skip_between(r);
	if (strcmp(why, "premature EOF") == 0)
		return json_refuse(
		    r->name, r->cursor.line, r->cursor.column, r->err, "the text ends %s",
		    r->cursor.at < r->size ? "inside what begins here" : "too early");
	return json_refuse(r->name, r->cursor.line, r->cursor.column, r->err, "%s", why);
}

static int read_text(struct reader *r)
{
	yajl_status status = yajl_parse(r->yajl, (const unsigned char *)r->text, r->size);

	if (status == yajl_status_ok) {
		r->at_end = true;
		status = yajl_complete_parse(r->yajl);
	}
	if (status == yajl_status_ok && r->root) {
		/* yajl takes an unfinished string behind the value for the end of the text. */
		skip_between(r);
		return r->cursor.at < r->size
			   ? json_refuse(r->name, r->cursor.line, r->cursor.column, r->err,
					 "trailing garbage")
			   : 0;
	}
	if (status == yajl_status_client_canceled)
		return -r->err->code;
	return refuse_syntax(r);
}

int json_parse(const char *name, const char *text, size_t size, struct arena *a,
	       const struct json_node **out, struct cj_error *err)
{
	if (size > JSON_BYTES_MAX)
		return cj_fail(err, EFBIG, "%s: more than %u bytes of JSON", name, JSON_BYTES_MAX);
	return json_parse_capped(name, text, size, a, out, err);
}

int json_parse_capped(const char *name, const char *text, size_t size, struct arena *a,
		      const struct json_node **out, struct cj_error *err)
{
	yajl_alloc_funcs memory = { yajl_demand_malloc, yajl_demand_realloc, yajl_release, NULL };
	struct reader r = {
		.name = name,
		.text = text,
		.size = size,
		.arena = a,
		.err = err,
		.cursor = JSON_CURSOR_BEGIN,
	};
	int rc = json_text_check(&r);
	if (rc < 0)
		return rc;

	r.yajl = yajl_alloc(&callbacks, &memory, &r);
	/* is_utf8() has been stricter already */
	(void)yajl_config(r.yajl, yajl_dont_validate_strings, 1);
	rc = read_text(&r);
	yajl_free(r.yajl);
	if (rc == 0)
		*out = r.root;
	return rc;
}

const struct json_node *json_get(const struct json_node *object, const char *key)
{
	for (const struct json_node *m = object->child; m; m = m->next) {
		if (m->key && strcmp(m->key, key) == 0)
			return m;
	}
	return NULL;
}

const struct json_node *json_get_typed(const struct json_node *object, const char *key,
				       enum json_type type)
{
	const struct json_node *node = object && object->type == JSON_OBJECT ? json_get(object, key)
									     : NULL;
	return node && node->type == type ? node : NULL;
}

const char *json_get_text(const struct json_node *object, const char *key)
{
	const struct json_node *node = json_get_typed(object, key, JSON_STRING);
	return node ? node->text : NULL;
}

bool json_get_u64(const struct json_node *object, const char *key, uint64_t *out)
{
	const struct json_node *node = json_get_typed(object, key, JSON_NUMBER);
	struct cj_error unused = { 0 };
	return node && parse_u64(node->text, 0, UINT64_MAX, out, &unused) == 0;
}

bool json_is_true(const struct json_node *object, const char *key)
{
	const struct json_node *node = json_get_typed(object, key, JSON_BOOL);
	return node && node->boolean;
}

uint64_t json_get_number(const struct json_node *object, const char *key)
{
	uint64_t value = 0;
	(void)json_get_u64(object, key, &value);
	return value;
}

const struct json_node *json_get_items(const struct json_node *object, const char *key)
{
	const struct json_node *list = json_get_typed(object, key, JSON_ARRAY);
	return list ? list->child : NULL;
}

struct blob json_written(const struct json_node *node, const char *text)
{
	return (struct blob){ text + node->begin, node->end - node->begin };
}

const char *json_type_name(enum json_type type)
{
	static const char *const names[JSON_TYPE_COUNT] = {
		[JSON_NULL] = "null",       [JSON_BOOL] = "true or false",
		[JSON_NUMBER] = "a number", [JSON_STRING] = "a string",
		[JSON_ARRAY] = "an array",  [JSON_OBJECT] = "an object",
	};

	return names[type];
}
