/* SPDX-License-Identifier: Apache-2.0 */
/* What a request names: its path, its query, and small bodies. */
#include "runtime/service/api/api_parts.h"

#include <signal.h>

#include "runtime/base/scope.h"

#define SEGMENT_MAX   255 /* NAME_MAX of Linux */
#define PARAMETER_MAX 64

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

#define VALUE(called, how, field, least, most)                                                     \
	{                                                                                          \
		(called), .set = json_set_##how, .offset = offsetof(struct api_query, field),      \
			  .min = (least), .max = (most)                                            \
	}

static int read_parameter(char *text, unsigned allowed, struct api_query *out, struct cj_error *err)
{
	static const struct {
		enum api_parameter bit;
		struct json_key key; /* its name and value; no `set`: it takes none */
	} rows[] = {
		{ PARAMETER_LIST, { "list" } },
		{ PARAMETER_EXECUTABLE, { "executable" } },
		{ PARAMETER_STAT, { "stat" } },
		{ PARAMETER_NARROW, { "narrow" } },
		{ PARAMETER_WATCH, { "watch" } },
		{ PARAMETER_WAIT, VALUE("wait", duration, wait_ms, 0, API_WAIT_MAX_MS) },
		{ PARAMETER_DEPTH, VALUE("depth", u64, depth, 1, API_DEPTH_MAX) },
		{ PARAMETER_OFFSET, VALUE("offset", u64, offset, 0, INT64_MAX) },
		{ PARAMETER_LENGTH, VALUE("length", u64, length, 1, INT64_MAX) },
	};
	char *value = strchr(text, '=');

	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct json_key *k = &rows[i].key;
		if (strcmp(text, k->name) != 0 || !(allowed & rows[i].bit))
			continue;
		if (out->given & rows[i].bit)
			return cj_reject(err, "the parameter '%s' is there twice", text);
		if ((value && *value) != (k->set != NULL))
			return cj_reject(err, "the parameter '%s' %s", text,
					 k->set ? "has no value" : "takes no value");
		out->given |= rows[i].bit;
		return k->set && k->set(NULL, k, value, out, err) < 0 ? cj_wrap(err, "%s", text)
								      : 0;
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
	/* What a GET answers is one thing. */
	unsigned what = out->given & (PARAMETER_LIST | PARAMETER_STAT | PARAMETER_WATCH);
	bool is_part = (out->given & (PARAMETER_OFFSET | PARAMETER_LENGTH)) != 0;
	if ((what & (what - 1)) != 0 || (what && is_part))
		return cj_reject(err,
				 "list, stat, watch and the part of a file exclude each other");
	if ((out->given & PARAMETER_DEPTH) && !(out->given & PARAMETER_LIST))
		return cj_reject(err, "the parameter 'depth' belongs to 'list'");
	return 0;
}

#define NAME       "request"
#define AT(member) .offset = offsetof(struct api_body, member)

static JSON_SETTER(signal)
{
	static const struct {
		const char *name;
		int signo;
	} rows[] = {
		{ "HUP", SIGHUP },     { "INT", SIGINT },   { "QUIT", SIGQUIT },
		{ "KILL", SIGKILL },   { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 },
		{ "TERM", SIGTERM },   { "CONT", SIGCONT }, { "STOP", SIGSTOP },
		{ "WINCH", SIGWINCH },
	};
	const char *name = strncmp(text, "SIG", 3) == 0 ? text + 3 : text;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (strcmp(rows[i].name, name) != 0)
			continue;
		*(int *)json_field(k, record) = rows[i].signo;
		return 0;
	}
	cj_refuse(err, "'%.32s' is not a signal that can be sent", text);
	return cj_hint(err, "HUP, INT, QUIT, KILL, USR1, USR2, TERM, CONT, STOP or WINCH");
}

static JSON_READER(bytes)
{
	struct json_key capped = *k;

	capped.max = ((const struct api_body *)record)->max;
	return k->detail ? json_read_base64(in, &capped, node, record, err)
			 : json_read_blob(in, &capped, node, record, err);
}

static JSON_READER(node)
{
	*(const struct json_node **)json_field(k, record) = node;
	return 0;
}

static const struct json_key lease_keys[] = {
	{ "lease", JSON_TAKES_STRING | JSON_TAKES_NUMBER, .is_required = true,
	  .set = json_set_duration, AT(lease_ms) },
};
static const struct json_key signal_keys[] = {
	{ "signal", JSON_TAKES_STRING, .is_required = true, .set = json_set_signal, AT(signo) },
};
static const struct json_key stdin_keys[] = {
	{ "text", JSON_TAKES_STRING, .read = json_read_bytes, AT(text) },
	{ "base64", JSON_TAKES_STRING, .read = json_read_bytes, AT(base64), .detail = "base64" },
	{ "eof", JSON_TAKES_BOOL, .set = json_set_bool, AT(is_end) },
};
static const struct json_key change_keys[] = {
	{ "mkdir", JSON_TAKES_BOOL, .set = json_set_bool, AT(is_mkdir) },
	{ "rename", JSON_TAKES_STRING, .set = json_set_string, AT(to) },
};
static const struct json_key answer_keys[] = {
	{ "result", .read = json_read_node, AT(result) },
	{ "error", JSON_TAKES_OBJECT, .read = json_read_node, AT(error) },
};
static const struct json_record records[] = {
	[API_BODY_LEASE] = JSON_RECORD(lease_keys, NAME),
	[API_BODY_SIGNAL] = JSON_RECORD(signal_keys, NAME),
	[API_BODY_STDIN] = JSON_RECORD(stdin_keys, NAME),
	[API_BODY_CHANGE] = JSON_RECORD(change_keys, NAME),
	[API_BODY_ANSWER] = JSON_RECORD(answer_keys, NAME),
};

int api_body_read(enum api_body_kind kind, struct blob body, struct arena *a, struct api_body *out,
		  struct cj_error *err)
{
	const struct json_node *root = NULL;
	const struct json_reader in = { .file = NAME, .arena = a };

	if (json_parse_capped(NAME, body.bytes ? body.bytes : "", body.size, a, &root, err) < 0 ||
	    json_record_read(&in, root, &records[kind], out, err) < 0)
		return -err->code;
	if (kind == API_BODY_CHANGE && out->is_mkdir == (out->to != NULL))
		return cj_reject(err, NAME ": either \"mkdir\": true or rename must be there");
	if (kind == API_BODY_ANSWER) {
		if (!out->result == !out->error)
			return cj_reject(err, NAME ": either result or error must be there");
		if (out->error && !json_get_typed(out->error, "message", JSON_STRING))
			return cj_reject(err,
					 NAME ": error must have a message, which is a string");
		out->value = json_written(out->result ? out->result : out->error, body.bytes);
	}
	if (kind != API_BODY_STDIN)
		return 0;
	if (out->text.bytes && out->base64.bytes)
		return cj_reject(err, NAME ": text and base64 exclude each other");
	if (!out->text.bytes && !out->base64.bytes && !out->is_end)
		return cj_reject(err, NAME ": text, base64 or eof is missing");
	out->bytes = out->text.bytes ? out->text : out->base64;
	return 0;
}

bool api_body_take(struct api_call *c, enum api_body_kind kind, struct arena *a,
		   struct api_body *out)
{
	struct cj_error err = { 0 };
	size_t size = 0;
	auto_free char *body = exchange_take_body(c->exchange, &size);
	int rc = api_body_read(kind, (struct blob){ body, size }, a, out, &err);

	return rc == 0 || api_refuse(c, rc == -EFBIG ? API_TOO_LARGE : API_BAD_REQUEST, &err);
}
