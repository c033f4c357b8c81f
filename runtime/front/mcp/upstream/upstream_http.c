/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link to a server with an http:// URL of this machine: Streamable HTTP.  Each message is a
 * POST on a connection of its own.  The answer is one message, or a stream of events.
 */
#include "runtime/front/mcp/upstream/upstream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "runtime/base/byte_queue.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/front/client/http_answer.h"

#define CHUNK         65536
#define EXCHANGES_MAX 128
#define NOTES_MAX     8    /* exchanges of messages that have no answer */
#define NOTE_MS       5000 /* for the head of the reply to one */
#define NAME_ENCODED  (4 * (TOOL_CHOICE_NAME_MAX + 2) / 3 + 16)

struct http_link {
	struct upstream *owner;
	struct server_address address;
	char session[129]; /* "": none */
	LIST_HEAD(, http_exchange) exchanges;
	size_t count;
};

/* One POST. */
struct http_exchange {
	LIST_ENTRY(http_exchange) link;
	struct http_link *of;
	struct watch watch;
	int fd;
	uint64_t id;          /* of the request; 0: a message that has no answer */
	uint64_t deadline_ms; /* of such a message */
	struct byte_queue out, body;
	struct http_answer answer;
	bool is_over; /* to be destroyed */
};

static struct http_link *link_of(const struct upstream *u)
{
	return u->link_state;
}

static void destroy(struct http_exchange *x)
{
	LIST_REMOVE(x, link);
	x->of->count--;
	loop_unwatch(x->of->owner->loop, &x->watch);
	cj_close(&x->fd);
	byte_queue_fini(&x->out);
	byte_queue_fini(&x->body);
	free(x);
}

/* With a NUL behind it. */
static void take(struct http_exchange *x, char *text, size_t size)
{
	char after = text[size];

	text[size] = '\0';
	upstream_take(x->of->owner, text, size);
	text[size] = after;
}

/*
 * The data of one event, whose lines are joined: the HTML standard, 9.2.6.  All other fields are
 * ignored.  `size` ends with a line end.
 */
static void take_event(struct http_exchange *x, char *text, size_t size)
{
	char *at = text, *limit = text + size, *to = text;

	while (at < limit) {
		char *end = memchr(at, '\n', (size_t)(limit - at));
		char *next = end ? end + 1 : limit;
		size_t length = (size_t)((end ? end : limit) - at);
		if (length > 0 && at[length - 1] == '\r')
			length--;
		if (length >= 5 && memcmp(at, "data:", 5) == 0) {
			memmove(to, at + 5, length - 5);
			to += length - 5;
			*to++ = '\n';
		}
		at = next;
	}
	if (to > text)
		take(x, text, (size_t)(to - text) - 1);
}

/* The first empty line: the end of an event; 0: there is none. */
static size_t find_event_end(const char *text, size_t size)
{
	const char *limit = text + size, *at = text;

	while ((at = memchr(at, '\n', (size_t)(limit - at))) != NULL) {
		at++;
		if (at < limit && *at == '\n')
			return (size_t)(at - text) + 1;
		if (at + 1 < limit && at[0] == '\r' && at[1] == '\n')
			return (size_t)(at - text) + 2;
	}
	return 0;
}

static void take_events(struct http_exchange *x)
{
	size_t size;

	while (byte_queue_size(&x->body) > 0 &&
	       (size = find_event_end(x->body.bytes + x->body.start, byte_queue_size(&x->body))) >
		   0) {
		take_event(x, x->body.bytes + x->body.start, size);
		byte_queue_take(&x->body, size);
	}
}

static bool is_stream(const struct http_exchange *x)
{
	return strcmp(x->answer.type, "text/event-stream") == 0;
}

static int keep(void *context, const char *bytes, size_t size, struct cj_error *err)
{
	struct http_exchange *x = context;

	if (byte_queue_size(&x->body) + size > MCP_LINE_MAX)
		return cj_reject_as(err, EFBIG, "it is larger than %u bytes", MCP_LINE_MAX);
	bool is_kept = byte_queue_add(&x->body, bytes, size) == 0 &&
		       byte_queue_grow(&x->body, 1) == 0; /* the NUL of take() */
	return is_kept ? 0 : cj_fail(err, ENOMEM, "read it");
}

static bool has_response(const struct http_exchange *x)
{
	auto_arena struct arena a = { 0 };
	struct mcp_message m;
	struct mcp_fault ignored;
	uint64_t id = 0;

	if (byte_queue_size(&x->body) == 0 ||
	    mcp_message_read(x->body.bytes + x->body.start, byte_queue_size(&x->body), &a, &m,
			     &ignored) < 0)
		return false;
	return m.kind == MCP_RESPONSE && text_take_u64(m.id.text, &id) && id == x->id;
}

static void end_answer(struct http_exchange *x)
{
	struct upstream *u = x->of->owner;
	bool is_success = http_answer_is_success(&x->answer);

	x->is_over = true;
	if (x->answer.status == 404 && x->of->session[0]) {
		upstream_fail(u, "has ended the session");
		return;
	}
	if (x->id == 0)
		return;
	if (is_stream(x))
		take_events(x);
	else if (is_success ? byte_queue_size(&x->body) > 0 : has_response(x))
		take(x, x->body.bytes + x->body.start, byte_queue_size(&x->body));
	const struct upstream_call *c;
	TAILQ_FOREACH(c, &u->calls, link)
		if (c->id == x->id)
			break;
	if (u->step_id != x->id && !c) /* nothing waits for it */
		return;
	if (is_success) {
		upstream_fail(u, "ended an answer before its result");
		return;
	}
	/* An error of HTTP becomes one of JSON-RPC, which ends its request only. */
	char line[128];
	(void)snprintf(
	    line, sizeof(line),
	    "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"error\":{\"message\":\"HTTP status %u\"}}",
	    (unsigned long long)x->id, x->answer.status);
	upstream_take(u, line, strlen(line));
}

static void read_answer(struct http_exchange *x)
{
	char buf[CHUNK];
	struct upstream *u = x->of->owner;
	struct cj_error err = { 0 };
	ssize_t got = sys_read(x->fd, buf, sizeof(buf));
	int rc = 0;

	if (got < 0 && errno == EAGAIN)
		return;
	if (got < 0)
		rc = cj_fail(&err, errno, "read it");
	else if (got == 0)
		rc = http_answer_end(&x->answer, &err);
	else
		rc = http_answer_feed(&x->answer, buf, (size_t)got, x->id ? keep : NULL, x, &err);
	bool has_head = x->answer.part > HTTP_HEADERS;
	/* the messages that follow the answer to initialize need the session */
	if (has_head && u->state == UPSTREAM_OPENING && x->id != 0 && x->id == u->step_id)
		memcpy(x->of->session, x->answer.session, sizeof(x->of->session));
	/* of the reply to a message that has no answer, only the status counts */
	bool has_all = x->answer.part == HTTP_DONE || (x->id == 0 && has_head);
	if (rc < 0) {
		x->is_over = true;
		upstream_fail(u, "cannot be understood: %s", err.msg);
	} else if (got == 0 || has_all) {
		end_answer(x);
	} else if (is_stream(x)) {
		take_events(x);
	}
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct http_exchange *x = watch_owner(w, struct http_exchange, watch);
	struct upstream *u = x->of->owner;

	if (byte_queue_size(&x->out) > 0) {
		int code = byte_queue_send(&x->out, x->fd);
		bool may_say_why = code == EPIPE || code == ECONNRESET; /* with an early answer */
		if (code != 0 && !may_say_why) {
			upstream_fail(u, "cannot be reached: %s", strerror(code));
			x->is_over = true;
		}
		if (byte_queue_size(&x->out) == 0)
			loop_rewatch(u->loop, &x->watch, EPOLLIN);
	}
	if (!x->is_over && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		read_answer(x);
	if (x->is_over)
		destroy(x);
}

/* Connecting to this machine does not wait. */
static int connect_to(const struct server_address *a)
{
	const struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(a->port) };
	const struct sockaddr_in6 six = { .sin6_family = AF_INET6,
					  .sin6_port = htons(a->port),
					  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in other = four;
	auto_fd int fd =
	    socket(a->is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (inet_pton(AF_INET, a->host, &other.sin_addr) != 1)
		other.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	const struct sockaddr *to = a->is_ipv6 ? (const struct sockaddr *)&six
					       : (const struct sockaddr *)&other;
	socklen_t size = a->is_ipv6 ? sizeof(six) : sizeof(other);
	if (fd < 0 || (connect(fd, to, size) < 0 && errno != EINPROGRESS))
		return -1;
	return take_fd(&fd);
}

static int add_text(struct byte_queue *q, const char *name, const char *value)
{
	if (byte_queue_add(q, name, strlen(name)) < 0 ||
	    byte_queue_add(q, value, strlen(value)) < 0)
		return -ENOMEM;
	return byte_queue_add(q, "\r\n", 2);
}

/* A name that no header may have is sent in base64. */
static int add_name(struct byte_queue *q, const char *name)
{
	char encoded[NAME_ENCODED] = "=?base64?";
	bool is_plain = !text_begins_with(name, encoded);
	size_t size = strlen(name);

	for (const char *at = name; *at; at++)
		is_plain = is_plain && *at >= ' ' && *at < 0x7f;
	if (is_plain && name[0] != ' ' && name[size - 1] != ' ')
		return add_text(q, "Mcp-Name: ", name);
	size_t used = strlen(encoded);
	used += text_base64(name, size, encoded + used);
	memcpy(encoded + used, "?=", 3);
	return add_text(q, "Mcp-Name: ", encoded);
}

static int add_head(struct byte_queue *q, const struct http_link *l, const char *method,
		    const struct upstream_message *m)
{
	const struct upstream *u = l->owner;
	const struct strings *own = &u->spec->headers;
	char line[TOOL_CHOICE_NAME_MAX];
	bool is_modern = u->era == MCP_ERA_MODERN;
	const char *path = l->address.path[0] ? l->address.path : "/";
	int rc = byte_queue_add(q, method, strlen(method));

	rc |= byte_queue_add(q, path, strlen(path));
	rc |= add_text(q, " ", "HTTP/1.1");
	(void)snprintf(line, sizeof(line), "%s:%u", l->address.host, l->address.port);
	rc |= add_text(q, "Host: ", line);
	rc |= add_text(q, "Connection: ", "close");
	rc |= add_text(q, "User-Agent: ", "cejail/" CJ_VERSION);
	if (u->version[0])
		rc |= add_text(q, "MCP-Protocol-Version: ", u->version);
	if (l->session[0])
		rc |= add_text(q, "Mcp-Session-Id: ", l->session);
	if (is_modern && m->method)
		rc |= add_text(q, "Mcp-Method: ", m->method);
	if (is_modern && m->name)
		rc |= add_name(q, m->name);
	for (size_t i = 0; i < own->count; i++)
		rc |= add_text(q, "", own->items[i]);
	rc |= add_text(q, "Accept: ", "application/json, text/event-stream");
	rc |= add_text(q, "Content-Type: ", "application/json");
	(void)snprintf(line, sizeof(line), "%zu", m->line.size);
	rc |= add_text(q, "Content-Length: ", line);
	return rc | add_text(q, "", "");
}

/* The oldest one is the last of the list; it has been sent. */
static void limit_notes(struct http_link *l)
{
	struct http_exchange *x, *oldest = NULL;
	size_t count = 0;

	for (x = LIST_FIRST(&l->exchanges); x; x = LIST_NEXT(x, link)) {
		count += x->id == 0;
		oldest = x->id == 0 ? x : oldest;
	}
	if (count >= NOTES_MAX)
		destroy(oldest);
}

static void send_http(struct upstream *u, const struct upstream_message *m)
{
	struct http_link *l = link_of(u);
	struct http_exchange *x = calloc(1, sizeof(*x));
	struct cj_error err = { 0 };

	if (!x) {
		upstream_fail(u, "was given up: there is no memory for a message to it");
		return;
	}
	x->of = l;
	x->id = m->id;
	x->deadline_ms = m->id ? 0 : clock_ms() + NOTE_MS;
	x->watch = WATCH_NULL;
	http_answer_init(&x->answer);
	if (x->id == 0)
		limit_notes(l);
	LIST_INSERT_HEAD(&l->exchanges, x, link);
	l->count++;
	x->fd = connect_to(&l->address);
	if (x->fd < 0)
		upstream_fail(u, "cannot be reached: %s", strerror(errno));
	else if (add_head(&x->out, l, "POST ", m) != 0 ||
		 byte_queue_add(&x->out, m->line.bytes, m->line.size) < 0)
		upstream_fail(u, "was given up: there is no memory for a message to it");
	else if (loop_watch(u->loop, &x->watch, x->fd, on_ready, &err) < 0)
		upstream_fail(u, "was given up: %s", err.msg);
	else
		loop_rewatch(u->loop, &x->watch, EPOLLIN | EPOLLOUT);
}

/* Closing the connection cancels the request: 2026-07-28. */
static void forget(struct upstream *u, uint64_t id)
{
	struct http_link *l = link_of(u);
	struct http_exchange *x;

	LIST_FOREACH(x, &l->exchanges, link)
	if (x->id == id) {
		destroy(x);
		return;
	}
}

static int open_http(struct upstream *u, struct cj_error *err)
{
	struct http_link *l = u->link_state ? u->link_state : calloc(1, sizeof(*l));

	if (!l)
		return cj_fail(err, ENOMEM, "connect to it");
	*l = (struct http_link){ .owner = u };
	LIST_INIT(&l->exchanges);
	u->link_state = l;
	return servers_file_split_url(u->spec->url, &l->address, err);
}

static bool is_busy(const struct upstream *u)
{
	return link_of(u)->count >= EXCHANGES_MAX;
}

static int tick_http(struct upstream *u, uint64_t now_ms)
{
	struct http_exchange *x, *next;
	uint64_t at_ms = 0;

	for (x = LIST_FIRST(&link_of(u)->exchanges); x; x = next) {
		next = LIST_NEXT(x, link);
		if (x->deadline_ms != 0 && x->deadline_ms <= now_ms)
			destroy(x);
		else
			at_ms = clock_earlier(at_ms, x->deadline_ms);
	}
	return clock_ms_until(at_ms);
}

static void close_http(struct upstream *u)
{
	struct http_link *l = link_of(u);
	struct http_exchange *x;

	if (!l)
		return;
	while ((x = LIST_FIRST(&l->exchanges)) != NULL)
		destroy(x);
	if (l->session[0]) { /* ends it; nobody waits for the answer */
		static const struct upstream_message nothing = { .line = { "", 0 } };
		struct byte_queue q = { 0 };
		auto_fd int fd = connect_to(&l->address);
		if (fd >= 0 && add_head(&q, l, "DELETE ", &nothing) == 0)
			(void)byte_queue_send(&q, fd);
		byte_queue_fini(&q);
	}
	free(l);
	u->link_state = NULL;
}

static bool is_closed(struct upstream *u)
{
	return u->link_state == NULL;
}

const struct upstream_link upstream_http = {
	.open = open_http,
	.send = send_http,
	.forget = forget,
	.is_busy = is_busy,
	.tick = tick_http,
	.close = close_http,
	.is_closed = is_closed,
};
