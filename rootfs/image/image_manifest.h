/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_manifest - the JSON documents of an image: index, manifest, configuration, and
 * manifest.json of `docker save`.  No system calls.  Fuzzed.
 *
 * The documents are hostile.  Each member that is read has a type and a limit; unknown members are
 * ignored, as the specification asks.  A digest other than sha256 is refused.  Results live in the
 * arena.  `name` is the document in messages.
 * Follows: the OCI image specification 1.1; Docker's "image manifest version 2, schema 2".
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"

struct image_descriptor {
	const char *media_type; /* "" where the document has none */
	const char *sha256;     /* 64 digits */
	uint64_t size;
	const char *architecture, *os; /* of "platform"; NULL: not said */
	const char *ref;               /* org.opencontainers.image.ref.name; NULL: none */
};

struct image_descriptors {
	struct image_descriptor *items;
	size_t count;
};

/* What a blob of this media type is. */
enum image_media {
	IMAGE_MEDIA_INDEX,
	IMAGE_MEDIA_MANIFEST,
	IMAGE_MEDIA_CONFIG,
	IMAGE_MEDIA_LAYER,
	IMAGE_MEDIA_OTHER, /* refused where an image needs it */
};
enum image_media image_media_of(const char *media_type);

/* "oci-layout".  Fails: a version other than 1.x. */
int image_layout_parse(const char *name, const char *text, size_t size, struct cj_error *err);

/* An index, or index.json of a layout. */
int image_index_parse(const char *name, const char *text, size_t size, struct arena *a,
		      struct image_descriptors *out, struct cj_error *err);

struct image_manifest {
	struct image_descriptor config;
	struct image_descriptors layers; /* first at the bottom */
};

/* Fails: a configuration or a layer of a media type that is none; more than IMAGE_LAYERS_MAX. */
int image_manifest_parse(const char *name, const char *text, size_t size, struct arena *a,
			 struct image_manifest *out, struct cj_error *err);

/* One image of a docker archive: files of the archive. */
struct image_archived {
	const char *config;
	struct strings layers; /* first at the bottom */
	struct strings tags;
};

struct image_archive {
	struct image_archived *items;
	size_t count;
};

/* manifest.json of a docker archive. */
int image_archive_parse(const char *name, const char *text, size_t size, struct arena *a,
			struct image_archive *out, struct cj_error *err);

struct image_config {
	const char *architecture, *os; /* "" where it has none */
	struct strings diff_ids; /* 64 digits each: the layers unpacked; first at the bottom */
	struct strings env;      /* NAME=VALUE */
	struct strings entrypoint, cmd;
	const char *user, *workdir; /* "" where it has none */
};

int image_config_parse(const char *name, const char *text, size_t size, struct arena *a,
		       struct image_config *out, struct cj_error *err);

/* This machine's architecture, as the specification calls it (GOARCH): "amd64". */
const char *image_architecture(void);

/*
 * image_choose - the one image that is meant: of this architecture, and with the name `ref` unless
 * that is NULL.
 *
 * An entry without a platform fits; its configuration is checked later.
 * Fails: none fits, or several do.
 */
int image_choose(const struct image_descriptors *list, const char *ref, size_t *out_index,
		 struct cj_error *err);

/* The same by the tags of a docker archive. */
int image_choose_archived(const struct image_archive *list, const char *ref, size_t *out_index,
			  struct cj_error *err);
