/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover - the supervisor sends a sealed init its program.
 *
 * Each file is opened once, here, with the caller's rights; init writes it as the jail's user.  The
 * code of a file is first copied to a sealed memfd and hashed there, so the hash in the result is
 * of the bytes that ran.
 */
#include "runtime/jail/supervise/start.h"

#include <sys/mman.h>

#include "profiles/paths.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/jail/jail_state.h"
#include "runtime/jail/step_bytes.h"

/* The inputs of one program; those in the pack are sent before the next that is not. */
struct handover {
	struct jail *j;
	struct input_pack pack;
};

/* An earlier program may have left a file of that name. */
static bool may_exist(const struct jail *j)
{
	return j->is_shared || j->was_set_up;
}

static int send_pack(struct handover *h, struct cj_error *err)
{
	const struct files_head head = { .replaces = may_exist(h->j) };
	const struct step_bytes bytes = { &head, sizeof(head), h->pack.parts, 3 * h->pack.count };
	if (h->pack.count == 0)
		return 0;
	h->pack.count = h->pack.size = 0;
	return step_tell_bytes(&h->j->link, STEP_FILES, &bytes, "files", NULL, 0, err);
}

static int send_input(void *context, const struct input *in, int fd, struct cj_error *err)
{
	struct handover *h = context;
	struct input sent = *in;
	sent.replaces = may_exist(h->j);
	if (send_pack(h, err) < 0)
		return -err->code;
	return step_tell(&h->j->link, STEP_INPUT, &sent, sizeof(sent), &fd, fd >= 0, err);
}

/* A regular file in the jail. */
struct sent_file {
	const char *path;
	mode_t mode;
	uint64_t max_bytes;
};

static int send_file(struct handover *h, const struct sent_file *file, int fd, struct cj_error *err)
{
	struct input in = { .kind = INPUT_FILE, .mode = file->mode, .max_bytes = file->max_bytes };
	if (strlen(file->path) >= sizeof(in.path))
		return cj_reject(err, "path '%.64s...' is too long", file->path);
	memcpy(in.path, file->path, strlen(file->path) + 1);
	return send_input(h, &in, fd, err);
}

/* Bytes of ours: a file of the program itself, or what a request carries, which has no other mode
 * than whether it is executable. */
static int send_bytes(struct handover *h, const struct copy_spec *copy, struct cj_error *err)
{
	const mode_t mode = copy->is_executable ? 0755 : 0644;
	const struct packed_file packed = { .mode = mode,
					    .own = copy->own,
					    .size = (uint32_t)copy->size };
	if (copy->size <= INPUT_PACK_MAX) {
		if (input_pack_add(&h->pack, &packed, copy->target, copy->bytes))
			return 0;
		if (send_pack(h, err) < 0)
			return -err->code;
		if (input_pack_add(&h->pack, &packed, copy->target, copy->bytes))
			return 0;
	}
	const struct blob own = own_file_bytes(copy->own);
	const struct iovec parts[] = { { (void *)own.bytes, own.size },
				       { (void *)copy->bytes, copy->size } };
	auto_fd int fd = fd_memfd_sealed_parts("file", parts, 2, err);
	const struct sent_file file = { copy->target, mode, own.size + copy->size };
	return fd < 0 ? fd : send_file(h, &file, fd, err);
}

/* The code in a sealed memfd: from standard input or a file. */
static int open_code(struct jail *j, struct cj_error *err)
{
	const struct program *p = j->run.program;
	char real[PATH_MAX];
	if (p->code_source == CODE_STDIN)
		return fd_memfd_copy("code", STDIN_FILENO, CODE_BYTES_MAX, "standard input", err);

	auto_fd int file_fd = fd_open_linked(p->code_name, err);
	if (file_fd < 0)
		return file_fd;
	if (fd_real_path(file_fd, real))
		j->run.code_real = arena_strdup(&j->arena, real); /* NULL: it is only information */
	return fd_memfd_copy("code", file_fd, CODE_BYTES_MAX, p->code_name, err);
}

static int hash_code(int code_fd, char out_hex[static SHA256_HEX_MAX], struct cj_error *err)
{
	struct sha256 hash;
	sha256_init(&hash);

	uint8_t chunk[16384];
	for (off_t at = 0;;) {
		ssize_t got = pread(code_fd, chunk, sizeof(chunk), at);
		if (got < 0)
			return cj_fail(err, errno, "read the code back");
		if (got == 0)
			break;
		sha256_update(&hash, chunk, (size_t)got);
		at += got;
	}
	sha256_final(&hash, out_hex);
	return 0;
}

/* Reads the "#!" line of the bytes that were hashed. */
static int read_script(struct jail *j, int code_fd, struct cj_error *err)
{
	char line[SCRIPT_LINE_MAX];
	if (!j->run.program->own_interpreter)
		return 0;
	ssize_t size = pread(code_fd, line, sizeof(line), 0);
	if (size < 0)
		return cj_fail(err, errno, "read the code's first line");
	script_parse(line, (size_t)size, &j->run.script_line);
	return 0;
}

static int send_code(struct handover *h, struct cj_error *err)
{
	struct jail *j = h->j;
	const struct program *p = j->run.program;
	if (p->code_source == CODE_NONE)
		return 0;

	bool is_command = strcmp(p->argv.items[0], p->code_path) == 0;
	const struct sent_file file = { p->code_path, is_command ? 0755 : 0644, CODE_BYTES_MAX };
	if (p->code_source == CODE_STRING) {
		sha256_hex(p->code_text, p->code_size, j->run.code_sha256);
		if (p->own_interpreter)
			script_parse(p->code_text,
				     p->code_size < SCRIPT_LINE_MAX ? p->code_size
								    : SCRIPT_LINE_MAX,
				     &j->run.script_line);
		return send_bytes(h,
				  &(struct copy_spec){ .target = p->code_path,
						       .bytes = p->code_text,
						       .size = p->code_size,
						       .is_executable = is_command },
				  err);
	}
	auto_fd int code_fd = open_code(j, err);
	if (code_fd == -EFBIG)
		cj_hint(err, "code may have %u MiB; hand larger data in with --file or --ro-bind",
			CODE_BYTES_MAX >> 20);
	if (code_fd < 0 || hash_code(code_fd, j->run.code_sha256, err) < 0 ||
	    read_script(j, code_fd, err) < 0)
		return -err->code;
	return send_file(h, &file, code_fd, err);
}

static int send_args_json(struct handover *h, struct cj_error *err)
{
	const char *text = h->j->run.program->args_json;
	if (!text)
		return 0;
	const struct copy_spec file = { .target = "/box/args.json",
					.bytes = text,
					.size = strlen(text) };
	return send_bytes(h, &file, err);
}

/* To its end, into a memfd: init can't wait for the process that writes it. */
static int send_stdin(struct handover *h, const struct copy_spec *copy, struct cj_error *err)
{
	uint64_t most = h->j->plan->root.scratch_bytes;
	auto_fd int fd = fd_memfd_copy("file", STDIN_FILENO, most, "standard input", err);
	if (fd < 0)
		return fd;
	const struct sent_file file = { copy->target, 0644, most };
	return send_file(h, &file, fd, err);
}

static int send_copy(struct handover *h, const struct copy_spec *copy, struct cj_error *err)
{
	if (!copy->source)
		return send_bytes(h, copy, err);

	int rc = copy->is_stdin ? send_stdin(h, copy, err)
				: inputs_walk(copy->source, copy->target,
					      h->j->plan->root.scratch_bytes, send_input, h, err);
	if (rc == -EFBIG)
		cj_hint(err, "copied files count in --disk; hand larger data in with --ro-bind");
	return rc;
}

int handover_inputs(struct jail *j, struct cj_error *err)
{
	const struct program *p = j->run.program;
	struct handover h = { .j = j };
	if (send_code(&h, err) < 0 || send_args_json(&h, err) < 0)
		return -err->code;
	for (size_t i = 0; i < p->nfiles; i++)
		if (send_copy(&h, &p->files[i], err) < 0)
			return -err->code;
	return send_pack(&h, err);
}

/* The index of the code's file in argv; argv.count: it is not there. */
static size_t index_of_code(const struct program *p)
{
	size_t at = 0;
	while (at < p->argv.count &&
	       (!p->code_path || strcmp(p->argv.items[at], p->code_path) != 0))
		at++;
	return at;
}

/* Strings, each with its NUL, behind the data of a step: init or its launcher splits them again. */
static int tell_strings(const struct jail *j, enum step step, const struct step_bytes *data,
			const char *const *strings, size_t count, const int *fds, size_t nfds,
			struct cj_error *err)
{
	size_t size = 0, used = 0;
	for (size_t i = 0; i < count; i++)
		size += strlen(strings[i]) + 1;
	if (size > START_STRINGS_MAX)
		return cj_reject(err, "arguments and environment have %zu bytes, more than %u",
				 size, START_STRINGS_MAX);
	auto_free char *text = malloc(size);
	if (!text)
		return cj_fail(err, ENOMEM, "gather the program's arguments and environment");
	for (size_t i = 0; i < count; i++) {
		size_t more = strlen(strings[i]) + 1;
		memcpy(text + used, strings[i], more);
		used += more;
	}
	const struct iovec part = { text, size };
	const struct step_bytes bytes = { data->head, data->head_size, &part, 1 };
	return step_tell_bytes(&j->link, step, &bytes, "arguments", fds, nfds, err);
}

static size_t append(const char **out, const char *const *strings, size_t count)
{
	if (count > 0)
		memcpy(out, strings, count * sizeof(*out));
	return count;
}

/*
 * With plan->reduced: a path in /box or /tmp of the jail, as it is called outside; any other text
 * stays.  `value` is the text, or its end.  NULL: no memory.
 */
static const char *shown(struct jail *j, const char *text, const char *value)
{
	bool is_place = paths_is_below(value, "/box") || paths_is_below(value, "/tmp");
	return is_place ? arena_printf(&j->arena, "%.*s%s%s", (int)(value - text), text,
				       j->private_dir, value)
			: text;
}

/* The strings of struct start that are paths, or an option or a variable with one. */
static int show_private(struct jail *j, const char **strings, size_t count,
			const struct strings *env, struct cj_error *err)
{
	for (size_t i = 0; j->plan->reduced && i < count; i++) {
		bool has_name = strings[i][0] == '-' || strings_has(env, strings[i]);
		const char *equals = has_name ? strchr(strings[i], '=') : NULL;
		strings[i] = shown(j, strings[i], equals ? equals + 1 : strings[i]);
		if (!strings[i])
			return cj_fail(err, ENOMEM, "name the private directory");
	}
	return 0;
}

/* Before a variable of the same name, which nobody finds then: getenv(3). */
static const char *const calls_variable = "CEJAIL_CALLS_FD=4";

/* What struct start describes. */
static size_t list_fds(const struct jail *j, const int stdio[3], int calls_fd, int out[5])
{
	size_t count = 0;
	for (int i = 0; i < 3 && !j->plan->tty; i++)
		out[count++] = stdio[i];
	if (calls_fd >= 0)
		out[count++] = calls_fd;
	if (j->run.io.channel_fd > 0)
		out[count++] = j->run.io.channel_fd;
	return count;
}

int handover_start(struct jail *j, enum step step, const struct program *p, const int stdio[3],
		   int calls_fd, struct cj_error *err)
{
	const char *own_items[SCRIPT_ARGV_MAX] = { NULL };
	const struct strings own = {
		.items = own_items,
		.count = step == STEP_START ? script_command(&j->run.script_line, own_items) : 0,
	};
	/* A launcher sets the variable itself, once it knows that the program has tools. */
	const bool tells_calls = calls_fd >= 0 && step == STEP_START;
	const struct start start = {
		.argc = (uint32_t)p->argv.count,
		.envc = (uint32_t)(p->env.count + (tells_calls ? 1 : 0)),
		.wants_tty = j->plan->tty,
		.has_calls = calls_fd >= 0,
		.has_script = p->script != NULL,
		.ownc = (uint32_t)own.count,
		.own_replaces = (uint32_t)index_of_code(p),
	};
	auto_free const char **strings =
	    calloc(3 + p->argv.count + p->env.count + own.count, sizeof(*strings));
	if (!strings)
		return cj_fail(err, ENOMEM, "gather the program's arguments and environment");
	size_t count = append(strings, &p->workdir, 1);
	count += append(strings + count, &p->script, p->script ? 1 : 0);
	count += append(strings + count, p->argv.items, p->argv.count);
	count += append(strings + count, &calls_variable, tells_calls ? 1 : 0);
	count += append(strings + count, p->env.items, p->env.count);
	count += append(strings + count, own.items, own.count);
	if (show_private(j, strings, count, &p->env, err) < 0)
		return -err->code;
	int fds[5];
	const size_t nfds = list_fds(j, stdio, calls_fd, fds);
	const struct step_bytes data = { .head = &start, .head_size = sizeof(start) };
	return tell_strings(j, step, &data, strings, count, fds, nfds, err);
}

static bool has_same_strings(const struct strings *a, const struct strings *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (i >= a->count || i >= b->count || strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

/*
 * The index of the code's file in argv, if the launcher was started with the same arguments before
 * it, environment and directory; else 0: a running launcher can't be given others.
 */
static size_t find_code(const struct program *p, const struct program *launcher)
{
	size_t at = index_of_code(p);
	bool is_its_own = p->code_path && at < p->argv.count &&
			  has_same_strings(&p->argv, &launcher->argv, at) &&
			  p->env.count == launcher->env.count &&
			  has_same_strings(&p->env, &launcher->env, p->env.count) &&
			  strcmp(p->workdir, launcher->workdir) == 0;
	return is_its_own ? at : 0;
}

int handover_go(struct jail *j, struct cj_error *err)
{
	const struct program *p = j->run.program;
	size_t at = find_code(p, j->warm.launcher);
	if (at == 0)
		return cj_reject(err, "the interpreter that waits was started for another command, "
				      "environment or working directory");

	const char *const has[] = { j->run.io.stdin_fd >= 0 ? "1" : "0", p->tools ? "1" : "0" };
	auto_free const char **strings = calloc(2 + p->argv.count, sizeof(*strings));
	if (!strings)
		return cj_fail(err, ENOMEM, "gather the program's arguments and environment");
	size_t count = append(strings, has, 2);
	count += append(strings + count, p->argv.items + at, p->argv.count - at);
	return tell_strings(j, STEP_GO, &(struct step_bytes){ 0 }, strings, count, NULL, 0, err);
}
