/* SPDX-License-Identifier: Apache-2.0 */
/* Overlays with long options.  Acts. */
#include "rootfs/tree/tree_overlay.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rootfs/layers.h"
#include "rootfs/mounts.h"
#include "runtime/base/scope.h"

/* With one digit and a ':' each, no more numbers than this fit into an option. */
#define PATHS_MAX (3 * (MOUNTS_OPTION_MAX + 1) / 2)

struct paths {
	struct arena arena; /* of texts and options */
	int fds[PATHS_MAX];
	size_t count;
};

static void paths_fini(struct paths *p)
{
	for (size_t i = 0; i < p->count; i++)
		cj_close(&p->fds[i]);
	arena_fini(&p->arena);
}
#define auto_paths __attribute__((cleanup(paths_fini)))

/* Of the options of an overlay, those with paths; *out_is_list: several, separated by ':'. */
static bool has_paths(const struct mounts_option *option, bool *out_is_list)
{
	*out_is_list = strcmp(option->key, "lowerdir") == 0;
	return option->value && (*out_is_list || strcmp(option->key, "upperdir") == 0 ||
				 strcmp(option->key, "workdir") == 0);
}

bool tree_overlay_is_long(const struct tree_op *op)
{
	bool is_list, is_long = false;
	for (size_t i = 0; i < op->noptions && strcmp(op->type, "overlay") == 0; i++)
		is_long = is_long || (has_paths(&op->options[i], &is_list) &&
				      strlen(op->options[i].value) > MOUNTS_OPTION_MAX);
	return is_long;
}

/* The path that begins at *at, which is moved to its end. */
static int read_path(const char **at, bool is_list, char out[static PATH_MAX])
{
	size_t size = 0;
	for (; **at != '\0' && !(is_list && **at == ':'); (*at)++) {
		if (**at == '\\' && (*at)[1] != '\0')
			(*at)++;
		if (size + 1 >= PATH_MAX)
			return -ENAMETOOLONG;
		out[size++] = **at;
	}
	out[size] = '\0';
	return 0;
}

/* Adds the number of the opened directory to `text`. */
static int add_path(struct paths *p, const char *path, char text[static MOUNTS_OPTION_MAX + 1],
		    struct cj_error *err)
{
	size_t used = strlen(text), room = MOUNTS_OPTION_MAX + 1 - used;
	if (p->count == PATHS_MAX)
		return cj_fail(err, ENAMETOOLONG, "lay the directories over each other");
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	p->fds[p->count++] = fd;
	int size = snprintf(text + used, room, "%d", fd);
	return size < 0 || (size_t)size >= room
		   ? cj_fail(err, ENAMETOOLONG, "lay %zu directories over each other", p->count)
		   : 0;
}

/* "/a/b:/c" becomes "5:6".  An empty path stays: between two ':', it begins the layers that have
 * only data. */
static int shorten(struct paths *p, struct mounts_option *option, bool is_list,
		   struct cj_error *err)
{
	const char *at = option->value;
	char path[PATH_MAX], *text = arena_alloc(&p->arena, MOUNTS_OPTION_MAX + 2);
	if (!text)
		return cj_fail(err, ENOMEM, "option '%s'", option->key);
	for (;; at++) {
		int rc = read_path(&at, is_list, path);
		if (rc < 0)
			return cj_fail(err, -rc, "option '%s'", option->key);
		if (path[0] != '\0' && add_path(p, path, text, err) < 0)
			return cj_wrap(err, "option '%s'", option->key);
		if (*at == '\0')
			break;
		size_t used = strlen(text);
		if (used == MOUNTS_OPTION_MAX)
			return cj_fail(err, ENAMETOOLONG, "option '%s'", option->key);
		text[used] = ':';
	}
	option->value = text;
	return 0;
}

int tree_overlay_create(const struct tree_op *op, uint64_t attrs, struct cj_error *err)
{
	auto_paths struct paths p = { 0 };
	struct mounts_option *options = arena_array(&p.arena, op->noptions, sizeof(*options));
	bool is_list;
	if (!options)
		return cj_fail(err, ENOMEM, "list the options of an overlay");
	memcpy(options, op->options, op->noptions * sizeof(*options));
	for (size_t i = 0; i < op->noptions; i++)
		if (has_paths(&options[i], &is_list) && shorten(&p, &options[i], is_list, err) < 0)
			return -err->code;
	auto_fd int here_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (here_fd < 0)
		return cj_fail(err, errno, "open the working directory");
	auto_fd int fd = layers_create(options, op->noptions, attrs, op->path, err);
	if (fchdir(here_fd) < 0)
		return cj_fail(err, errno, "go back to the working directory");
	return fd < 0 ? fd : take_fd(&fd);
}
