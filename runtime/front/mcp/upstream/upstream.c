/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/upstream/upstream.h"

#include "runtime/base/clock.h"
#include "runtime/base/text.h"

void upstream_init(struct upstream *u, struct loop *loop, const struct server_spec *spec,
		   const struct upstream_link *link)
{
	u->loop = loop;
	u->spec = spec;
	u->link = link;
	TAILQ_INIT(&u->calls);
}

void upstream_fini(struct upstream *u)
{
	for (size_t i = 0; i < UPSTREAM_PAGES_MAX; i++) {
		arena_fini(&u->pages[i]);
		arena_fini(&u->next_pages[i]);
	}
}

void upstream_fail(struct upstream *u, const char *fmt, ...)
{
	char text[CJ_ERROR_MSG_MAX];

	if (u->has_failed)
		return;
	(void)text_format(text, fmt);
	cj_refuse(&u->failure, "the server '%s' %s", u->spec->name, text);
	u->has_failed = true;
}

/* What the program reads: the error in one sentence, with the remedy.  What the server wrote to its
 * stderr is for the user only: it may have a secret. */
static void fail_call(struct upstream_call *c, const struct upstream *u, uint64_t now_ms)
{
	char text[CJ_ERROR_MSG_MAX + 256];
	const char *more = u->has_ended ? "; cejail's messages have what it wrote" : "";

	if (now_ms >= u->retry_ms)
		(void)snprintf(text, sizeof(text), "%s%s; call again, and cejail starts it anew",
			       u->failure.msg, more);
	else
		(void)snprintf(text, sizeof(text),
			       "%s%s; cejail starts it anew in %u s, so call again then, or do "
			       "without it",
			       u->failure.msg, more,
			       (unsigned)((u->retry_ms - now_ms + 999) / 1000));
	upstream_end_call(c, NULL, text);
}

static void carry_out_failure(struct upstream *u, uint64_t now_ms)
{
	struct upstream_call *c;

	u->has_failed = false;
	u->is_wanted = false;
	/* After the first failure the server may be opened at once. */
	uint64_t wait_ms = UPSTREAM_RETRY_MS;
	u->failures++;
	for (unsigned i = 2; i < u->failures && wait_ms < UPSTREAM_RETRY_MS_MAX; i++)
		wait_ms *= 2;
	if (wait_ms > UPSTREAM_RETRY_MS_MAX)
		wait_ms = UPSTREAM_RETRY_MS_MAX;
	u->retry_ms = u->failures > 1 ? now_ms + wait_ms : 0;
	if (u->state != UPSTREAM_OFF) {
		u->state = UPSTREAM_CLOSING;
		u->link->close(u);
	}
	while ((c = TAILQ_FIRST(&u->calls)) != NULL)
		fail_call(c, u, now_ms);
}

void upstream_close(struct upstream *u)
{
	upstream_fail(u, "is being stopped");
	carry_out_failure(u, 0);
}

const char *upstream_explain(const struct upstream *u, char *out, size_t size)
{
	bool has_last = u->has_ended && u->last_line[0];

	(void)snprintf(out, size, "%s%s%s%s", u->failure.msg,
		       has_last ? "; its last line is '" : "", has_last ? u->last_line : "",
		       has_last ? "'" : "");
	return out;
}

bool upstream_is_closed(struct upstream *u)
{
	return u->state == UPSTREAM_OFF || u->link->is_closed(u);
}

static void open_link(struct upstream *u, uint64_t now_ms)
{
	struct cj_error err = { 0 };

	u->is_stale = false;
	u->next_id = u->step_id = 0;
	u->era = MCP_ERA_LEGACY;
	u->version[0] = '\0';
	u->start_ms = now_ms;
	u->unasked = 0;
	u->has_ended = false;
	u->last_line[0] = '\0';
	u->state = UPSTREAM_OPENING;
	if (u->link->open(u, &err) < 0)
		upstream_fail(u, "cannot be started: %s", err.msg);
	else
		upstream_write_initialize(u);
}

static bool is_needed(const struct upstream *u)
{
	return u->is_wanted || !TAILQ_EMPTY(&u->calls);
}

void upstream_want_list(struct upstream *u)
{
	if (!u->is_listed || u->is_stale) {
		u->is_wanted = true;
		u->failure = (struct cj_error){ 0 };
	}
}

void upstream_end_call(struct upstream_call *c, const struct json_node *value, const char *error)
{
	TAILQ_REMOVE(&c->server->calls, c, link);
	c->server->ncalls--;
	c->server = NULL;
	c->done(c, value, error);
}

static uint64_t patience_ms(const struct upstream *u)
{
	return u->spec->timeout_ms ? u->spec->timeout_ms : SERVERS_TIMEOUT_MS;
}

static uint64_t start_limit_ms(const struct upstream *u)
{
	uint64_t ms = u->spec->timeout_ms;
	return u->start_ms + (ms ? ms : UPSTREAM_START_MS);
}

void upstream_call(struct upstream *u, struct upstream_call *c)
{
	uint64_t now_ms = clock_ms();

	c->server = u;
	c->id = 0;
	c->deadline_ms = 0;
	TAILQ_INSERT_TAIL(&u->calls, c, link);
	u->ncalls++;
	if (u->ncalls > UPSTREAM_CALLS_MAX)
		upstream_end_call(c, NULL,
				  "too many calls wait for this server; wait for the answers of "
				  "some before you call again");
	else if ((u->state == UPSTREAM_OFF || u->state == UPSTREAM_CLOSING) && now_ms < u->retry_ms)
		fail_call(c, u, now_ms);
}

void upstream_forget(struct upstream_call *c, const char *reason)
{
	struct upstream *u = c->server;

	if (!u)
		return;
	TAILQ_REMOVE(&u->calls, c, link);
	u->ncalls--;
	c->server = NULL;
	bool is_open = u->state == UPSTREAM_READY || u->state == UPSTREAM_LISTING;
	if (c->id == 0 || !is_open || u->has_failed)
		return;
	upstream_write_cancelled(u, c->id, reason);
	if (u->link->forget)
		u->link->forget(u, c->id);
}

static bool is_offered(const struct upstream *u, const char *tool)
{
	for (size_t i = 0; i < u->ntools; i++)
		if (strcmp(u->tools[i].name, tool) == 0)
			return u->tools[i].is_offered;
	return false;
}

static void send_calls(struct upstream *u, uint64_t now_ms)
{
	struct upstream_call *c, *next;

	for (c = TAILQ_FIRST(&u->calls); c && !u->has_failed; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->deadline_ms == 0)
			c->deadline_ms = now_ms + patience_ms(u);
		if (c->id != 0 || u->link->is_busy(u))
			continue;
		if (is_offered(u, c->tool))
			upstream_write_call(u, c);
		else
			upstream_end_call(c, NULL,
					  "the server no longer offers this tool; describe() the "
					  "tools in a new run");
	}
}

static void end_late_calls(struct upstream *u, uint64_t now_ms)
{
	char text[256], time[32];
	struct upstream_call *c, *next;

	(void)text_format_duration(patience_ms(u), time, sizeof(time));
	for (c = TAILQ_FIRST(&u->calls); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (c->deadline_ms == 0 || c->deadline_ms > now_ms)
			continue;
		if (u->link->is_busy(u)) {
			upstream_fail(u, "has not read what it was sent for %s", time);
			return;
		}
		(void)snprintf(text, sizeof(text),
			       "the server '%s' did not answer within %s; ask it for less, or "
			       "raise its \"timeout\" in the list of servers",
			       u->spec->name, time);
		upstream_forget(c, "timeout");
		c->done(c, NULL, text);
	}
}

static void check_start(struct upstream *u, uint64_t now_ms)
{
	static const char *const steps[] = { [UPSTREAM_OPENING] = "initialize",
					     [UPSTREAM_ASKING] = "server/discover",
					     [UPSTREAM_LISTING] = "tools/list" };
	char time[32];

	if (now_ms < start_limit_ms(u))
		return;
	upstream_fail(u, "did not answer %s within %s of its start", steps[u->state],
		      text_format_duration(start_limit_ms(u) - u->start_ms, time, sizeof(time)));
}

static void advance(struct upstream *u, uint64_t now_ms)
{
	switch (u->state) {
	case UPSTREAM_OFF:
		if (is_needed(u) && now_ms >= u->retry_ms)
			open_link(u, now_ms);
		break;
	case UPSTREAM_OPENING:
	case UPSTREAM_ASKING:
	case UPSTREAM_LISTING:
		check_start(u, now_ms);
		break;
	case UPSTREAM_READY:
		u->is_wanted = u->is_wanted && u->is_stale;
		if (u->is_stale && is_needed(u)) {
			u->state = UPSTREAM_LISTING;
			u->start_ms = now_ms;
			upstream_list_begin(u);
			upstream_write_list(u, NULL);
		} else {
			send_calls(u, now_ms);
		}
		break;
	case UPSTREAM_CLOSING:
		if (u->link->is_closed(u))
			u->state = UPSTREAM_OFF;
		break;
	}
}

static int wait_of(const struct upstream *u, uint64_t now_ms)
{
	uint64_t at_ms = 0;
	const struct upstream_call *c;

	if (u->has_failed)
		return 0;
	if (u->state == UPSTREAM_OFF)
		return !is_needed(u) ? -1 : u->retry_ms > now_ms ? (int)(u->retry_ms - now_ms) : 0;
	if (u->state == UPSTREAM_CLOSING)
		return -1;
	if (u->state != UPSTREAM_READY)
		at_ms = start_limit_ms(u);
	TAILQ_FOREACH(c, &u->calls, link)
		at_ms = clock_earlier(at_ms, c->deadline_ms);
	return clock_ms_until(at_ms);
}

int upstream_tick(struct upstream *u, uint64_t now_ms)
{
	int link_ms = -1;

	if (u->state != UPSTREAM_OFF && u->state != UPSTREAM_CLOSING && !u->has_failed)
		link_ms = u->link->tick(u, now_ms);
	if (!u->has_failed)
		advance(u, now_ms);
	if (!u->has_failed && u->state == UPSTREAM_OFF)
		advance(u, now_ms); /* it has just closed */
	end_late_calls(u, now_ms);
	if (u->has_failed)
		carry_out_failure(u, now_ms);
	return loop_sooner(link_ms, wait_of(u, now_ms));
}
