/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/client/remote_request.h"

#include <inttypes.h>
#include <limits.h>

#include "profiles/paths.h"
#include "profiles/profile.h"
#include "rootfs/files/artifacts.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

struct gather {
	struct config *c;
	struct remote_request *out;
	struct strings *warnings;
	struct copy_spec *files;
	size_t count;
	uint64_t bytes;        /* of all files */
	const char *empty_dir; /* the directory entered last; NULL: it is not empty */
};

const char *remote_request_absolute(const char *text, size_t skip, bool each_part, const char *dir,
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
		if (begins && text[i] != '/') {
			used += paths_escape(dir, out + used);
			out[used++] = '/';
		}
		bool is_escape = text[i] == '\\' && i + 1 < size;
		begins = each_part && text[i] == ':';
		out[used++] = text[i];
		if (is_escape)
			out[used++] = text[++i];
	}
	return out;
}

/* JSON is UTF-8: other bytes would reach the program changed. */
static int check_text(const char *named, const char *text, struct cj_error *err)
{
	if (is_utf8(text, strlen(text)))
		return 0;
	cj_refuse(err, "%s: '%s' is not UTF-8 and cannot be sent to a service", named, text);
	return cj_hint(err, "pass it in a file, or on standard input");
}

static int choose_settings(struct gather *g, const struct options *o, const bool **out_wanted,
			   struct cj_error *err)
{
	bool *wanted = arena_array(&g->c->arena, settings_count, sizeof(*wanted));
	if (!wanted)
		return cj_fail(err, ENOMEM, "prepare the request");

	for (size_t i = 0; i < o->count; i++) {
		const struct given *given = &o->items[i];
		const char *key = given->setting->key;
		if (!key || strcmp(key, "file") == 0 || strcmp(key, "interactive") == 0)
			continue; /* their content is sent, not their value */
		wanted[given->setting - settings] = true;
		if (given->value && check_text(given->named, given->value, err) < 0)
			return -err->code;
	}
	*out_wanted = wanted;
	return 0;
}

/* --env NAME: takes the value from the caller's environment. */
static int take_variables(struct gather *g, struct cj_error *err)
{
	struct strings *env = &g->c->env;

	for (size_t i = 0; i < env->count; i++) {
		const char *name = env->items[i];
		if (strchr(name, '='))
			continue;
		const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe) */
		if (!value) {
			cj_refuse(err, "--env '%s' is not set here", name);
			return cj_hint(err, "give it a value: --env %s=VALUE", name);
		}
		if (check_text("--env", value, err) < 0)
			return -err->code;
		env->items[i] = arena_printf(&g->c->arena, "%s=%s", name, value);
		if (!env->items[i])
			return cj_fail(err, ENOMEM, "prepare the request");
	}
	return 0;
}

int remote_request_make_absolute(const char **text, size_t skip, bool each_part, struct arena *a,
				 struct cj_error *err)
{
	char dir[PATH_MAX];

	if (!getcwd(dir, sizeof(dir)))
		return cj_fail(err, errno, "find the current directory");
	*text =
	    remote_request_absolute(*text, skip, each_part, strcmp(dir, "/") == 0 ? "" : dir, a);
	return *text ? 0 : cj_fail(err, ENOMEM, "prepare the request");
}

/* The service runs on this host, but in another working directory. */
static int make_all_absolute(struct gather *g, struct cj_error *err)
{
	static const char unix_prefix[] = "unix:";
	struct config *c = g->c;
	struct strings *lists[] = { &c->ro_binds, &c->binds, &c->overlays };
	int rc = 0;

	for (size_t i = 0; i < COUNT_OF(lists); i++)
		for (size_t k = 0; rc == 0 && k < lists[i]->count; k++)
			rc = remote_request_make_absolute(&lists[i]->items[k], 0, false, &c->arena,
							  err);
	for (size_t k = 0; rc == 0 && k < c->connects.count; k++) {
		if (text_begins_with(c->connects.items[k], unix_prefix))
			rc = remote_request_make_absolute(
			    &c->connects.items[k], sizeof(unix_prefix) - 1, false, &c->arena, err);
	}
	if (rc == 0 && strchr(c->rootfs, '/'))
		rc = remote_request_make_absolute(&c->rootfs, 0, true, &c->arena, err);
	if (rc == 0 && strchr(c->seccomp, '/'))
		rc = paths_absolute(c->seccomp, &c->arena, &c->seccomp, err);
	return rc;
}

int remote_request_gather_settings(struct config *c, const struct options *o,
				   const bool **out_wanted, struct cj_error *err)
{
	struct gather g = { .c = c };

	if (choose_settings(&g, o, out_wanted, err) < 0 || take_variables(&g, err) < 0)
		return -err->code;
	return make_all_absolute(&g, err);
}

static int keep_file(struct gather *g, const struct copy_spec *file, struct cj_error *err)
{
	return arena_append(&g->c->arena, g->files, g->count, *file)
		   ? 0
		   : cj_fail(err, ENOMEM, "prepare the request");
}

static int read_file(struct gather *g, const char *target, bool is_executable, int fd,
		     struct cj_error *err)
{
	struct copy_spec file = { .target = arena_strdup(&g->c->arena, target),
				  .is_executable = is_executable };
	char *text = NULL;

	if (!file.target)
		return cj_fail(err, ENOMEM, "prepare the request");
	if (fd_read_all(fd, REMOTE_INPUT_MAX, &g->c->arena, &text, &file.size, target, err) < 0)
		return -err->code;
	file.bytes = text;
	g->bytes += file.size;
	if (g->bytes > REMOTE_FILES_MAX)
		return cj_reject_as(err, EFBIG, "the files together are larger than %u MiB",
				    REMOTE_FILES_MAX >> 20);
	return keep_file(g, &file, err);
}

/* A request has files and no directories, so an empty directory cannot be sent. */
static int end_directory(struct gather *g, struct cj_error *err)
{
	if (!g->empty_dir)
		return 0;
	const char *sentence = arena_printf(
	    &g->c->arena, "--file: the empty directory '%s' is not sent to the service",
	    g->empty_dir);
	g->empty_dir = NULL;
	if (strings_add(g->warnings, &g->c->arena, sentence) < 0)
		return cj_fail(err, ENOMEM, "prepare the request");
	return 0;
}

static int take_input(void *context, const struct input *in, int fd, struct cj_error *err)
{
	struct gather *g = context;

	if (in->kind == INPUT_DIRECTORY_END)
		return 0;
	if (g->empty_dir && paths_is_below(in->path, g->empty_dir))
		g->empty_dir = NULL;
	if (end_directory(g, err) < 0)
		return -err->code;
	if (in->kind == INPUT_FILE)
		return read_file(g, in->path, (in->mode & 0111) != 0, fd, err);
	if (in->kind == INPUT_SYMLINK) {
		cj_refuse(err, "'%s' is a symbolic link, which cannot be sent to a service",
			  in->path);
		return cj_hint(err, "replace it by a copy of its target");
	}
	g->empty_dir = arena_strdup(&g->c->arena, in->path);
	return g->empty_dir ? 0 : cj_fail(err, ENOMEM, "prepare the request");
}

static int gather_file(struct gather *g, const char *text, struct cj_error *err)
{
	struct arena *a = &g->c->arena;
	const char *source, *target;

	if (paths_split(text, a, &source, &target, err) < 0 ||
	    paths_absolute(source, a, &source, err) < 0 ||
	    paths_target(target ? target : paths_name(source), a, &target, err) < 0)
		return -err->code;
	int rc = inputs_walk(source, target, REMOTE_INPUT_MAX, take_input, g, err);
	return rc < 0 ? rc : end_directory(g, err);
}

static int gather_stdin(struct gather *g, const char *text, struct cj_error *err)
{
	const char *target = NULL;

	if (plan_stdin_target(text, &g->c->arena, &target, err) < 0)
		return -err->code;
	return read_file(g, target, false, STDIN_FILENO, err);
}

static int gather_files(struct gather *g, struct cj_error *err)
{
	const struct config *c = g->c;

	for (size_t i = 0; i < c->files.count; i++) {
		const char *text = c->files.items[i];
		int rc = plan_is_stdin(text) ? gather_stdin(g, text, err)
					     : gather_file(g, text, err);
		if (rc < 0)
			return cj_wrap(err, "--file");
	}
	for (size_t i = 0; i < c->file_texts.count; i++) {
		struct copy_spec copy;
		if (plan_file_text(c->file_texts.items[i], &g->c->arena, &copy, err) < 0)
			return cj_wrap(err, "--file-text");
		if (keep_file(g, &copy, err) < 0)
			return -err->code;
	}
	g->out->files = g->files;
	g->out->nfiles = g->count;
	return 0;
}

static int read_stream(struct gather *g, int fd, size_t max, const char *what, struct blob *out,
		       struct cj_error *err)
{
	char *text = NULL;

	if (fd_read_all(fd, max, &g->c->arena, &text, &out->size, what, err) < 0)
		return -err->code;
	out->bytes = text;
	return 0;
}

/*
 * If the profile keeps the extension of the file (.mjs), the service shall use the same name.  The
 * profile of this host decides; without it, the service chooses the name.
 */
static int choose_file_name(struct gather *g, const char *file, struct cj_error *err)
{
	struct cj_error ignored = { 0 };
	struct config here;
	const char *profile = g->out->profile;

	config_init(&here);
	if (!profile && profile_for_file(&here, file, &profile, &ignored) < 0)
		profile = NULL;
	if (profile && profile_load(&here, profile, &ignored) == 0) {
		const char *plain = plan_code_name(&here, NULL, &here.arena);
		const char *name = plan_code_name(&here, file, &g->c->arena);
		if (!name || !plain)
			(void)!cj_fail(err, ENOMEM, "prepare the request");
		else if (strcmp(name, plain) != 0)
			g->out->file_name = name;
	}
	config_fini(&here);
	return -err->code;
}

static int gather_code(struct gather *g, const char *file, struct cj_error *err)
{
	struct blob *code = &g->out->code;

	if (g->c->has_code) {
		*code = (struct blob){ g->c->code, strlen(g->c->code) };
		return 0;
	}
	if (!file)
		return 0;
	if (strcmp(file, "-") == 0)
		return read_stream(g, STDIN_FILENO, CODE_BYTES_MAX, "standard input", code, err);

	char real[PATH_MAX];
	auto_fd int fd = fd_open_linked(file, err);
	if (fd < 0 || read_stream(g, fd, CODE_BYTES_MAX, file, code, err) < 0)
		return -err->code;
	if (fd_real_path(fd, real))
		log_debug("the program is the file '%s'", real);
	return choose_file_name(g, file, err);
}

int remote_request_gather(const struct remote_call *call, struct remote_request *out,
			  struct strings *warnings, struct cj_error *err)
{
	struct config *c = call->config;
	const struct invocation *inv = call->invocation;
	struct gather g = { .c = c, .out = out, .warnings = warnings };
	const char *args_json;

	if (out->profile && strchr(out->profile, '/')) {
		cj_refuse(err,
			  "--profile: '%s' is a file, but a service uses only its own profiles",
			  out->profile);
		return cj_hint(
		    err, "write the name of a profile of the service; GET /v1/profiles lists them");
	}
	out->config = c;
	if (call->exec) {
		out->interrupts = call->exec->interrupts;
		out->is_detached = call->exec->kind == REMOTE_EXEC_DETACHED;
		out->has_open_stdin = c->interactive && !out->is_detached;
	}
	out->is_command = inv->is_command;
	out->args = inv->args;
	out->artifacts_bytes = c->artifacts ? ARTIFACTS_INLINE_MAX : c->artifacts_inline_bytes;
	for (const char *const *arg = inv->args; arg && *arg; arg++) {
		if (check_text("argument", *arg, err) < 0)
			return -err->code;
	}
	if (remote_request_gather_settings(c, call->options, &out->wanted, err) < 0 ||
	    gather_code(&g, inv->file, err) < 0 || gather_files(&g, err) < 0 ||
	    plan_read_args(c, &args_json, &out->args_json, err) < 0)
		return -err->code;
	return c->interactive && !call->exec ? read_stream(&g, STDIN_FILENO, REMOTE_INPUT_MAX,
							   "standard input", &out->input, err)
					     : 0;
}

/* "key": "text", or "key": {"base64": "..."}.  A NUL follows the bytes. */
static void put_blob(struct json_writer *w, const char *key, const struct blob *b)
{
	if (!b->bytes)
		return;
	json_put_key(w, key);
	if (!memchr(b->bytes, '\0', b->size) && is_utf8(b->bytes, b->size)) {
		json_put_string(w, b->bytes);
		return;
	}
	json_open_object(w);
	json_put_bytes(w, b->bytes, b->size);
	json_close_object(w);
}

static void put_files(struct json_writer *w, const struct remote_request *r)
{
	if (r->nfiles == 0)
		return;
	json_member_array(w, "files");
	for (size_t i = 0; i < r->nfiles; i++) {
		const struct copy_spec *f = &r->files[i];
		json_open_object(w);
		json_member_text(w, "path", f->target);
		json_put_bytes(w, f->bytes, f->size);
		if (f->is_executable)
			json_member_bool(w, "executable", true);
		json_close_object(w);
	}
	json_close_array(w);
}

static void put_program(struct json_writer *w, const struct remote_request *r)
{
	if (r->is_command) {
		json_member_texts(w, "command", r->args, r->args ? SIZE_MAX : 0);
	} else {
		put_blob(w, "code", &r->code);
		json_member_given(w, "file_name", r->file_name);
		if (r->args && r->args[0])
			json_member_texts(w, "args", r->args, SIZE_MAX);
	}
	put_blob(w, "stdin", &r->input);
	put_files(w, r);
	if (r->args_json)
		json_member_node(w, "args_json", r->args_json);
	if (r->tools && r->tools->catalogue) {
		json_put_key(w, "tools");
		json_put_raw(w, r->tools->catalogue, r->tools->catalogue_size);
	} else if (!r->profile) { /* an exec: nobody here answers calls of the session's tools */
		json_member_bool(w, "tools", false);
	}
	if (r->artifacts_bytes == ARTIFACTS_INLINE_MAX) { /* true is what every service knows */
		json_member_bool(w, "artifacts", true);
	} else if (r->artifacts_bytes > 0) {
		char text[32];
		(void)snprintf(text, sizeof(text), "inline:%" PRIu64, r->artifacts_bytes);
		json_member_text(w, "artifacts", text);
	}
}

void remote_request_write(struct json_writer *w, const struct remote_request *r)
{
	json_open_object(w);
	json_member_given(w, "profile", r->profile);
	json_member_given(w, "id", r->id);
	put_program(w, r);
	profile_put(w, r->config, r->wanted);
	if (r->interrupts)
		json_member_bool(w, "interrupt", true);
	if (r->is_detached)
		json_member_bool(w, "detach", true);
	if (r->has_open_stdin)
		json_member_bool(w, "open_stdin", true);
	json_close_object(w);
}
