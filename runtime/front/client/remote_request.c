/* SPDX-License-Identifier: Apache-2.0 */
/* The body of POST /v1/runs.  Pure. */
#include "runtime/front/client/remote_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "profiles/profile.h"
#include "rootfs/files/artifacts.h"
#include "runtime/base/text.h"

static bool is_text(const struct remote_bytes *b)
{
	return !memchr(b->bytes, '\0', b->size) && is_utf8(b->bytes, b->size);
}

/* "key": "text", or "key": {"base64": "..."}.  A NUL follows the bytes. */
static void put_blob(struct json_writer *w, const char *key, const struct remote_bytes *b)
{
	if (!b->bytes)
		return;
	json_put_key(w, key);
	if (is_text(b)) {
		json_put_string(w, b->bytes);
		return;
	}
	json_open_object(w);
	json_put_bytes(w, b->bytes, b->size);
	json_close_object(w);
}

static void put_strings(struct json_writer *w, const char *key, const char *const *strings)
{
	json_put_key(w, key);
	json_open_array(w);
	for (; strings && *strings; strings++)
		json_put_string(w, *strings);
	json_close_array(w);
}

static void put_files(struct json_writer *w, const struct remote_request *r)
{
	if (r->nfiles == 0)
		return;
	json_put_key(w, "files");
	json_open_array(w);
	for (size_t i = 0; i < r->nfiles; i++) {
		const struct remote_file *f = &r->files[i];
		json_open_object(w);
		json_member_text(w, "path", f->path);
		json_put_bytes(w, f->content.bytes, f->content.size);
		if (f->is_executable) {
			json_member_bool(w, "executable", true);
		}
		json_close_object(w);
	}
	json_close_array(w);
}

/* true is what every service knows; only a smaller size needs words. */
static void put_artifacts(struct json_writer *w, uint64_t bytes)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "inline:%" PRIu64, bytes);
	if (bytes == ARTIFACTS_INLINE_MAX) {
		json_member_bool(w, "artifacts", true);
	} else if (bytes > 0) {
		json_member_text(w, "artifacts", text);
	}
}

static void put_program(struct json_writer *w, const struct remote_request *r)
{
	if (r->is_command) {
		put_strings(w, "command", r->args);
	} else {
		put_blob(w, "code", &r->code);
		if (r->file_name) {
			json_member_text(w, "file_name", r->file_name);
		}
		if (r->args && r->args[0])
			put_strings(w, "args", r->args);
	}
	put_blob(w, "stdin", &r->input);
	put_files(w, r);
	if (r->args_json) {
		json_put_key(w, "args_json");
		json_put_node(w, r->args_json);
	}
	put_artifacts(w, r->artifacts_bytes);
}

static void put_exec(struct json_writer *w, const struct remote_request *r)
{
	if (r->interrupts)
		json_member_bool(w, "interrupt", true);
	if (r->is_detached)
		json_member_bool(w, "detach", true);
	if (r->has_open_stdin)
		json_member_bool(w, "open_stdin", true);
}

void remote_request_write(struct json_writer *w, const struct remote_request *r)
{
	json_open_object(w);
	if (r->profile)
		json_member_text(w, "profile", r->profile);
	if (r->id)
		json_member_text(w, "id", r->id);
	put_program(w, r);
	profile_put(w, r->config, r->wanted);
	put_exec(w, r);
	json_close_object(w);
}

/* --- paths -------------------------------------------------------------------------- */

/* Appends `dir`; a backslash escapes the characters that paths_split() interprets. */
static size_t put_directory(char *out, const char *dir)
{
	size_t used = 0;

	for (; *dir; dir++) {
		if (*dir == ':' || *dir == '\\')
			out[used++] = '\\';
		out[used++] = *dir;
	}
	out[used++] = '/';
	return used;
}

const char *remote_absolute(const char *text, size_t skip, bool each_part, const char *dir,
			    struct arena *a)
{
	size_t parts = 1, size = strlen(text), used = skip;

	for (size_t i = skip; each_part && i < size; i++)
		parts += text[i] == ':';
	char *out = arena_alloc(a, size + 1 + parts * (2 * strlen(dir) + 1));
	if (!out)
		return NULL;
	memcpy(out, text, skip);
	bool begins = true;
	for (size_t i = skip; i < size; i++) {
		if (begins && text[i] != '/')
			used += put_directory(out + used, dir);
		bool is_escape = text[i] == '\\' && i + 1 < size;
		begins = each_part && text[i] == ':';
		out[used++] = text[i];
		if (is_escape)
			out[used++] = text[++i];
	}
	return out;
}
