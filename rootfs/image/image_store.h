/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_store - the directory with the images of this user, to read; the names in it, its
 *               records and its locks.
 *
 *	$XDG_DATA_HOME/cejail/images     where the variable is set
 *	/var/lib/cejail/images           of root
 *	$HOME/.local/share/cejail/images of other users
 *
 *	images/NAME.json   the record of an image: struct image_record
 *	layers/SHA256/     the files of a layer; the name is the hash of its uncompressed tar.
 *	                   A jail holds a lock on it: struct image_use
 *	tmp/               what an import unpacks, and what is about to be removed
 *
 * The store has mode 0700: its files have the contents and permissions of other people's images.
 * runtime/front/image/ writes to it.
 */
#pragma once

#include <limits.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"

/* The limits of an image: cejail-image(1) lists each of them. */
#define IMAGE_NAME_MAX    64
#define IMAGE_LAYERS_MAX  60            /* LAYERS_MAX of rootfs/layers.h */
#define IMAGE_ENTRIES_MAX 1000000u      /* files of all layers together, directories included */
#define IMAGE_PATH_MAX    4095          /* bytes of an entry's path, and of a link's target */
#define IMAGE_DEPTH_MAX   256           /* directories in an entry's path */
#define IMAGE_BYTES_MAX   (16ull << 30) /* unpacked, of all layers; --max-size sets another */
#define IMAGE_BLOBS_MAX   4096          /* files in an archive of a layout */
#define IMAGE_LIST_MAX    1024          /* manifests in an index, tags, variables, arguments */
#define IMAGE_NESTED_MAX  3             /* indexes that lead to indexes */
/* A JSON document: JSON_BYTES_MAX, JSON_NODES_MAX and JSON_DEPTH_MAX of runtime/base/json/json.h */

/*
 * True for the name of an image: [a-z0-9][a-z0-9._:-]*, at most IMAGE_NAME_MAX bytes, not "host".
 * A name has no slash: --rootfs takes a text with a slash as directories.
 */
bool image_is_name(const char *text);

/* 64 hexadecimal digits in lower case: a SHA-256. */
bool image_is_sha256(const char *text);

/*
 * image_path_clean - a tar entry's path, which is hostile, in one form: relative to the layer,
 * without leading and doubled slashes and without ".".  "" is the layer's own directory.  The
 * unpacker resolves it beneath that, by descriptor and without following a link.
 *
 * Fails: "..", more than IMAGE_PATH_MAX bytes or IMAGE_DEPTH_MAX components, a name longer than
 *        NAME_MAX.
 */
int image_path_clean(const char *text, char out[static PATH_MAX], struct cj_error *err);

/* What an entry means by its name: the whiteouts of the OCI image specification, layer.md. */
enum image_entry_kind {
	IMAGE_ENTRY_PLAIN,
	IMAGE_ENTRY_WHITEOUT, /* ".wh.NAME": NAME of the layers below does not exist */
	IMAGE_ENTRY_OPAQUE,   /* ".wh..wh..opq": nothing of this directory below exists */
	IMAGE_ENTRY_SKIPPED,  /* ".wh..wh.*": notes of another storage driver */
};

/*
 * image_entry_split - splits a clean path that is not "" into its directory and its name.
 *
 * `path` is changed: *out_dir ("" is the layer) and *out_name point into it.  Of a whiteout
 * *out_name is the NAME that it hides.
 * Fails: a whiteout of nothing, of "." or of "..".
 */
int image_entry_split(char *path, const char **out_dir, const char **out_name,
		      enum image_entry_kind *out_kind, struct cj_error *err);

/* What the store knows of an image: the file images/NAME.json, and `image list --json`. */
#define IMAGE_SCHEMA     "cejail.image/1"
#define IMAGE_RECORD_MAX JSON_BYTES_MAX

struct image_record {
	const char *schema;
	const char *name;
	const char *digest; /* SHA-256 of the manifest or configuration; of a tree of files: of
				     its layer */
	const char *architecture; /* "" where the image says nothing */
	uint64_t imported_s;      /* since the epoch */
	uint64_t bytes, entries;  /* in the layers that its import unpacked */
	uint64_t left_out;        /* device nodes, sockets and pipes that were not unpacked */
	struct strings layers;    /* 64 digits each; first on top, as ROOT_LAYERS */
	struct strings env;
	struct strings command; /* entrypoint and arguments together */
	const char *workdir;    /* "" where it has none */
	const char *user;       /* as the image writes it; "" where it has none */
	uint64_t uid;           /* whom that means in its /etc/passwd */
};

/* Fails: a member is missing, unknown or has another type; a layer that is no digest. */
int image_record_parse(const char *name, const char *text, size_t size, struct arena *a,
		       struct image_record *out, struct cj_error *err);

/* The record as a JSON object. */
void image_record_write(struct json_writer *w, const struct image_record *r);

struct image_store {
	int fd;              /* -1: none */
	char path[PATH_MAX]; /* without a symbolic link in it, as a layer's path must be */
};
#define IMAGE_STORE_NULL ((struct image_store){ .fd = -1 })

/*
 * image_store_open - open it; may_make: makes it if it is missing.  The caller closes it with
 * image_store_close().
 *
 * Fails: ENOENT when there is none; EPERM when it belongs to another user, or others may write.
 */
int image_store_open(struct image_store *out, bool may_make, struct cj_error *err);
void image_store_close(struct image_store *store);
#define auto_image_store __attribute__((cleanup(image_store_close)))

/* The record of an image; it lives in the arena.  Fails: ENOENT, with a hint. */
int image_store_read(const struct image_store *store, const char *name, struct arena *a,
		     struct image_record *out, struct cj_error *err);

/* The names of all images, sorted.  Fails: ENOENT: there is no directory of images. */
int image_store_list(const struct image_store *store, struct arena *a, struct strings *out,
		     struct cj_error *err);

/* The absolute path of a layer.  NULL: no memory. */
const char *image_store_layer(const struct image_store *store, const char *sha256, struct arena *a);

/*
 * The layers that a jail uses.
 *
 * A jail holds a shared flock(2) on the directory of each of its layers.  A removal renames a layer
 * away only while it holds the exclusive lock, so it leaves a layer in use where it is.  The kernel
 * releases the locks of a supervisor that is killed.
 */
struct image_use {
	int *fds; /* in the arena given */
	size_t count;
};

/*
 * image_use_begin - lock the layers, which are absolute paths in a store.
 *
 * Fails: ENOENT when the image was removed since the plan was made.  On failure nothing is held.
 */
int image_use_begin(struct image_use *out, const struct strings *layers, struct arena *a,
		    struct cj_error *err);
void image_use_end(struct image_use *use);

/*
 * image_use_claim - the exclusive lock on the layer dir_fd/name, until *out_fd is closed.
 *
 * *out_fd is -1 when a jail uses the layer.
 */
int image_use_claim(int dir_fd, const char *name, int *out_fd, struct cj_error *err);
