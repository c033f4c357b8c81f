/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_confine - what the unpacker gives up before it reads the first byte of an image.
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
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"

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
