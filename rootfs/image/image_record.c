/* SPDX-License-Identifier: Apache-2.0 */
/* The record of an image.  Pure. */
#include "rootfs/image/image_record.h"

#include <string.h>

#include "rootfs/image/image_limits.h"
#include "rootfs/image/image_name.h"
#include "runtime/base/json/json_record.h"

static int add_layer(const struct json_reader *in, const struct json_key *k, const char *text,
		     void *record, struct cj_error *err)
{
	const struct strings *layers = json_field(k, record);
	if (layers->count >= IMAGE_LAYERS_MAX || !image_is_sha256(text))
		return cj_reject(err, "'%.80s' is not a layer", text);
	return json_set_strings(in, k, text, record, err);
}

static void write_strings(struct json_writer *w, const struct json_key *k, const void *record)
{
	const struct strings *list = (const void *)((const char *)record + k->offset);
	json_open_array(w);
	for (size_t i = 0; i < list->count; i++)
		json_put_string(w, list->items[i]);
	json_close_array(w);
}

#define AT(field) .is_required = true, .offset = offsetof(struct image_record, field)
#define TEXT      JSON_TAKES_STRING, .set = json_set_string, .write = json_write_string
#define U64       JSON_TAKES_NUMBER, .set = json_set_u64, .write = json_write_u64
#define LIST      JSON_TAKES_STRING, .is_list = true, .set = json_set_strings, .write = write_strings
static const struct json_key keys[] = {
	{ "schema", TEXT, AT(schema) },
	{ "name", TEXT, AT(name) },
	{ "digest", TEXT, AT(digest) },
	{ "architecture", TEXT, AT(architecture) },
	{ "imported_s", U64, AT(imported_s) },
	{ "bytes", U64, AT(bytes) },
	{ "entries", U64, AT(entries) },
	{ "left_out", U64, AT(left_out) },
	{ "layers", JSON_TAKES_STRING, .is_list = true, .set = add_layer, .write = write_strings,
	  AT(layers) },
	{ "env", LIST, AT(env) },
	{ "command", LIST, AT(command) },
	{ "workdir", TEXT, AT(workdir) },
	{ "user", TEXT, AT(user) },
	{ "uid", U64, AT(uid) },
};
static const struct json_record table = JSON_RECORD(keys, "the record");

int image_record_parse(const char *name, const char *text, size_t size, struct arena *a,
		       struct image_record *out, struct cj_error *err)
{
	const struct json_reader in = { .file = name, .arena = a };
	struct image_record r = { 0 };
	const struct json_node *root;

	if (json_parse(name, text, size, a, &root, err) < 0 ||
	    json_record_read(&in, root, &table, &r, err) < 0)
		return -err->code;
	if (strcmp(r.schema, IMAGE_SCHEMA) != 0)
		return cj_reject(err, "%s: schema '%.32s' is not " IMAGE_SCHEMA, name, r.schema);
	if (!image_is_name(r.name) || !image_is_sha256(r.digest) || r.layers.count == 0)
		return cj_reject(err, "%s: it is not the record of an image", name);
	*out = r;
	return 0;
}

void image_record_write(struct json_writer *w, const struct image_record *r)
{
	json_open_object(w);
	json_record_write(w, &table, r);
	json_close_object(w);
}
