/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_image_manifest - any text as a document of an image, as an entry's path and as USER.
 *
 * The first byte chooses the reader.  Asserted: a refusal has a message; what is taken keeps the
 * limits, and no digest, path or name leads out of its directory.
 */
#include "rootfs/image/image_manifest.h"

#include "rootfs/image/image_store.h"
#include "rootfs/image/image_passwd.h"
#include "runtime/base/scope.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct input {
	char *text;
	size_t size;
	struct arena arena;
	struct cj_error err;
};

static void check_refusal(const struct input *in, int rc)
{
	assert(rc == 0 || (rc < 0 && in->err.code == -rc && in->err.msg[0] != '\0'));
}

static void check_descriptors(const struct image_descriptors *list, size_t most)
{
	assert(list->count <= most);
	for (size_t i = 0; i < list->count; i++)
		assert(image_is_sha256(list->items[i].sha256) && list->items[i].media_type);
}

static void try_index(struct input *in)
{
	struct image_descriptors list;
	size_t chosen;
	int rc = image_index_parse("doc", in->text, in->size, &in->arena, &list, &in->err);
	check_refusal(in, rc);
	if (rc < 0)
		return;
	check_descriptors(&list, IMAGE_LIST_MAX);
	if (image_choose(&list, NULL, &chosen, &in->err) == 0)
		assert(chosen < list.count);
}

static void try_manifest(struct input *in)
{
	struct image_manifest m;
	int rc = image_manifest_parse("doc", in->text, in->size, &in->arena, &m, &in->err);
	check_refusal(in, rc);
	if (rc < 0)
		return;
	check_descriptors(&m.layers, IMAGE_LAYERS_MAX);
	assert(image_is_sha256(m.config.sha256));
	assert(image_media_of(m.config.media_type) == IMAGE_MEDIA_CONFIG);
	for (size_t i = 0; i < m.layers.count; i++)
		assert(image_media_of(m.layers.items[i].media_type) == IMAGE_MEDIA_LAYER);
}

static void try_archive(struct input *in)
{
	struct image_archive list;
	int rc = image_archive_parse("doc", in->text, in->size, &in->arena, &list, &in->err);
	check_refusal(in, rc);
	if (rc < 0)
		return;
	assert(list.count <= IMAGE_LIST_MAX);
	for (size_t i = 0; i < list.count; i++)
		assert(list.items[i].config && list.items[i].layers.count <= IMAGE_LAYERS_MAX);
}

static void try_config(struct input *in)
{
	struct image_config c;
	int rc = image_config_parse("doc", in->text, in->size, &in->arena, &c, &in->err);
	check_refusal(in, rc);
	if (rc < 0)
		return;
	assert(c.diff_ids.count <= IMAGE_LAYERS_MAX && c.env.count <= IMAGE_LIST_MAX);
	assert(c.cmd.count <= IMAGE_LIST_MAX && c.entrypoint.count <= IMAGE_LIST_MAX);
	assert(c.user && c.workdir && c.architecture && c.os);
	for (size_t i = 0; i < c.diff_ids.count; i++)
		assert(image_is_sha256(c.diff_ids.items[i]));
	for (size_t i = 0; i < c.env.count; i++)
		assert(strchr(c.env.items[i], '='));
}

static void try_record(struct input *in)
{
	struct image_record r;
	int rc = image_record_parse("doc", in->text, in->size, &in->arena, &r, &in->err);
	check_refusal(in, rc);
	if (rc < 0)
		return;
	assert(image_is_name(r.name) && r.layers.count > 0 && r.layers.count <= IMAGE_LAYERS_MAX);
	for (size_t i = 0; i < r.layers.count; i++)
		assert(image_is_sha256(r.layers.items[i]));
}

static void try_layout(struct input *in)
{
	check_refusal(in, image_layout_parse("doc", in->text, in->size, &in->err));
}

static void try_passwd(struct input *in)
{
	char *end = strchr(in->text, '\n');
	uint32_t uid = 0;
	if (end)
		*end = '\0';
	int rc = image_passwd_find(in->text, end ? end + 1 : NULL, &uid, &in->err);
	check_refusal(in, rc);
	assert(uid != UINT32_MAX);
}

/* No component of a clean path is "", "." or "..". */
static void check_clean(const char *path)
{
	for (const char *at = path; *at;) {
		size_t size = strcspn(at, "/");
		assert(size > 0 && size <= NAME_MAX);
		assert(!(size == 1 && at[0] == '.') &&
		       !(size == 2 && at[0] == '.' && at[1] == '.'));
		at += size;
		assert(at[0] == '\0' || at[1] != '\0');
		at += at[0] == '/';
	}
}

static void try_path(struct input *in)
{
	char path[PATH_MAX];
	const char *dir, *name;
	enum image_entry_kind kind;
	int rc = image_path_clean(in->text, path, &in->err);
	check_refusal(in, rc);
	if (rc < 0)
		return;
	check_clean(path);
	if (path[0] == '\0')
		return;
	rc = image_entry_split(path, &dir, &name, &kind, &in->err);
	check_refusal(in, rc);
	if (rc < 0)
		return;
	check_clean(dir);
	check_clean(name);
	assert(name[0] != '\0' && !strchr(name, '/'));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static void (*const readers[])(struct input * in) = {
		try_index,  try_manifest, try_archive, try_config,
		try_record, try_layout,   try_passwd,  try_path,
	};
	struct bytes left = { bytes, size };
	unsigned chosen = bytes_u8(&left) % (sizeof(readers) / sizeof(readers[0]));
	auto_free char *text = bytes_text(left);
	struct input in = { .text = text, .size = left.left };

	readers[chosen](&in);
	arena_fini(&in.arena);
	return 0;
}
