/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/supervise/bind_watch.h"

#include <fcntl.h>

#include "rootfs/files/autorun.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define WATCHED_MAX 16 /* directories: a descriptor each */
#define NAMED_MAX   5  /* names in the sentence */

struct bind_watch {
	size_t count;
	struct watched {
		const char *source; /* the plan's */
		int dir_fd;
		struct autorun_marks before;
	} items[WATCHED_MAX];
};

static void watch(struct bind_watch *w, const char *source)
{
	struct watched *item = &w->items[w->count];
	int fd = sys_openat2(AT_FDCWD, source, O_PATH | O_DIRECTORY, 0,
			     RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
	if (fd < 0)
		return; /* a file; or it is gone, and init reports that */
	item->source = source;
	item->dir_fd = fd;
	autorun_look(fd, &item->before);
	w->count++;
}

struct bind_watch *bind_watch_begin(const struct rootfs_spec *root)
{
	struct bind_watch *w = NULL;

	for (size_t i = 0; i < root->nbinds; i++) {
		if (root->binds[i].kind != BIND_WRITABLE)
			continue;
		if (!w)
			w = calloc(1, sizeof(*w));
		if (!w || w->count == WATCHED_MAX)
			break; /* only a warning depends on it */
		watch(w, root->binds[i].source);
	}
	if (w && w->count == 0)
		bind_watch_end(&w);
	return w;
}

size_t bind_watch_compare(const struct bind_watch *w, char *out, size_t size)
{
	size_t found = 0;

	out[0] = '\0';
	for (size_t i = 0; w && i < w->count; i++) {
		const struct watched *item = &w->items[i];
		struct autorun_marks after = { 0 };
		const char *name;
		size_t at = 0;
		autorun_look(item->dir_fd, &after);
		while ((name = autorun_next_change(&item->before, &after, &at)) != NULL) {
			if (found++ < NAMED_MAX)
				text_append(out, size, "%s'%s/%s'", out[0] ? ", " : "",
					    item->source, name);
		}
	}
	if (found > NAMED_MAX)
		text_append(out, size, " and %zu more", found - NAMED_MAX);
	return found;
}

void bind_watch_end(struct bind_watch **w)
{
	for (size_t i = 0; *w && i < (*w)->count; i++)
		cj_close(&(*w)->items[i].dir_fd);
	cj_free(w);
}
