/* SPDX-License-Identifier: Apache-2.0 */
/* Normalized paths.  Pure. */
#include "runtime/container/plan/oci_path.h"

#include <string.h>

/* Removes the last component of the `length` bytes at `text`; returns the new length. */
static size_t drop_last(const char *text, size_t length)
{
	while (length > 0 && text[length - 1] != '/')
		length--;
	return length > 0 ? length - 1 : 0;
}

const char *oci_path_clean(const char *path, struct arena *a)
{
	char *out = arena_alloc(a, strlen(path) + 2); /* a '/' in front, and the NUL */
	if (!out)
		return NULL;
	size_t length = 0;
	for (const char *part = path; *part;) {
		size_t size = strcspn(part, "/");
		if (size == 2 && part[0] == '.' && part[1] == '.') {
			length = drop_last(out, length);
		} else if (size > 0 && !(size == 1 && part[0] == '.')) {
			out[length++] = '/';
			memcpy(out + length, part, size);
			length += size;
		}
		part += size;
		part += *part == '/';
	}
	if (length == 0)
		out[length++] = '/';
	out[length] = '\0';
	return out;
}
