/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_record - what the store knows of an image: the file images/NAME.json, and `image list
 * --json`.  Pure.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"

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
