/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a request: what is the program's is read here, by a table of keys; all other keys
 * are settings, and go the way a profile's go.  Pure, but for request_plan(), which looks at the
 * host as plan_make() does.
 */
#include "runtime/front/serve/api/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/paths.h"
#include "profiles/profile.h"
#include "profiles/settings.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/text.h"

#define NAME "request" /* in messages, where a file's path would stand */

struct reader {
	const struct request_caps *caps;
	struct arena *arena;
	struct request *out;
};

static int no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read the request");
}

/* --- bytes -------------------------------------------------------------------- */

static int refuse_size(const struct json_node *node, const char *what, size_t cap,
		       struct cj_error *err)
{
	return cj_reject_as(err, EFBIG, NAME ":%u:%u: %s: more than %zu bytes", node->line,
			    node->column, what, cap);
}

/* {"base64": "..."}'s value, of which not more is decoded than may be. */
static int read_base64(const struct reader *r, const struct json_node *node, const char *what,
		       size_t cap, struct blob *out, struct cj_error *err)
{
	size_t size = strlen(node->text), most = TEXT_BASE64_ROOM(size);
	if (most > cap && most - cap > 2) /* two may be padding */
		return refuse_size(node, what, cap, err);

	char *bytes = arena_alloc(r->arena, most + 1);
	if (!bytes)
		return no_memory(err);
	if (text_base64_decode(node->text, size, bytes, &out->size) < 0) {
		int rc = json_reject(NAME, node, err, "%s: this is no base64", what);
		cj_hint(err, "RFC 4648, section 4: A-Z a-z 0-9 + /, padded with '=', no line ends");
		return rc;
	}
	out->bytes = bytes;
	return out->size > cap ? refuse_size(node, what, cap, err) : 0;
}

static int read_text(const struct json_node *node, const char *what, size_t cap, struct blob *out,
		     struct cj_error *err)
{
	*out = (struct blob){ node->text, strlen(node->text) };
	return out->size > cap ? refuse_size(node, what, cap, err) : 0;
}

/* "text", or {"base64": "..."}. */
static int read_blob(const struct reader *r, const struct json_node *node, const char *what,
		     size_t cap, struct blob *out, struct cj_error *err)
{
	if (node->type == JSON_STRING)
		return read_text(node, what, cap, out, err);

	const struct json_node *inner = node->type == JSON_OBJECT ? node->child : NULL;
	if (!inner || inner->next || strcmp(inner->key, "base64") != 0 ||
	    inner->type != JSON_STRING)
		return json_reject(NAME, node, err, "%s must be a string, or {\"base64\": \"...\"}",
				   what);
	return read_base64(r, inner, what, cap, out, err);
}

static int read_strings(const struct reader *r, const struct json_node *node, struct strings *out,
			struct cj_error *err)
{
	const struct json_node *word = node->type == JSON_ARRAY ? node->child : NULL;
	for (; word && word->type == JSON_STRING; word = word->next)
		if (strings_add(out, r->arena, word->text) < 0)
			return no_memory(err);
	if (word || node->type != JSON_ARRAY)
		return json_reject(NAME, word ? word : node, err, "%s must be an array of strings",
				   node->key);
	return 0;
}

/* --- the keys that are no settings ---------------------------------------------- */

static int read_profile(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	if (node->type != JSON_STRING || !is_name(node->text))
		return json_reject(NAME, node, err,
				   "profile must be a profile's name (a-z 0-9 _ -)");
	r->out->profile = node->text;
	return 0;
}

static int read_id(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	if (node->type != JSON_STRING)
		return json_reject(NAME, node, err, "id must be a string, not %s",
				   json_type_name(node->type));

	struct config scratch;
	config_init(&scratch);
	int rc = setting_set(&scratch, setting_by_option("id"), "id", node->text, err);
	config_fini(&scratch);
	if (rc < 0)
		return cj_wrap(err, NAME ":%u:%u", node->line, node->column);
	r->out->id = node->text;
	return 0;
}

static int read_code(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	size_t cap = r->caps->code_bytes < CODE_BYTES_MAX ? r->caps->code_bytes : CODE_BYTES_MAX;
	r->out->has_code = true;
	return read_blob(r, node, "code", cap, &r->out->code, err);
}

static int read_args(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	return read_strings(r, node, &r->out->args, err);
}

static int read_command(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	r->out->is_command = true;
	if (node->type == JSON_ARRAY && node->count == 0)
		return json_reject(NAME, node, err, "command has no words");
	if (read_strings(r, node, &r->out->args, err) < 0)
		return -err->code;
	return r->out->args.items[0][0]
		   ? 0
		   : json_reject(NAME, node, err, "command: its first word is empty");
}

/* Written anew, since the tree is what was checked. */
static int read_args_json(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	const char *text;
	size_t size;
	if (!w)
		return no_memory(err);
	json_put_node(w, node);
	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	if (size > ARGS_JSON_MAX)
		return refuse_size(node, "args_json", ARGS_JSON_MAX, err);
	r->out->args_json = arena_strndup(r->arena, text, size);
	return r->out->args_json ? 0 : no_memory(err);
}

static int read_stdin(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	r->out->has_stdin = true;
	return read_blob(r, node, "stdin", r->caps->stdin_bytes, &r->out->stdin_bytes, err);
}

static int read_artifacts(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	if (node->type != JSON_BOOL)
		return json_reject(NAME, node, err, "artifacts must be true or false, not %s",
				   json_type_name(node->type));
	r->out->wants_artifacts = node->boolean;
	return 0;
}

/* --- files ------------------------------------------------------------------------ */

static int refuse_file(const struct json_node *node, struct cj_error *err)
{
	return json_reject(NAME, node, err,
			   "a file is {\"path\": \"...\", and \"text\" or \"base64\": \"...\"}, "
			   "and may have \"executable\": true");
}

static int read_path(const struct reader *r, const struct json_node *node, const char **out,
		     struct cj_error *err)
{
	int rc = paths_target(node->text, r->arena, out, err);
	if (rc == 0 && strlen(*out) >= INPUT_PATH_MAX)
		rc = cj_reject(err, "'%.64s...' is too long", node->text);
	return rc < 0 ? cj_wrap(err, NAME ":%u:%u: files", node->line, node->column) : 0;
}

/* Exactly one path and one of the two contents, and nothing unknown: an object has no key twice. */
static int read_file(const struct reader *r, const struct json_node *node, struct request_file *out,
		     struct cj_error *err)
{
	const struct json_node *path = NULL, *text = NULL, *base64 = NULL, *executable = NULL;
	if (node->type == JSON_OBJECT) {
		path = json_get(node, "path");
		text = json_get(node, "text");
		base64 = json_get(node, "base64");
		executable = json_get(node, "executable");
	}
	const struct json_node *content = text ? text : base64;
	if (!path || path->type != JSON_STRING || !content || content->type != JSON_STRING ||
	    (executable && executable->type != JSON_BOOL) || node->count != 2u + !!executable)
		return refuse_file(node, err);
	out->is_executable = executable && executable->boolean;
	if (read_path(r, path, &out->path, err) < 0)
		return -err->code;
	return text ? read_text(content, "files", r->caps->file_bytes, &out->content, err)
		    : read_base64(r, content, "files", r->caps->file_bytes, &out->content, err);
}

/* The end, a slash, then all other bytes: a file stands right before all that lies below it. */
static unsigned rank_of(char c)
{
	unsigned u = (unsigned char)c;
	return u == 0 ? 0 : c == '/' ? 1 : u + 1;
}

static int by_path(const void *a, const void *b)
{
	const char *one = ((const struct request_file *)a)->path;
	const char *other = ((const struct request_file *)b)->path;

	while (*one && *one == *other)
		one++, other++;
	return (int)rank_of(*one) - (int)rank_of(*other);
}

/* Is one of the files, which are sorted, there? */
static bool has_file(const struct request *r, const char *path)
{
	const struct request_file wanted = { .path = path };

	return r->nfiles > 0 &&
	       bsearch(&wanted, r->files, r->nfiles, sizeof(*r->files), by_path) != NULL;
}

static bool is_below(const char *path, const char *file)
{
	size_t size = strlen(file);
	return strncmp(path, file, size) == 0 && path[size] == '/';
}

/* They have no order of their own: sorted, what excludes each other are neighbours. */
static int check_files(const struct reader *r, const struct json_node *node, struct cj_error *err)
{
	struct request_file *files = r->out->files;
	qsort(files, r->out->nfiles, sizeof(*files), by_path);
	for (size_t i = 1; i < r->out->nfiles; i++)
		if (strcmp(files[i - 1].path, files[i].path) == 0)
			return json_reject(NAME, node, err, "files: '%s' is there twice",
					   files[i].path);
	for (size_t i = 1; i < r->out->nfiles; i++)
		if (is_below(files[i].path, files[i - 1].path))
			return json_reject(
			    NAME, node, err,
			    "files: '%s' is a file, and '%s' needs a directory there",
			    files[i - 1].path, files[i].path);
	return 0;
}

static int read_files(struct reader *r, const struct json_node *node, struct cj_error *err)
{
	if (node->type != JSON_ARRAY)
		return json_reject(NAME, node, err, "files must be an array, not %s",
				   json_type_name(node->type));
	if (node->count > REQUEST_FILES_MAX)
		return json_reject(NAME, node, err, "files: more than %d", REQUEST_FILES_MAX);

	r->out->files = arena_array(r->arena, node->count + 1, sizeof(*r->out->files));
	if (!r->out->files)
		return no_memory(err);
	for (const struct json_node *n = node->child; n; n = n->next)
		if (read_file(r, n, &r->out->files[r->out->nfiles++], err) < 0)
			return -err->code;
	return check_files(r, node, err);
}

static const struct own_key {
	const char *name;
	int (*read)(struct reader *r, const struct json_node *node, struct cj_error *err);
} own_keys[] = {
	{ "profile", read_profile }, { "id", read_id },       { "code", read_code },
	{ "command", read_command }, { "args", read_args },   { "args_json", read_args_json },
	{ "stdin", read_stdin },     { "files", read_files }, { "artifacts", read_artifacts },
};
#define OWN_KEYS (sizeof(own_keys) / sizeof(own_keys[0]))

static const struct own_key *own_key_of(const char *name)
{
	for (size_t i = 0; i < OWN_KEYS; i++)
		if (strcmp(own_keys[i].name, name) == 0)
			return &own_keys[i];
	return NULL;
}

/* --- the keys that are settings ---------------------------------------------------- */

static enum request_fit fit_of(const struct setting *s)
{
	if (s->scope == SCOPE_RUN)
		return FIT_INTERPRETER;
	return s->scope == SCOPE_EXEC ? FIT_JAIL : FIT_COLD;
}

/* The nearest that may stand in a request; NULL: none is near. */
static const char *suggest_key(const char *key)
{
	const char *names[OWN_KEYS + 2] = { NULL };
	for (size_t i = 0; i < OWN_KEYS; i++)
		names[i] = own_keys[i].name;

	const char *near = setting_suggest_key(key);
	const struct setting *s = near ? setting_by_key(near) : NULL;
	if (s && s->scope != SCOPE_NO_REQUEST)
		names[OWN_KEYS] = near;
	return text_nearest(key, names);
}

static int refuse_key(const char *key, const struct setting *s, const struct json_node *node,
		      struct cj_error *err)
{
	if (s) {
		int rc = json_reject_key(NAME, node, err, "%s can't be asked for", key);
		cj_hint(err, "it is the profile's or the command line's");
		return rc;
	}
	const char *near = suggest_key(key);
	int rc = json_reject_key(NAME, node, err, "unknown key '%s'", key);
	if (near)
		cj_hint(err, "did you mean '%s'?", near);
	return rc;
}

static int read_key(void *context, const char *key, const struct setting *s,
		    const struct json_node *node, struct cj_error *err)
{
	struct reader *r = context;
	const struct own_key *own = own_key_of(key);
	if (own)
		return own->read(r, node, err);
	if (!s || s->scope == SCOPE_NO_REQUEST)
		return refuse_key(key, s, node, err);
	if (fit_of(s) > r->out->fit)
		r->out->fit = fit_of(s);
	return 0;
}

/* --- the whole ----------------------------------------------------------------------- */

static int check_whole(const struct request *r, struct cj_error *err)
{
	const struct json_node *workdir = json_get(r->root, "workdir");

	if (!r->profile)
		return json_reject(NAME, r->root, err, "profile is missing");
	if (r->has_code && r->is_command)
		return json_reject(NAME, r->root, err, "code and command exclude each other");
	if (!r->has_code && !r->is_command)
		return json_reject(NAME, r->root, err, "code or command is missing");
	if (r->is_command && json_get(r->root, "args"))
		return json_reject(NAME, r->root, err,
				   "args belong to code; a command has its own in it");
	if (workdir && workdir->type == JSON_STRING && has_file(r, workdir->text))
		return json_reject(NAME, workdir, err, "workdir: '%s' is one of the files",
				   workdir->text);
	return 0;
}

int request_parse(const char *text, size_t size, const struct request_caps *caps, struct arena *a,
		  struct request *out, struct cj_error *err)
{
	struct request request = { .fit = FIT_INTERPRETER };
	struct reader r = { .caps = caps, .arena = a, .out = &request };

	if (size > caps->body_bytes)
		return cj_reject_as(err, EFBIG, NAME ": more than %zu bytes", caps->body_bytes);
	if (json_parse_capped(NAME, text, size, a, &request.root, err) < 0)
		return -err->code;
	if (request.root->type != JSON_OBJECT)
		return json_reject(NAME, request.root, err, "a request is an object, not %s",
				   json_type_name(request.root->type));
	if (profile_walk(NAME, request.root, read_key, &r, err) < 0 ||
	    check_whole(&request, err) < 0)
		return -err->code;
	if (request.is_command && request.fit < FIT_JAIL)
		request.fit = FIT_JAIL;
	*out = request;
	return 0;
}

/* --- onto a config --------------------------------------------------------------------- */

struct applying {
	struct config *c;
	bool may_name_host_paths;
};

static int refuse_host(const char *key, const struct json_node *node, struct cj_error *err)
{
	int rc = cj_reject_as(err, EACCES, NAME ":%u:%u: %s names something of the host",
			      node->key_line, node->key_column, key);
	cj_hint(err, "send what is needed in \"files\"; callers with \"host_paths\" in serve.json "
		     "may name paths");
	return rc;
}

static int apply_key(void *context, const char *key, const struct setting *s,
		     const struct json_node *node, struct cj_error *err)
{
	const struct applying *to = context;
	if (own_key_of(key))
		return 0;
	if (!s || s->scope == SCOPE_NO_REQUEST)
		return refuse_key(key, s, node, err);
	if (s->scope == SCOPE_HOST && !to->may_name_host_paths)
		return refuse_host(key, node, err);
	return profile_apply(to->c, NAME, s, node, err);
}

/* What a profile insists on stays: another profile is the way to have less. */
static int check_kept(const char *key, bool was, bool is, struct cj_error *err)
{
	if (!was || is)
		return 0;
	int rc =
	    cj_reject_as(err, EPERM, NAME ": %s is the profile's, and can't be taken back", key);
	cj_hint(err, "choose a profile without it");
	return rc;
}

int request_apply(const struct request *r, bool may_name_host_paths, struct config *c,
		  struct cj_error *err)
{
	struct applying to = { .c = c, .may_name_host_paths = may_name_host_paths };
	bool was_strict = c->strict, was_noexec = c->noexec;
	int rc = profile_walk(NAME, r->root, apply_key, &to, err);
	if (rc == 0)
		rc = check_kept("strict", was_strict, c->strict, err);
	if (rc == 0)
		rc = check_kept("noexec", was_noexec, c->noexec, err);
	return rc;
}

/* --- onto a plan ----------------------------------------------------------------------- */

static struct copy_spec *copies_of(const struct request *r, struct arena *a)
{
	struct copy_spec *copies = arena_array(a, r->nfiles + 1, sizeof(*copies));
	for (size_t i = 0; copies && i < r->nfiles; i++)
		copies[i] = (struct copy_spec){ .target = r->files[i].path,
						.is_executable = r->files[i].is_executable,
						.bytes = r->files[i].content.bytes,
						.size = r->files[i].content.size };
	return copies;
}

/* A terminal is for a person, and somebody else's result has nowhere to go. */
static int check_profile(const struct config *c, struct cj_error *err)
{
	if (!c->tty)
		return 0;
	int rc = cj_reject(err, "profile '%s' wants a terminal, which a request can't have",
			   c->profile_name);
	cj_hint(err, "use it with 'cejail run'");
	return rc;
}

int request_plan(const struct request *r, struct config *c, struct plan *out_plan,
		 struct program *out_program, struct cj_error *err)
{
	const struct copy_spec *copies = copies_of(r, &c->arena);
	if (!copies)
		return no_memory(err);
	if (check_profile(c, err) < 0)
		return -err->code;

	if (r->id)
		c->id = r->id;
	c->code = r->code.bytes;
	c->code_size = r->code.size;
	c->has_code = r->has_code;
	c->args_json = r->args_json;
	c->interactive = r->has_stdin;
	const struct invocation inv = {
		.args = r->args.items,
		.is_command = r->is_command,
		.copies = copies,
		.ncopies = r->nfiles,
		.keeps_artifacts = r->wants_artifacts,
	};
	return plan_make(c, &inv, out_plan, out_program, err);
}

int request_plan_jail(struct config *c, struct plan *out, struct cj_error *err)
{
	static const char *nothing[] = { "true", NULL };
	const struct request r = { .is_command = true, .args = { nothing, 1 } };
	struct program unused;
	return request_plan(&r, c, out, &unused, err);
}
