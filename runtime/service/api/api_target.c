/* SPDX-License-Identifier: Apache-2.0 */
/* Paths and queries. */
#include "runtime/service/api/api_parts.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/text.h"

#define SEGMENT_MAX   255 /* NAME_MAX of Linux */
#define PARAMETER_MAX 64

/* --- routes ----------------------------------------------------------------- */

/* One segment of the path for one '*'. */
static bool take_segment(const char **path, char out[static PLAN_ID_MAX])
{
	size_t size = strcspn(*path, "/");

	if (size == 0 || size >= PLAN_ID_MAX)
		return false;
	memcpy(out, *path, size);
	out[size] = '\0';
	*path += size;
	return true;
}

bool api_path_fits(const char *pattern, const char *path, struct api_names *out)
{
	size_t count = 0;

	*out = (struct api_names){ .rest = "" };
	for (; *pattern; pattern++) {
		if (strcmp(pattern, "**") == 0) {
			out->rest = path;
			return true;
		}
		if (*pattern != '*') {
			if (*path++ != *pattern)
				return false;
		} else if (count == API_NAMES_MAX || !take_segment(&path, out->ids[count++])) {
			return false;
		}
	}
	return *path == '\0';
}

/* --- files ------------------------------------------------------------------ */

static int check_segment(const char *segment, size_t size, struct cj_error *err)
{
	if (size == 0)
		return cj_reject(err, "the path has an empty segment");
	if ((size == 1 && segment[0] == '.') || (size == 2 && memcmp(segment, "..", 2) == 0))
		return cj_reject(err, "the path has a segment '%.*s'", (int)size, segment);
	for (size_t i = 0; i < size; i++)
		if (((unsigned char)segment[i] < 0x20 && segment[i] != '\t') || segment[i] == 0x7f)
			return cj_reject(err, "the path has a control character");
	if (size > SEGMENT_MAX)
		return cj_reject(err, "the path has a segment of more than %d bytes", SEGMENT_MAX);
	return 0;
}

int api_file_path(const char *rest, bool may_be_directory, char out[static INPUT_PATH_MAX],
		  struct cj_error *err)
{
	size_t size = strlen(rest);

	if (may_be_directory && size > 0 && rest[size - 1] == '/')
		size--;
	if (size + 2 > INPUT_PATH_MAX)
		return cj_reject(err, "the path has more than %d bytes", INPUT_PATH_MAX - 2);
	out[0] = '/';
	memcpy(out + 1, rest, size);
	out[size + 1] = '\0';
	for (const char *segment = out;; segment += strcspn(segment, "/")) {
		if (*segment == '\0')
			return 0;
		segment++;
		if (check_segment(segment, strcspn(segment, "/"), err) < 0)
			return -err->code;
	}
}

/* --- the query -------------------------------------------------------------- */

static int set_offset(const char *text, struct api_query *out, struct cj_error *err)
{
	return parse_u64(text, 0, INT64_MAX, &out->offset, err) < 0 ? cj_wrap(err, "offset") : 0;
}

static int set_length(const char *text, struct api_query *out, struct cj_error *err)
{
	return parse_u64(text, 1, INT64_MAX, &out->length, err) < 0 ? cj_wrap(err, "length") : 0;
}

static int set_wait(const char *text, struct api_query *out, struct cj_error *err)
{
	if (parse_duration(text, &out->wait_ms, err) < 0)
		return cj_wrap(err, "wait");
	if (out->wait_ms > API_WAIT_MAX_MS)
		return cj_reject(err, "wait: '%s' is too long, %us is the most", text,
				 API_WAIT_MAX_MS / 1000u);
	return 0;
}

static int set_depth(const char *text, struct api_query *out, struct cj_error *err)
{
	return parse_u64(text, 1, API_DEPTH_MAX, &out->depth, err) < 0 ? cj_wrap(err, "depth") : 0;
}

/* What a GET answers is one thing. */
static int check_together(const struct api_query *q, struct cj_error *err)
{
	unsigned what = q->given & (PARAMETER_LIST | PARAMETER_STAT | PARAMETER_WATCH);
	bool is_part = (q->given & (PARAMETER_OFFSET | PARAMETER_LENGTH)) != 0;

	if ((what & (what - 1)) != 0 || (what && is_part))
		return cj_reject(err,
				 "list, stat, watch and the part of a file exclude each other");
	if ((q->given & PARAMETER_DEPTH) && !(q->given & PARAMETER_LIST))
		return cj_reject(err, "the parameter 'depth' belongs to 'list'");
	return 0;
}

static int read_parameter(char *text, unsigned allowed, struct api_query *out, struct cj_error *err)
{
	static const struct {
		const char *name;
		enum api_parameter bit;
		int (*set)(const char *text, struct api_query *out, struct cj_error *err);
	} rows[] = { { "list", PARAMETER_LIST, NULL },
		     { "executable", PARAMETER_EXECUTABLE, NULL },
		     { "stat", PARAMETER_STAT, NULL },
		     { "watch", PARAMETER_WATCH, NULL },
		     { "wait", PARAMETER_WAIT, set_wait },
		     { "depth", PARAMETER_DEPTH, set_depth },
		     { "offset", PARAMETER_OFFSET, set_offset },
		     { "length", PARAMETER_LENGTH, set_length } };
	char *value = strchr(text, '=');

	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(text, rows[i].name) != 0 || !(allowed & rows[i].bit))
			continue;
		if (out->given & rows[i].bit)
			return cj_reject(err, "the parameter '%s' is there twice", text);
		if ((value && *value) != (rows[i].set != NULL))
			return cj_reject(err, "the parameter '%s' %s", text,
					 rows[i].set ? "has no value" : "takes no value");
		out->given |= rows[i].bit;
		return rows[i].set ? rows[i].set(value, out, err) : 0;
	}
	return cj_reject(err, "this path takes no parameter '%s'", text);
}

int api_query_parse(const char *query, unsigned allowed, struct api_query *out,
		    struct cj_error *err)
{
	char text[PARAMETER_MAX];

	*out = (struct api_query){ 0 };
	while (*query) {
		size_t size = strcspn(query, "&");
		if (size >= sizeof(text))
			return cj_reject(err, "a parameter has more than %d bytes",
					 PARAMETER_MAX - 1);
		(void)snprintf(text, sizeof(text), "%.*s", (int)size, query);
		if (size > 0 && read_parameter(text, allowed, out, err) < 0)
			return -err->code;
		query += size + (query[size] == '&');
	}
	return check_together(out, err);
}
