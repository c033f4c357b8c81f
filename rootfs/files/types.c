/* SPDX-License-Identifier: Apache-2.0 */
#include "rootfs/files/types.h"

#include <strings.h>

#include "runtime/base/json/json.h"
#include "runtime/base/text.h"

#define TYPE_UNKNOWN "application/octet-stream"
#define TYPE_TEXT    "text/plain"
#define TYPE_HTML    "text/html"
#define TYPE_SVG     "image/svg+xml"
#define TYPE_JSON    "application/json"

#define BLANKS "\t\n\r "

/* Names of the IANA registry, or what browsers and notebooks use where it has none. */
struct named {
	const char *extension, *type;
};

/* For content that is text. */
static const struct named texts[] = {
	{ "css", "text/css" },
	{ "csv", "text/csv" },
	{ "ipynb", "application/x-ipynb+json" },
	{ "js", "text/javascript" },
	{ "jsonl", "application/jsonl" },
	{ "log", "text/plain" },
	{ "md", "text/markdown" },
	{ "py", "text/x-python" },
	{ "toml", "application/toml" },
	{ "tsv", "text/tab-separated-values" },
	{ "txt", "text/plain" },
	{ "xml", "application/xml" },
	{ "yaml", "application/yaml" },
	{ "yml", "application/yaml" },
};

/* For content that is not text, and not one of the signatures below. */
static const struct named binaries[] = {
	{ "arrow", "application/vnd.apache.arrow.file" },
	{ "avif", "image/avif" },
	{ "bmp", "image/bmp" },
	{ "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
	{ "gz", "application/gzip" },
	{ "ico", "image/vnd.microsoft.icon" },
	{ "mp3", "audio/mpeg" },
	{ "mp4", "video/mp4" },
	{ "npy", "application/x-npy" },
	{ "npz", "application/x-npz" },
	{ "ogg", "audio/ogg" },
	{ "parquet", "application/vnd.apache.parquet" },
	{ "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
	{ "sqlite", "application/vnd.sqlite3" },
	{ "tar", "application/x-tar" },
	{ "tif", "image/tiff" },
	{ "tiff", "image/tiff" },
	{ "wav", "audio/wav" },
	{ "webm", "video/webm" },
	{ "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
	{ "zip", "application/zip" },
};

/* A dot in a directory's name has a slash behind it, which no extension has. */
static bool has_extension(const char *name, const char *extension)
{
	const char *dot = strrchr(name, '.');
	return dot && strcasecmp(dot + 1, extension) == 0;
}

static const char *find_named(const struct named *rows, size_t count, const char *name,
			      const char *otherwise)
{
	for (size_t i = 0; i < count; i++)
		if (has_extension(name, rows[i].extension))
			return rows[i].type;
	return otherwise;
}

#define BYTES(literal) literal, sizeof(literal) - 1

/* PNG: RFC 2083, section 12.11; GIF89a, section 17; JPEG: JFIF, SOI and a marker; WebP: RFC 9649,
 * section 2.4; PDF: ISO 32000, section 7.5.2. */
static const struct signature {
	size_t at;
	const char *bytes;
	size_t size;
	const char *type;
} signatures[] = {
	{ 0, BYTES("\x89PNG\r\n\x1a\n"), "image/png" },
	{ 0, BYTES("\xff\xd8\xff"), "image/jpeg" },
	{ 0, BYTES("GIF87a"), "image/gif" },
	{ 0, BYTES("GIF89a"), "image/gif" },
	{ 8, BYTES("WEBP"), "image/webp" }, /* behind "RIFF" and a size */
	{ 0, BYTES("%PDF-"), "application/pdf" },
};

static bool has_at(const void *head, size_t size, size_t at, const char *bytes, size_t count)
{
	return size >= at + count && memcmp((const char *)head + at, bytes, count) == 0;
}

const char *type_of_signature(const void *head, size_t size)
{
	for (size_t i = 0; i < COUNT_OF(signatures); i++) {
		const struct signature *s = &signatures[i];
		if (has_at(head, size, s->at, s->bytes, s->size) &&
		    (s->at == 0 || has_at(head, size, 0, BYTES("RIFF"))))
			return s->type;
	}
	return NULL;
}

static bool is_text(const char *head, size_t size, bool is_whole)
{
	size_t cut = is_whole ? 0 : utf8_unfinished(head, size);
	return !memchr(head, '\0', size) && is_utf8(head, size - cut);
}

static bool begins_with(const char *text, size_t size, const char *word)
{
	size_t count = strlen(word);
	return size >= count && strncasecmp(text, word, count) == 0;
}

/* "<svg" and then the end of the name. */
static bool begins_with_tag(const char *text, size_t size, const char *tag)
{
	size_t count = strlen(tag);
	return begins_with(text, size, tag) && (size == count || strchr(BLANKS ">/", text[count]));
}

/* Text that begins with '<'. */
static const char *markup_type(const char *name, const char *text, size_t size)
{
	if (begins_with(text, size, "<!doctype html") || begins_with_tag(text, size, "<html"))
		return TYPE_HTML;
	if (begins_with_tag(text, size, "<svg"))
		return TYPE_SVG;
	/* an XML declaration, comments and a document type may come first */
	if (memmem(text, size, BYTES("<svg")) &&
	    (begins_with(text, size, "<?xml") || has_extension(name, "svg")))
		return TYPE_SVG;
	if (has_extension(name, "html") || has_extension(name, "htm"))
		return TYPE_HTML; /* a part of a page */
	return NULL;
}

/* A text of more bytes is not parsed: the program may leave many of them. */
#define JSON_PARSED_MAX (16u << 10)

static bool is_json(const char *name, const char *text, size_t size, bool is_whole)
{
	auto_arena struct arena a = { 0 };
	struct cj_error ignored;
	const struct json_node *root;
	bool has_name = has_extension(name, "json");
	bool is_compound = size > 0 && (text[0] == '{' || text[0] == '[');

	if (!has_name && !is_compound)
		return false;
	if (!is_whole || size > JSON_PARSED_MAX)
		return has_name && is_compound;
	return json_parse("file", text, size, &a, &root, &ignored) == 0;
}

static const char *text_type(const char *name, const char *head, size_t size, bool is_whole)
{
	const char *by_name = find_named(texts, COUNT_OF(texts), name, NULL);
	const char *type = NULL;
	size_t blank = 0;

	while (blank < size && strchr(BLANKS, head[blank]))
		blank++;
	head += blank;
	size -= blank;
	if (by_name)
		return by_name;
	if (size > 0 && head[0] == '<')
		type = markup_type(name, head, size);
	else if (is_json(name, head, size, is_whole))
		type = TYPE_JSON;
	return type ? type : TYPE_TEXT;
}

const char *type_of(const char *name, const void *head, size_t size, bool is_whole)
{
	const char *type = type_of_signature(head, size);

	if (type)
		return type;
	if (is_text(head, size, is_whole))
		return text_type(name, head, size, is_whole);
	return find_named(binaries, COUNT_OF(binaries), name, TYPE_UNKNOWN);
}
