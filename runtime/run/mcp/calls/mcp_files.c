/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on the directory of --files. */
#include "runtime/run/mcp/calls/mcp_files.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "profiles/paths.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/remote_result.h"
#include "runtime/jail/outcome.h"

int mcp_files_open(struct mcp_files *f, const char *path, struct arena *a, struct cj_error *err)
{
	if (paths_absolute(path, a, &f->path, err) < 0)
		return -err->code;
	if (mkdir(f->path, 0700) < 0 && errno != EEXIST)
		return cj_fail(err, errno, "--files: create '%s'", f->path);
	f->dir_fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->dir_fd < 0 ? cj_fail(err, errno, "--files: open '%s'", f->path) : 0;
}

void mcp_files_close(struct mcp_files *f)
{
	cj_close(&f->dir_fd);
}

/* A new directory: an id is used once. */
static int open_run_dir(const struct mcp_files *f, const char *id, struct cj_error *err)
{
	if (mkdirat(f->dir_fd, id, 0755) < 0)
		return cj_fail(err, errno, "--files: create '%s/%s'", f->path, id);
	int fd = openat(f->dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? cj_fail(err, errno, "--files: open '%s/%s'", f->path, id) : fd;
}

static void keep(struct strings *list, struct arena *a, const char *text)
{
	const char *copy = arena_strdup(a, text);

	if (copy)
		(void)!strings_add(list, a, copy); /* without memory: one less */
}

void mcp_files_store(const struct mcp_files *f, const struct json_node *result, struct arena *a,
		     struct mcp_stored *out)
{
	const struct json_node *list = json_get_typed(result, "artifacts", JSON_ARRAY);
	const char *id = json_get_text(result, "id");
	struct cj_error err = { 0 };
	struct outcome o;

	*out = (struct mcp_stored){ .directory = NULL };
	if (f->dir_fd < 0 || !list || list->count == 0 || !id || strchr(id, '/'))
		return;
	auto_fd int run_fd = open_run_dir(f, id, &err);
	if (run_fd < 0) {
		keep(&out->warnings, a, err.msg);
		return;
	}
	outcome_init(&o, id, 0);
	(void)remote_result_store(result, run_fd, &o); /* a failure is a warning */
	for (size_t i = 0; i < o.artifacts.count; i++)
		keep(&out->paths, a, o.artifacts.items[i].path);
	for (size_t i = 0; i < o.warnings.count; i++)
		keep(&out->warnings, a, o.warnings.items[i]);
	outcome_fini(&o);
	out->directory = arena_printf(a, "%s/%s", f->path, id);
}
