/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail session put`, `get`, `ls` and the other verbs of files.
 *
 * Names in the answers of the service come from programs in the jail.  They are printed, but no
 * file here gets such a name.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiles/paths.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/run/report/result_file.h"
#include "runtime/front/cli/session/session_call.h"

#define HOME     "/box"
#define FILE_MAX (256u << 20) /* the service has a limit of its own: "file_max" */

/* --- paths of the jail ------------------------------------------------------------------ */

/* A relative path begins at /box.  Slashes at the end are dropped. */
static int jail_path(struct session_call *c, const char *path, const char **out,
		     struct cj_error *err)
{
	char *full = arena_printf(&c->config.arena, "%s%s", path[0] == '/' ? "" : HOME "/", path);

	if (!full)
		return cj_fail(err, ENOMEM, "copy files");
	for (size_t size = strlen(full); size > 1 && full[size - 1] == '/'; size--)
		full[size - 1] = '\0';
	*out = full;
	return 0;
}

/* "/v1/sessions/ID/files/box/a.txt".  The query is not encoded. */
static int file_url(const struct session_call *c, const char *path, const char *query,
		    char url[static REMOTE_URL_MAX], struct cj_error *err)
{
	const char *const parts[] = { c->operands[0], "files", path + 1, NULL };

	if (cli_session_url(url, parts, err) < 0)
		return -err->code;
	size_t used = strlen(url), size = strlen(query);
	if (used + size + 1 > REMOTE_URL_MAX)
		return cj_fail(err, ENAMETOOLONG, "write the URL of the request");
	memcpy(url + used, query, size + 1);
	return 0;
}

/* --- put ---------------------------------------------------------------------------------- */

static int put_bytes(struct session_call *c, const char *path, bool is_executable,
		     const char *bytes, size_t size, struct cj_error *err)
{
	char url[REMOTE_URL_MAX];
	struct remote_fetch fetch = { .socket = c->socket,
				      .message = { .method = "PUT",
						   .path = url,
						   .accept = "application/json",
						   .body = bytes,
						   .size = size,
						   .type = "application/octet-stream" } };

	if (file_url(c, path, is_executable ? "?executable" : "", url, err) < 0)
		return -err->code;
	return remote_fetch(&fetch, NULL, NULL, err);
}

/* Each file is released after it is sent. */
static int put_fd(struct session_call *c, const char *path, bool is_executable, int fd,
		  struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *text = NULL;
	size_t size = 0;

	if (fd_read_all(fd, FILE_MAX, &a, &text, &size, path, err) < 0 ||
	    put_bytes(c, path, is_executable, text, size, err) < 0)
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
static int put_target(struct session_call *c, const char *source, const char **out,
		      struct cj_error *err)
{
	const char *dst = c->count > 2 ? c->operands[2] : "";
	size_t size = strlen(dst);
	bool is_dir = size == 0 || dst[size - 1] == '/';
	bool is_stdin = strcmp(source, "-") == 0;

	if (is_dir && is_stdin) {
		cj_refuse(err, "standard input has no name");
		return cj_hint(err, "write the name of the file: cejail session put ID - a.txt");
	}
	const char *name = is_dir ? arena_printf(&c->config.arena, "%s%s", dst, paths_name(source))
				  : dst;
	return name ? jail_path(c, name, out, err) : cj_fail(err, ENOMEM, "copy files");
}

int cli_session_put(struct session_call *c, struct cj_error *err)
{
	const char *source = c->operands[1], *target = NULL;

	if (put_target(c, source, &target, err) < 0 || cli_session_find_service(c, err) < 0)
		return -err->code;
	if (strcmp(source, "-") == 0)
		return put_fd(c, target, false, STDIN_FILENO, err);
	if (paths_absolute(source, &c->config.arena, &source, err) < 0)
		return -err->code;
	return inputs_walk(source, target, FILE_MAX, put_input, c, err);
}

/* --- get ---------------------------------------------------------------------------------- */

struct copy {
	int fd;
	const char *name; /* for messages */
};

static int write_piece(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	const struct copy *copy = context;

	return fd_write_all(copy->fd, bytes, size, copy->name, err);
}

static int fetch_file(const struct session_call *c, const char *path, const struct copy *copy,
		      struct cj_error *err)
{
	char url[REMOTE_URL_MAX];
	struct remote_fetch fetch = {
		.socket = c->socket,
		.message = { .method = "GET", .path = url, .accept = "application/octet-stream" }
	};

	if (file_url(c, path, "", url, err) < 0)
		return -err->code;
	return remote_fetch(&fetch, write_piece, (void *)copy, err);
}

/* The file appears when it is complete. */
static int fetch_to_file(const struct session_call *c, const char *path, const char *target,
			 struct cj_error *err)
{
	struct result_file file = RESULT_FILE_NULL;

	if (result_file_open(target, &file, err) < 0)
		return -err->code;
	const struct copy copy = { .fd = file.new.fd, .name = target };
	int rc = fetch_file(c, path, &copy, err);
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
	static const struct copy to_stdout = { .fd = STDOUT_FILENO, .name = "standard output" };
	const char *source = NULL, *target = NULL;

	if (jail_path(c, c->operands[1], &source, err) < 0 ||
	    get_target(c, source, &target, err) < 0 || cli_session_find_service(c, err) < 0)
		return -err->code;
	int rc = strcmp(target, "-") == 0 ? fetch_file(c, source, &to_stdout, err)
					  : fetch_to_file(c, source, target, err);
	return rc < 0 ? cj_wrap(err, "read '%s'", source) : 0;
}

/* --- ls, stat, mkdir, mv, watch, rm ------------------------------------------------------ */

static void print_entry(const struct json_node *entry)
{
	static const struct {
		const char *type;
		char letter;
	} types[] = { { "file", '-' }, { "directory", 'd' }, { "symlink", 'l' } };
	const char *type = json_get_text(entry, "type");
	uint64_t bytes = 0;
	char letter = '?';

	for (size_t i = 0; type && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].type, type) == 0)
			letter = types[i].letter;
	(void)json_get_u64(entry, "bytes", &bytes);
	const char *mtime = json_get_text(entry, "mtime");
	(void)printf("%c %12llu  ", letter, (unsigned long long)bytes);
	cli_session_print_text(mtime ? mtime : "-");
	(void)printf("  ");
	cli_session_print_text(json_get_text(entry, "path"));
	(void)printf("\n");
}

int cli_session_ls(struct session_call *c, struct cj_error *err)
{
	const struct json_node *answer = NULL;
	const char *path = NULL;
	char url[REMOTE_URL_MAX];
	bool wants_json = false;

	if (cli_session_wants_json(c, &wants_json, err) < 0 ||
	    jail_path(c, c->count > 1 ? c->operands[1] : HOME, &path, err) < 0 ||
	    cli_session_find_service(c, err) < 0 || file_url(c, path, "/?list", url, err) < 0)
		return -err->code;
	if (cli_session_ask(c, "GET", url, NULL, &answer, err) < 0)
		return cj_wrap(err, "list '%s'", path);
	const struct json_node *entries = json_get_typed(answer, "entries", JSON_ARRAY);
	const struct json_node *cut = json_get_typed(answer, "truncated", JSON_BOOL);
	if (!entries)
		return cj_reject(err, "the service's answer is not a list");
	if (wants_json)
		return cli_session_print_json(answer, err);
	for (const struct json_node *entry = entries->child; entry; entry = entry->next)
		print_entry(entry);
	if (cut && cut->boolean)
		log_warning("'%s' has more entries than the service lists", path);
	return 0;
}

int cli_session_stat(struct session_call *c, struct cj_error *err)
{
	const struct json_node *entry = NULL;
	const char *path = NULL;
	char url[REMOTE_URL_MAX];
	bool wants_json = false;

	if (cli_session_wants_json(c, &wants_json, err) < 0 ||
	    jail_path(c, c->operands[1], &path, err) < 0 || cli_session_find_service(c, err) < 0 ||
	    file_url(c, path, "?stat", url, err) < 0)
		return -err->code;
	if (cli_session_ask(c, "GET", url, NULL, &entry, err) < 0)
		return cj_wrap(err, "look at '%s'", path);
	if (wants_json)
		return cli_session_print_json(entry, err);
	print_entry(entry);
	return 0;
}

/* POST with one member; `to` NULL: mkdir. */
static int change(struct session_call *c, const char *path, const char *to, struct cj_error *err)
{
	auto_json_writer struct json_writer *body = json_writer_create(false);
	char url[REMOTE_URL_MAX];

	if (!body)
		return cj_fail(err, ENOMEM, "write the request");
	json_open_object(body);
	if (to)
		json_member_text(body, "rename", to);
	else
		json_member_bool(body, "mkdir", true);
	json_close_object(body);
	if (file_url(c, path, "", url, err) < 0)
		return -err->code;
	return cli_session_tell(c, "POST", url, body, err);
}

int cli_session_mkdir(struct session_call *c, struct cj_error *err)
{
	const char *path = NULL;

	if (cli_session_find_service(c, err) < 0)
		return -err->code;
	for (size_t i = 1; i < c->count; i++) {
		if (jail_path(c, c->operands[i], &path, err) < 0)
			return -err->code;
		if (change(c, path, NULL, err) < 0)
			return cj_wrap(err, "make '%s'", path);
	}
	return 0;
}

int cli_session_mv(struct session_call *c, struct cj_error *err)
{
	const char *path = NULL, *to = NULL;

	if (jail_path(c, c->operands[1], &path, err) < 0 ||
	    jail_path(c, c->operands[2], &to, err) < 0 || cli_session_find_service(c, err) < 0)
		return -err->code;
	return change(c, path, to, err) < 0 ? cj_wrap(err, "rename '%s'", path) : 0;
}

/* The service's lines are JSON, so a name can't forge one. */
static int print_piece(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	(void)context;
	return fd_write_all(STDOUT_FILENO, bytes, size, "standard output", err);
}

int cli_session_watch(struct session_call *c, struct cj_error *err)
{
	const char *path = NULL;
	char url[REMOTE_URL_MAX];
	struct remote_fetch fetch = {
		.socket = c->socket,
		.message = { .method = "GET", .path = url, .accept = "application/x-ndjson" }
	};

	if (jail_path(c, c->count > 1 ? c->operands[1] : HOME, &path, err) < 0 ||
	    cli_session_find_service(c, err) < 0)
		return -err->code;
	fetch.socket = c->socket;
	if (file_url(c, path, "?watch", url, err) < 0)
		return -err->code;
	return remote_fetch(&fetch, print_piece, NULL, err) < 0 ? cj_wrap(err, "watch '%s'", path)
								: 0;
}

static int remove_one(struct session_call *c, const char *operand, struct cj_error *err)
{
	const char *path = NULL;
	char url[REMOTE_URL_MAX];

	if (jail_path(c, operand, &path, err) < 0 || file_url(c, path, "", url, err) < 0)
		return -err->code;
	if (cli_session_tell(c, "DELETE", url, NULL, err) < 0)
		return cj_wrap(err, "remove '%s'", path);
	return 0;
}

int cli_session_rm(struct session_call *c, struct cj_error *err)
{
	if (cli_session_find_service(c, err) < 0)
		return -err->code;
	for (size_t i = 1; i < c->count; i++) {
		if (remove_one(c, c->operands[i], err) < 0)
			return -err->code;
	}
	return 0;
}
