/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/client/service_calls.h"

#include <inttypes.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/jail/supervise/call_line.h"
#include "runtime/jail/supervise/calls.h"

#define RETRY_MS    100 /* after which the service is asked again, unless it says when */
#define RETRY_MAX_S 60

struct call_answer {
	TAILQ_ENTRY(call_answer) link;
	uint64_t id;
	bool is_refusal; /* an error of ours in place of the answer */
	size_t size;
	char body[];
};

static const char begin[] = "{\"type\":\"call\",", before_arguments[] = ",\"arguments\":";

bool call_event_is(const char *text, size_t size)
{
	return size > sizeof(begin) && strncmp(text, begin, sizeof(begin) - 1) == 0 &&
	       strstr(text, before_arguments);
}

int call_event_read(char *text, size_t size, uint64_t last_id, struct arena *a,
		    struct call_event *out, struct cj_error *err)
{
	const struct json_node *head = NULL, *given = NULL;
	char *cut = strstr(text, before_arguments);
	const char *end = text + size - 1;

	if (!cut || *end != '}')
		return cj_reject(err, "the service sent a call without the end of its arguments");
	char *arguments = cut + sizeof(before_arguments) - 1;
	*out = (struct call_event){ .head = { text, (size_t)(cut - text) + 1 },
				    .arguments = { arguments, (size_t)(end - arguments) } };
	if (out->arguments.size > CALL_LINE_MAX)
		return cj_reject(err, "the service sent a call of more than %u bytes",
				 CALL_LINE_MAX);
	*cut = '}';
	if (json_parse_capped("the service's call", text, out->head.size, a, &head, err) < 0 ||
	    json_parse_capped("the service's call", arguments, out->arguments.size, a, &given,
			      err) < 0)
		return -err->code;
	if (given->type != JSON_OBJECT)
		return cj_reject(err, "the service sent a call whose arguments are no object");
	call_line_flatten(arguments, out->arguments.size);
	out->name = json_get_text(head, "name");
	if (!out->name || !json_get_u64(head, "call", &out->id) || out->id <= last_id)
		return cj_reject(err, "the service sent a call without a name or a new number");
	return 0;
}

/* NULL without memory. */
static struct call_answer *copy_answer(uint64_t id, const char *text, size_t size)
{
	struct call_answer *a = text ? malloc(sizeof(*a) + size) : NULL;

	if (!a)
		return NULL;
	*a = (struct call_answer){ .id = id, .size = size };
	memcpy(a->body, text, size);
	return a;
}

static struct call_answer *write_error(uint64_t id, const char *why)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct cj_error ignored = { 0 };
	struct blob text = { 0 };

	json_open_object(w);
	json_member_object(w, "error");
	json_member_text(w, "message", why);
	json_close_object(w);
	json_close_object(w);
	(void)json_writer_take(w, &text, &ignored);
	return copy_answer(id, text.bytes, text.size);
}

static void remove_answer(struct call_answers *c, struct call_answer *a)
{
	TAILQ_REMOVE(&c->list, a, link);
	c->count--;
	free(a);
}

/* A service that cannot be reached now may be reached later: at the latest, the run ends. */
static uint64_t wait_of(const struct http_answer *reply, bool is_whole)
{
	if (!is_whole || reply->retry_after == 0)
		return RETRY_MS;
	return 1000 * (reply->retry_after < RETRY_MAX_S ? reply->retry_after : RETRY_MAX_S);
}

static void send_first(struct call_answers *c)
{
	const struct call_answer *a = TAILQ_FIRST(&c->list);
	char target[REMOTE_URL_MAX + 32];
	struct cj_error ignored = { 0 };

	c->retry_at_ms = 0;
	if (!a)
		return;
	(void)snprintf(target, sizeof(target), "%s/calls/%" PRIu64, c->url, a->id);
	const struct remote_message message = {
		.method = "POST", .path = target, .body = { a->body, a->size }, .agent = c->agent
	};
	int fd = remote_link_connect(c->socket_path, SOCK_NONBLOCK, &ignored);
	if (fd < 0 || remote_exchange_start(&c->post, fd, &message, &ignored) < 0)
		c->retry_at_ms = clock_ms() + RETRY_MS;
}

/* The reply to an answer whose call has ended is 404 or 409. */
static void on_posted(struct remote_exchange *q, const struct cj_error *err)
{
	enum { NOT_FOUND = 404, CONFLICT = 409, TOO_MANY = 429, UNAVAILABLE = 503 };
	struct call_answers *c = watch_owner(q, struct call_answers, post);
	struct call_answer *a = TAILQ_FIRST(&c->list);
	const unsigned status = q->answer.status;
	struct call_answer *refusal = NULL;
	char why[128];

	remote_exchange_close(q);
	if (err->code || status == TOO_MANY || status == UNAVAILABLE) {
		c->retry_at_ms = clock_ms() + wait_of(&q->answer, err->code == 0);
		return;
	}
	if (!http_answer_is_success(&q->answer) && status != NOT_FOUND && status != CONFLICT &&
	    !a->is_refusal) {
		(void)snprintf(why, sizeof(why),
			       "the service does not take the answer of %zu bytes: HTTP status %u",
			       a->size, status);
		refusal = write_error(a->id, why);
		c->has_no_memory |= !refusal;
	}
	remove_answer(c, a);
	if (refusal) {
		refusal->is_refusal = true;
		TAILQ_INSERT_HEAD(&c->list, refusal, link);
		c->count++;
	}
	send_first(c);
}

static void add(struct call_answers *c, struct call_answer *a)
{
	const bool is_first = TAILQ_EMPTY(&c->list);

	c->has_no_memory |= !a;
	if (!a)
		return;
	TAILQ_INSERT_TAIL(&c->list, a, link);
	c->count++;
	if (is_first)
		send_first(c);
}

void call_answers_add(struct call_answers *c, uint64_t id, const char *text, size_t size)
{
	add(c, copy_answer(id, text, size));
}

void call_answers_add_error(struct call_answers *c, uint64_t id, const char *why)
{
	add(c, write_error(id, why));
}

void call_answers_drop(struct call_answers *c, uint64_t id)
{
	struct call_answer *a, *next;

	for (a = TAILQ_FIRST(&c->list); a; a = next) {
		next = TAILQ_NEXT(a, link);
		if (a->id == id && a != TAILQ_FIRST(&c->list))
			remove_answer(c, a);
	}
}

void call_answers_open(struct call_answers *c, struct loop *loop, const char *socket_path,
		       const char *url)
{
	*c = (struct call_answers){
		.post = { .loop = loop, .end = on_posted, .watch = WATCH_NULL, .fd = -1 },
		.socket_path = socket_path,
		.url = url,
	};
	TAILQ_INIT(&c->list);
}

int call_answers_tick(struct call_answers *c, uint64_t now_ms)
{
	if (c->retry_at_ms > 0 && now_ms >= c->retry_at_ms)
		send_first(c);
	return c->retry_at_ms > now_ms ? (int)(c->retry_at_ms - now_ms) : -1;
}

void call_answers_close(struct call_answers *c)
{
	if (!c->url)
		return;
	remote_exchange_close(&c->post);
	while (!TAILQ_EMPTY(&c->list))
		remove_answer(c, TAILQ_FIRST(&c->list));
}
