/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/json/json_template.h"

#include <assert.h>

#include "runtime/base/text.h"

/* What walks through the file.  It nests less than JSON_DEPTH_MAX levels; no group uses itself. */
struct template_walk {
	struct json_writer *w;
	const struct json_template *t;
	const struct json_node *groups;
	struct arena *arena;
	bool lacks_memory;
};

static const struct json_value *find_value(const struct template_walk *k, const char *name,
					   size_t size)
{
	for (size_t i = 0; i < k->t->nvalues; i++) {
		const struct json_value *v = &k->t->values[i];
		if (strlen(v->name) == size && memcmp(v->name, name, size) == 0)
			return v;
	}
	assert(!"a value that the template's caller does not have");
	return NULL;
}

/* The value that is the whole of a string, as in "{name}"; NULL: it is another text. */
static const struct json_value *whole_value(const struct template_walk *k,
					    const struct json_node *node)
{
	size_t size = node->type == JSON_STRING ? strcspn(node->text, "}") : 0;

	if (size < 2 || node->text[0] != '{' || node->text[size] != '}' || node->text[size + 1])
		return NULL;
	return find_value(k, node->text + 1, size - 1);
}

/* False for what is left out. */
static bool is_wanted(const struct template_walk *k, const struct json_node *node)
{
	const char *condition = json_get_text(node, "if");
	const struct json_value *v = condition ? find_value(k, condition, strlen(condition))
					       : whole_value(k, node);

	if (condition && v->kind == JSON_VALUE_BOOL)
		return v->number != 0;
	return !v || v->kind != JSON_VALUE_NONE;
}

static void put_value(struct json_writer *w, const struct json_value *v)
{
	switch (v->kind) {
	case JSON_VALUE_BOOL:
		json_put_bool(w, v->number != 0);
		break;
	case JSON_VALUE_U64:
		json_put_u64(w, v->number);
		break;
	case JSON_VALUE_MILLI:
		json_put_milli(w, v->number);
		break;
	case JSON_VALUE_TEXTS:
		json_open_array(w);
		for (size_t i = 0; i < v->count; i++)
			json_put_string(
			    w, *(const char *const *)((const char *)v->texts + i * v->stride));
		json_close_array(w);
		break;
	case JSON_VALUE_NONE:
	case JSON_VALUE_TEXT:
		json_put_string(w, v->text);
		break;
	}
}

/* `said` with the text behind it. */
static const char *say(struct template_walk *k, const char *said, const char *text)
{
	while (*text && !k->lacks_memory) {
		size_t plain = strcspn(text, "{");
		const char *value = "";
		const char *name = text + plain;
		size_t size = 0;
		if (*name) {
			size = strcspn(++name, "}");
			value = find_value(k, name, size)->text;
		}
		said = arena_printf(k->arena, "%s%.*s%s", said, (int)plain, text, value);
		k->lacks_memory = !said;
		text = *name ? name + size + 1 : name;
	}
	return said;
}

static const char *say_parts(struct template_walk *k, const struct json_node *parts)
{
	const char *said = "";

	for (const struct json_node *p = parts->child; p; p = p->next)
		if (is_wanted(k, p))
			said = say(k, said,
				   p->type == JSON_STRING ? p->text : json_get_text(p, "say"));
	return said;
}

static void put(struct template_walk *k, const struct json_node *node);

static void put_members(struct template_walk *k, const struct json_node *object)
{
	for (const struct json_node *m = object->child; m; m = m->next) {
		const char *group = text_after(m->key, "use ");
		if (group) {
			put_members(k, json_get(k->groups, group));
		} else if (strcmp(m->key, "//") != 0 && is_wanted(k, m)) {
			json_put_key(k->w, m->key);
			put(k, m);
		}
	}
}

static void put_object(struct template_walk *k, const struct json_node *node)
{
	const struct json_node *then = json_get(node, "then");
	const struct json_node *parts = json_get_typed(node, "say", JSON_ARRAY);

	if (then) {
		put(k, then);
	} else if (parts) {
		json_put_string(k->w, say_parts(k, parts));
	} else {
		json_open_object(k->w);
		put_members(k, node);
		json_close_object(k->w);
	}
}

static void put(struct template_walk *k, const struct json_node *node)
{
	const struct json_value *value = whole_value(k, node);

	if (value) {
		put_value(k->w, value);
	} else if (node->type == JSON_STRING) {
		json_put_string(k->w, say(k, "", node->text));
	} else if (node->type == JSON_OBJECT) {
		put_object(k, node);
	} else if (node->type == JSON_ARRAY) {
		json_open_array(k->w);
		for (const struct json_node *item = node->child; item; item = item->next)
			if (is_wanted(k, item))
				put(k, item);
		json_close_array(k->w);
	} else {
		json_put_node(k->w, node);
	}
}

int json_template_write(struct json_writer *w, const struct json_template *t, const char *member,
			struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct template_walk k = { .w = w, .t = t, .arena = &a };

	k.groups = json_get(t->root, "groups");
	put(&k, json_get(t->root, member));
	return k.lacks_memory ? cj_fail(err, ENOMEM, "write '%s'", t->name) : 0;
}
