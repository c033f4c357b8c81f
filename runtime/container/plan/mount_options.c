/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a mount. */
#include "runtime/container/plan/mount_options.h"

#include <sys/mount.h>

#include "runtime/base/text.h"

/* What an option does. */
enum action {
	NOTHING,     /* the kernel's default */
	ATTR_ON,     /* sets the attribute */
	ATTR_OFF,    /* clears it */
	ATTR_KEEP,   /* like OFF for contradictions, but leaves what the source has */
	ATIME,       /* one of the values of MOUNT_ATTR__ATIME */
	PROPAGATION, /* MS_... */
	BIND,
	COPY_UP,
	IDMAP,
	SUPER, /* a flag of the file system, which fsconfig(2) knows for every type */
	REFUSED,
};

/* Two rows: the option, and the same with an "r" in front for the mounts below, too. */
#define ONE(...)                                                                                   \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define BOTH(name, action, value)                                                                  \
	ONE(name, action, false, value), ONE("r" name, action, true, value)
#define ATTR(on, off, value) BOTH(on, ATTR_ON, value), BOTH(off, ATTR_OFF, value)

/* mount(8), config-linux.md.  is_recursive: the mounts below, too. */
static const struct mount_option {
	const char *name;
	enum action action;
	bool is_recursive;
	unsigned long value;
} rows[] = {
	ONE("defaults", NOTHING),
	ONE("async", NOTHING),
	ONE("loud", NOTHING),
	ONE("silent", NOTHING),
	ONE("nomand", NOTHING),
	ONE("noiversion", NOTHING),
	ONE("nolazytime", NOTHING),
	BOTH("bind", BIND, 0),
	ONE("tmpcopyup", COPY_UP),
	BOTH("idmap", IDMAP, 0),
	ONE("remount", REFUSED),

	BOTH("ro", ATTR_ON, MOUNT_ATTR_RDONLY),
	ONE("rw", ATTR_KEEP, false, MOUNT_ATTR_RDONLY),
	ONE("rrw", ATTR_OFF, true, MOUNT_ATTR_RDONLY),
	ATTR("nosuid", "suid", MOUNT_ATTR_NOSUID),
	ATTR("nodev", "dev", MOUNT_ATTR_NODEV),
	ATTR("noexec", "exec", MOUNT_ATTR_NOEXEC),
	ATTR("nodiratime", "diratime", MOUNT_ATTR_NODIRATIME),
	ATTR("nosymfollow", "symfollow", MOUNT_ATTR_NOSYMFOLLOW),

	/* relatime is what the kernel does without any of them */
	BOTH("noatime", ATIME, MOUNT_ATTR_NOATIME),
	BOTH("strictatime", ATIME, MOUNT_ATTR_STRICTATIME),
	BOTH("relatime", ATIME, MOUNT_ATTR_RELATIME),
	BOTH("atime", ATIME, MOUNT_ATTR_RELATIME),
	BOTH("norelatime", NOTHING, 0),
	BOTH("nostrictatime", NOTHING, 0),

	BOTH("private", PROPAGATION, MS_PRIVATE),
	BOTH("slave", PROPAGATION, MS_SLAVE),
	BOTH("shared", PROPAGATION, MS_SHARED),
	BOTH("unbindable", PROPAGATION, MS_UNBINDABLE),

	ONE("sync", SUPER),
	ONE("dirsync", SUPER),
	ONE("lazytime", SUPER),
	ONE("mand", SUPER),
	ONE("iversion", SUPER),
};

/*
 * Options of file systems that engines leave in a bind: from the file system that it replaces, or
 * copied from /proc/self/mountinfo, which lists those of the superblock.  No word here limits what
 * the container may do with the mount.  The kernel ignores a context of SELinux in a bind, too.
 */
static const char *const data_names[] = {
	/* tmpfs(5), devpts */
	"gid", "huge", "inode32", "inode64", "mode", "mpol", "newinstance", "noswap", "nr_blocks",
	"nr_inodes", "ptmxmode", "size", "uid",
	/* ext4(5), xfs(5), btrfs(5) */
	"attr2", "commit", "data", "discard", "errors", "grpquota", "logbsize", "logbufs",
	"noquota", "prjquota", "space_cache", "ssd", "stripe", "subvol", "subvolid", "sunit",
	"swidth", "usrquota",
	/* Documentation/filesystems/overlayfs.rst */
	"index", "lowerdir", "metacopy", "nfs_export", "redirect_dir", "upperdir", "userxattr",
	"volatile", "workdir", "xino",
	/* mount(8) */
	"context", "defcontext", "fscontext", "rootcontext", "seclabel"
};

/* What has been said so far, to find contradictions; [1] is about the mounts below. */
struct seen {
	uint64_t on[2], off[2];
	bool has_atime[2];
};

static const struct mount_option *find_row(const char *option)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (strcmp(option, rows[i].name) == 0)
			return &rows[i];
	return NULL;
}

static int contradiction(const char *option, struct cj_error *err)
{
	return cj_reject(err, "option '%s' contradicts an earlier one", option);
}

static int apply_attr(const struct mount_option *row, struct mount_options *out, struct seen *seen,
		      struct cj_error *err)
{
	uint64_t bit = row->value;
	bool is_on = row->action == ATTR_ON;
	*(is_on ? &seen->on[row->is_recursive] : &seen->off[row->is_recursive]) |= bit;
	if (seen->on[row->is_recursive] & seen->off[row->is_recursive])
		return contradiction(row->name, err);
	uint64_t *set = row->is_recursive ? &out->attrs.set_below : &out->attrs.set;
	uint64_t *clear = row->is_recursive ? &out->attrs.clear_below : &out->attrs.clear;
	if (is_on)
		*set |= bit;
	else if (row->action == ATTR_OFF)
		*clear |= bit;
	if (bit == MOUNT_ATTR_RDONLY && !row->is_recursive)
		*(is_on ? &out->is_read_only : &out->is_writable) = true;
	return 0;
}

static int apply_atime(const struct mount_option *row, struct mount_options *out, struct seen *seen,
		       struct cj_error *err)
{
	uint64_t *set = row->is_recursive ? &out->attrs.set_below : &out->attrs.set;
	uint64_t *clear = row->is_recursive ? &out->attrs.clear_below : &out->attrs.clear;
	if (seen->has_atime[row->is_recursive] && (*set & MOUNT_ATTR__ATIME) != row->value)
		return contradiction(row->name, err);
	seen->has_atime[row->is_recursive] = true;
	*set |= row->value;
	*clear |= MOUNT_ATTR__ATIME; /* the field is set as a whole: mount_setattr(2) */
	return 0;
}

static int add_data(const char *option, struct arena *a, struct mount_options *out,
		    struct cj_error *err)
{
	struct mounts_option *item = &out->data[out->ndata];
	const char *equals = strchr(option, '=');
	item->key = equals ? arena_strndup(a, option, (size_t)(equals - option)) : option;
	item->value = equals ? equals + 1 : NULL;
	if (!item->key)
		return cj_fail(err, ENOMEM, "option '%s'", option);
	if (item->key[0] == '\0')
		return cj_reject(err, "option '%s' has no name", option);
	out->ndata++;
	return 0;
}

static int apply(const struct mount_option *row, struct arena *a, struct mount_options *out,
		 struct seen *seen, struct cj_error *err)
{
	struct tree_attrs *attrs = &out->attrs;
	switch (row->action) {
	case NOTHING:
		return 0;
	case ATTR_ON:
	case ATTR_OFF:
	case ATTR_KEEP:
		return apply_attr(row, out, seen, err);
	case ATIME:
		return apply_atime(row, out, seen, err);
	case PROPAGATION:
		if (attrs->propagation && attrs->propagation != row->value)
			return contradiction(row->name, err);
		attrs->propagation = row->value;
		attrs->propagates_below = attrs->propagates_below || row->is_recursive;
		return 0;
	case BIND:
		out->is_bind = true;
		out->is_recursive = out->is_recursive || row->is_recursive;
		return 0;
	case COPY_UP:
		out->copies_up = true;
		return 0;
	case IDMAP:
		out->has_idmap = true;
		out->idmap_is_recursive = out->idmap_is_recursive || row->is_recursive;
		return 0;
	case SUPER:
		return add_data(row->name, a, out, err);
	case REFUSED:
	default:
		return cj_reject(err, "option '%s' has no meaning for a new mount", row->name);
	}
}

int mount_options_parse(const struct strings *options, struct arena *a, struct mount_options *out,
			struct cj_error *err)
{
	struct seen seen = { 0 };
	*out = (struct mount_options){ 0 };
	/* room for "source" and "ro", too */
	out->data = arena_array(a, options->count + 2, sizeof(*out->data));
	if (!out->data)
		return cj_fail(err, ENOMEM, "list the mount options");
	for (size_t i = 0; i < options->count; i++) {
		const char *option = options->items[i];
		const struct mount_option *row = find_row(option);
		int rc = 0;
		if (row)
			rc = apply(row, a, out, &seen, err);
		else if (option[0] != '\0')
			rc = add_data(option, a, out, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

_Static_assert(COUNT_OF(rows) <= MOUNT_OPTIONS_MAX, "callers have room for every name");

size_t mount_options_names(const char *out[static MOUNT_OPTIONS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (rows[i].action != REFUSED)
			out[count++] = rows[i].name;
	return count;
}

bool mount_options_is_data(const char *key)
{
	const struct mount_option *row = find_row(key);
	if (row)
		return row->action == SUPER;
	for (size_t i = 0; i < COUNT_OF(data_names); i++)
		if (strcmp(key, data_names[i]) == 0)
			return true;
	return false;
}

const char *mount_options_nearest(const char *key)
{
	const char *names[MOUNT_OPTIONS_MAX + COUNT_OF(data_names) + 1] = { NULL };
	size_t count = mount_options_names(names);
	memcpy(names + count, data_names, sizeof(data_names));
	return text_nearest(key, names);
}
