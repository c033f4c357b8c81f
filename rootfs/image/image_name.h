/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_name - the names of images, layers and tar entries.  Pure: texts in, texts out.
 *
 * A tar entry's path is hostile.  image_path_clean() gives it one form; the unpacker resolves that
 * form beneath the layer's directory, by descriptor and without following a link.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "runtime/base/error.h"

/*
 * Is this the name of an image: [a-z0-9][a-z0-9._:-]*, at most IMAGE_NAME_MAX bytes, not "host"?
 * A name has no slash: --rootfs takes a text with a slash as directories.
 */
bool image_is_name(const char *text);

/* 64 hexadecimal digits in lower case: a SHA-256. */
bool image_is_sha256(const char *text);

/*
 * image_path_clean - an entry's path, relative to the layer: without leading and doubled slashes
 * and without ".".  "" is the layer's own directory.
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
