/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON documents of an image. */
#include "rootfs/image/image_manifest.h"

#include "rootfs/image/image_store.h"
#include "runtime/base/json/json_record.h"

#define DIGEST_PREFIX "sha256:"
#define TEXT_MAX      4096 /* bytes of a name, a path, a media type */
#define ARGUMENT_MAX  (128u << 10)

static const struct {
	const char *name;
	enum image_media media;
} media_types[] = {
	{ "application/vnd.oci.image.index.v1+json", IMAGE_MEDIA_INDEX },
	{ "application/vnd.docker.distribution.manifest.list.v2+json", IMAGE_MEDIA_INDEX },
	{ "application/vnd.oci.image.manifest.v1+json", IMAGE_MEDIA_MANIFEST },
	{ "application/vnd.docker.distribution.manifest.v2+json", IMAGE_MEDIA_MANIFEST },
	{ "application/vnd.oci.image.config.v1+json", IMAGE_MEDIA_CONFIG },
	{ "application/vnd.docker.container.image.v1+json", IMAGE_MEDIA_CONFIG },
	{ "application/vnd.oci.image.layer.v1.tar", IMAGE_MEDIA_LAYER },
	{ "application/vnd.oci.image.layer.v1.tar+gzip", IMAGE_MEDIA_LAYER },
	{ "application/vnd.oci.image.layer.v1.tar+zstd", IMAGE_MEDIA_LAYER },
	{ "application/vnd.docker.image.rootfs.diff.tar", IMAGE_MEDIA_LAYER },
	{ "application/vnd.docker.image.rootfs.diff.tar.gzip", IMAGE_MEDIA_LAYER },
};

enum image_media image_media_of(const char *media_type)
{
	for (size_t i = 0; i < COUNT_OF(media_types); i++)
		if (strcmp(media_types[i].name, media_type) == 0)
			return media_types[i].media;
	return IMAGE_MEDIA_OTHER;
}

#define AT(type, field) .offset = offsetof(struct type, field)
#define TEXT            JSON_TAKES_STRING | JSON_NULL_IS_ABSENT, .set = json_set_string, .max = TEXT_MAX
#define RECORD(table, called)                                                                      \
	{                                                                                          \
		(table), COUNT_OF(table), (called), .ignores_unknown = true                        \
	}

static int check_digest(const char *text, const char **out_sha256, struct cj_error *err)
{
	size_t prefix = strlen(DIGEST_PREFIX);
	if (strncmp(text, DIGEST_PREFIX, prefix) != 0 || !image_is_sha256(text + prefix))
		return cj_reject(err, "'%.80s' is not '" DIGEST_PREFIX "' and 64 digits", text);
	*out_sha256 = text + prefix;
	return 0;
}

static int set_digest(const struct json_reader *in, const struct json_key *k, const char *text,
		      void *record, struct cj_error *err)
{
	(void)in;
	return check_digest(text, json_field(k, record), err);
}

static int check_room(const struct json_key *k, size_t count, size_t most, struct cj_error *err)
{
	if (count < most)
		return 0;
	return cj_reject_as(err, E2BIG, "%s: more than %zu of them", k->name, most);
}

static int add_text(const struct json_reader *in, const struct json_key *k, const char *text,
		    void *record, struct cj_error *err)
{
	const struct strings *list = json_field(k, record);
	if (check_room(k, list->count, IMAGE_LIST_MAX, err) < 0)
		return -err->code;
	return json_set_strings(in, k, text, record, err);
}

static int add_digest(const struct json_reader *in, const struct json_key *k, const char *text,
		      void *record, struct cj_error *err)
{
	struct strings *list = json_field(k, record);
	const char *sha256 = NULL;
	if (check_room(k, list->count, IMAGE_LAYERS_MAX, err) < 0 ||
	    check_digest(text, &sha256, err) < 0)
		return -err->code;
	return strings_add(list, in->arena, sha256) < 0
		   ? cj_fail(err, ENOMEM, "read '%s'", in->file)
		   : 0;
}

static int add_variable(const struct json_reader *in, const struct json_key *k, const char *text,
			void *record, struct cj_error *err)
{
	const char *equals = strchr(text, '=');
	if (!equals || equals == text)
		return cj_reject(err, "'%.32s' is not NAME=VALUE", text);
	return add_text(in, k, text, record, err);
}

static const struct json_key platform_keys[] = {
	{ "architecture", TEXT, AT(image_descriptor, architecture) },
	{ "os", TEXT, AT(image_descriptor, os) },
};
static const struct json_record platform_table = RECORD(platform_keys, "the platform");

static const struct json_key annotation_keys[] = {
	{ "org.opencontainers.image.ref.name", TEXT, AT(image_descriptor, ref) },
};
static const struct json_record annotation_table = RECORD(annotation_keys, "the annotations");

static const struct json_key descriptor_keys[] = {
	{ "mediaType", TEXT, AT(image_descriptor, media_type) },
	{ "digest", JSON_TAKES_STRING, .set = set_digest, .is_required = true,
	  AT(image_descriptor, sha256) },
	{ "size", JSON_TAKES_NUMBER, .set = json_set_u64, .is_required = true,
	  AT(image_descriptor, size) },
	/* both are members of the same struct, so their records begin at its start */
	{ "platform", JSON_TAKES_OBJECT | JSON_NULL_IS_ABSENT, .read = json_read_record,
	  .detail = &platform_table },
	{ "annotations", JSON_TAKES_OBJECT | JSON_NULL_IS_ABSENT, .read = json_read_record,
	  .detail = &annotation_table },
};
static const struct json_record descriptor_table = RECORD(descriptor_keys, "the descriptor");

static int add_descriptor(const struct json_reader *in, const struct json_key *k,
			  const struct json_node *node, void *record, struct cj_error *err)
{
	struct image_descriptors *list = json_field(k, record);
	const struct json_reader below = json_below(in, k->name);

	if (check_room(k, list->count, k->max, err) < 0)
		return cj_wrap(err, "%s", in->file);
	if (!arena_append(in->arena, list->items, list->count,
			  (struct image_descriptor){ .media_type = "" }))
		return cj_fail(err, ENOMEM, "read '%s'", in->file);
	return json_record_read(&below, node, &descriptor_table, &list->items[list->count - 1],
				err);
}

/* A document that is an object, by its table. */
static int read_document(const char *name, const char *text, size_t size, struct arena *a,
			 const struct json_record *table, void *out, struct cj_error *err)
{
	const struct json_reader in = { .file = name, .arena = a };
	const struct json_node *root;
	if (json_parse(name, text, size, a, &root, err) < 0)
		return -err->code;
	return json_record_read(&in, root, table, out, err);
}

struct layout {
	const char *version;
};
static const struct json_key layout_keys[] = {
	{ "imageLayoutVersion", TEXT, .is_required = true, AT(layout, version) },
};
static const struct json_record layout_table = RECORD(layout_keys, "the layout");

int image_layout_parse(const char *name, const char *text, size_t size, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct layout layout = { .version = "" };
	if (read_document(name, text, size, &a, &layout_table, &layout, err) < 0)
		return -err->code;
	if (strncmp(layout.version, "1.", 2) != 0)
		return cj_reject(err, "%s: version '%.32s' of the layout is not known, 1.0.0 is",
				 name, layout.version);
	return 0;
}

/* "mediaType" of an index or a manifest, and its "schemaVersion". */
struct head {
	const char *media_type;
	uint64_t version;
};

static int check_head(const char *name, const struct head *head, enum image_media wanted,
		      struct cj_error *err)
{
	if (head->version != 2)
		return cj_reject(err, "%s: schemaVersion is not 2", name);
	if (head->media_type && image_media_of(head->media_type) != wanted)
		return cj_reject(err, "%s: '%.80s' is not the media type of an image %s", name,
				 head->media_type,
				 wanted == IMAGE_MEDIA_INDEX ? "index" : "manifest");
	return 0;
}

struct index {
	struct head head;
	struct image_descriptors manifests;
};
static const struct json_key index_keys[] = {
	{ "schemaVersion", JSON_TAKES_NUMBER, .set = json_set_u64, AT(index, head.version) },
	{ "mediaType", TEXT, AT(index, head.media_type) },
	{ "manifests", JSON_TAKES_OBJECT, .is_list = true, .is_required = true,
	  .read = add_descriptor, .max = IMAGE_LIST_MAX, AT(index, manifests) },
};
static const struct json_record index_table = RECORD(index_keys, "the index");

int image_index_parse(const char *name, const char *text, size_t size, struct arena *a,
		      struct image_descriptors *out, struct cj_error *err)
{
	struct index index = { 0 };
	if (read_document(name, text, size, a, &index_table, &index, err) < 0 ||
	    check_head(name, &index.head, IMAGE_MEDIA_INDEX, err) < 0)
		return -err->code;
	*out = index.manifests;
	return 0;
}

struct manifest {
	struct head head;
	struct image_manifest body;
};
static const struct json_key manifest_keys[] = {
	{ "schemaVersion", JSON_TAKES_NUMBER, .set = json_set_u64, AT(manifest, head.version) },
	{ "mediaType", TEXT, AT(manifest, head.media_type) },
	{ "config", JSON_TAKES_OBJECT, .is_required = true, .read = json_read_record,
	  .detail = &descriptor_table, AT(manifest, body.config) },
	{ "layers", JSON_TAKES_OBJECT, .is_list = true, .is_required = true, .read = add_descriptor,
	  .max = IMAGE_LAYERS_MAX, AT(manifest, body.layers) },
};
static const struct json_record manifest_table = RECORD(manifest_keys, "the manifest");

int image_manifest_parse(const char *name, const char *text, size_t size, struct arena *a,
			 struct image_manifest *out, struct cj_error *err)
{
	struct manifest m = { .body.config.media_type = "" };
	if (read_document(name, text, size, a, &manifest_table, &m, err) < 0 ||
	    check_head(name, &m.head, IMAGE_MEDIA_MANIFEST, err) < 0)
		return -err->code;
	if (image_media_of(m.body.config.media_type) != IMAGE_MEDIA_CONFIG)
		return cj_reject(err, "%s: '%.80s' is not the configuration of an image", name,
				 m.body.config.media_type);
	for (size_t i = 0; i < m.body.layers.count; i++)
		if (image_media_of(m.body.layers.items[i].media_type) != IMAGE_MEDIA_LAYER)
			return cj_reject(err, "%s: cejail can't read a layer of type '%.80s'", name,
					 m.body.layers.items[i].media_type);
	*out = m.body;
	return 0;
}

static const struct json_key archived_keys[] = {
	{ "Config", TEXT, .is_required = true, AT(image_archived, config) },
	{ "RepoTags", JSON_TAKES_STRING | JSON_NULL_IS_ABSENT, .is_list = true, .set = add_text,
	  .max = TEXT_MAX, AT(image_archived, tags) },
	{ "Layers", JSON_TAKES_STRING | JSON_NULL_IS_ABSENT, .is_list = true, .set = add_text,
	  .max = TEXT_MAX, AT(image_archived, layers) },
};
static const struct json_record archived_table = RECORD(archived_keys, "an image");

static int add_archived(const struct json_reader *in, const struct json_node *node,
			struct image_archive *list, struct cj_error *err)
{
	if (list->count >= IMAGE_LIST_MAX)
		return cj_reject_as(err, E2BIG, "%s: more than %d images", in->file,
				    IMAGE_LIST_MAX);
	if (!arena_append(in->arena, list->items, list->count,
			  (struct image_archived){ .config = "" }))
		return cj_fail(err, ENOMEM, "read '%s'", in->file);
	struct image_archived *image = &list->items[list->count - 1];
	if (json_record_read(in, node, &archived_table, image, err) < 0)
		return -err->code;
	if (image->layers.count > IMAGE_LAYERS_MAX)
		return cj_reject_as(err, E2BIG, "%s: more than %d layers", in->file,
				    IMAGE_LAYERS_MAX);
	return 0;
}

int image_archive_parse(const char *name, const char *text, size_t size, struct arena *a,
			struct image_archive *out, struct cj_error *err)
{
	const struct json_reader in = { .file = name, .arena = a };
	struct image_archive list = { 0 };
	const struct json_node *root;

	if (json_parse(name, text, size, a, &root, err) < 0)
		return -err->code;
	if (root->type != JSON_ARRAY)
		return json_reject(name, root, err, "an array of images is expected, not %s",
				   json_type_name(root->type));
	for (const struct json_node *n = root->child; n; n = n->next)
		if (add_archived(&in, n, &list, err) < 0)
			return -err->code;
	*out = list;
	return 0;
}

static const struct json_key rootfs_keys[] = {
	{ "diff_ids", JSON_TAKES_STRING | JSON_NULL_IS_ABSENT, .is_list = true, .set = add_digest,
	  AT(image_config, diff_ids) },
};
static const struct json_record rootfs_table = RECORD(rootfs_keys, "the rootfs");

#define LIST JSON_TAKES_STRING | JSON_NULL_IS_ABSENT, .is_list = true, .max = ARGUMENT_MAX
static const struct json_key execution_keys[] = {
	{ "User", TEXT, AT(image_config, user) },
	{ "WorkingDir", TEXT, AT(image_config, workdir) },
	{ "Env", LIST, .set = add_variable, AT(image_config, env) },
	{ "Entrypoint", LIST, .set = add_text, AT(image_config, entrypoint) },
	{ "Cmd", LIST, .set = add_text, AT(image_config, cmd) },
};
static const struct json_record execution_table = RECORD(execution_keys, "the config");

static const struct json_key config_keys[] = {
	{ "architecture", TEXT, AT(image_config, architecture) },
	{ "os", TEXT, AT(image_config, os) },
	/* members of the same struct: their records begin at its start */
	{ "rootfs", JSON_TAKES_OBJECT, .is_required = true, .read = json_read_record,
	  .detail = &rootfs_table },
	{ "config", JSON_TAKES_OBJECT | JSON_NULL_IS_ABSENT, .read = json_read_record,
	  .detail = &execution_table },
};
static const struct json_record config_table = RECORD(config_keys, "the configuration");

int image_config_parse(const char *name, const char *text, size_t size, struct arena *a,
		       struct image_config *out, struct cj_error *err)
{
	struct image_config c = { .architecture = "", .os = "", .user = "", .workdir = "" };
	if (read_document(name, text, size, a, &config_table, &c, err) < 0)
		return -err->code;
	*out = c;
	return 0;
}

const char *image_architecture(void)
{
#if defined(__x86_64__)
	return "amd64";
#elif defined(__aarch64__)
	return "arm64";
#else
#error "the name that images have for this architecture: GOARCH"
#endif
}

static bool is_ours(const struct image_descriptor *d)
{
	return (!d->architecture || strcmp(d->architecture, image_architecture()) == 0) &&
	       (!d->os || strcmp(d->os, "linux") == 0);
}

/* `count` fit, of which `found` is the last. */
static int take_only(size_t count, size_t found, const char *ref, size_t *out_index,
		     struct cj_error *err)
{
	if (count == 1) {
		*out_index = found;
		return 0;
	}
	if (count == 0 && ref)
		return cj_reject(err, "there is no image '%s' for %s", ref, image_architecture());
	if (count == 0)
		return cj_reject(err, "there is no image for %s", image_architecture());
	int rc = cj_reject(err, "there are %zu images%s%s", count, ref ? " with the name " : "",
			   ref ? ref : "");
	if (!ref)
		cj_hint(err, "name one of them with --ref");
	return rc;
}

int image_choose(const struct image_descriptors *list, const char *ref, size_t *out_index,
		 struct cj_error *err)
{
	size_t found = 0, count = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct image_descriptor *d = &list->items[i];
		if (!is_ours(d) || (ref && (!d->ref || strcmp(d->ref, ref) != 0)))
			continue;
		found = i;
		count++;
	}
	return take_only(count, found, ref, out_index, err);
}

int image_choose_archived(const struct image_archive *list, const char *ref, size_t *out_index,
			  struct cj_error *err)
{
	size_t found = 0, count = 0;
	for (size_t i = 0; i < list->count; i++) {
		if (ref && !strings_has(&list->items[i].tags, ref))
			continue;
		found = i;
		count++;
	}
	return take_only(count, found, ref, out_index, err);
}
