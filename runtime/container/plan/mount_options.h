/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mount_options - the options of a mount in config.json.
 *
 * Those that are no options of mounts are data of the file system, as config.md of the runtime
 * specification says: "mode=755".
 */
#pragma once

#include "rootfs/tree/tree.h"

struct mount_options {
	bool is_bind, is_recursive; /* bind, rbind */
	bool copies_up;             /* tmpcopyup */
	bool has_idmap, idmap_is_recursive;
	bool is_read_only, is_writable; /* ro, rw: written out */
	struct tree_attrs attrs;
	/* Of the file system; a bind has none. */
	struct mounts_option *data;
	size_t ndata;
};

/*
 * mount_options_parse - all options of one mount.
 *
 * `out->data` lives in the arena and has room for two more: "source", "ro".
 * Fails: EINVAL when two options contradict each other: "ro" and "rw", two propagation types.
 */
int mount_options_parse(const struct strings *options, struct arena *a, struct mount_options *out,
			struct cj_error *err);

/* The names of all options that are accepted, for `features`.  Returns how many. */
#define MOUNT_OPTIONS_MAX 128
size_t mount_options_names(const char *out[static MOUNT_OPTIONS_MAX]);

/* True for an option of file systems that a bind ignores; not for "nosuid=1". */
bool mount_options_is_data(const char *key);

/* The option of a mount or a file system that `key` may be a misspelling of; NULL: none is near. */
const char *mount_options_nearest(const char *key);
