/* SPDX-License-Identifier: Apache-2.0 */
/* The values of which a config.json consists. */
#include "runtime/container/config/oci_value.h"

#include "runtime/base/text.h"

#define REASON_MAX 256

int oci_reject(const struct json_reader *in, const struct json_node *node, struct cj_error *err,
	       const char *fmt, ...)
{
	char reason[REASON_MAX];

	(void)text_format(reason, fmt);
	return json_reject(in->file, node, err, "%s%s%s", in->within, *in->within ? ": " : "",
			   reason);
}

static int no_memory(const struct json_reader *in, struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read '%s'", in->file);
}

static int add_u32(const struct json_reader *in, const struct json_key *k, uint32_t value,
		   void *record, struct cj_error *err)
{
	uint32_t *item = json_add_item(in, k, sizeof(value), record);

	if (!item)
		return no_memory(in, err);
	*item = value;
	return 0;
}

/* "-12": one sign, then digits only. */
static int parse_i64(const char *text, int64_t *out, struct cj_error *err)
{
	bool is_negative = text[0] == '-';
	uint64_t value = 0;

	/* -2^63 is no number of config.json, and would need a case of its own. */
	if (parse_u64(is_negative ? text + 1 : text, 0, INT64_MAX, &value, err) < 0)
		return -err->code;
	*out = is_negative ? -(int64_t)value : (int64_t)value;
	return 0;
}

JSON_SETTER(oci_u64)
{
	struct oci_u64 *field = json_field(k, record);
	int rc = parse_u64(text, k->min, k->max > 0 ? k->max : UINT64_MAX, &field->value, err);

	if (rc == 0)
		field->is_set = true;
	return rc;
}

JSON_SETTER(oci_i64)
{
	struct oci_i64 *field = json_field(k, record);
	int rc = parse_i64(text, &field->value, err);

	if (rc == 0)
		field->is_set = true;
	return rc;
}

JSON_SETTER(oci_u32)
{
	uint64_t value = 0;
	int rc = parse_u64(text, k->min, k->max > 0 ? k->max : OCI_ID_MAX, &value, err);

	if (rc == 0)
		*(uint32_t *)json_field(k, record) = (uint32_t)value;
	return rc;
}

JSON_SETTER(oci_s64)
{
	return parse_i64(text, json_field(k, record), err);
}

JSON_SETTER(oci_i32)
{
	int64_t value = 0;

	if (parse_i64(text, &value, err) < 0)
		return -err->code;
	if (value < INT32_MIN || value > INT32_MAX)
		return cj_reject(err, "'%.32s' is too large", text);
	*(int32_t *)json_field(k, record) = (int32_t)value;
	return 0;
}

JSON_SETTER(oci_text)
{
	*(const char **)json_field(k, record) = text[0] != '\0' ? text : NULL;
	return 0;
}

JSON_SETTER(oci_path)
{
	if (text[0] != '\0' && text[0] != '/')
		return cj_reject(err, "'%.128s' is not an absolute path", text);
	return json_set_oci_text(in, k, text, record, err);
}

JSON_SETTER(oci_paths)
{
	if (text[0] != '/')
		return cj_reject(err, "'%.128s' is not an absolute path", text);
	return json_set_strings(in, k, text, record, err);
}

/* Digits up to a number below OCI_SET_MAX; -1: none. */
static long take_index(const char **text)
{
	long value = -1;

	for (; **text >= '0' && **text <= '9' && value < OCI_SET_MAX; (*text)++)
		value = (value < 0 ? 0 : value * 10) + (**text - '0');
	return value < OCI_SET_MAX ? value : -1;
}

static bool parse_set(const char *text, struct oci_set *out)
{
	for (;;) {
		long first = take_index(&text), last = first;
		if (*text == '-') {
			text++;
			last = take_index(&text);
		}
		if (first < 0 || last < first)
			return false;
		for (size_t i = (size_t)first; i <= (size_t)last; i++)
			out->bits[i / OCI_SET_BITS] |= 1ul << i % OCI_SET_BITS;
		if (*text == '\0')
			return true;
		if (*text++ != ',')
			return false;
	}
}

JSON_SETTER(oci_set)
{
	struct oci_set *set = arena_alloc(in->arena, sizeof(*set));

	if (!set)
		return cj_fail(err, ENOMEM, "read '%s'", in->file);
	*set = (struct oci_set){ 0 };
	if (text[0] != '\0' && !parse_set(text, set))
		return cj_reject(err, "'%.100s' is no list such as 0-3,7", text);
	*(const struct oci_set **)json_field(k, record) = text[0] != '\0' ? set : NULL;
	return 0;
}

static int find_name(const struct json_key *k, const char *text, uint32_t *out,
		     struct cj_error *err)
{
	const struct oci_names *names = k->detail;

	for (size_t i = 0; i < names->count; i++) {
		if (strcmp(names->items[i].name, text) == 0) {
			*out = names->items[i].value;
			return 0;
		}
	}
	return cj_reject(err, "cejail-oci has no '%.64s'", text);
}

JSON_SETTER(oci_name)
{
	return find_name(k, text, json_field(k, record), err);
}

JSON_SETTER(oci_bit)
{
	uint32_t bit = 0;
	int rc = find_name(k, text, &bit, err);

	*(uint32_t *)json_field(k, record) |= bit;
	return rc;
}

JSON_SETTER(oci_values)
{
	uint32_t value = 0;
	int rc = find_name(k, text, &value, err);

	return rc < 0 ? rc : add_u32(in, k, value, record, err);
}

JSON_SETTER(oci_ids)
{
	uint64_t id = 0;
	int rc = parse_u64(text, 0, OCI_ID_MAX, &id, err);

	return rc < 0 ? rc : add_u32(in, k, (uint32_t)id, record, err);
}

JSON_CHECK(oci_given)
{
	*(bool *)record = true;
	return 0;
}

JSON_READER(oci_pairs)
{
	const struct json_reader below = json_below(in, k->name);

	for (const struct json_node *n = node->child; n; n = n->next) {
		if (n->key[0] == '\0')
			return oci_reject(&below, n, err, "a name is empty");
		if (n->type != JSON_STRING)
			return oci_reject(&below, n, err, "'%.64s' must be a string, not %s",
					  n->key, json_type_name(n->type));
		struct oci_pair *pair = json_add_item(in, k, sizeof(*pair), record);
		if (!pair)
			return no_memory(in, err);
		*pair = (struct oci_pair){ n->key, n->text };
	}
	return 0;
}

static bool asks_for_nothing(const struct json_node *node)
{
	switch (node->type) {
	case JSON_NULL:
		return true;
	case JSON_BOOL:
		return !node->boolean;
	case JSON_NUMBER:
		return strcmp(node->text, "0") == 0 || strcmp(node->text, "-1") == 0;
	case JSON_STRING:
		return node->text[0] == '\0';
	default:
		return node->count == 0;
	}
}

JSON_READER(oci_refused)
{
	const struct json_reader below = json_below(in, k->name);

	if (asks_for_nothing(node))
		return 0;
	return oci_reject(&below, node, err, "%s", (const char *)k->detail);
}

int oci_file_read(const char *name, const char *text, size_t size, struct arena *a,
		  const struct json_record *record, void *out, size_t out_size,
		  struct cj_error *err)
{
	const struct json_reader in = { .file = name, .arena = a };
	const struct json_node *root = NULL;

	if (size > OCI_CONFIG_BYTES_MAX)
		return cj_reject_as(err, EFBIG, "'%s' has %zu bytes, the maximum is %u", name, size,
				    OCI_CONFIG_BYTES_MAX);
	if (json_parse_capped(name, text, size, a, &root, err) < 0)
		return -err->code;
	void *result = arena_alloc(a, out_size);
	if (!result)
		return no_memory(&in, err);
	if (json_record_read(&in, root, record, result, err) < 0)
		return -err->code;
	memcpy(out, result, out_size);
	return 0;
}
