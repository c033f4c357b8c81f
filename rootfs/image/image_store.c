/* SPDX-License-Identifier: Apache-2.0 */
/* The images of this user: names, records, the directory with them, locks on their layers. */
#include "rootfs/image/image_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/owned_dir.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define WHITEOUT ".wh."
#define OPAQUE   ".wh..opq" /* behind WHITEOUT */

#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"

bool image_is_name(const char *text)
{
	size_t size = strlen(text);
	return size > 0 && size <= IMAGE_NAME_MAX && strchr(LETTERS, text[0]) &&
	       strspn(text, LETTERS "._:-") == size && strcmp(text, "host") != 0;
}

bool image_is_sha256(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

int image_path_clean(const char *text, char out[static PATH_MAX], struct cj_error *err)
{
	size_t used = 0, size;
	unsigned depth = 0;
	if (strlen(text) > IMAGE_PATH_MAX)
		return cj_reject(err, "the path is longer than %d bytes", IMAGE_PATH_MAX);

	for (const char *at = text + strspn(text, "/"); *at; at += size, at += strspn(at, "/")) {
		size = strcspn(at, "/");
		if (size == 1 && at[0] == '.')
			continue;
		if (size == 2 && at[0] == '.' && at[1] == '.')
			return cj_reject(err, "the path has '..'");
		if (size > NAME_MAX)
			return cj_reject(err, "a name in the path is longer than %d bytes",
					 NAME_MAX);
		if (++depth > IMAGE_DEPTH_MAX)
			return cj_reject(err, "the path is deeper than %d directories",
					 IMAGE_DEPTH_MAX);
		if (used > 0)
			out[used++] = '/';
		memcpy(out + used, at, size);
		used += size;
	}
	out[used] = '\0';
	return 0;
}

int image_entry_split(char *path, const char **out_dir, const char **out_name,
		      enum image_entry_kind *out_kind, struct cj_error *err)
{
	char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t prefix = strlen(WHITEOUT);

	*out_kind = IMAGE_ENTRY_PLAIN;
	if (strncmp(name, WHITEOUT, prefix) == 0) {
		const char *hidden = name + prefix;
		if (hidden[0] == '\0' || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
			return cj_reject(err, "the whiteout names no file");
		*out_kind = IMAGE_ENTRY_WHITEOUT;
		if (strcmp(hidden, OPAQUE) == 0)
			*out_kind = IMAGE_ENTRY_OPAQUE;
		else if (strncmp(hidden, WHITEOUT, prefix) == 0)
			*out_kind = IMAGE_ENTRY_SKIPPED;
		name = hidden;
	}
	if (slash)
		*slash = '\0';
	*out_dir = slash ? path : "";
	*out_name = name;
	return 0;
}

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
	json_record_write(w, &table, r);
}

#define STORE_OF_ROOT "/var/lib/cejail/images"
#define SUFFIX        ".json"

static int find_store(char out[static PATH_MAX], struct cj_error *err)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	int used;

	if (data && data[0] == '/') /* a relative path is invalid: XDG Base Directory */
		used = snprintf(out, PATH_MAX, "%s/cejail/images", data);
	else if (geteuid() == 0)
		used = snprintf(out, PATH_MAX, STORE_OF_ROOT);
	else if (home && home[0] == '/')
		used = snprintf(out, PATH_MAX, "%s/.local/share/cejail/images", home);
	else {
		cj_refuse(err, "there is no directory for images: HOME is not set");
		return cj_hint(err, "set HOME or XDG_DATA_HOME");
	}
	return used < PATH_MAX ? 0 : cj_fail(err, ENAMETOOLONG, "find the directory for images");
}

/* Its owner decides what the jails of this user are made of. */
static int check_owner(int fd, const char *path, struct cj_error *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return cj_fail(err, errno, "stat '%s'", path);
	if (st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	cj_refuse_as(err, EPERM, "the images in '%s' are not only this user's to change", path);
	return cj_hint(err, "the directory must belong to user %u and have mode 0700", geteuid());
}

int image_store_open(struct image_store *out, bool may_make, struct cj_error *err)
{
	struct image_store store = IMAGE_STORE_NULL;
	if (find_store(store.path, err) < 0)
		return -err->code;
	auto_fd int fd = owned_dir_open(store.path, 0755, may_make ? 0700 : 0, err);
	if (fd < 0)
		return fd;
	if (check_owner(fd, store.path, err) < 0)
		return -err->code;
	if (!fd_real_path(fd, store.path))
		return cj_fail(err, errno, "find the path of '%s'", store.path);
	store.fd = take_fd(&fd);
	*out = store;
	return 0;
}

void image_store_close(struct image_store *store)
{
	cj_close(&store->fd);
}

static int reject_absent(const char *name, struct cj_error *err)
{
	cj_refuse_as(err, ENOENT, "there is no installed image '%s'", name);
	return cj_hint(err, "'cejail image list' shows the images; for a directory write './%s'",
		       name);
}

int image_store_read(const struct image_store *store, const char *name, struct arena *a,
		     struct image_record *out, struct cj_error *err)
{
	char file[sizeof("images/") + IMAGE_NAME_MAX + sizeof(SUFFIX)];
	char *text;
	size_t size;

	if (!image_is_name(name))
		return reject_absent(name, err);
	(void)snprintf(file, sizeof(file), "images/%s" SUFFIX, name);
	if (store->fd < 0 || (faccessat(store->fd, file, F_OK, 0) < 0 && errno == ENOENT))
		return reject_absent(name, err);
	if (fd_read_file(store->fd, file, IMAGE_RECORD_MAX, a, &text, &size, err) < 0 ||
	    image_record_parse(file, text, size, a, out, err) < 0)
		return cj_wrap(err, "image '%s'", name);
	return 0;
}

/* Adds the name in "NAME.json"; another file is none.  -1: no memory. */
static int add_name(const char *file, struct arena *a, struct strings *out)
{
	size_t size = strlen(file), suffix = strlen(SUFFIX);
	if (size <= suffix || strcmp(file + size - suffix, SUFFIX) != 0)
		return 0;
	const char *name = arena_strndup(a, file, size - suffix);
	if (!name)
		return -1;
	return image_is_name(name) ? strings_add(out, a, name) : 0;
}

int image_store_list(const struct image_store *store, struct arena *a, struct strings *out,
		     struct cj_error *err)
{
	*out = (struct strings){ 0 };
	auto_fd_dir struct fd_dir *dir =
	    fd_take_dir(openat(store->fd, "images", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!dir)
		return cj_fail(err, errno, "open '%s/images'", store->path);

	for (const struct dirent *e; (e = fd_next_entry(dir)) != NULL;)
		if (add_name(e->d_name, a, out) < 0)
			return cj_fail(err, ENOMEM, "list '%s/images'", store->path);
	/* whoever removes what no image needs must know all images */
	if (errno != 0)
		return cj_fail(err, errno, "list '%s/images'", store->path);
	strings_sort(out);
	return 0;
}

const char *image_store_layer(const struct image_store *store, const char *sha256, struct arena *a)
{
	return arena_printf(a, "%s/layers/%s", store->path, sha256);
}

#define DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int reject_removed(const char *path, struct cj_error *err)
{
	cj_refuse_as(err, ENOENT, "the image's layer '%s' was removed", path);
	return cj_hint(err, "'cejail image list' shows the images");
}

/* A removal may have renamed the directory between open(2) and flock(2); while it is locked none
 * does. */
static int check_place(int fd, const char *path, struct cj_error *err)
{
	struct stat locked, there;
	if (fstat(fd, &locked) < 0)
		return cj_fail(err, errno, "stat layer '%s'", path);
	if (stat(path, &there) < 0)
		return errno == ENOENT ? reject_removed(path, err)
				       : cj_fail(err, errno, "stat layer '%s'", path);
	if (locked.st_dev != there.st_dev || locked.st_ino != there.st_ino)
		return reject_removed(path, err);
	return 0;
}

static int hold(const char *path, struct cj_error *err)
{
	auto_fd int fd = open(path, DIRECTORY);
	if (fd < 0)
		return errno == ENOENT ? reject_removed(path, err)
				       : cj_fail(err, errno, "open layer '%s'", path);
	if (sys_flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? reject_removed(path, err)
					    : cj_fail(err, errno, "lock layer '%s'", path);
	return check_place(fd, path, err) < 0 ? -err->code : take_fd(&fd);
}

int image_use_begin(struct image_use *out, const struct strings *layers, struct arena *a,
		    struct cj_error *err)
{
	*out = (struct image_use){ .fds = arena_array(a, layers->count + 1, sizeof(*out->fds)) };
	if (!out->fds)
		return cj_fail(err, ENOMEM, "list the layers");
	for (; out->count < layers->count; out->count++) {
		int fd = hold(layers->items[out->count], err);
		if (fd < 0) {
			image_use_end(out);
			return fd;
		}
		out->fds[out->count] = fd;
	}
	return 0;
}

void image_use_end(struct image_use *use)
{
	while (use->count > 0)
		cj_close(&use->fds[--use->count]);
}

int image_use_claim(int dir_fd, const char *name, int *out_fd, struct cj_error *err)
{
	auto_fd int fd = openat(dir_fd, name, DIRECTORY);
	if (fd < 0)
		return cj_fail(err, errno, "open layer '%s'", name);
	*out_fd = -1;
	if (sys_flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : cj_fail(err, errno, "lock layer '%s'", name);
	*out_fd = take_fd(&fd);
	return 0;
}
