/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/json/json_record.h"

#include <assert.h>
#include <limits.h>

#include "runtime/base/text.h"

#define KEY_SHOWN_MAX 96

struct key_path {
	char text[JSON_PATH_MAX + KEY_SHOWN_MAX + 1];
};

static struct key_path path_of(const struct json_reader *in, const char *key)
{
	struct key_path path;
	(void)snprintf(path.text, sizeof(path.text), "%s%s%.*s", in->within, *in->within ? "." : "",
		       KEY_SHOWN_MAX, key);
	return path;
}

struct json_reader json_below(const struct json_reader *in, const char *key)
{
	struct json_reader below = *in;
	(void)snprintf(below.within, sizeof(below.within), "%.*s", JSON_PATH_MAX - 1,
		       path_of(in, key).text);
	return below;
}

int json_reject_unknown(const char *file, const struct json_node *member, const char *key,
			const char *near, struct cj_error *err)
{
	int rc = json_reject_key(file, member, err, "unknown key '%s'", key);
	if (near)
		cj_hint(err, "did you mean '%s'?", near);
	return rc;
}

struct wanted {
	char text[96];
};

/* From the last type to the first: "a string or a number", not "a number or a string". */
static struct wanted name_types(unsigned types)
{
	struct wanted wanted = { "" };

	for (unsigned i = JSON_TYPE_COUNT; i-- > 0;)
		if (types & (1u << i))
			text_append(wanted.text, sizeof(wanted.text), "%s%s",
				    wanted.text[0] ? " or " : "",
				    json_type_name((enum json_type)i));
	return wanted;
}

static int reject_type(const struct json_reader *in, const struct json_key *k,
		       const struct json_node *node, struct cj_error *err)
{
	const struct wanted types = name_types(k->types);
	const char *wanted = types.text;

	if (k->wanted)
		wanted = k->wanted;
	else if (k->is_list)
		wanted = k->types & JSON_TAKES_STRING ? "an array of strings"
						      : "an array of objects";
	return json_reject(in->file, node, err, "%s must be %s, not %s", path_of(in, k->name).text,
			   wanted, json_type_name(node->type));
}

static int no_memory(const struct json_reader *in, struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read '%s'", in->file);
}

static JSON_READER(value)
{
	if (k->types != JSON_TAKES_ANY && !(k->types & (1u << node->type)))
		return reject_type(in, k, node, err);
	if (k->read)
		return k->read(in, k, node, record, err);
	const char *text = node->text;
	if (node->type == JSON_BOOL)
		text = node->boolean ? "true" : "false";
	if (k->set(in, k, text, record, err) < 0)
		return cj_wrap(err, "%s:%u:%u: %s", in->file, node->line, node->column,
			       path_of(in, k->name).text);
	return 0;
}

int json_key_read(const struct json_reader *in, const struct json_key *k,
		  const struct json_node *node, void *record, struct cj_error *err)
{
	if (node->type == JSON_NULL && (k->types & JSON_NULL_IS_ABSENT))
		return 0;
	if (!k->is_list)
		return json_read_value(in, k, node, record, err);
	if (node->type != JSON_ARRAY)
		return reject_type(in, k, node, err);
	if (!node->child && k->if_empty)
		return json_reject(in->file, node, err, "%s must not be empty: %s",
				   path_of(in, k->name).text, k->if_empty);
	if (k->replaces)
		*(struct strings *)json_field(k, record) = (struct strings){ 0 };
	int rc = 0;
	for (const struct json_node *n = node->child; n && rc == 0; n = n->next)
		rc = json_read_value(in, k, n, record, err);
	return rc;
}

static const struct json_key *key_at(const struct json_record *table, size_t i)
{
	size_t stride = table->stride ? table->stride : sizeof(struct json_key);
	return (const void *)((const char *)table->keys + i * stride);
}

static const struct json_key *find_key(const struct json_record *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(key_at(table, i)->name, name) == 0)
			return key_at(table, i);
	return NULL;
}

static int reject_key(const struct json_reader *in, const struct json_record *table,
		      const struct json_node *member, struct cj_error *err)
{
	const char *names[JSON_KEYS_MAX + 1] = { NULL };

	assert(table->count <= JSON_KEYS_MAX);
	for (size_t i = 0; i < table->count; i++)
		names[i] = key_at(table, i)->name;
	return json_reject_unknown(in->file, member, path_of(in, member->key).text,
				   text_nearest(member->key, names), err);
}

static int check_required(const struct json_reader *in, const struct json_node *node,
			  const struct json_record *table, struct cj_error *err)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct json_key *k = key_at(table, i);
		if (k->is_required && !json_get(node, k->name))
			return json_reject(in->file, node, err, "%s is missing",
					   path_of(in, k->name).text);
	}
	return 0;
}

int json_record_read(const struct json_reader *in, const struct json_node *node,
		     const struct json_record *table, void *record, struct cj_error *err)
{
	if (node->type != JSON_OBJECT)
		return json_reject(in->file, node, err, "%s must be an object, not %s",
				   *in->within ? in->within : table->name,
				   json_type_name(node->type));

	int rc = 0;
	for (const struct json_node *n = node->child; n && rc == 0; n = n->next) {
		const struct json_key *k = find_key(table, n->key);
		if (k)
			rc = json_key_read(in, k, n, record, err);
		else if (!table->ignores_unknown)
			rc = reject_key(in, table, n, err);
	}
	if (rc == 0)
		rc = check_required(in, node, table, err);
	return rc == 0 && table->check ? table->check(in, node, record, err) : rc;
}

JSON_READER(record)
{
	const struct json_reader below = json_below(in, k->name);
	return json_record_read(&below, node, k->detail, json_field(k, record), err);
}

void *json_add_item(const struct json_reader *in, const struct json_key *k, size_t size,
		    void *record)
{
	size_t *count = (size_t *)(void *)((char *)record + k->known);
	void *items; /* the field has a pointer of its own type: hence the copies */

	memcpy(&items, json_field(k, record), sizeof(items));
	items = arena_grow(in->arena, items, *count, size);
	if (!items)
		return NULL;
	memcpy(json_field(k, record), &items, sizeof(items));
	return memset((char *)items + (*count)++ * size, 0, size);
}

JSON_READER(item)
{
	const struct json_record *table = k->detail;
	const struct json_reader below = json_below(in, k->name);
	void *item = json_add_item(in, k, table->size, record);

	return item ? json_record_read(&below, node, table, item, err) : no_memory(in, err);
}

JSON_READER(named)
{
	const struct json_record *table = k->detail;
	const struct json_reader below = json_below(in, k->name);
	int rc = 0;

	for (const struct json_node *n = node->child; n && rc == 0; n = n->next) {
		if (n->type != JSON_OBJECT)
			return json_reject(in->file, n, err, "%s.%.64s must be an object",
					   below.within, n->key);
		const char **item = json_add_item(in, k, table->size, record);
		if (!item)
			return no_memory(in, err);
		*item = n->key;
		rc = json_record_read(&below, n, table, item, err);
	}
	return rc;
}

void json_record_write(struct json_writer *w, const struct json_record *table, const void *record)
{
	json_open_object(w);
	for (size_t i = 0; i < table->count; i++) {
		const struct json_key *k = key_at(table, i);
		if (!k->write)
			continue;
		json_put_key(w, k->name);
		k->write(w, k, record);
	}
	json_close_object(w);
}

JSON_SETTER(u64)
{
	return parse_u64(text, k->min, k->max > 0 ? k->max : UINT64_MAX, json_field(k, record),
			 err);
}

JSON_SETTER(known_u64)
{
	int rc = text ? json_set_u64(in, k, text, record, err) : 0;
	if (rc == 0)
		*(bool *)((char *)record + k->known) = text != NULL;
	return rc;
}

JSON_SETTER(int)
{
	uint64_t value = 0;
	int rc = 0;

	if (text)
		rc = parse_u64(text, k->min, k->max > 0 ? k->max : INT_MAX, &value, err);
	if (rc == 0)
		*(int *)json_field(k, record) = text ? (int)value : -1;
	return rc;
}

JSON_SETTER(bool)
{
	return parse_bool(text, json_field(k, record), err);
}

JSON_SETTER(duration)
{
	uint64_t ms;
	int rc = parse_duration(text, &ms, err);

	if (rc < 0)
		return rc;
	bool is_short = ms<k->min, is_long = k->max> 0 && ms > k->max;
	if (is_short || is_long) {
		char bound[32];
		text_format_duration(is_short ? k->min : k->max, bound, sizeof(bound));
		return cj_reject(err, "'%s' is too %s, %s is the %s", text,
				 is_short ? "short" : "long", bound, is_short ? "least" : "most");
	}
	*(uint64_t *)json_field(k, record) = ms;
	return 0;
}

static int check_length(const struct json_key *k, const char *text, struct cj_error *err)
{
	size_t size = strlen(text);

	if (size < k->min)
		return cj_reject(err, "the value is empty");
	if (k->max > 0 && size > k->max)
		return cj_reject(err, "'%.32s...' has %zu bytes, the maximum is %u", text, size,
				 (unsigned)k->max);
	return 0;
}

JSON_SETTER(string)
{
	int rc = check_length(k, text, err);

	if (rc == 0)
		*(const char **)json_field(k, record) = text;
	return rc;
}

JSON_SETTER(strings)
{
	int rc = check_length(k, text, err);

	if (rc == 0 && strings_add(json_field(k, record), in->arena, text) < 0)
		rc = no_memory(in, err);
	return rc;
}

JSON_SETTER(chars)
{
	int rc = check_length(k, text, err);

	if (rc == 0)
		memcpy(json_field(k, record), text, strlen(text) + 1);
	return rc;
}

JSON_SETTER(chars_cut)
{
	size_t size = strlen(text);
	char *field = json_field(k, record);

	if (size > k->max)
		size = utf8_prefix(text, k->max);
	memcpy(field, text, size);
	field[size] = '\0';
	return 0;
}

JSON_SETTER(name)
{
	const char *const *names = k->detail;

	for (unsigned i = 0; i < k->max; i++) {
		if (strcmp(names[i], text) == 0) {
			*(unsigned *)json_field(k, record) = i;
			return 0;
		}
	}
	return cj_reject(err, "there is no '%s'", text);
}

/* Fields: bytes. */

static int check_blob(const struct json_reader *in, const struct json_key *k,
		      const struct json_node *node, size_t size, struct cj_error *err)
{
	if (size < k->min)
		return json_reject(in->file, node, err, "%s: the value is empty",
				   path_of(in, k->name).text);
	if (size <= k->max)
		return 0;
	return cj_reject_as(err, EFBIG, "%s:%u:%u: %s: more than %zu bytes", in->file, node->line,
			    node->column, path_of(in, k->name).text, (size_t)k->max);
}

/* No more is decoded than may be. */
JSON_READER(base64)
{
	size_t size = strlen(node->text), room = TEXT_BASE64_ROOM(size);
	struct blob blob = { 0 };
	int rc = 0;

	if (room > 2) /* two may be padding */
		rc = check_blob(in, k, node, room - 2, err);
	if (rc < 0)
		return rc;
	char *bytes = arena_alloc(in->arena, room + 1);
	if (!bytes)
		return no_memory(in, err);
	if (text_base64_decode(node->text, size, bytes, &blob.size) < 0) {
		rc = json_reject(in->file, node, err, "%s: this is not base64",
				 path_of(in, k->name).text);
		cj_hint(err, "RFC 4648, section 4: A-Z a-z 0-9 + /, padded with '=', no line ends");
		return rc;
	}
	blob.bytes = bytes;
	rc = check_blob(in, k, node, blob.size, err);
	if (rc == 0)
		*(struct blob *)json_field(k, record) = blob;
	return rc;
}

JSON_READER(blob)
{
	const struct json_node *inner = node->type == JSON_OBJECT ? node->child : NULL;

	if (inner && !inner->next && strcmp(inner->key, "base64") == 0 &&
	    inner->type == JSON_STRING)
		return json_read_base64(in, k, inner, record, err);
	if (node->type != JSON_STRING)
		return json_reject(in->file, node, err,
				   "%s must be a string, or {\"base64\": \"...\"}",
				   path_of(in, k->name).text);
	struct blob blob = { node->text, strlen(node->text) };
	int rc = check_blob(in, k, node, blob.size, err);
	if (rc == 0)
		*(struct blob *)json_field(k, record) = blob;
	return rc;
}

static const void *field_of(const struct json_key *k, const void *record)
{
	return (const char *)record + k->offset;
}

JSON_WRITER(u64)
{
	json_put_u64(w, *(const uint64_t *)field_of(k, record));
}

JSON_WRITER(known_u64)
{
	if (*(const bool *)((const char *)record + k->known))
		json_write_u64(w, k, record);
	else
		json_put_null(w);
}

JSON_WRITER(int)
{
	int value = *(const int *)field_of(k, record);

	if (value < 0)
		json_put_null(w);
	else
		json_put_i64(w, value);
}

JSON_WRITER(bool)
{
	json_put_bool(w, *(const bool *)field_of(k, record));
}

JSON_WRITER(string)
{
	json_put_string(w, *(const char *const *)field_of(k, record));
}

JSON_WRITER(chars)
{
	json_put_string(w, field_of(k, record));
}

JSON_WRITER(name)
{
	const char *const *names = k->detail;

	json_put_string(w, names[*(const unsigned *)field_of(k, record)]);
}
