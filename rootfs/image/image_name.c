/* SPDX-License-Identifier: Apache-2.0 */
/* The names of images, layers and tar entries.  Pure. */
#include "rootfs/image/image_name.h"

#include <string.h>

#include "rootfs/image/image_limits.h"

#define WHITEOUT ".wh."
#define OPAQUE   ".wh..opq" /* behind WHITEOUT */

#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"

bool image_is_name(const char *text)
{
	size_t size = strlen(text);
	return size > 0 && size <= IMAGE_NAME_MAX && strchr(LETTERS, text[0]) &&
	       strspn(text, LETTERS "._:-") == size && strcmp(text, "host") != 0;
}

bool image_is_sha256(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

/* --- paths ------------------------------------------------------------------ */

struct clean {
	char *out;
	size_t used;
	unsigned depth;
};

static int add_component(struct clean *c, const char *name, size_t size, struct cj_error *err)
{
	if (size == 2 && name[0] == '.' && name[1] == '.')
		return cj_reject(err, "the path has '..'");
	if (size > NAME_MAX)
		return cj_reject(err, "a name in the path is longer than %d bytes", NAME_MAX);
	if (++c->depth > IMAGE_DEPTH_MAX)
		return cj_reject(err, "the path is deeper than %d directories", IMAGE_DEPTH_MAX);
	if (c->used > 0)
		c->out[c->used++] = '/';
	memcpy(c->out + c->used, name, size);
	c->used += size;
	return 0;
}

int image_path_clean(const char *text, char out[static PATH_MAX], struct cj_error *err)
{
	struct clean c = { .out = out };
	if (strlen(text) > IMAGE_PATH_MAX)
		return cj_reject(err, "the path is longer than %d bytes", IMAGE_PATH_MAX);

	for (const char *at = text; *at;) {
		size_t size = strcspn(at, "/");
		bool is_nothing = size == 0 || (size == 1 && at[0] == '.');
		if (!is_nothing && add_component(&c, at, size, err) < 0)
			return -err->code;
		at += size;
		at += strspn(at, "/");
	}
	out[c.used] = '\0';
	return 0;
}

int image_entry_split(char *path, const char **out_dir, const char **out_name,
		      enum image_entry_kind *out_kind, struct cj_error *err)
{
	char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t prefix = strlen(WHITEOUT);

	*out_kind = IMAGE_ENTRY_PLAIN;
	if (strncmp(name, WHITEOUT, prefix) == 0) {
		const char *hidden = name + prefix;
		if (hidden[0] == '\0' || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
			return cj_reject(err, "the whiteout names no file");
		*out_kind = IMAGE_ENTRY_WHITEOUT;
		if (strcmp(hidden, OPAQUE) == 0)
			*out_kind = IMAGE_ENTRY_OPAQUE;
		else if (strncmp(hidden, WHITEOUT, prefix) == 0)
			*out_kind = IMAGE_ENTRY_SKIPPED;
		name = hidden;
	}
	if (slash)
		*slash = '\0';
	*out_dir = slash ? path : "";
	*out_name = name;
	return 0;
}
