/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/mcp_server.h"

#include <fcntl.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/log.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/run/options/option_syntax.h"

struct broker_options {
	const char *tools_from, *calls_fd;
	bool is_quiet;
};

static const struct own_option rows[] = {
	{ "tools-from", 0, "FILE", "the list of MCP servers",
	  offsetof(struct broker_options, tools_from) },
	{ "calls-fd", 0, "N", "the socket of the calls",
	  offsetof(struct broker_options, calls_fd) },
	{ "quiet", 0, NULL, "write no warnings and no notes",
	  offsetof(struct broker_options, is_quiet) },
};

/* The broker of one run. */
struct broker_child {
	struct loop loop;
	struct watch signals;
	int signal_fd;
	bool is_over;   /* a signal */
	bool is_listed; /* standard output has the list, or a part of it */
	bool has_stream;
	struct broker broker;
	struct broker_stream stream;
};

static int read_options(const char *const *args, struct broker_options *o, int *out_fd,
			struct cj_error *err)
{
	const struct own_options own = {
		.verb = "mcp broker", .rows = rows, .count = COUNT_OF(rows), .out = o
	};
	uint64_t fd = 0;

	while (*args) {
		const char *arg = *args;
		bool is_own = false;
		if (own_options_take_one(&own, &args, &is_own, err) < 0)
			return -err->code;
		if (!is_own)
			return cj_reject(err, "mcp broker: unknown argument '%.100s'", arg);
	}
	if (!o->tools_from)
		return cj_reject(err, "mcp broker: --tools-from FILE is missing");
	if (o->calls_fd && parse_u64(o->calls_fd, CHILD_FIRST_FD, INT32_MAX, &fd, err) < 0)
		return cj_wrap(err, "--calls-fd");
	*out_fd = o->calls_fd ? (int)fd : -1;
	return 0;
}

/* The program would only hear that there is no such tool. */
static void warn_of_hidden(const struct broker *b)
{
	for (size_t i = 0; i < b->file.count; i++) {
		const struct upstream *u = &b->servers[i];
		size_t offered = 0;
		for (size_t t = 0; t < u->ntools; t++)
			offered += u->tools[t].is_offered;
		if (u->is_listed && u->ntools > 0 && offered == 0)
			log_warning(
			    "the server '%s' offers no tool: none of its %zu is in \"allow\", "
			    "or marked as read-only and not in \"deny\"; name those that "
			    "code may call in \"allow\"",
			    b->file.servers[i].name, u->ntools);
	}
}

/* Fails with the error of the first server that has failed. */
static int check_all(const struct broker *b, struct cj_error *err)
{
	const struct upstream *failed = broker_find_failed(b);

	if (!failed)
		return 0;
	*err = failed->failure;
	(void)upstream_explain(failed, err->msg, sizeof(err->msg));
	return -err->code;
}

static int print_list(struct broker_child *c, struct cj_error *err)
{
	struct broker *b = &c->broker;
	struct blob text;

	if (broker_catalogue(b, &text, err) < 0)
		return -err->code;
	c->is_listed = true;
	if (fd_write_line(STDOUT_FILENO, text.bytes, text.size, "standard output", err) < 0)
		return -err->code;
	auto_fd int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null_fd < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		return cj_fail(err, errno, "close standard output");
	return 0;
}

static void on_signal(struct watch *w, uint32_t events)
{
	(void)events;
	watch_owner(w, struct broker_child, signals)->is_over = true;
}

static bool is_over(const struct broker_child *c)
{
	return c->is_over || (c->has_stream && c->stream.stdio.is_over);
}

/* Until each server has listed its tools or has failed. */
static int list_all(struct broker_child *c, struct cj_error *err)
{
	struct broker *b = &c->broker;

	broker_want_list(b);
	for (;;) {
		int wait_ms = broker_tick(b);
		if (broker_is_listed(b)) {
			warn_of_hidden(b);
			return 0;
		}
		if (loop_turn(b->loop, wait_ms, err) < 0)
			return -err->code;
		if (is_over(c))
			return cj_reject_as(err, ECANCELED, "ended before the servers were ready");
	}
}

static int open_all(struct broker_child *c, const char *path, int fd, struct cj_error *err)
{
	if (loop_open(&c->loop, err) < 0)
		return -err->code;
	c->signal_fd = loop_watch_signals(&c->loop, &c->signals, on_signal, err);
	if (c->signal_fd < 0 || broker_open(&c->broker, &c->loop, path, err) < 0)
		return -err->code;
	c->has_stream = fd >= 0;
	if (c->has_stream && broker_stream_open(&c->stream, &c->broker, fd, err) < 0) {
		(void)!cj_wrap(err, "--calls-fd %d", fd);
		return cj_hint(err, "pass one end of socketpair(AF_UNIX, SOCK_STREAM)");
	}
	return 0;
}

static int serve(struct broker_child *c, struct cj_error *err)
{
	if (list_all(c, err) < 0 || check_all(&c->broker, err) < 0 || print_list(c, err) < 0)
		return -err->code;
	while (c->has_stream && !is_over(c))
		if (loop_turn(&c->loop, broker_tick(&c->broker), err) < 0)
			return -err->code;
	if (c->has_stream && c->stream.stdio.failure.code != 0) {
		*err = c->stream.stdio.failure;
		return cj_wrap(err, "the socket of the calls");
	}
	return 0;
}

static void destroy(struct broker_child *c)
{
	if (c->has_stream)
		broker_stream_close(&c->stream);
	broker_close(&c->broker);
	loop_unwatch(&c->loop, &c->signals);
	cj_close(&c->signal_fd);
	loop_close(&c->loop);
	free(c);
}

static struct broker_child *create(struct cj_error *err)
{
	struct broker_child *c = calloc(1, sizeof(*c));

	if (!c) {
		(void)!cj_fail(err, ENOMEM, "start");
		return NULL;
	}
	c->loop = LOOP_NULL;
	c->signals = WATCH_NULL;
	c->signal_fd = -1;
	return c;
}

int mcp_broker_print(const char *path, struct cj_error *err)
{
	struct broker_child *c = create(err);

	if (!c)
		return -err->code;
	struct blob catalogue;
	bool is_listed = open_all(c, path, -1, err) == 0 && list_all(c, err) == 0 &&
			 broker_catalogue(&c->broker, &catalogue, err) == 0;
	for (size_t i = 0; is_listed && i < c->broker.ntools; i++)
		(void)printf("%s\n", c->broker.tools[i].full_name);
	/* a server that failed does not hide the others */
	int rc = is_listed ? check_all(&c->broker, err) : -err->code;
	destroy(c);
	return rc;
}

void mcp_broker_warn(const struct broker *b)
{
	char text[CJ_ERROR_MSG_MAX];

	warn_of_hidden(b);
	for (size_t i = 0; i < b->file.count; i++)
		if (!b->servers[i].is_listed)
			log_warning("%s; its tools are left out",
				    upstream_explain(&b->servers[i], text, sizeof(text)));
}

#define NAMES_MAX 3000 /* bytes of all names: the model reads them with each tool */

/* Appends what fits.  False: not all did. */
static bool append(char *out, size_t *size, const char *text)
{
	size_t more = strlen(text);

	if (*size + more > NAMES_MAX)
		return false;
	memcpy(out + *size, text, more + 1);
	*size += more;
	return true;
}

/* "github: search, get_file; files: read" */
static void put_names(const struct broker *b, char *out)
{
	const struct upstream *last = NULL;
	size_t size = 0;

	for (size_t i = 0; i < b->ntools; i++) {
		const char *name = b->tools[i].full_name, *dot = strchr(name, '.');
		char server[TOOL_CHOICE_NAME_MAX + 8];
		bool is_new = b->tools[i].server != last;
		(void)snprintf(server, sizeof(server), "%s%.*s: ", last ? "; " : "",
			       (int)(dot - name), name);
		last = b->tools[i].server;
		if (append(out, &size, is_new ? server : ", ") && append(out, &size, dot + 1))
			continue;
		(void)snprintf(out + size, 64, "; and %zu more", b->ntools - i);
		return;
	}
}

/* Only what the user has written: what a server says of its failure is for the user's log. */
static const char *name_failed(const struct broker *b, struct arena *a)
{
	const char *text = "";

	for (size_t i = 0; text && i < b->file.count; i++)
		if (!b->servers[i].is_listed)
			text = arena_printf(a, "%s%s'%s'", text, *text ? ", " : "",
					    b->file.servers[i].name);
	if (!text || !*text)
		return text;
	return arena_printf(
	    a,
	    " The tools of %s are missing: a server has failed, or a pattern in its "
	    "\"allow\" or \"deny\" is wrong. Tell the user to try 'cejail mcp "
	    "--tools-from %s --check'.",
	    text, b->file.path);
}

const char *mcp_broker_describe(const struct broker *b, struct arena *a)
{
	char *names = arena_alloc(a, NAMES_MAX + 64);
	const char *failed = name_failed(b, a);

	if (!names || !failed || b->ntools == 0)
		return failed && *failed ? failed + 1 : NULL;
	put_names(b, names);
	return arena_printf(
	    a,
	    "The program may call these tools, by server: %s. In Python: 'import tools', then "
	    "tools.call('SERVER.TOOL', name=value); in JavaScript: import from './tools.mjs'. "
	    "tools.describe('SERVER.TOOL') returns the description and the schema of one tool. "
	    "Loop, filter and combine in the program: only what it prints reaches you.%s",
	    names, failed);
}

int mcp_broker_main(const char *const *args)
{
	struct broker_options options = { 0 };
	struct cj_error err = { 0 };
	struct broker_child *c = create(&err);
	int fd = -1;

	int rc = c ? read_options(args, &options, &fd, &err) : -err.code;
	if (options.is_quiet)
		log_set_level(LOG_QUIET);
	if (rc == 0)
		rc = open_all(c, options.tools_from, fd, &err);
	if (rc == 0)
		rc = serve(c, &err);
	if (rc < 0 && c && c->is_listed)
		log_error(&err);
	else if (rc < 0)
		(void)libexec_fail(&err);
	if (c)
		destroy(c);
	return rc;
}
