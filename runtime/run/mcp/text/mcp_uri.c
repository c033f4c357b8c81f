/* SPDX-License-Identifier: Apache-2.0 */
/* Paths, percent-encoded.  Pure. */
#include "runtime/run/mcp/text/mcp_uri.h"

#include <stdlib.h>
#include <string.h>

char *mcp_uri_put_path(char *to, const char *path)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~/";
	static const char hex[] = "0123456789ABCDEF";

	for (; *path; path++) {
		unsigned byte = (unsigned char)*path;
		if (strchr(plain, *path)) {
			*to++ = *path;
			continue;
		}
		*to++ = '%';
		*to++ = hex[byte >> 4];
		*to++ = hex[byte & 0xf];
	}
	return to;
}

char *mcp_uri_join(const char *before, const char *directory, const char *path)
{
	size_t room = strlen(before) + 3 * (strlen(directory) + strlen(path)) + 2;
	char *uri = malloc(room), *to = uri;

	if (!uri)
		return NULL;
	memcpy(to, before, strlen(before));
	to = mcp_uri_put_path(to + strlen(before), directory);
	*to++ = '/';
	to = mcp_uri_put_path(to, path);
	*to = '\0';
	return uri;
}
