/* SPDX-License-Identifier: Apache-2.0 */
/* Media types by extension.  Pure.  The content is untrusted and never parsed. */
#include "rootfs/files/types.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Names of the IANA registry, or what browsers and notebooks use where it has none. */
static const struct {
	const char *extension, *type;
} types[] = {
	{ "arrow", "application/vnd.apache.arrow.file" },
	{ "avif", "image/avif" },
	{ "bmp", "image/bmp" },
	{ "css", "text/css" },
	{ "csv", "text/csv" },
	{ "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
	{ "gif", "image/gif" },
	{ "gz", "application/gzip" },
	{ "htm", "text/html" },
	{ "html", "text/html" },
	{ "ico", "image/vnd.microsoft.icon" },
	{ "ipynb", "application/x-ipynb+json" },
	{ "jpeg", "image/jpeg" },
	{ "jpg", "image/jpeg" },
	{ "js", "text/javascript" },
	{ "json", "application/json" },
	{ "jsonl", "application/jsonl" },
	{ "log", "text/plain" },
	{ "md", "text/markdown" },
	{ "mp3", "audio/mpeg" },
	{ "mp4", "video/mp4" },
	{ "npy", "application/x-npy" },
	{ "npz", "application/x-npz" },
	{ "ogg", "audio/ogg" },
	{ "parquet", "application/vnd.apache.parquet" },
	{ "pdf", "application/pdf" },
	{ "png", "image/png" },
	{ "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
	{ "py", "text/x-python" },
	{ "sqlite", "application/vnd.sqlite3" },
	{ "svg", "image/svg+xml" },
	{ "tar", "application/x-tar" },
	{ "tif", "image/tiff" },
	{ "tiff", "image/tiff" },
	{ "toml", "application/toml" },
	{ "tsv", "text/tab-separated-values" },
	{ "txt", "text/plain" },
	{ "wav", "audio/wav" },
	{ "webm", "video/webm" },
	{ "webp", "image/webp" },
	{ "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
	{ "xml", "application/xml" },
	{ "yaml", "application/yaml" },
	{ "yml", "application/yaml" },
	{ "zip", "application/zip" },
};

const char *type_of_name(const char *name)
{
	const char *dot = strrchr(name, '.');
	for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcasecmp(dot + 1, types[i].extension) == 0)
			return types[i].type;
	return "application/octet-stream";
}
