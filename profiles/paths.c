/* SPDX-License-Identifier: Apache-2.0 */
#include "profiles/paths.h"

#include <limits.h>

#include "rootfs/skeleton.h"
#include "runtime/base/text.h"

#define BOX       "/box"
#define PARTS_MAX 128 /* of one text: overlay layers */

/* Copies the part of `text` up to the next ':' that is not escaped; returns where it ends. */
static const char *split_part(const char *text, char *out)
{
	while (*text != '\0' && *text != ':') {
		if (text[0] == '\\' && (text[1] == ':' || text[1] == '\\'))
			text++;
		*out++ = *text++;
	}
	*out = '\0';
	return text;
}

size_t paths_escape(const char *path, char *out)
{
	size_t used = 0;
	for (; *path; path++) {
		if (*path == ':' || *path == '\\')
			out[used++] = '\\';
		out[used++] = *path;
	}
	return used;
}

int paths_split_all(const char *text, struct arena *a, struct strings *out, struct cj_error *err)
{
	struct strings parts = { 0 };

	for (const char *at = text;; at++) {
		char *part = arena_alloc(a, strlen(at) + 1);
		if (!part || strings_add(&parts, a, part) < 0)
			return cj_fail(err, ENOMEM, "keep a path");
		at = split_part(at, part);
		if (part[0] == '\0')
			return cj_reject(err, "'%s' has an empty path in it", text);
		if (*at == '\0')
			break;
		if (parts.count >= PARTS_MAX)
			return cj_reject(err, "'%.64s...' has more than %d parts", text, PARTS_MAX);
	}
	*out = parts;
	return 0;
}

int paths_split(const char *text, struct arena *a, const char **out_source, const char **out_target,
		struct cj_error *err)
{
	struct strings parts = { 0 };
	if (paths_split_all(text, a, &parts, err) < 0)
		return -err->code;
	if (parts.count > 2) {
		cj_refuse(err, "'%s' is not SRC[:DST]: too many ':'", text);
		return cj_hint(err, "write '\\:' for a colon that belongs to a name");
	}
	/* a part is there; NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	*out_source = parts.items[0];
	*out_target = parts.items[1]; /* the list ends in a NULL */
	return 0;
}

const char *paths_clean(const char *text, struct arena *a)
{
	char *out = text ? arena_alloc(a, strlen(text) + 2) : NULL, *end = out;
	if (!out)
		return NULL;
	while (*text != '\0') {
		size_t size = strcspn(text, "/");
		bool is_up = size == 2 && memcmp(text, "..", 2) == 0;
		bool is_here = size == 0 || (size == 1 && text[0] == '.');
		if (is_up) {
			while (end > out && *--end != '/')
				;
		} else if (!is_here) {
			*end++ = '/';
			memcpy(end, text, size);
			end += size;
		}
		text += size + (text[size] == '/');
	}
	if (end == out)
		*end++ = '/';
	*end = '\0';
	return out;
}

static bool is_too_long(const char *path)
{
	if (strlen(path) >= PATH_MAX)
		return true;
	for (; *path != '\0'; path += path[0] == '/') {
		size_t size = strcspn(path, "/");
		if (size > NAME_MAX)
			return true;
		path += size;
	}
	return false;
}

int paths_inside(const char *text, struct arena *a, const char **out, struct cj_error *err)
{
	if (text[0] == '\0')
		return cj_reject(err, "a path in the jail is empty");
	for (const char *at = text; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strcspn(at, "/") == 2 && memcmp(at, "..", 2) == 0)
			return cj_reject(err, "'%s' has '..' in it; say where it is", text);
	}

	const char *joined = text[0] == '/' ? text : arena_printf(a, BOX "/%s", text);
	const char *path = paths_clean(joined, a);
	if (!path)
		return cj_fail(err, ENOMEM, "keep a path");
	if (is_too_long(path))
		return cj_reject(err, "'%.64s...' is too long for a path", text);
	*out = path;
	return 0;
}

int paths_target(const char *text, struct arena *a, const char **out, struct cj_error *err)
{
	static const char *const kernel_trees[] = { "/proc", "/dev", "/sys" };

	const char *target = NULL;
	if (paths_inside(text, a, &target, err) < 0)
		return -err->code;
	target = skeleton_follow(target, a);
	if (!target)
		return cj_fail(err, ENOMEM, "keep a path");
	if (target[1] == '\0')
		return cj_reject(err, "'/' can't be a target (a whole root is --rootfs)");
	for (size_t i = 0; i < COUNT_OF(kernel_trees); i++)
		if (paths_is_below(target, kernel_trees[i]))
			return cj_reject(err, "'%s': %s is the jail's own", text, kernel_trees[i]);
	*out = target;
	return 0;
}

int paths_absolute(const char *path, struct arena *a, const char **out, struct cj_error *err)
{
	const char *joined = path;
	if (path[0] != '/') {
		char cwd[PATH_MAX];
		if (!getcwd(cwd, sizeof(cwd)))
			return cj_fail(err, errno, "getcwd, to find '%s'", path);
		if (cwd[0] != '/') /* "(unreachable)/...": getcwd(2) */
			return cj_reject(err, "'%s': the current directory is out of reach", path);
		joined = arena_printf(a, "%s/%s", cwd, path);
	}

	*out = paths_clean(joined, a);
	return *out ? 0 : cj_fail(err, ENOMEM, "keep a path");
}

int paths_resolve(const char *path, struct arena *a, const char **out, struct cj_error *err)
{
	const char *absolute = NULL;
	if (paths_absolute(path, a, &absolute, err) < 0)
		return -err->code;

	/* Not of `absolute`: "link/.." is not where its letters say, and this shows it. */
	char real[PATH_MAX];
	if (!realpath(path, real))
		return cj_fail(err, errno, "find '%s'", path);
	if (strcmp(real, absolute) != 0)
		return cj_reject(err,
				 "'%s' is (or lies behind) a symbolic link; the real path is '%s'; "
				 "name that",
				 path, real);
	*out = absolute;
	return 0;
}

bool paths_is_below(const char *path, const char *ancestor)
{
	return strcmp(ancestor, "/") == 0 || text_path_below(path, ancestor);
}

const char *paths_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}
