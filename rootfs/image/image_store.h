/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_store - the directory with the images of this user, to read.  Acts: opens and reads.
 *
 *	$XDG_DATA_HOME/cejail/images     where the variable is set
 *	/var/lib/cejail/images           of root
 *	$HOME/.local/share/cejail/images of other users
 *
 *	images/NAME.json   the record of an image: image_record.h
 *	layers/SHA256/     the files of a layer; the name is the hash of its uncompressed tar.
 *	                   A jail holds a lock on it: image_use.h
 *	tmp/               what an import unpacks, and what is about to be removed
 *
 * The store has mode 0700: its files have the contents and permissions of other people's images.
 * runtime/front/image/ writes to it.
 */
#pragma once

#include <limits.h>

#include "rootfs/image/image_record.h"

struct image_store {
	int fd;              /* -1: none */
	char path[PATH_MAX]; /* without a symbolic link in it, as a layer's path must be */
};
#define IMAGE_STORE_NULL                                                                           \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/*
 * image_store_open - open it.  The caller closes it with image_store_close().
 *
 * Fails: ENOENT when there is none; EPERM when it belongs to another user, or others may write.
 */
int image_store_open(struct image_store *out, struct cj_error *err);
/* The same; makes it if it is missing. */
int image_store_make(struct image_store *out, struct cj_error *err);
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
