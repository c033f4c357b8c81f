/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a session's interpreter, from untrusted bytes to a struct cell_outcome. */
#include "runtime/session/repl/repl_channel.h"

#include "profiles/plan/plan.h"

#define HEAD_SIZE      5 /* the kind, the size */
#define BEGIN_SIZE     4
#define END_SIZE       6
#define ARGS_JSON_PATH "/box/args.json"

static uint32_t get_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static void put_u32(uint8_t *out, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		out[i] = (uint8_t)(value >> (8 * i));
}

void repl_reader_init(struct repl_reader *r, struct arena *a, struct cell_outcome *cell)
{
	*r = (struct repl_reader){ .arena = a, .cell = cell };
}

static int refuse(struct cj_error *err, const char *what)
{
	return cj_reject_as(err, EPROTO, "the interpreter's channel has %s", what);
}

/* A client may hand the type to a browser, so only these are passed on. */
static const char *const display_types[] = {
	"application/json", "image/jpeg", "image/png",     "image/svg+xml",
	"text/html",        "text/latex", "text/markdown",
};

static const char *known_type(const char *type)
{
	for (size_t i = 0; i < COUNT_OF(display_types); i++)
		if (strcmp(type, display_types[i]) == 0)
			return display_types[i];
	return NULL;
}

static int take_ready(struct repl_reader *r, struct cj_error *err)
{
	return r->cell ? refuse(err, "a second 'ready'") : REPL_READY;
}

static int take_begin(struct repl_reader *r, struct cj_error *err)
{
	if (r->size != BEGIN_SIZE || get_u32(r->data) != r->cell->number)
		return refuse(err, "the begin of another cell");
	if (r->cell->has_begun)
		return refuse(err, "two begins");
	r->cell->has_begun = true;
	return REPL_GOES_ON;
}

static int take_display(struct repl_reader *r, struct cj_error *err)
{
	struct cell_outcome *cell = r->cell;
	const char *type = known_type((const char *)r->data);
	if (!type || strlen(type) == r->size)
		return refuse(err, "a display of an unknown type");
	r->display_bytes += r->size;
	if (cell->ndisplays >= CELL_DISPLAYS_MAX || r->display_bytes > CELL_DISPLAYS_BYTES_MAX)
		return refuse(err, "too many displays");
	const size_t begin = strlen(type) + 1;
	cell->displays[cell->ndisplays++] =
	    (struct cell_display){ type, r->data + begin, r->size - begin };
	return REPL_GOES_ON;
}

static int take_value(struct repl_reader *r, struct cj_error *err)
{
	if (r->cell->value)
		return refuse(err, "two values");
	r->cell->value = (const char *)r->data;
	return REPL_GOES_ON;
}

/* A second one replaces the first, which could not be shown. */
static int take_exception(struct repl_reader *r, struct cj_error *err)
{
	const char *part[3] = { (const char *)r->data };
	const char *end = part[0] + r->size;
	for (int i = 1; i < 3; i++) {
		part[i] = part[i - 1] + strlen(part[i - 1]) + 1;
		if (part[i] > end)
			return refuse(err, "an exception that lacks a part");
	}
	r->cell->exception_type = part[0];
	r->cell->exception_message = part[1];
	r->cell->traceback = part[2];
	return REPL_GOES_ON;
}

static int take_end(struct repl_reader *r, struct cj_error *err)
{
	if (r->size != END_SIZE || get_u32(r->data) != r->cell->number)
		return refuse(err, "the end of another cell");
	r->cell->exit_code = r->data[4];
	r->cell->left_out = r->data[5];
	return REPL_ENDED;
}

static const struct {
	char kind;
	size_t max;
	int (*take)(struct repl_reader *r, struct cj_error *err);
} kinds[] = {
	{ 'R', 0, take_ready },
	{ 'B', BEGIN_SIZE, take_begin },
	{ 'D', CELL_DISPLAY_BYTES_MAX, take_display },
	{ 'V', CELL_VALUE_MAX, take_value },
	{ 'X', CELL_EXCEPTION_MAX, take_exception },
	{ 'E', END_SIZE, take_end },
};
#define KINDS COUNT_OF(kinds)

static size_t kind_of(const struct repl_reader *r)
{
	size_t i = 0;
	while (i < KINDS && kinds[i].kind != (char)r->head[0])
		i++;
	return i;
}

/* The head is there: may a frame like this come now, and is there room for it? */
static int begin_frame(struct repl_reader *r, struct cj_error *err)
{
	const size_t kind = kind_of(r);
	r->size = get_u32(r->head + 1);
	if (kind == KINDS || (!r->cell && kinds[kind].take != take_ready))
		return refuse(err, "bytes that are no frame");
	if (r->size > kinds[kind].max || ++r->frames > CELL_FRAMES_MAX)
		return refuse(err, "a frame that is too large, or too many frames");
	r->data = arena_alloc(r->arena, r->size + 1);
	if (!r->data)
		return cj_fail(err, ENOMEM, "read the interpreter's channel");
	r->data[r->size] = '\0';
	r->filled = 0;
	return 0;
}

/* Copies what is missing of `to`.  Returns how many bytes were taken. */
static size_t fill(uint8_t *to, size_t size, size_t *filled, const uint8_t *bytes, size_t have)
{
	const size_t missing = size - *filled, n = missing < have ? missing : have;
	if (n > 0)
		memcpy(to + *filled, bytes, n);
	*filled += n;
	return n;
}

/* The next frame, as far as it has come.  *used: how many bytes of it were here. */
static int take_frame(struct repl_reader *r, const uint8_t *bytes, size_t size, size_t *used,
		      struct cj_error *err)
{
	*used = 0;
	if (r->head_size < HEAD_SIZE) {
		*used = fill(r->head, HEAD_SIZE, &r->head_size, bytes, size);
		if (r->head_size < HEAD_SIZE)
			return REPL_GOES_ON;
		if (begin_frame(r, err) < 0)
			return -err->code;
	}
	*used += fill(r->data, r->size, &r->filled, bytes + *used, size - *used);
	if (r->filled < r->size)
		return REPL_GOES_ON;
	r->head_size = 0;
	return kinds[kind_of(r)].take(r, err);
}

int repl_reader_take(struct repl_reader *r, const void *bytes, size_t size, struct cj_error *err)
{
	const uint8_t *at = bytes;
	for (size_t left = size; left > 0;) {
		size_t used;
		int rc = take_frame(r, at, left, &used, err);
		if (rc < 0)
			return rc;
		at += used;
		left -= used;
		if (rc != REPL_GOES_ON)
			return left == 0 ? rc : refuse(err, "bytes behind the end of a cell");
	}
	return REPL_GOES_ON;
}

/* One frame of three parts; out NULL: only its size is wanted.  Returns where the next one begins.
 */
static size_t put_parts(uint8_t *out, size_t at, char kind, const struct blob parts[static 3])
{
	const size_t size = parts[0].size + parts[1].size + parts[2].size;
	if (!out || size > UINT32_MAX)
		return at + HEAD_SIZE + size;
	out[at] = (uint8_t)kind;
	put_u32(out + at + 1, (uint32_t)size);
	at += HEAD_SIZE;
	for (size_t i = 0; i < 3; i++) {
		if (parts[i].size > 0)
			memcpy(out + at, parts[i].bytes, parts[i].size);
		at += parts[i].size;
	}
	return at;
}

static size_t put_frame(uint8_t *out, size_t at, char kind, struct blob begin, struct blob rest)
{
	return put_parts(out, at, kind, (const struct blob[3]){ begin, rest });
}

static struct blob blob_of(const char *text)
{
	return (struct blob){ text, strlen(text) };
}

static size_t put_request(uint8_t *out, uint32_t number, const struct program *p, struct blob input)
{
	const struct blob none = { 0 }, code = { p->code_text, p->code_size };
	uint8_t bytes[4];
	size_t at = 0, arg = 0;
	while (arg < p->argv.count && strcmp(p->argv.items[arg], p->code_path) != 0)
		arg++;
	while (++arg < p->argv.count)
		at = put_frame(out, at, 'a', none, blob_of(p->argv.items[arg]));
	for (size_t i = 0; i < p->nfiles; i++) {
		const struct copy_spec *f = &p->files[i];
		at = put_parts(out, at, f->is_executable ? 'F' : 'f',
			       (const struct blob[3]){ { f->target, strlen(f->target) + 1 },
						       own_file_bytes(f->own),
						       { f->bytes, f->size } });
	}
	if (p->args_json)
		at = put_frame(out, at, 'f',
			       (struct blob){ ARGS_JSON_PATH, sizeof(ARGS_JSON_PATH) },
			       blob_of(p->args_json));
	if (input.bytes)
		at = put_frame(out, at, 'i', none, input);
	put_u32(bytes, number);
	return put_frame(out, at, 'c', (struct blob){ (const char *)bytes, sizeof(bytes) }, code);
}

uint8_t *repl_request_write(uint32_t number, const struct program *p, struct blob input,
			    size_t *out_size)
{
	const size_t size = put_request(NULL, number, p, input);
	uint8_t *out = size <= CELL_REQUEST_MAX ? malloc(size) : NULL;
	if (!out)
		return NULL;
	put_request(out, number, p, input);
	*out_size = size;
	return out;
}
