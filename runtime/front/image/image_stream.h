/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_stream - a tar archive, plain or compressed with gzip or zstd, read once and hashed on the
 * way; and a directory as if it were one.  Acts; runs confined (image_confine.h).
 *
 * One compression at most.  Several in a row can hide any amount of work in a few KiB: an empty
 * gzip member is 20 bytes, gives none, and a hundred filters would multiply them.
 *
 * Two readers of libarchive in a row: the first decompresses, the second reads the tar.  Between
 * them stands our hash of the uncompressed bytes, before them that of the file's.
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/base/files/sha256.h"

/* What one import may read and unpack, over all its archives. */
struct image_budget {
	uint64_t bytes_max;
	uint64_t read_bytes;     /* decompressed */
	uint64_t unpacked_bytes; /* in files: a hole counts as what it stands for */
	uint64_t entries;
	uint64_t left_out; /* special files */
	/* Called after each piece that is read: `bytes` of the file's `total_bytes`, which are
	 * unknown (0) of a directory.  NULL: no one is told. */
	void (*on_read)(void *context, uint64_t bytes, uint64_t total_bytes);
	void *context;
};

struct image_stream;

/* Owns a duplicate of in_fd, which is read from its start.  `budget` outlives the stream. */
int image_stream_open(int in_fd, struct image_budget *budget, struct image_stream **out,
		      struct cj_error *err);
/* The files below dir_fd.  Changes the working directory to it. */
int image_stream_open_dir(int dir_fd, struct image_budget *budget, struct image_stream **out,
			  struct cj_error *err);
void image_stream_close(struct image_stream **slot);
#define auto_image_stream __attribute__((cleanup(image_stream_close)))

/* 1: *out_entry is the next entry, until the next call; 0: there are no more. */
int image_stream_next(struct image_stream *s, struct archive_entry **out_entry,
		      struct cj_error *err);

/* A piece of the entry's data, at *out_offset of the file.  1, or 0 at its end. */
int image_stream_read(struct image_stream *s, const void **out_bytes, size_t *out_size,
		      uint64_t *out_offset, struct cj_error *err);

/*
 * image_stream_finish - read what is left, and give the hashes.
 *
 * `out_file` is that of the bytes as they lie in the file, `out_plain` of the uncompressed ones.
 * Of a directory both are a hash of its entries and their contents in the order in which they were
 * read.
 */
int image_stream_finish(struct image_stream *s, char out_file[static SHA256_HEX_MAX],
			char out_plain[static SHA256_HEX_MAX], struct cj_error *err);

/* Can this libarchive read zstd without starting a program? */
bool image_stream_has_zstd(void);
