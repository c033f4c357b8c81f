/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/supervise/calls.h"

#include <inttypes.h>
#include <stdarg.h>
#include <sys/socket.h>

#include "runtime/base/byte_queue.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/jail/outcome.h"
#include "runtime/jail/supervise/call_line.h"

const char *const call_end_names[CALL_END_COUNT] = {
	[CALL_ANSWERED] = "answered",   [CALL_FAILED] = "failed",   [CALL_TIMED_OUT] = "timeout",
	[CALL_CANCELLED] = "cancelled", [CALL_REFUSED] = "refused",
};

#define CHUNK       65536
#define READS       16 /* of one turn: the program's streams are read in between */
#define UNKNOWN     16 /* names that are on no list, with a row of their own in the result */
#define SECOND_MS   1000
#define REFUSED_MAX 1000  /* beyond the limit of calls */
#define LEFT_MAX    2000  /* lines or pieces of them that a cell left: more than its socket holds */
#define RECORD_MS   10000 /* for a service that is busy to read the rest of a run's record */
#define CALLER_GONE "the caller answers no more calls"

/* A call without an answer. */
struct open_call {
	uint64_t id;                   /* 0: the slot is free */
	char program_id[CALL_ID_TEXT]; /* as the program wrote it: a JSON value */
	size_t tool;
	uint64_t began_ms;
};

struct calls {
	const struct tool_list *tools;
	const struct run_limits *limits;
	const struct jail_io *io;
	int program_fd; /* -1: the program has closed it, or it does not read */
	int caller_fd;  /* borrowed; -1: the caller has closed it */
	struct byte_queue from_program, to_program, from_caller, to_caller;
	size_t searched[2]; /* of from_program, from_caller: no newline is in these bytes */
	bool has_bytes[2];  /* the program's socket, the caller's; or it is not known */
	bool skips_line;    /* of the program: it was too long */
	bool has_more;      /* lines have come that are not read, so poll(2) does not report them */
	bool has_ended;     /* calls_end() */
	bool is_cut;        /* we have closed the program's socket */
	const char *no_more; /* why the caller answers no call any more; NULL: it does */
	size_t nopen, nslots;
	uint64_t last_id, refused;
	uint64_t second_at_ms, in_second; /* calls since then */
	struct call_count *counts;        /* one for each tool, then `nunknown`, then the rest */
	size_t nunknown;
	char failure[128]; /* a warning: why a socket was lost, but by its peer */
	/* The pages from here on are only touched when such a call comes. */
	struct open_call open[CALLS_OUTSTANDING_MAX]; /* the first `nslots` have been used */
	char unknown[UNKNOWN][TOOL_NAME_MAX + 1];
};

/* The row of a refused call. */
static struct call_count *unknown_count(struct calls *c, const char *name)
{
	const size_t ntools = c->tools->names.count;
	size_t i = 0;
	while (name && i < c->nunknown && strcmp(c->unknown[i], name) != 0)
		i++;
	if (!name || (i == c->nunknown && i == UNKNOWN))
		return &c->counts[ntools + UNKNOWN];
	if (i == c->nunknown) {
		(void)snprintf(c->unknown[i], sizeof(c->unknown[i]), "%s", name);
		c->counts[ntools + i].name = c->unknown[i];
		c->nunknown++;
	}
	return &c->counts[ntools + i];
}

/* False: a call that begins is lost. */
static bool tell(const struct calls *c, const struct jail_call *call)
{
	return !c->io->called || c->io->called(c->io->context, call);
}

static void lose_caller(struct calls *c, const char *why);

static void note_failure(struct calls *c, const char *whose, const char *verb, int error)
{
	if (error != 0 && error != EPIPE && error != ECONNRESET && !c->failure[0])
		(void)snprintf(c->failure, sizeof(c->failure),
			       "the calls' socket of the %s can't be %s: %s", whose, verb,
			       strerror(error));
}

/* EPIPE: the program has closed its end.  0: nothing has failed. */
static void lose_program(struct calls *c, const char *verb, int error)
{
	c->is_cut |= error != EPIPE && error != ECONNRESET;
	note_failure(c, "program", verb, error);
	if (c->program_fd >= 0)
		(void)shutdown(c->program_fd, SHUT_RDWR); /* other processes may have it, too */
	cj_close(&c->program_fd);
}

static void send_to_program(struct calls *c)
{
	const int error = c->program_fd < 0 ? 0 : byte_queue_send(&c->to_program, c->program_fd);
	if (error != 0)
		lose_program(c, "written", error);
}

/* What it wrote before it went has been read: calls_serve(). */
static void send_to_caller(struct calls *c)
{
	const int error = c->caller_fd < 0 ? 0 : byte_queue_send(&c->to_caller, c->caller_fd);
	if (error == 0)
		return;
	note_failure(c, "caller", "written", error);
	lose_caller(c, CALLER_GONE);
}

/* A line that is lost would leave the program waiting. */
static void answer(struct calls *c, const char *program_id, bool is_error, struct blob value)
{
	if (c->program_fd < 0)
		return;
	if (call_line_put_answer(&c->to_program, program_id, is_error, value) < 0)
		lose_program(c, "written", ENOMEM);
	send_to_program(c);
}

static void answer_error(struct calls *c, const char *program_id, const char *message)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct blob text = { 0 };
	struct cj_error err = { 0 };
	json_put_string(w, message);
	if (json_writer_take(w, &text, &err) < 0)
		lose_program(c, "written", err.code);
	else
		answer(c, program_id, true, text);
}

/* Without memory a line is lost: what the caller waits for has a time limit of its own. */

/* A call that ends without the caller's answer; in brief each one. */
static void tell_end(struct calls *c, uint64_t id, enum call_end end, uint64_t ms)
{
	bool is_news = c->io->calls_brief || end == CALL_TIMED_OUT || end == CALL_CANCELLED;
	if (c->caller_fd < 0 || !is_news)
		return;
	(void)!call_line_put_end(&c->to_caller, id, call_end_names[end], ms);
	send_to_caller(c);
}

static void tell_refusal(struct calls *c, const char *name)
{
	if (c->caller_fd < 0 || !c->io->calls_brief)
		return;
	(void)!call_line_put_refusal(&c->to_caller, name, call_end_names[CALL_REFUSED]);
	send_to_caller(c);
}

static void end_call(struct calls *c, struct open_call *call, enum call_end end)
{
	const uint64_t ms = clock_ms() - call->began_ms;
	const struct jail_call ended = {
		.id = call->id,
		.name = c->tools->names.items[call->tool],
		.end = end,
		.ms = ms,
	};
	call->id = 0; /* first: if the caller can't be told, all open calls fail */
	c->nopen--;
	c->counts[call->tool].failed += end != CALL_ANSWERED;
	tell_end(c, ended.id, end, ms);
	(void)tell(c, &ended);
}

static void fail_call(struct calls *c, struct open_call *call, enum call_end end, const char *why)
{
	answer_error(c, call->program_id, why);
	end_call(c, call, end);
}

static void fail_all(struct calls *c, enum call_end end, const char *why)
{
	for (size_t i = 0; i < c->nslots; i++)
		if (c->open[i].id > 0)
			fail_call(c, &c->open[i], end, why);
}

/* The caller has gone, or can't be understood. */
static void lose_caller(struct calls *c, const char *why)
{
	c->caller_fd = -1;
	c->no_more = why;
	fail_all(c, CALL_FAILED, why);
}

/* `id`: as the program wrote it, or "null". */
static void refuse(struct calls *c, const char *id, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void refuse(struct calls *c, const char *id, const char *name, const char *fmt, ...)
{
	char why[CJ_ERROR_MSG_MAX];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);

	const struct tool_list *tools = c->tools;
	if (name && strlen(name) > TOOL_NAME_MAX)
		name = NULL;
	size_t tool = name ? tool_list_find(tools, name) : tools->names.count;
	bool has_row = tool < tools->names.count;
	(has_row ? &c->counts[tool] : unknown_count(c, name))->refused++;
	c->refused++;
	(void)tell(c, &(struct jail_call){ .name = name, .reason = why });
	tell_refusal(c, name);
	answer_error(c, id, why);
	if (c->refused >= c->limits->calls + REFUSED_MAX)
		lose_program(c, "read", 0); /* to refuse takes time of the host */
}

static bool has_id(const struct calls *c, const char *program_id)
{
	for (size_t i = 0; i < c->nslots; i++)
		if (c->open[i].id > 0 && strcmp(c->open[i].program_id, program_id) == 0)
			return true;
	return false;
}

static struct open_call *find_call(struct calls *c, uint64_t id)
{
	for (size_t i = 0; id > 0 && i < c->nslots; i++)
		if (c->open[i].id == id)
			return &c->open[i];
	return NULL;
}

static void begin_call(struct calls *c, const struct written_call *w, size_t tool)
{
	size_t slot = 0;
	while (slot < c->nslots && c->open[slot].id > 0)
		slot++; /* calls_outstanding is at most CALLS_OUTSTANDING_MAX */
	c->nslots += slot == c->nslots ? 1 : 0;
	struct open_call *call = &c->open[slot];
	*call = (struct open_call){ .tool = tool, .began_ms = clock_ms() };
	memcpy(call->program_id, w->id, sizeof(w->id));
	call->id = ++c->last_id;
	c->nopen++;
	c->counts[tool].count++;
	const uint64_t id = call->id;
	int rc = c->io->calls_brief ? call_line_put_brief(&c->to_caller, id, w, c->io->calls_quoted)
				    : call_line_put_call(&c->to_caller, id, w);
	if (c->io->calls_brief)
		send_to_caller(c); /* it knows the id before anybody reads the event */
	bool is_told = find_call(c, id) &&
		       tell(c, &(struct jail_call){ .id = id,
						    .name = w->name,
						    .arguments = w->arguments.bytes,
						    .arguments_size = w->arguments.size });
	send_to_caller(c);
	if ((rc < 0 || !is_told) && find_call(c, id))
		fail_call(c, call, CALL_FAILED, "cejail has no memory for this call");
}

static void take_call(struct calls *c, char *line, size_t size)
{
	auto_arena struct arena a = { 0 };
	struct cj_error err = { 0 };
	struct written_call w;
	const struct tool_list *tools = c->tools;
	const struct run_limits *limits = c->limits;

	int rc = call_line_read(line, size, &a, &w, &err);
	size_t tool = w.name ? tool_list_find(tools, w.name) : 0;
	if (rc < 0)
		refuse(c, w.id, w.name, "%s", err.msg);
	else if (has_id(c, w.id))
		refuse(c, "null", w.name, "two calls have the id %s", w.id);
	else if (tool == tools->names.count)
		refuse(c, w.id, w.name, "this run has no tool '%.128s': tools.json lists them",
		       w.name);
	else if (c->last_id >= limits->calls)
		refuse(c, w.id, w.name, "the run has made its %" PRIu64 " calls", limits->calls);
	else if (c->no_more)
		refuse(c, w.id, w.name, "%s", c->no_more);
	else
		begin_call(c, &w, tool);
}

/* Returns what is wrong with the line; NULL: nothing. */
static const char *take_answer(struct calls *c, char *line, size_t size)
{
	struct written_answer w;
	const char *wrong = call_line_read_answer(line, size, &w);
	struct open_call *call = wrong ? NULL : find_call(c, w.id);
	if (!call)
		return wrong; /* NULL: it has ended meanwhile */
	if (!w.value.bytes) {
		fail_call(c, call, CALL_FAILED, CALL_ANSWER_EMPTY);
		return NULL;
	}
	answer(c, call->program_id, w.is_error, w.value);
	end_call(c, call, w.is_error ? CALL_FAILED : CALL_ANSWERED);
	return NULL;
}

/* A second begins with a call. */
static void count_calls(struct calls *c, uint64_t n)
{
	if (c->in_second == 0)
		c->second_at_ms = clock_ms();
	c->in_second += n;
}

/* Waits until a second has room for another call. */
static bool is_too_fast(struct calls *c)
{
	if (clock_ms() - c->second_at_ms >= SECOND_MS)
		c->in_second = 0;
	return c->in_second >= c->limits->calls_per_second;
}

static bool has_unread(const struct calls *c)
{
	return byte_queue_size(&c->to_program) >= CALL_UNREAD_MAX;
}

/*
 * A line is read only where its call can be taken.  A caller that does not read stops it, too, and
 * so does a reader of events: the supervisor polls again when it has room.
 */
static bool may_take_call(struct calls *c)
{
	return c->program_fd >= 0 && !has_unread(c) && !is_too_fast(c) &&
	       c->nopen < c->limits->calls_outstanding &&
	       byte_queue_size(&c->to_caller) < CALL_LINE_MAX &&
	       (!c->io->has_room || c->io->has_room(c->io->context));
}

/* What has come of a line that is too long is forgotten, and the rest when it comes. */
static void refuse_long(struct calls *c)
{
	if (!c->skips_line)
		refuse(c, "null", NULL, "a call has more than %u bytes", CALL_LINE_MAX);
	c->skips_line = true;
}

static void take_line(struct calls *c, size_t size)
{
	struct byte_queue *q = &c->from_program;
	if (size >= CALL_LINE_MAX)
		refuse_long(c);
	else if (!c->skips_line)
		take_call(c, q->bytes + q->start, size);
	c->skips_line = false;
	count_calls(c, 1 + size / CHUNK); /* to read it takes time, too */
	byte_queue_take(q, size + 1);
}

/* False: nothing more is there for now. */
static bool read_program(struct calls *c)
{
	struct byte_queue *q = &c->from_program;
	const size_t size = byte_queue_find_line(q, &c->searched[0]);
	if (size != SIZE_MAX) {
		take_line(c, size);
		return true;
	}
	if (byte_queue_size(q) >= CALL_LINE_MAX) {
		refuse_long(c);
		count_calls(c, CALL_LINE_MAX / CHUNK);
		c->searched[0] = 0;
		byte_queue_take(q, byte_queue_size(q));
	}
	if (!c->has_bytes[0])
		return false;
	ssize_t got = byte_queue_receive(q, c->program_fd, CHUNK);
	c->has_bytes[0] = got == CHUNK;
	if (got <= 0 && got != -EAGAIN)
		lose_program(c, "read", got < 0 ? (int)-got : EPIPE);
	return got > 0;
}

static bool read_caller(struct calls *c)
{
	struct byte_queue *q = &c->from_caller;
	const size_t size = byte_queue_find_line(q, &c->searched[1]);
	const char *wrong = NULL;
	if (size != SIZE_MAX) {
		wrong = take_answer(c, q->bytes + q->start, size);
		byte_queue_take(q, size + 1);
	} else if (!c->has_bytes[1]) {
		return false;
	} else {
		ssize_t got = byte_queue_receive(q, c->caller_fd, CHUNK);
		c->has_bytes[1] = got == CHUNK;
		if (got == -EAGAIN)
			return false;
		if (got <= 0) {
			note_failure(c, "caller", "read", (int)-got);
			wrong = CALLER_GONE;
		} else if (byte_queue_size(q) > CALL_ANSWER_MAX + CHUNK) { /* or the next line's */
			wrong = "the caller's answer has more than 16 MiB";
		}
	}
	if (wrong)
		lose_caller(c, wrong);
	return !wrong;
}

static void fail_late(struct calls *c)
{
	const uint64_t now = clock_ms(), limit = c->limits->call_ms;
	char duration[32], why[96];
	for (size_t i = 0; limit > 0 && i < c->nslots; i++) {
		if (c->open[i].id == 0 || now - c->open[i].began_ms < limit)
			continue;
		(void)snprintf(why, sizeof(why), "the call was not answered within %s",
			       text_format_duration(limit, duration, sizeof(duration)));
		fail_call(c, &c->open[i], CALL_TIMED_OUT, why);
	}
}

int calls_create(int program_fd, const struct program *program, const struct jail_io *io,
		 struct calls **out, struct cj_error *err)
{
	static const struct tool_list none;
	const struct tool_list *tools = program->tools ? program->tools : &none;
	const size_t ntools = tools->names.count;
	struct calls *c = malloc(sizeof(*c));
	struct call_count *counts = calloc(ntools + UNKNOWN + 1, sizeof(*counts));
	if (!c || !counts) {
		free(c);
		free(counts);
		cj_close(&program_fd);
		return cj_fail(err, ENOMEM, "watch the program's calls");
	}
	memset(c, 0, offsetof(struct calls, open));
	c->tools = tools;
	c->limits = &program->limits;
	c->io = io;
	c->program_fd = program_fd;
	c->caller_fd = io->calls_fd > 0 ? io->calls_fd : -1;
	c->counts = counts;
	for (size_t i = 0; i < ntools; i++)
		counts[i].name = tools->names.items[i];
	if (c->caller_fd < 0)
		c->no_more = "nobody answers the calls of this run";
	*out = c;
	return 0;
}

void calls_destroy(struct calls **c)
{
	struct calls *old = *c;
	if (!old)
		return;
	cj_close(&old->program_fd);
	byte_queue_fini(&old->from_program);
	byte_queue_fini(&old->to_program);
	byte_queue_fini(&old->from_caller);
	byte_queue_fini(&old->to_caller);
	free(old->counts);
	free(old);
	*c = NULL;
}

void calls_watch(struct calls *c, struct pollfd out[CALLS_FDS])
{
	out[0].fd = out[1].fd = -1;
	if (!c || c->has_ended)
		return;
	const short program = (short)((may_take_call(c) ? POLLIN : 0) |
				      (byte_queue_size(&c->to_program) > 0 ? POLLOUT : 0));
	const short caller = (short)((has_unread(c) ? 0 : POLLIN) |
				     (byte_queue_size(&c->to_caller) > 0 ? POLLOUT : 0));
	/* poll(2) always reports a hang-up, which is handled when the line before it is read */
	out[0] = (struct pollfd){ .fd = program ? c->program_fd : -1, .events = program };
	out[1] = (struct pollfd){ .fd = caller ? c->caller_fd : -1, .events = caller };
}

uint64_t calls_at_ms(const struct calls *c)
{
	if (!c || c->has_ended)
		return 0;
	uint64_t at_ms = c->has_more ? 1 : 0; /* at once */
	const uint64_t limit = c->limits->call_ms;
	for (size_t i = 0; limit > 0 && i < c->nslots; i++)
		if (c->open[i].id > 0)
			at_ms = clock_earlier(at_ms, c->open[i].began_ms + limit);
	/* Otherwise nobody would begin another second. */
	if (c->program_fd >= 0 && !has_unread(c) && c->in_second >= c->limits->calls_per_second)
		at_ms = clock_earlier(at_ms, c->second_at_ms + SECOND_MS);
	return at_ms;
}

void calls_serve(struct calls *c, const struct pollfd seen[CALLS_FDS])
{
	if (!c || c->has_ended)
		return;
	c->has_bytes[0] = !seen || seen[0].fd < 0 || seen[0].revents != 0;
	/* Before a call is written: an answer that the caller wrote before it went. */
	c->has_bytes[1] = !seen || seen[1].revents != 0 || c->nopen > 0;
	send_to_program(c);
	int answers = 0, calls = 0;
	while (answers < READS && c->caller_fd >= 0 && !has_unread(c) && read_caller(c))
		answers++;
	fail_late(c); /* before the program is read: it makes room for calls */
	send_to_caller(c);
	while (calls < READS && may_take_call(c) && read_program(c))
		calls++;
	c->has_more = answers == READS || calls == READS;
	if (c->program_fd < 0)
		fail_all(c, CALL_CANCELLED, "the program has closed its socket");
}

void calls_look_at_clock(struct calls *c, uint64_t now_ms)
{
	uint64_t at_ms = calls_at_ms(c);
	if (at_ms > 0 && now_ms >= at_ms)
		calls_serve(c, NULL);
}

/*
 * The socket of an interpreter stays for its next cell.  That one must get neither the calls that
 * this one left unread, nor half a line in either direction.
 */
static void leave_socket(struct calls *c, struct outcome *out)
{
	int lines = 0;
	c->no_more = "the cell has ended";
	do /* a short read does not prove that it is empty */
		c->has_bytes[0] = true;
	while (c->program_fd >= 0 && lines++ < LEFT_MAX && read_program(c));
	if (lines == LEFT_MAX || c->skips_line || byte_queue_size(&c->from_program) > 0 ||
	    byte_queue_size(&c->to_program) > 0)
		lose_program(c, "read", 0);
	if (c->is_cut)
		outcome_warn(out, "the interpreter ends, because the cell left a call or an answer "
				  "half written: the next cell begins a new one");
}

/* In brief the caller is the service, whose record of the run must have each line. */
static void finish_record(struct calls *c)
{
	while (c->io->calls_brief && c->caller_fd >= 0 && byte_queue_size(&c->to_caller) > 0 &&
	       fd_await(c->caller_fd, POLLOUT, RECORD_MS))
		send_to_caller(c);
}

bool calls_are_cut(const struct calls *c)
{
	return c && c->is_cut;
}

void calls_end(struct calls *c, bool keeps_socket, struct outcome *out)
{
	if (!c)
		return;
	const size_t most = c->tools->names.count + UNKNOWN + 1;
	struct call_count *rows = arena_array(&out->arena, most, sizeof(*rows));
	c->has_ended = true;
	fail_all(c, CALL_CANCELLED, "the run has ended");
	send_to_caller(c);
	if (keeps_socket)
		leave_socket(c, out);
	else
		lose_program(c, "read", 0);
	finish_record(c);
	if (c->failure[0])
		outcome_warn(out, "%s", c->failure);
	for (size_t i = 0; rows && i < most; i++) {
		if (c->counts[i].count + c->counts[i].refused == 0)
			continue;
		rows[out->ncalls] = c->counts[i];
		if (rows[out->ncalls].name) /* the names go with us, or with the plan */
			rows[out->ncalls].name = arena_strdup(&out->arena, c->counts[i].name);
		out->ncalls++;
	}
	out->calls = rows;
}
