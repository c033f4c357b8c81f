/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of createContainer hooks.  Reads the caller's. */
#include "runtime/container/create/hook_env.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAFE_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* "PATH=a:/b::/c" becomes "PATH=/b:/c".  Without any it is a path of ours: what a shell takes
 * without PATH may have ".". */
static const char *absolute_path(struct arena *a, const char *value)
{
	char *text = arena_strdup(a, "PATH=");

	for (; text && *value; value += strspn(value, ":")) {
		size_t size = strcspn(value, ":");
		if (value[0] == '/')
			text =
			    arena_printf(a, "%s%s%.*s", text, text[5] ? ":" : "", (int)size, value);
		value += size;
	}
	return text && !text[5] ? "PATH=" SAFE_PATH : text;
}

/* What a program finds in its working directory by no value of these. */
static bool is_safe_in_image(const char *variable)
{
	static const char *const kept[] = { "HOME=/", "LANG=", "LC_",   "LOGNAME=",
					    "TERM=",  "TZ=",   "USER=", "XDG_RUNTIME_DIR=/" };

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strncmp(variable, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

int hook_env_read(struct arena *a, struct strings *out, struct cj_error *err)
{
	const char *path = getenv("PATH");
	const char *copy = absolute_path(a, path ? path : "");
	int rc = copy ? strings_add(out, a, copy) : -ENOMEM;

	for (char **e = environ; rc == 0 && *e; e++) {
		if (!is_safe_in_image(*e))
			continue;
		copy = arena_strdup(a, *e);
		rc = copy ? strings_add(out, a, copy) : -ENOMEM;
	}
	return rc < 0 ? cj_fail(err, ENOMEM, "copy the environment for a hook") : 0;
}
