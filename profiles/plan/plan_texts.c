/* SPDX-License-Identifier: Apache-2.0 */
/* What the copies of the command line say: --file -:DST and --file-text DST=TEXT.  Pure. */
#include <errno.h>
#include <string.h>

#include "profiles/paths.h"
#include "profiles/plan/plan_parts.h"

static bool ends_in_slash(const char *path)
{
	return path[0] != '\0' && path[strlen(path) - 1] == '/';
}

bool plan_is_stdin(const char *file)
{
	return file[0] == '-' && (file[1] == '\0' || file[1] == ':');
}

int plan_stdin_target(const char *text, struct arena *a, const char **out, struct cj_error *err)
{
	const char *source, *target;
	if (paths_split(text, a, &source, &target, err) < 0)
		return -err->code;
	if (target && !ends_in_slash(target))
		return paths_target(target, a, out, err);
	(void)!cj_reject(err, "'%s' has no name for the file in the jail", text);
	return cj_hint(err, "write -:NAME for standard input, or ./- for a file of this name");
}

int plan_file_text(const char *text, struct arena *a, struct copy_spec *out, struct cj_error *err)
{
	size_t size = strcspn(text, "=");
	const char *target = arena_strndup(a, text, size);
	if (!target)
		return cj_fail(err, ENOMEM, "plan the program");
	if (text[size] == '\0' || size == 0 || ends_in_slash(target))
		return cj_reject(err, "'%.64s' is not DST=TEXT", text);
	*out = (struct copy_spec){ .bytes = text + size + 1, .size = strlen(text) - size - 1 };
	return paths_target(target, a, &out->target, err);
}
