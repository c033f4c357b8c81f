/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_import - the store's side of an import, and the removal of an image.  Acts.
 *
 *	lock      flock(2) on the store: one import or removal at a time; readers need none
 *	clean     removes what killed imports left in tmp/, and layers without an image
 *	unpack    a child that is confined (image_confine.h) fills tmp/WORK (image_job.h)
 *	publish   layers get their names, the file system is synced, the record gets its name
 *
 * A kill at any moment leaves the image absent or complete, and files in tmp/ and unused layers
 * that the next import or removal clears.
 */
#pragma once

#include <stdint.h>

#include "rootfs/image/image_store.h"

struct image_progress; /* image_job.h */

struct image_import {
	const char *name;
	const char *path; /* of the source */
	const char *ref;  /* NULL: the source has one image */
	uint64_t bytes_max;
	/* How far it is, as often as the unpacker says so; with NULL when the unpacker has ended.
	 * NULL: no one is told. */
	void (*on_progress)(const struct image_progress *at);
};

/* *out_record, which lives in the arena, is that of the new image; *out_added counts its layers
 * that the store did not have. */
int image_import(const struct image_import *what, struct arena *a, struct image_record *out_record,
		 size_t *out_added, struct cj_error *err);

/* Removes the image, and the layers that no other image has and no jail uses.  A layer in use goes
 * with the next import or removal after the end of its jails. */
int image_import_undo(const char *name, struct cj_error *err);
