/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail session put`, `get`, `ls` and the other verbs of files.
 *
 * Names in the answers of the service come from programs in the jail.  They are printed, but no
 * file here gets such a name.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "profiles/paths.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/run/report/result_file.h"
#include "runtime/front/cli/session/session_call.h"

#define HOME  "/box"
#define BYTES "application/octet-stream"
/* "/v1/sessions/ID/files/box/a.txt" */
#define FILE_PARTS(c, path) SESSION_PARTS((c)->operands[0], "files", (path) + 1)

#define FILE_MAX (256u << 20) /* the service has a limit of its own: "file_max" */

/* A relative path begins at /box.  Slashes at the end are dropped.  NULL: no memory. */
static const char *jail_path(struct session_call *c, const char *path, struct cj_error *err)
{
	char *full = arena_printf(&c->config.arena, "%s%s", path[0] == '/' ? "" : HOME "/", path);

	if (!full) {
		(void)!cj_fail(err, ENOMEM, "write the request");
		return NULL;
	}
	for (size_t size = strlen(full); size > 1 && full[size - 1] == '/'; size--)
		full[size - 1] = '\0';
	return full;
}

/* A request about a file; the failure is "DOING 'PATH': WHY".  out NULL: without an answer. */
static int ask(struct session_call *c, const char *doing, const char *method, const char *path,
	       const char *query, struct json_writer *body, const struct json_node **out,
	       struct cj_error *err)
{
	if (!path)
		return -err->code;
	if (cli_session_ask(c, method, FILE_PARTS(c, path), query, body, out, err) < 0)
		return cj_wrap(err, "%s '%s'", doing, path);
	return 0;
}

/* Bytes of an answer go to a descriptor. */
struct copy {
	int fd;
	const char *name; /* for messages */
};
static const struct copy to_stdout = { .fd = STDOUT_FILENO, .name = "standard output" };

static int write_piece(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	const struct copy *copy = context;

	return fd_write_all(copy->fd, bytes, size, copy->name, err);
}

static int fetch(const struct session_call *c, const char *path, const char *query,
		 const char *type, const struct copy *copy, struct cj_error *err)
{
	char url[REMOTE_URL_MAX];
	const struct remote_fetch f = {
		.socket = c->socket,
		.message = { .method = "GET", .path = url, .accept = type },
	};

	if (cli_session_url(url, FILE_PARTS(c, path), query, err) < 0)
		return -err->code;
	return remote_fetch(&f, write_piece, (void *)copy, err);
}

/* Each file is released after it is sent. */
static int put_fd(struct session_call *c, const char *path, bool is_executable, int fd,
		  struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *text = NULL;
	char url[REMOTE_URL_MAX];
	struct remote_fetch f = {
		.socket = c->socket,
		.message = { .method = "PUT", .path = url, .type = BYTES },
	};

	if (fd_read_all(fd, FILE_MAX, &a, &text, &f.message.body.size, path, err) < 0)
		return cj_wrap(err, "write '%s'", path);
	f.message.body.bytes = text;
	if (cli_session_url(url, FILE_PARTS(c, path), is_executable ? "?executable" : NULL, err) <
		0 ||
	    remote_fetch(&f, NULL, NULL, err) < 0)
		return cj_wrap(err, "write '%s'", path);
	return 0;
}

static int put_input(void *context, const struct input *in, int fd, struct cj_error *err)
{
	struct session_call *c = context;

	if (in->kind == INPUT_FILE)
		return put_fd(c, in->path, (in->mode & 0111) != 0, fd, err);
	if (in->kind != INPUT_SYMLINK)
		return 0; /* the service creates the directories of a file */
	cj_refuse(err, "'%s' is a symbolic link, which cannot be sent to a service", in->path);
	return cj_hint(err, "replace it by a copy of its target");
}

/* DST of "put ID SRC DST/" is a directory. */
static const char *put_target(struct session_call *c, const char *source, struct cj_error *err)
{
	const char *dst = c->count > 2 ? c->operands[2] : "";
	size_t size = strlen(dst);
	bool is_dir = size == 0 || dst[size - 1] == '/';

	if (is_dir && strcmp(source, "-") == 0) {
		cj_refuse(err, "standard input has no name");
		cj_hint(err, "write the name of the file: cejail session put ID - a.txt");
		return NULL;
	}
	if (!is_dir)
		return jail_path(c, dst, err);
	const char *path = arena_printf(&c->config.arena, "%s%s", dst, paths_name(source));
	if (!path)
		(void)!cj_fail(err, ENOMEM, "copy files");
	return path ? jail_path(c, path, err) : NULL;
}

int cli_session_put(struct session_call *c, struct cj_error *err)
{
	const char *source = c->operands[1], *target = put_target(c, source, err);

	if (!target)
		return -err->code;
	if (strcmp(source, "-") == 0)
		return put_fd(c, target, false, STDIN_FILENO, err);
	if (paths_absolute(source, &c->config.arena, &source, err) < 0)
		return -err->code;
	return inputs_walk(source, target, FILE_MAX, put_input, c, err);
}

/* The file appears when it is complete. */
static int fetch_to_file(const struct session_call *c, const char *path, const char *target,
			 struct cj_error *err)
{
	struct result_file file = RESULT_FILE_NULL;

	if (result_file_open(target, &file, err) < 0)
		return -err->code;
	const struct copy copy = { .fd = file.new.fd, .name = target };
	int rc = fetch(c, path, NULL, BYTES, &copy, err);
	if (rc == 0)
		rc = result_file_publish(&file, err);
	result_file_fini(&file);
	return rc;
}

/* "get ID a.txt DIR" writes DIR/a.txt, as cp(1) does. */
static int get_target(struct session_call *c, const char *source, const char **out,
		      struct cj_error *err)
{
	const char *dst = c->count > 2 ? c->operands[2] : ".";
	struct stat st;

	*out = dst;
	if (stat(dst, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	*out = arena_printf(&c->config.arena, "%s/%s", dst, paths_name(source));
	return *out ? 0 : cj_fail(err, ENOMEM, "copy files");
}

int cli_session_get(struct session_call *c, struct cj_error *err)
{
	const char *source = jail_path(c, c->operands[1], err), *target = NULL;

	if (!source || get_target(c, source, &target, err) < 0)
		return -err->code;
	int rc = strcmp(target, "-") == 0 ? fetch(c, source, NULL, BYTES, &to_stdout, err)
					  : fetch_to_file(c, source, target, err);
	return rc < 0 ? cj_wrap(err, "read '%s'", source) : 0;
}

static void print_entry(const struct json_node *entry)
{
	static const struct {
		const char *type;
		char letter;
	} types[] = { { "file", '-' }, { "directory", 'd' }, { "symlink", 'l' } };
	const char *type = json_get_text(entry, "type");
	char letter = '?';

	for (size_t i = 0; type && i < COUNT_OF(types); i++)
		if (strcmp(types[i].type, type) == 0)
			letter = types[i].letter;
	const char *mtime = json_get_text(entry, "mtime");
	(void)printf("%c %12llu  ", letter, (unsigned long long)json_get_number(entry, "bytes"));
	cli_session_print_text(mtime ? mtime : "-");
	(void)printf("  ");
	cli_session_print_text(json_get_text(entry, "path"));
	(void)printf("\n");
}

int cli_session_ls(struct session_call *c, struct cj_error *err)
{
	const struct json_node *answer = NULL;
	const char *path = jail_path(c, c->count > 1 ? c->operands[1] : HOME, err);

	if (ask(c, "list", "GET", path, "/?list", NULL, &answer, err) < 0)
		return -err->code;
	const struct json_node *entries = json_get_typed(answer, "entries", JSON_ARRAY);
	if (!entries)
		return cj_reject(err, "the service's answer is not a list");
	if (c->json)
		return cli_session_print_json(answer, err);
	for (const struct json_node *entry = entries->child; entry; entry = entry->next)
		print_entry(entry);
	if (json_is_true(answer, "truncated"))
		log_warning("'%s' has more entries than the service lists", path);
	return 0;
}

int cli_session_stat(struct session_call *c, struct cj_error *err)
{
	const struct json_node *entry = NULL;
	const char *path = jail_path(c, c->operands[1], err);

	if (ask(c, "look at", "GET", path, "?stat", NULL, &entry, err) < 0)
		return -err->code;
	if (c->json)
		return cli_session_print_json(entry, err);
	print_entry(entry);
	return 0;
}

int cli_session_mkdir(struct session_call *c, struct cj_error *err)
{
	auto_json_writer struct json_writer *body = cli_session_body("mkdir", NULL, err);
	int rc = body ? 0 : -err->code;

	for (size_t i = 1; rc == 0 && i < c->count; i++)
		rc = ask(c, "make", "POST", jail_path(c, c->operands[i], err), NULL, body, NULL,
			 err);
	return rc;
}

int cli_session_mv(struct session_call *c, struct cj_error *err)
{
	const char *path = jail_path(c, c->operands[1], err);
	const char *to = path ? jail_path(c, c->operands[2], err) : NULL;
	auto_json_writer struct json_writer *body = to ? cli_session_body("rename", to, err) : NULL;

	return body ? ask(c, "rename", "POST", path, NULL, body, NULL, err) : -err->code;
}

/* The service's lines are JSON, so a name can't forge one. */
int cli_session_watch(struct session_call *c, struct cj_error *err)
{
	const char *path = jail_path(c, c->count > 1 ? c->operands[1] : HOME, err);

	if (!path)
		return -err->code;
	int rc = fetch(c, path, "?watch", "application/x-ndjson", &to_stdout, err);
	return rc < 0 ? cj_wrap(err, "watch '%s'", path) : 0;
}

int cli_session_rm(struct session_call *c, struct cj_error *err)
{
	int rc = 0;

	for (size_t i = 1; rc == 0 && i < c->count; i++)
		rc = ask(c, "remove", "DELETE", jail_path(c, c->operands[i], err), NULL, NULL, NULL,
			 err);
	return rc;
}
