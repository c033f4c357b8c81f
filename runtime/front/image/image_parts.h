/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_parts - what cejail-image consists of: the importer, which writes to the store, and the
 * unpacker, a confined child that reads the image.
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>
#include <time.h>

#include "rootfs/image/image_store.h"
#include "runtime/base/files/sha256.h"

/*
 * image_job.c: one import, as the process that unpacks sees it.  Runs confined.
 *
 * It leaves in work_fd a directory for each new layer, named by its SHA-256, and the record of the
 * image.  The importer moves them to their places.
 */

#define IMAGE_JOB_RECORD  "record.json"
#define IMAGE_PROGRESS_MS 100 /* at least, between two reports */

struct image_progress {
	unsigned layer, layers; /* from 1; layers 0: the archive is copied, or its kind is found */
	uint64_t read_bytes, total_bytes; /* of a layer or archive as a file; total 0: not known */
	uint64_t entries;                 /* unpacked, over all layers */
};

/*
 * The unpacker writes any number of reports to its pipe, and then how it ended.  Each is one piece:
 * PIPE_BUF, pipe(7).  It reads hostile data, so each member may have any value.
 */
struct image_answer {
	unsigned is_end; /* not 0: it has `err`, else `at` */
	struct image_progress at;
	struct cj_error err; /* code 0: layers and record are complete */
};

struct image_import {
	const char *name;   /* of the image */
	const char *path;   /* of the source */
	const char *ref;    /* of one image among several in the source; NULL: there is one */
	uint64_t bytes_max; /* read, and unpacked */
	/* Called with the progress as often as the unpacker reports it, and with NULL when the
	 * unpacker has ended.  NULL: no progress is shown. */
	void (*on_progress)(const struct image_progress *at);
};

struct image_job {
	const struct image_import *what;
	int source_fd; /* a regular file or a directory, to read */
	int source_is_dir;
	int layers_fd; /* of the store: which layers there are */
	int work_fd;
	int answer_fd; /* a pipe, for struct image_answer */
};

/* Returns 0 when layers and record are complete.  Sends reports, but not the end. */
int image_job_run(const struct image_job *asked, struct cj_error *err);

/*
 * image_import.c: the store's side of an import, and the removal of an image.
 *
 *	lock      flock(2) on the store: one import or removal at a time; readers need none
 *	clean     removes what killed imports left in tmp/, and layers without an image
 *	unpack    a child that is confined (image_confine.c) fills tmp/WORK (image_job.c)
 *	publish   layers get their names, the file system is synced, the record gets its name
 *
 * A kill at any moment leaves the image absent or complete, and files in tmp/ and unused layers
 * that the next import or removal clears.
 */

/* *out_record, which lives in the arena, is that of the new image; *out_added counts its layers
 * that the store did not have. */
int image_import(const struct image_import *what, struct arena *a, struct image_record *out_record,
		 size_t *out_added, struct cj_error *err);

/* Removes the image, and the layers that no other image has and no jail uses.  A layer in use goes
 * with the next import or removal after the end of its jails. */
int image_import_undo(const char *name, struct cj_error *err);

/*
 * image_confine.c: what the unpacker gives up before it reads the first byte of an image.
 *
 * An archive is hostile, and libarchive is a large parser.  From here on the process can
 *
 *	read    the descriptors that it has, the layers of the store, the source directory
 *	write   below its working directory in the store
 *	create  files, directories, links and overlayfs's whiteouts there, no other device
 *
 * and it can open no socket, start no process and signal none.  Landlock enforces the paths, a
 * seccomp filter of allowed calls the rest.
 */

struct image_confinement {
	int work_fd;         /* a directory to change */
	int layers_fd;       /* a directory to read */
	int source_fd;       /* a directory to read; -1: the source is a file that is open */
	uint64_t file_bytes; /* the largest file that may be written */
	uint64_t cpu_s;      /* CPU time, after which SIGXCPU ends the process */
};

/*
 * image_confine - restrict the calling process, for good.
 * Fails: a kernel without Landlock or seccomp.
 * Follows: landlock(7), seccomp(2), setrlimit(2).
 */
int image_confine(const struct image_confinement *c, struct cj_error *err);

/*
 * image_stream.c: a tar archive, plain or compressed with gzip or zstd, read once and hashed on the
 * way; and a directory as if it were one.  Runs confined.
 *
 * One compression at most.  Several in a row can hide any amount of work in a few KiB: an empty
 * gzip member is 20 bytes, gives none, and a hundred filters would multiply them.
 *
 * Two readers of libarchive in a row: the first decompresses, the second reads the tar.  Between
 * them stands our hash of the uncompressed bytes, before them that of the file's.
 */

/* What one import may read and unpack, over all its archives. */
struct image_budget {
	uint64_t bytes_max;
	uint64_t read_bytes;     /* decompressed */
	uint64_t unpacked_bytes; /* in files: a hole counts as what it stands for */
	uint64_t entries;
	uint64_t left_out; /* special files */
	/* Called after each piece that is read: `bytes` of the file's `total_bytes`, which are
	 * unknown (0) of a directory.  NULL: no progress is shown. */
	void (*on_read)(void *context, uint64_t bytes, uint64_t total_bytes);
	void *context;
};

/* Adds to what was unpacked.  Fails: EFBIG past the budget. */
int image_budget_take(struct image_budget *budget, uint64_t bytes, struct cj_error *err);

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

/*
 * image_source.c: what is imported, and the files in it.  Runs confined.
 *
 * The files of an archive are copied to the working directory first, because a manifest may name
 * them in any order.
 */

enum image_source_kind {
	IMAGE_SOURCE_OCI,    /* a layout: index.json and blobs */
	IMAGE_SOURCE_DOCKER, /* manifest.json, as docker save writes it */
	IMAGE_SOURCE_ROOT,   /* a root file system */
};

struct image_source {
	enum image_source_kind kind;
	int fd; /* a file or a directory; borrowed */
	bool is_dir;
	/* of an archive that is not a root: */
	int staged_fd; /* the directory with the files "0", "1", ...; the caller's to close; -1: none */
	struct arena *arena;
	struct image_staged *files;
	size_t nfiles;
};

/*
 * image_source_open - find out what it is, and copy an archive's files into work_fd.
 *
 * Everything but the descriptor lives in the arena.
 */
int image_source_open(int in_fd, int work_fd, struct image_budget *budget, struct arena *a,
		      struct image_source *out, struct cj_error *err);

/* A file of the source by its path in it; regular, and not outside.  The caller closes it. */
int image_source_file(const struct image_source *s, const char *path, struct cj_error *err);

/*
 * image_unpack.c: the entries of a stream into a layer's directory.  Runs confined.
 *
 * Device nodes, sockets and pipes are left out and counted: a jail makes its own /dev, and a pipe
 * in a shared layer could connect two jails.  Everything else that can't be carried out is an
 * error.
 */

/*
 * image_unpack - all entries of `stream`, beneath root_fd, which is an empty directory.
 *
 * Fails: as image_store.h and image_unpack.c say; the message has the entry's path.
 *         What was unpacked before stays for the caller to remove.
 */
int image_unpack(struct image_stream *stream, int root_fd, struct image_budget *budget,
		 struct cj_error *err);

/* On a directory: nothing of it in the layers below exists.  overlayfs has the option userxattr:
 * rootfs/layers.c */
#define IMAGE_TREE_OPAQUE "user.overlay.opaque"
