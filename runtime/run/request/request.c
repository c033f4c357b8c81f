/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a request: what is the program's is read here, by a table of keys; all other keys
 * are settings, and go the way a profile's go.
 */
#include "runtime/run/request/request.h"

#include <elf.h>

#include "netns/address/allowlist.h"
#include "profiles/paths.h"
#include "profiles/profile.h"
#include "profiles/setting_types.h"
#include "rootfs/files/artifacts.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/text.h"
#include "runtime/run/request/rights.h"

#define NAME "request" /* in messages, where a file's path would stand */

static JSON_SETTER(profile)
{
	if (!is_name(text))
		return cj_reject(err, "'%.64s' is not a profile's name (a-z 0-9 _ -)", text);
	return json_set_string(in, k, text, record, err);
}

static JSON_SETTER(run_id)
{
	const struct setting *id = setting_by_option("id");
	struct config scratch;

	config_init(&scratch);
	int rc = id->parse(&scratch, id, text, err);
	config_fini(&scratch);
	return rc < 0 ? rc : json_set_string(in, k, text, record, err);
}

/* k->detail: where struct request_caps has the cap.  "base64" is that text alone. */
static JSON_READER(capped)
{
	struct json_key capped = *k;

	memcpy(&capped.max, (const char *)in->context + *(const size_t *)k->detail,
	       sizeof(capped.max));
	return strcmp(k->name, "base64") == 0 ? json_read_base64(in, &capped, node, record, err)
					      : json_read_blob(in, &capped, node, record, err);
}

#define CAP(field)                                                                                 \
	.read = json_read_capped, .detail = &(const size_t)                                        \
	{                                                                                          \
		offsetof(struct request_caps, field)                                               \
	}

static JSON_SETTER(command)
{
	struct request *r = record;

	if (!r->is_command && text[0] == '\0')
		return cj_reject(err, "the first argument, the program, is empty");
	r->is_command = true;
	return json_set_strings(in, k, text, record, err);
}

/* Written anew, since the tree is what was checked. */
static int read_json(const struct json_reader *in, const struct json_key *k,
		     const struct json_node *node, size_t max, const char **out,
		     struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text;
	json_put_node(w, node);
	if (json_writer_take(w, &text, err) < 0)
		return -err->code;
	if (text.size > max)
		return cj_reject_as(err, EFBIG, NAME ":%u:%u: %s: more than %zu bytes", node->line,
				    node->column, k->name, max);
	*out = arena_strndup(in->arena, text.bytes, text.size);
	return *out ? 0 : cj_fail(err, ENOMEM, "read the request");
}

static JSON_READER(args_json)
{
	struct request *r = record;
	return read_json(in, k, node, ARGS_JSON_MAX, &r->args_json, err);
}

static JSON_READER(tools)
{
	struct request *r = record;
	struct tool_list tools;
	if (node->type == JSON_BOOL && !node->boolean) {
		r->refuses_tools = true;
		return 0;
	}
	if (tool_list_read(in->file, node, in->arena, &tools, err) < 0)
		return -err->code;
	r->ntools = tools.names.count;
	return read_json(in, k, node, JSON_BYTES_MAX, &r->tools_json, err);
}

static JSON_SETTER(time)
{
	return parse_duration(text, json_field(k, record), err);
}

static JSON_SETTER(context)
{
	bool is_repl = strcmp(text, "repl") == 0;

	if (!is_repl && strcmp(text, "none") != 0)
		return cj_reject(err, "'%.64s' is neither 'none' nor 'repl'", text);
	*(bool *)json_field(k, record) = is_repl;
	return 0;
}

/* true and "inline" are the same; "changed" has the same limit. */
static JSON_READER(artifacts)
{
	struct request *r = record;
	bool is_changed = node->type == JSON_STRING && strcmp(node->text, "changed") == 0;
	uint64_t bytes = node->boolean || is_changed ? ARTIFACTS_INLINE_MAX : 0;

	if (node->type == JSON_STRING && !is_changed && parse_inline(node->text, &bytes, err) < 0)
		return cj_wrap(err, "%s:%u:%u: %s", in->file, node->line, node->column, k->name);
	if (node->type == JSON_STRING && bytes == 0)
		return json_reject(in->file, node, err,
				   "%s: '%.64s' is neither 'inline[:SIZE]' nor 'changed'", k->name,
				   node->text);
	r->artifacts_bytes = bytes;
	r->wants_artifacts = bytes > 0;
	r->wants_changed = is_changed;
	return 0;
}

struct file_draft {
	const char *path;
	struct blob text, base64;
	bool is_executable;
};

static JSON_SETTER(path)
{
	const char **path = json_field(k, record);
	int rc = paths_target(text, in->arena, path, err);
	if (rc == 0 && strlen(*path) >= INPUT_PATH_MAX)
		rc = cj_reject(err, "'%.64s...' is too long", text);
	return rc;
}

#define AT(field) .offset = offsetof(struct file_draft, field)
static const struct json_key file_keys[] = {
	{ "path", JSON_TAKES_STRING, .is_required = true, .set = json_set_path, AT(path) },
	{ "text", JSON_TAKES_STRING, CAP(file_bytes), AT(text) },
	{ "base64", JSON_TAKES_STRING, CAP(file_bytes), AT(base64) },
	{ "executable", JSON_TAKES_BOOL, .set = json_set_bool, AT(is_executable) },
};
#undef AT
static const struct json_record file_record = JSON_RECORD(file_keys, "a file");

static JSON_READER(file)
{
	struct request *r = record;
	struct file_draft draft = { .path = NULL };
	const struct json_reader below = json_below(in, k->name);

	if (r->nfiles == REQUEST_FILES_MAX)
		return json_reject(in->file, node, err, "files: more than %d", REQUEST_FILES_MAX);
	if (json_record_read(&below, node, &file_record, &draft, err) < 0)
		return -err->code;
	if (!draft.text.bytes == !draft.base64.bytes)
		return json_reject(in->file, node, err, "a file has either \"text\" or \"base64\"");
	const struct blob *content = draft.text.bytes ? &draft.text : &draft.base64;
	const struct copy_spec file = { .target = draft.path,
					.bytes = content->bytes,
					.size = content->size,
					.is_executable = draft.is_executable };
	return arena_append(in->arena, r->files, r->nfiles, file)
		   ? 0
		   : cj_fail(err, ENOMEM, "read the request");
}

/* The end, a slash, then all other bytes: a file stands right before all that lies below it. */
static unsigned rank_of(char c)
{
	unsigned u = (unsigned char)c;
	return u == 0 ? 0 : c == '/' ? 1 : u + 1;
}

static int by_path(const void *a, const void *b)
{
	const char *one = ((const struct copy_spec *)a)->target;
	const char *other = ((const struct copy_spec *)b)->target;

	while (*one && *one == *other)
		one++, other++;
	return (int)rank_of(*one) - (int)rank_of(*other);
}

/* Is one of the files, which are sorted, there? */
static bool has_file(const struct request *r, const char *path)
{
	const struct copy_spec wanted = { .target = path };

	return r->nfiles > 0 &&
	       bsearch(&wanted, r->files, r->nfiles, sizeof(*r->files), by_path) != NULL;
}

/* They have no order of their own: sorted, what excludes each other are neighbours. */
static int check_files(const struct request *r, struct cj_error *err)
{
	struct copy_spec *files = r->files;
	const struct json_node *node = json_get(r->root, "files");

	if (r->nfiles == 0)
		return 0;
	qsort(files, r->nfiles, sizeof(*files), by_path);
	for (size_t i = 1; i < r->nfiles; i++) {
		const char *path = files[i].target, *before = files[i - 1].target;
		if (strcmp(before, path) == 0)
			return json_reject(NAME, node, err, "files: '%s' is there twice", path);
		if (paths_is_below(path, before))
			return json_reject(
			    NAME, node, err,
			    "files: '%s' is a file, and '%s' needs a directory there", before,
			    path);
	}
	return 0;
}

#define AT(field) .offset = offsetof(struct request, field)
#define RUN       (1u << REQUEST_RUN)
#define SESSION   (1u << REQUEST_SESSION)
#define EXEC      (1u << REQUEST_EXEC)
#define STRING    JSON_TAKES_STRING
static const struct own_key {
	unsigned kinds; /* that have it */
	struct json_key key;
} own_keys[] = {
	{ RUN | SESSION | EXEC, { "profile", STRING, .set = json_set_profile, AT(profile) } },
	{ RUN | EXEC, { "id", STRING, .set = json_set_run_id, AT(id) } },
	{ RUN | EXEC, { "code", CAP(code_bytes), AT(code) } },
	{ RUN | EXEC,
	  { "command", STRING, .is_list = true, .if_empty = "it begins with the program",
	    .set = json_set_command, AT(args) } },
	{ RUN | EXEC, { "args", STRING, .is_list = true, .set = json_set_strings, AT(args) } },
	{ RUN | EXEC, { "args_json", .read = json_read_args_json } },
	{ RUN | SESSION | EXEC, { "tools", .read = json_read_tools } },
	{ RUN | EXEC, { "stdin", CAP(stdin_bytes), AT(stdin_bytes) } },
	{ RUN | EXEC, { "files", JSON_TAKES_OBJECT, .is_list = true, .read = json_read_file } },
	{ RUN | EXEC, { "artifacts", JSON_TAKES_BOOL | STRING, .read = json_read_artifacts } },
	{ SESSION, { "context", STRING, .set = json_set_context, AT(wants_repl) } },
	{ SESSION, { "lease", JSON_TAKES_NUMBER | STRING, .set = json_set_time, AT(lease_ms) } },
	{ SESSION, { "idle", JSON_TAKES_NUMBER | STRING, .set = json_set_time, AT(idle_ms) } },
	{ SESSION, { "renew_on_use", JSON_TAKES_BOOL, .set = json_set_bool, AT(renew_on_use) } },
	{ EXEC, { "detach", JSON_TAKES_BOOL, .set = json_set_bool, AT(detach) } },
	{ EXEC, { "interrupt", JSON_TAKES_BOOL, .set = json_set_bool, AT(interrupt) } },
	{ EXEC, { "open_stdin", JSON_TAKES_BOOL, .set = json_set_bool, AT(open_stdin) } },
};
#undef AT

const char *request_own_key(size_t i)
{
	return i < COUNT_OF(own_keys) ? own_keys[i].key.name : NULL;
}

static bool has_key(const struct own_key *own, enum request_kind kind)
{
	return (own->kinds & (1u << kind)) != 0;
}

static const struct json_key *own_key_of(const char *name, enum request_kind kind)
{
	for (size_t i = 0; i < COUNT_OF(own_keys); i++)
		if (has_key(&own_keys[i], kind) && strcmp(own_keys[i].key.name, name) == 0)
			return &own_keys[i].key;
	return NULL;
}

/* The row of settings[] and that of rights.h have to say so: either fails closed without the other.
 */
static bool is_askable(const struct setting *s)
{
	return s && s->scope != SCOPE_NO_REQUEST && rights_effect_of(s->key) >= 0;
}

enum request_fit request_fit_of(const struct setting *s)
{
	if (s->scope == SCOPE_RUN)
		return FIT_INTERPRETER;
	return s->scope == SCOPE_EXEC ? FIT_JAIL : FIT_COLD;
}

/* The nearest that may stand in a request; NULL: none is near. */
static const char *suggest_key(const char *key, enum request_kind kind)
{
	const char *names[COUNT_OF(own_keys) + 2] = { NULL };
	size_t count = 0;
	for (size_t i = 0; i < COUNT_OF(own_keys); i++)
		if (has_key(&own_keys[i], kind))
			names[count++] = own_keys[i].key.name;

	const char *near = setting_suggest_key(key);
	const struct setting *s = near ? setting_by_key(near) : NULL;
	if (is_askable(s))
		names[count] = near;
	return text_nearest(key, names);
}

static int refuse_key(const char *key, const struct setting *s, const struct json_node *node,
		      enum request_kind kind, struct cj_error *err)
{
	if (s) {
		(void)!json_reject_key(NAME, node, err, "%s can't be asked for", key);
		return cj_hint(err, "it is the profile's or the command line's");
	}
	return json_reject_unknown(NAME, node, key, suggest_key(key, kind), err);
}

struct request_reading {
	struct json_reader in;
	struct request *out;
};

static int read_key(void *context, const char *key, const struct setting *s,
		    const struct json_node *node, struct cj_error *err)
{
	const struct request_reading *r = context;
	enum request_kind kind = ((const struct request_caps *)r->in.context)->kind;
	const struct json_key *own = own_key_of(key, kind);
	if (own)
		return json_key_read(&r->in, own, node, r->out, err);
	if (!is_askable(s))
		return refuse_key(key, s, node, kind, err);
	if (kind == REQUEST_EXEC && request_fit_of(s) == FIT_COLD) {
		(void)!json_reject_key(NAME, node, err, "%s: it would change the session's jail",
				       key);
		return cj_hint(err, "set it when the session is created");
	}
	if (request_fit_of(s) > r->out->fit)
		r->out->fit = request_fit_of(s);
	return 0;
}

static int check_whole(const struct request *r, const struct request_caps *caps,
		       struct cj_error *err)
{
	const struct json_node *workdir = json_get(r->root, "workdir");

	if (!r->profile)
		return json_reject(NAME, r->root, err, "profile is missing");
	if (caps->kind == REQUEST_SESSION)
		return 0;
	if (caps->kind == REQUEST_EXEC && strcmp(r->profile, caps->profile) != 0)
		return json_reject(NAME, json_get(r->root, "profile"), err,
				   "profile: the session's is '%s'", caps->profile);
	if (r->open_stdin && r->has_stdin)
		return json_reject(NAME, json_get(r->root, "stdin"), err,
				   "stdin and open_stdin exclude each other");
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

int request_parse(struct blob body, const struct request_caps *caps, struct arena *a,
		  struct request *out, struct cj_error *err)
{
	struct request request = { .kind = caps->kind,
				   .profile = caps->profile,
				   .fit = FIT_INTERPRETER };
	struct request_caps capped = *caps;
	struct request_reading r = {
		.in = { .file = NAME, .arena = a, .context = &capped },
		.out = &request,
	};

	if (body.size > caps->body_bytes)
		return cj_reject_as(err, EFBIG, NAME ": more than %zu bytes", caps->body_bytes);
	if (json_parse_capped(NAME, body.bytes, body.size, a, &request.root, err) < 0)
		return -err->code;
	if (request.root->type != JSON_OBJECT)
		return json_reject(NAME, request.root, err, "a request is an object, not %s",
				   json_type_name(request.root->type));
	if (capped.code_bytes > CODE_BYTES_MAX)
		capped.code_bytes = CODE_BYTES_MAX;
	if (profile_walk(NAME, request.root, read_key, &r, err) < 0)
		return -err->code;
	request.has_code = request.code.bytes != NULL;
	request.has_stdin = request.stdin_bytes.bytes != NULL;
	if (check_files(&request, err) < 0 || check_whole(&request, caps, err) < 0)
		return -err->code;
	if (request.is_command && request.fit < FIT_JAIL)
		request.fit = FIT_JAIL;
	*out = request;
	return 0;
}

struct applying {
	struct config *c;
	bool may_name_host_paths;
	enum request_kind kind;
};

static int apply_key(void *context, const char *key, const struct setting *s,
		     const struct json_node *node, struct cj_error *err)
{
	const struct applying *to = context;
	if (own_key_of(key, to->kind))
		return 0;
	if (!is_askable(s))
		return refuse_key(key, s, node, to->kind, err);
	if (s->scope == SCOPE_HOST && !to->may_name_host_paths) {
		cj_refuse_as(err, EACCES, NAME ":%u:%u: %s names something of the host",
			     node->key_line, node->key_column, key);
		return cj_hint(err,
			       "send what is needed in \"files\"; callers with \"host_paths\" in "
			       "serve.json may name paths");
	}
	return profile_apply(to->c, NAME, s, node, err);
}

int request_apply(const struct request *r, bool may_name_host_paths, struct config *c,
		  struct cj_error *err)
{
	struct applying to = { c, may_name_host_paths, r->kind };
	const struct config before = *c; /* its flags, not its lists */

	if (profile_walk(NAME, r->root, apply_key, &to, err) < 0)
		return -err->code;
	return rights_validate_kept(c, &before, err);
}

static const struct json_node *network_list(const struct request *r, const char *key)
{
	return json_get_items(json_get(r->root, "network"), key);
}

/* An address is checked here; a name is resolved only when the run begins. */
static int check_address(const struct json_node *node, const struct config *c, struct arena *a,
			 struct cj_error *err)
{
	struct endpoints ignored;
	struct cj_error why = { 0 };
	struct allowlist_entry target;

	if (node->type != JSON_STRING || allowlist_parse(node->text, a, &target, &why) < 0 ||
	    target.name || allowlist_resolve(&target, 1, c->allow_private, a, &ignored, &why) >= 0)
		return 0;
	/* Leave out the hint about the command line. */
	char *never = strstr(why.msg, ", and --allow");
	const char *reason = strchr(why.msg, '\'');
	if (never)
		*never = '\0';
	cj_refuse(err, NAME ":%u:%u: network.allow: %s", node->line, node->column,
		  reason ? reason : why.msg);
	if (!never)
		cj_hint(err, "a profile, or a caller with \"host_paths\", may set "
			     "network.allow_private");
	return -err->code;
}

/* A command that is the file itself runs a program, or a script by its "#!" line. */
static bool has_interpreter(const struct request *r, const struct config *c)
{
	if (c->command.count == 0)
		return false;
	if (strcmp(c->command.items[0], "{file}") != 0)
		return true;
	return (r->code.size >= 2 && memcmp(r->code.bytes, "#!", 2) == 0) ||
	       (r->code.size >= SELFMAG && memcmp(r->code.bytes, ELFMAG, SELFMAG) == 0);
}

int request_check(const struct request *r, const struct config *c, struct arena *a,
		  struct cj_error *err)
{
	if (r->has_code && !has_interpreter(r, c)) {
		(void)!json_reject(NAME, json_get(r->root, "code"), err,
				   "code: profile '%s' has no interpreter for it", r->profile);
		return cj_hint(err, "choose another profile, or send a command");
	}
	for (const struct json_node *n = network_list(r, "allow"); n && c->network != NETWORK_NONE;
	     n = n->next)
		if (check_address(n, c, a, err) < 0)
			return -err->code;
	return 0;
}

static bool has_text(const struct json_node *first, const char *text)
{
	for (const struct json_node *n = first; n; n = n->next)
		if (n->type == JSON_STRING && strcmp(n->text, text) == 0)
			return true;
	return false;
}

bool request_names(const struct request *r, const char *text)
{
	const struct json_node *workdir = json_get(r->root, "workdir");

	if (workdir && workdir->type == JSON_STRING && strcmp(workdir->text, text) == 0)
		return true;
	for (size_t i = 0; i < r->nfiles; i++)
		if (strcmp(r->files[i].target, text) == 0)
			return true;
	return has_text(network_list(r, "allow"), text) || has_text(network_list(r, "deny"), text);
}

int request_invoke(const struct request *r, struct config *c, struct invocation *out,
		   struct cj_error *err)
{
	/* A terminal is for a person, and somebody else's result has nowhere to go. */
	if (c->tty) {
		cj_refuse(err, "profile '%s' wants a terminal, which a request can't have",
			  c->profile_name);
		return cj_hint(err, "use it with 'cejail run'");
	}

	if (r->id)
		c->id = r->id;
	c->code = r->code.bytes;
	c->code_size = r->code.size;
	c->has_code = r->has_code;
	if (r->args_json)
		c->args_json = r->args_json;
	*out = (struct invocation){
		.args = r->args.items,
		.is_command = r->is_command,
		.copies = r->files,
		.ncopies = r->nfiles,
		.keeps_artifacts = r->wants_artifacts,
		.tools_json = r->tools_json,
	};
	return 0;
}

int request_plan(const struct request *r, struct config *c, struct plan *out_plan,
		 struct program *out_program, struct cj_error *err)
{
	struct invocation inv;
	if (request_invoke(r, c, &inv, err) < 0)
		return -err->code;
	c->interactive = r->has_stdin || r->open_stdin;
	return plan_make(c, &inv, out_plan, out_program, err);
}

int request_plan_jail(struct config *c, struct plan *out, struct cj_error *err)
{
	static const char *nothing[] = { "true", NULL };
	const struct request r = { .is_command = true, .args = { nothing, 1 } };
	struct program unused;
	return request_plan(&r, c, out, &unused, err);
}
