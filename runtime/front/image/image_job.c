/* SPDX-License-Identifier: Apache-2.0 */
/* One import, as the process that unpacks sees it. */
#include "runtime/front/image/image_parts.h"

#include <fcntl.h>
#include <sys/xattr.h>

#include "rootfs/image/image_manifest.h"
#include "rootfs/image/image_passwd.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A layer as the source has it. */
struct layer {
	const char *path;    /* in the source; NULL: the source itself */
	const char *sha256;  /* of the file; NULL: the source does not say */
	const char *diff_id; /* of its uncompressed bytes; NULL: likewise */
	uint64_t size;       /* of the file, where sha256 is known */
};

struct import {
	const struct image_job *asked;
	struct arena arena;
	struct image_source source;
	struct image_budget budget;
	struct image_config config;
	struct image_record record;
	struct layer layers[IMAGE_LAYERS_MAX]; /* first at the bottom */
	size_t nlayers, layer;                 /* layer: that is read now, from 1 */
	uint64_t next_report_ms;
};

/* A report that can't be sent is lost: the importer has ended, and the unpacker ends with it. */
static void report(void *context, uint64_t bytes, uint64_t total_bytes)
{
	struct import *j = context;
	uint64_t now_ms = clock_ms();
	if (now_ms < j->next_report_ms)
		return;
	j->next_report_ms = now_ms + IMAGE_PROGRESS_MS;
	const struct image_answer answer = { .at = { .layer = (unsigned)j->layer,
						     .layers = (unsigned)j->nlayers,
						     .read_bytes = bytes,
						     .total_bytes = total_bytes,
						     .entries = j->budget.entries } };
	(void)!sys_write(j->asked->answer_fd, &answer, sizeof(answer));
}

struct document {
	const char *name; /* for messages */
	char *text;
	size_t size;
};

static int read_document(struct import *j, const char *path, struct document *out,
			 struct cj_error *err)
{
	auto_fd int fd = image_source_file(&j->source, path, err);
	if (fd < 0)
		return fd;
	out->name = path;
	return fd_read_all(fd, JSON_BYTES_MAX, &j->arena, &out->text, &out->size, path, err);
}

static int check_hash(const char *what, const char *seen, const char *wanted, struct cj_error *err)
{
	if (strcmp(seen, wanted) == 0)
		return 0;
	return cj_reject_as(err, EBADMSG, "%s has the SHA-256 %s, but %s is promised", what, seen,
			    wanted);
}

static const char *blob_path(struct import *j, const char *sha256)
{
	return arena_printf(&j->arena, "blobs/sha256/%s", sha256);
}

/* A document by its descriptor: size and hash are checked before it is parsed. */
static int read_blob(struct import *j, const struct image_descriptor *d, struct document *out,
		     struct cj_error *err)
{
	char hex[SHA256_HEX_MAX];
	const char *path = blob_path(j, d->sha256);
	if (!path)
		return cj_fail(err, ENOMEM, "import the image");
	if (read_document(j, path, out, err) < 0)
		return -err->code;
	if (out->size != d->size)
		return cj_reject_as(err, EBADMSG, "'%s' has %zu bytes, but %llu are promised", path,
				    out->size, (unsigned long long)d->size);
	sha256_hex(out->text, out->size, hex);
	return check_hash(path, hex, d->sha256, err);
}

static int read_config(struct import *j, const struct document *doc, struct cj_error *err)
{
	struct image_config *c = &j->config;
	if (image_config_parse(doc->name, doc->text, doc->size, &j->arena, c, err) < 0)
		return -err->code;
	bool is_other = (c->os[0] && strcmp(c->os, "linux") != 0) ||
			(c->architecture[0] && strcmp(c->architecture, image_architecture()) != 0);
	if (is_other)
		return cj_reject(err,
				 "the image is for %.32s on %.32s, this machine is %s on linux",
				 c->architecture, c->os, image_architecture());
	if (c->workdir[0] && c->workdir[0] != '/')
		return cj_reject(err, "the image's working directory '%.80s' is not absolute",
				 c->workdir);
	return 0;
}

/* The configuration says what each layer is when it is unpacked. */
static int pair_layers(struct import *j, size_t count, struct cj_error *err)
{
	if (count != j->config.diff_ids.count)
		return cj_reject(err, "the manifest has %zu layers, the configuration %zu", count,
				 j->config.diff_ids.count);
	if (count == 0)
		return cj_reject(err, "the image has no layers");
	for (size_t i = 0; i < count; i++)
		j->layers[i].diff_id = j->config.diff_ids.items[i];
	j->nlayers = count;
	return 0;
}

static int read_manifest(struct import *j, const struct image_descriptor *d, struct cj_error *err)
{
	struct document doc;
	struct image_manifest m;
	if (read_blob(j, d, &doc, err) < 0 ||
	    image_manifest_parse(doc.name, doc.text, doc.size, &j->arena, &m, err) < 0 ||
	    read_blob(j, &m.config, &doc, err) < 0 || read_config(j, &doc, err) < 0)
		return -err->code;
	j->record.digest = d->sha256;
	for (size_t i = 0; i < m.layers.count; i++) {
		const struct image_descriptor *layer = &m.layers.items[i];
		j->layers[i] = (struct layer){ .path = blob_path(j, layer->sha256),
					       .sha256 = layer->sha256,
					       .size = layer->size };
		if (!j->layers[i].path)
			return cj_fail(err, ENOMEM, "import the image");
	}
	return pair_layers(j, m.layers.count, err);
}

/* Down to a manifest: an index may list other indexes, one for each tag or platform. */
static int read_layout(struct import *j, struct cj_error *err)
{
	struct document doc;
	struct image_descriptors list;
	const char *ref = j->asked->what->ref;
	size_t chosen;

	if (read_document(j, "oci-layout", &doc, err) < 0 ||
	    image_layout_parse(doc.name, doc.text, doc.size, err) < 0 ||
	    read_document(j, "index.json", &doc, err) < 0)
		return -err->code;
	for (unsigned depth = 0; depth < IMAGE_NESTED_MAX; depth++) {
		if (image_index_parse(doc.name, doc.text, doc.size, &j->arena, &list, err) < 0)
			return -err->code;
		if (image_choose(&list, ref, &chosen, err) < 0)
			return cj_wrap(err, "%s", doc.name);
		const struct image_descriptor *d = &list.items[chosen];
		enum image_media media = image_media_of(d->media_type);
		if (media == IMAGE_MEDIA_MANIFEST)
			return read_manifest(j, d, err);
		if (media != IMAGE_MEDIA_INDEX)
			return cj_reject(err, "%s: '%.80s' is not the media type of an image",
					 doc.name, d->media_type);
		if (read_blob(j, d, &doc, err) < 0)
			return -err->code;
		ref = NULL; /* a name belongs to the outermost list */
	}
	return cj_reject(err, "more than %d indexes lead to one another", IMAGE_NESTED_MAX);
}

/* "SHA256.json", "sha256:SHA256", "blobs/sha256/SHA256": the name is the hash of the content. */
static int check_config_name(const char *path, const char *hex, struct cj_error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char wanted[SHA256_HEX_MAX];
	const char *digest = text_after(name, "sha256:");
	if (digest)
		name = digest;
	if (strspn(name, "0123456789abcdef") != 64)
		return cj_reject(err, "the configuration '%.80s' is not named by its SHA-256",
				 path);
	memcpy(wanted, name, sizeof(wanted) - 1);
	wanted[sizeof(wanted) - 1] = '\0';
	return check_hash(path, hex, wanted, err);
}

static int read_docker(struct import *j, struct cj_error *err)
{
	struct document doc;
	struct image_archive list;
	size_t chosen;
	char *hex = arena_alloc(&j->arena, SHA256_HEX_MAX);

	if (!hex)
		return cj_fail(err, ENOMEM, "import the image");
	if (read_document(j, "manifest.json", &doc, err) < 0 ||
	    image_archive_parse(doc.name, doc.text, doc.size, &j->arena, &list, err) < 0)
		return -err->code;
	if (image_choose_archived(&list, j->asked->what->ref, &chosen, err) < 0)
		return cj_wrap(err, "%s", doc.name);
	const struct image_archived *image = &list.items[chosen];
	if (read_document(j, image->config, &doc, err) < 0)
		return -err->code;
	sha256_hex(doc.text, doc.size, hex);
	if (check_config_name(image->config, hex, err) < 0 || read_config(j, &doc, err) < 0)
		return -err->code;
	j->record.digest = hex;
	for (size_t i = 0; i < image->layers.count; i++)
		j->layers[i] = (struct layer){ .path = image->layers.items[i] };
	return pair_layers(j, image->layers.count, err);
}

static int open_layer(struct import *j, const struct layer *l, struct image_stream **out,
		      struct cj_error *err)
{
	struct stat st;
	if (!l->path && j->source.is_dir)
		return image_stream_open_dir(j->source.fd, &j->budget, out, err);
	auto_fd int fd = l->path ? image_source_file(&j->source, l->path, err) : -1;
	if (l->path && fd < 0)
		return fd;
	if (l->sha256 && fstat(fd, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", l->path);
	if (l->sha256 && (uint64_t)st.st_size != l->size)
		return cj_reject_as(err, EBADMSG, "it has %lld bytes, but %llu are promised",
				    (long long)st.st_size, (unsigned long long)l->size);
	return image_stream_open(l->path ? fd : j->source.fd, &j->budget, out, err);
}

/* dir_fd -1: it is only read, and its hashes are checked. */
static int unpack_into(struct import *j, const struct layer *l, int dir_fd,
		       char out_plain[static SHA256_HEX_MAX], struct cj_error *err)
{
	auto_image_stream struct image_stream *stream = NULL;
	char file_hex[SHA256_HEX_MAX];
	if (open_layer(j, l, &stream, err) < 0 ||
	    (dir_fd >= 0 && image_unpack(stream, dir_fd, &j->budget, err) < 0) ||
	    image_stream_finish(stream, file_hex, out_plain, err) < 0)
		return -err->code;
	if (!l->path && j->budget.entries == 0)
		return cj_reject(err, "it has no files");
	if (l->sha256 && check_hash("the layer", file_hex, l->sha256, err) < 0)
		return -err->code;
	return l->diff_id ? check_hash("the unpacked layer", out_plain, l->diff_id, err) : 0;
}

/* Under a name of its own until its hash is known. */
static int unpack_layer(struct import *j, const struct layer *l,
			char out_hex[static SHA256_HEX_MAX], struct cj_error *err)
{
	static const char temporary[] = "layer";
	int work_fd = j->asked->work_fd;
	if (mkdirat(work_fd, temporary, 0755) < 0)
		return cj_fail(err, errno, "create a directory for the layer");
	auto_fd int fd = openat(work_fd, temporary, DIRECTORY);
	if (fd < 0)
		return cj_fail(err, errno, "open the layer's directory");
	if (unpack_into(j, l, fd, out_hex, err) < 0)
		return -err->code;
	if (renameat(work_fd, temporary, work_fd, out_hex) < 0)
		return cj_fail(err, errno, "name the layer");
	return 0;
}

static bool is_there(int dir_fd, const char *name)
{
	struct stat st;
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/*
 * From the bottom.
 *
 * A layer that another image has is not unpacked again.  But the archive must have it, too: who
 * knows only its hash must not get its files.
 */
static int unpack_all(struct import *j, struct cj_error *err)
{
	const char *names[IMAGE_LAYERS_MAX];
	for (size_t i = 0; i < j->nlayers; i++) {
		const struct layer *l = &j->layers[i];
		j->layer = i + 1;
		names[i] = l->diff_id;
		if (l->diff_id && is_there(j->asked->work_fd, l->diff_id))
			continue; /* the image has it twice */
		char *hex = arena_alloc(&j->arena, SHA256_HEX_MAX);
		if (!hex)
			return cj_fail(err, ENOMEM, "import the image");
		bool is_known = l->diff_id && is_there(j->asked->layers_fd, l->diff_id);
		if ((is_known ? unpack_into(j, l, -1, hex, err) : unpack_layer(j, l, hex, err)) < 0)
			return cj_wrap(err, "layer %zu", i + 1);
		names[i] = hex;
	}
	/* The record has the top first.  overlayfs takes no directory twice; and of a layer that an
	 * image has twice, the upper one covers everything that the lower one has. */
	for (size_t i = j->nlayers; i-- > 0;)
		if (!strings_has(&j->record.layers, names[i]) &&
		    strings_add(&j->record.layers, &j->arena, names[i]) < 0)
			return cj_fail(err, ENOMEM, "import the image");
	if (!j->record.digest)
		j->record.digest = names[0];
	return 0;
}

enum found { FOUND_HERE, FOUND_NOWHERE, FOUND_MAYBE_BELOW };

/* Follows no link.  As overlayfs looks it up: whiteouts and opaque directories end the search. */
static enum found look_in(int layer_fd, int *out_fd)
{
	struct stat st;
	char value;
	auto_fd int etc_fd = openat(layer_fd, "etc", DIRECTORY);
	if (etc_fd < 0)
		return errno == ENOENT ? FOUND_MAYBE_BELOW : FOUND_NOWHERE;
	if (fstatat(etc_fd, "passwd", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISREG(st.st_mode))
			*out_fd = openat(etc_fd, "passwd", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		return *out_fd >= 0 ? FOUND_HERE : FOUND_NOWHERE;
	}
	return fgetxattr(etc_fd, IMAGE_TREE_OPAQUE, &value, 1) == 1 ? FOUND_NOWHERE
								    : FOUND_MAYBE_BELOW;
}

/* /etc/passwd of the layers together, the top first; -1: the image has none. */
static int open_passwd(const struct import *j)
{
	const struct strings *names = &j->record.layers;
	for (size_t i = 0; i < names->count; i++) {
		int passwd_fd = -1;
		auto_fd int layer_fd = openat(j->asked->work_fd, names->items[i], DIRECTORY);
		if (layer_fd < 0) /* it was in the store already */
			layer_fd = openat(j->asked->layers_fd, names->items[i], DIRECTORY);
		if (layer_fd < 0)
			return -1;
		if (look_in(layer_fd, &passwd_fd) != FOUND_MAYBE_BELOW)
			return passwd_fd;
	}
	return -1;
}

static int write_record(struct import *j, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(true);
	struct blob text;
	image_record_write(w, &j->record);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	auto_fd int fd = openat(j->asked->work_fd, IMAGE_JOB_RECORD,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return cj_fail(err, errno, "create the image's record");
	if (text.size >= IMAGE_RECORD_MAX)
		return cj_reject_as(err, EFBIG, "the image's settings are larger than %u KiB",
				    IMAGE_RECORD_MAX >> 10);
	return fd_write_all(fd, text.bytes, text.size, "the image's record", err);
}

static int fill_record(struct import *j, struct cj_error *err)
{
	const struct strings *lists[] = { &j->config.entrypoint, &j->config.cmd };
	struct image_record *r = &j->record;
	r->schema = IMAGE_SCHEMA;
	r->name = j->asked->what->name;
	r->architecture = j->config.architecture;
	r->imported_s = (uint64_t)time(NULL);
	r->bytes = j->budget.unpacked_bytes;
	r->entries = j->budget.entries;
	r->left_out = j->budget.left_out;
	r->env = j->config.env;
	r->workdir = j->config.workdir;
	r->user = j->config.user;
	for (size_t i = 0; i < 2; i++)
		if (strings_add_all(&r->command, &j->arena, lists[i]) < 0)
			return cj_fail(err, ENOMEM, "import the image");
	const char *user = j->config.user;
	auto_fd int fd = user[0] ? open_passwd(j) : -1;
	char *text = NULL;
	size_t size;
	uint32_t uid;
	if (fd >= 0 &&
	    fd_read_all(fd, IMAGE_PASSWD_MAX, &j->arena, &text, &size, "/etc/passwd", err) < 0)
		return cj_wrap(err, "the image");
	if (image_passwd_find(user, text, &uid, err) < 0)
		return -err->code;
	r->uid = uid;
	return write_record(j, err);
}

static int read_source(struct import *j, struct cj_error *err)
{
	if (image_source_open(j->asked->source_fd, j->asked->work_fd, &j->budget, &j->arena,
			      &j->source, err) < 0)
		return -err->code;
	switch (j->source.kind) {
	case IMAGE_SOURCE_OCI:
		return read_layout(j, err);
	case IMAGE_SOURCE_DOCKER:
		return read_docker(j, err);
	default:
		if (j->asked->what->ref)
			return cj_reject(err, "a root file system has no image '%s'",
					 j->asked->what->ref);
		j->config = (struct image_config){
			.architecture = "", .os = "", .user = "", .workdir = ""
		};
		j->layers[0] = (struct layer){ 0 };
		j->nlayers = 1;
		return 0;
	}
}

int image_job_run(const struct image_job *asked, struct cj_error *err)
{
	auto_arena struct arena arena = { 0 };
	struct import *j = arena_alloc(&arena, sizeof(*j));
	if (!j)
		return cj_fail(err, ENOMEM, "import the image");
	j->asked = asked;
	j->budget = (struct image_budget){ .bytes_max = asked->what->bytes_max,
					   .on_read = asked->what->on_progress ? report : NULL,
					   .context = j };
	j->source.staged_fd = -1;
	bool is_done = read_source(j, err) == 0 && unpack_all(j, err) == 0 &&
		       fill_record(j, err) == 0;
	cj_close(&j->source.staged_fd);
	arena_fini(&j->arena);
	return is_done ? 0 : -err->code;
}
