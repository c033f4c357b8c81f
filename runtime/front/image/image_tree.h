/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image_tree - the files of a layer, beneath its directory.  Acts.
 *
 * Each name is hostile.  A directory is opened by openat2(2) beneath the layer, without following
 * any link; what is created in it has one component as its name and replaces a file, never a
 * directory with files in it.
 *
 * Owner and permissions: a jail has one user, who stands for every user of the image.  Each file
 * belongs to the owner of the store, and group and others have the owner's permissions to read and
 * execute: in a jail of an ordinary user the owner's count, in one of root those for others.
 * There are no set-user-ID, set-group-ID and sticky bits and no extended attributes: in a jail they
 * have no effect, and on the host they must not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "runtime/base/error.h"

struct image_tree {
	int root_fd;     /* the layer's directory */
	uint64_t made;   /* directories that no entry named */
	char *last_path; /* of the directory that was used last; NULL: none */
	int last_fd;
};
#define IMAGE_TREE_NULL                                                                            \
	{                                                                                          \
		.root_fd = -1, .last_fd = -1                                                       \
	}

void image_tree_fini(struct image_tree *t); /* borrows root_fd */
#define auto_image_tree __attribute__((cleanup(image_tree_fini)))

/* The permissions in the store of a file that has `mode` in the image. */
mode_t image_tree_mode(mode_t mode, bool is_dir);

/*
 * image_tree_enter - the directory `path` ("": the layer's own), made if it is missing.
 * Returns a descriptor that stays the tree's, valid until the next call.
 * Fails: a component is a file or a symbolic link.
 */
int image_tree_enter(struct image_tree *t, const char *path, struct cj_error *err);

/* What is created in a directory: */
struct image_file {
	const char *dir;  /* clean: image_name.h */
	const char *name; /* one component */
	mode_t mode;      /* in the image */
	struct timespec mtime;
};

int image_tree_make_dir(struct image_tree *t, const struct image_file *f, struct cj_error *err);
/* Returns a descriptor to write to, the caller's; image_tree_finish_file() follows. */
int image_tree_make_file(struct image_tree *t, const struct image_file *f, struct cj_error *err);
int image_tree_finish_file(int fd, const struct image_file *f, struct cj_error *err);
int image_tree_make_link(struct image_tree *t, const struct image_file *f, const char *target,
			 struct cj_error *err);
/* A further name of target_dir/target_name, which is a file of the same layer. */
int image_tree_make_hard_link(struct image_tree *t, const struct image_file *f,
			      const char *target_dir, const char *target_name,
			      struct cj_error *err);

/* `name` of the layers below does not exist.  Follows: overlayfs.rst, "whiteouts". */
int image_tree_hide(struct image_tree *t, const struct image_file *f, struct cj_error *err);
/* Nothing of this directory exists in the layers below. */
int image_tree_hide_all(struct image_tree *t, const char *dir, struct cj_error *err);

/* Sets the time of a directory, when nothing more is created in it. */
int image_tree_set_time(struct image_tree *t, const char *path, struct timespec mtime,
			struct cj_error *err);
