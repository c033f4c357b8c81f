/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access check and the routes.
 *
 * Access is checked when the head has arrived, before any body.  Web pages are refused: they send
 * Origin, and the service never offers CORS.  On TCP the Host must be a loopback name, against DNS
 * rebinding, and a token is required.
 */
#include "runtime/service/api/api.h"

#include <strings.h>

#include "runtime/base/clock.h"
#include "runtime/base/json/json.h"
#include "runtime/base/text.h"
#include "runtime/jail/supervise/calls.h"
#include "runtime/service/api/api_parts.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/log/slog.h"

static void show_alive(struct api_call *c);
static void show_readiness(struct api_call *c);
static void show_metrics(struct api_call *c);
static void show_openapi(struct api_call *c);

/* The paths are patterns of api_path_fits(). */
static const struct route {
	const char *method, *path;
	void (*handle)(struct api_call *c);
	bool is_open;                      /* without a token, too */
	void (*begin)(struct api_call *c); /* before the body, which it diverts; or NULL */
	size_t body_max;                   /* less than that of any request; 0: no less */
} routes[] = {
	{ "POST", "/v1/runs", api_post_run },
	{ "GET", "/v1/runs", api_list_runs },
	{ "GET", "/v1/runs/*", api_show_run },
	{ "DELETE", "/v1/runs/*", api_cancel_run },
	{ "POST", "/v1/runs/*/calls/*", api_answer_call, .body_max = CALL_ANSWER_MAX },
	{ "POST", "/v1/sessions", api_post_session },
	{ "GET", "/v1/sessions", api_list_sessions },
	{ "GET", "/v1/sessions/*", api_show_session },
	{ "DELETE", "/v1/sessions/*", api_end_session },
	{ "POST", "/v1/sessions/*/lease", api_renew_session },
	{ "PUT", "/v1/sessions/*/network", api_change_network },
	{ "POST", "/v1/sessions/*/execs", api_post_exec },
	{ "GET", "/v1/sessions/*/execs", api_list_execs },
	{ "GET", "/v1/sessions/*/execs/*", api_show_exec },
	{ "DELETE", "/v1/sessions/*/execs/*", api_cancel_exec },
	{ "POST", "/v1/sessions/*/execs/*/signal", api_signal_exec },
	{ "POST", "/v1/sessions/*/execs/*/stdin", api_feed_exec },
	{ "PUT", "/v1/sessions/*/execs/*/stdin", api_put_stdin, .begin = api_begin_stdin },
	{ "POST", "/v1/sessions/*/execs/*/calls/*", api_answer_exec_call,
	  .body_max = CALL_ANSWER_MAX },
	{ "GET", "/v1/sessions/*/files/**", api_get_file },
	{ "PUT", "/v1/sessions/*/files/**", api_put_file, .begin = api_begin_put },
	{ "POST", "/v1/sessions/*/files/**", api_change_file },
	{ "DELETE", "/v1/sessions/*/files/**", api_remove_file },
	{ "GET", "/v1/profiles", api_list_profiles },
	{ "GET", "/livez", show_alive, true },
	{ "GET", "/readyz", show_readiness },
	{ "GET", "/metrics", show_metrics },
	{ "GET", "/openapi.json", show_openapi },
	{ "POST", "/mcp", api_post_mcp },
};

#define ROUTE_COUNT COUNT_OF(routes)

/* NULL: no such path, or (`allow` filled) no such method for it. */
static const struct route *find_route(const char *method, const char *path, struct api_names *out,
				      char *allow, size_t room)
{
	allow[0] = '\0';
	if (strcmp(method, "HEAD") == 0)
		method = "GET"; /* http_reply.c omits the body */
	for (size_t i = 0; i < ROUTE_COUNT; i++) {
		if (!api_path_fits(routes[i].path, path, out))
			continue;
		if (strcmp(routes[i].method, method) == 0)
			return &routes[i];
		text_append(allow, room, "%s%s", allow[0] ? ", " : "", routes[i].method);
	}
	return NULL;
}

/* "localhost", "127.0.0.1" or "[::1]", each with or without a port. */
static bool is_loopback(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	for (size_t i = 0; i < COUNT_OF(names); i++) {
		size_t size = strlen(names[i]);
		if (strncasecmp(host, names[i], size) != 0)
			continue;
		const char *port = host + size;
		if (port[0] == '\0' ||
		    (port[0] == ':' && strspn(port + 1, "0123456789") == strlen(port + 1)))
			return true;
	}
	return false;
}

/*
 * A page of our own address; there is none, but the protocol wants it accepted.  It still needs a
 * token, as only TCP has it.
 */
static bool is_own_origin(const struct exchange *x, const char *host)
{
	static const char scheme[] = "http://";
	const char *origin = exchange_header(x, "Origin");

	return strcmp(exchange_path(x), "/mcp") == 0 && exchange_caller(x).is_tcp && host &&
	       strncmp(origin, scheme, sizeof(scheme) - 1) == 0 &&
	       strcasecmp(origin + sizeof(scheme) - 1, host) == 0;
}

static bool has_safe_origin(struct exchange *x)
{
	const char *host = exchange_header(x, "Host");

	if (exchange_header(x, "Origin") && !is_own_origin(x, host))
		return false;
	return !exchange_caller(x).is_tcp || (host && is_loopback(host));
}

static struct account *account_by_token(struct api *api, struct exchange *x,
					const struct exchange *asker)
{
	static const char scheme[] = "Bearer ";
	const char *header = exchange_header(asker, "Authorization");

	if (!header || strncasecmp(header, scheme, sizeof(scheme) - 1) != 0)
		header = scheme; /* no caller has an empty token; it takes as long */
	const char *token = header + sizeof(scheme) - 1;
	const struct caller_row *row =
	    callers_find_token(&api->config->callers, token, strlen(token));
	if (!row) {
		exchange_refuse(x, API_UNAUTHORIZED, NULL, NULL);
		return NULL;
	}
	struct account *a = account_of_row(&api->accounts, row, clock_ms());
	if (!a)
		exchange_refuse(x, API_QUEUE_FULL, NULL, NULL);
	return a && exchange_adopt(x, a->name) ? a : NULL;
}

struct account *api_find_account(struct api *api, struct exchange *x, const struct exchange *asker)
{
	struct http_caller caller = exchange_caller(x);

	if (caller.is_tcp)
		return account_by_token(api, x, asker);
	struct account *a = account_of_uid(&api->accounts, &api->config->callers, caller.uid,
					   api->own_uid, clock_ms());
	if (!a)
		exchange_refuse(x, API_QUEUE_FULL, NULL, NULL);
	return a;
}

/*
 * A body with a Content-Length above the limit is refused before it is read; a chunked one is
 * counted as it arrives.  An open route accepts no body: else unauthenticated clients could fill
 * the memory.
 */
static bool has_good_length(struct api *api, struct exchange *x, const struct route *route)
{
	const char *length = exchange_header(x, "Content-Length");
	const struct request_caps *caps = &api->config->caps;
	bool is_open = route->is_open, is_hidden = exchange_header(x, "Transfer-Encoding") != NULL;
	uint64_t size = exchange_body_size(x);
	uint64_t max = is_open                           ? 0
		       : route->begin == api_begin_stdin ? caps->stdin_bytes
		       : route->begin                    ? caps->file_bytes
							 : caps->body_bytes;
	struct cj_error ignored = { 0 };

	if (route->body_max > 0 && route->body_max < max)
		max = route->body_max;
	if (!(is_open && is_hidden) && (size <= max || route->begin) &&
	    (!length || (parse_u64(length, 0, UINT64_MAX, &size, &ignored) == 0 && size <= max)))
		return true;
	exchange_refuse(x, API_TOO_LARGE, is_open ? "this path takes no request body" : NULL, NULL);
	return false;
}

/* Called twice, after the head and after the body: a reload may change rights in between. */
static const struct route *check_access(struct api *api, struct exchange *x, bool is_whole,
					struct api_call *out)
{
	char allow[64];

	const char *accept = exchange_header(x, "Accept");
	*out = (struct api_call){ .api = api, .exchange = x };
	out->wants_events = accept && strcasestr(accept, "application/x-ndjson");
	const struct route *route =
	    find_route(exchange_method(x), exchange_path(x), &out->names, allow, sizeof(allow));
	if (!has_safe_origin(x)) {
		exchange_refuse(x, API_FORBIDDEN_ORIGIN, NULL, NULL);
		return NULL;
	}
	if (!route || !route->is_open) {
		out->account = api_find_account(api, x, x);
		/* a body that is diverted begins before the request is whole, and is not parsed */
		bool pays = !route || (route->begin ? !exchange_diverted_to(x) : is_whole);
		uint64_t retry_ms = 0;
		if (!out->account)
			return NULL;
		if (pays &&
		    !account_take(out->account, exchange_body_size(x), clock_ms(), &retry_ms)) {
			exchange_refuse_for(x, API_RATE_LIMITED, retry_ms);
			return NULL;
		}
	}
	if (!route && allow[0])
		exchange_add_header(x, "Allow", allow);
	if (!route)
		exchange_refuse(x, allow[0] ? API_METHOD_NOT_ALLOWED : API_NOT_FOUND, NULL, NULL);
	return route && has_good_length(api, x, route) ? route : NULL;
}

static void on_begun(void *context, struct exchange *x)
{
	struct api_call call;
	const struct route *route = check_access(context, x, false, &call);

	if (route && route->begin)
		route->begin(&call);
}

static void on_whole(void *context, struct exchange *x)
{
	struct api_call call;
	const struct route *route = check_access(context, x, true, &call);

	if (route)
		route->handle(&call);
}

static void on_replied(void *context, unsigned status, enum api_code code)
{
	struct api *a = context;

	if (status > 0)
		metrics_count_http(a->metrics, status);
	if (code != API_OK)
		metrics_count_refusal(a->metrics, code);
}

struct http_ops api_ops(struct api *a)
{
	return (struct http_ops){
		.begun = on_begun, .whole = on_whole, .replied = on_replied, .context = a
	};
}

bool api_refuse(struct api_call *c, enum api_code code, const struct cj_error *err)
{
	if (err && code != API_INTERNAL) {
		exchange_refuse(c->exchange, code, err->msg, err->hint);
		return false;
	}
	if (err)
		slog_failure(SLOG_ERROR, exchange_trace(c->exchange)->request_id, err,
			     "answer a request");
	exchange_refuse(c->exchange, code, NULL, NULL);
	return false;
}

bool api_is_admitted(struct api_call *c, enum api_code code)
{
	return code == API_OK || api_refuse(c, code, NULL);
}

static void show_alive(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_open_object(w);
	json_member_text(w, "status", "alive");
	json_close_object(w);
	exchange_reply_json(c->exchange, 200, w);
}

static void show_readiness(struct api_call *c)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	bool is_of_use = health_write(c->api, w) != READINESS_UNREADY;
	exchange_reply_json(c->exchange, is_of_use ? 200 : 503, w);
}

static void show_metrics(struct api_call *c)
{
	const struct api *a = c->api;
	const struct gauges gauges = {
		.in_flight = a->runs.counts[RUN_RUNNING],
		.queued = a->runs.counts[RUN_QUEUED],
		.connections = http_connections(a->http),
		.pool_ready = { [TIER_JAIL] = pool_ready(&a->pool, TIER_JAIL),
				[TIER_INTERPRETER] = pool_ready(&a->pool, TIER_INTERPRETER),
				[TIER_REPL] = pool_ready(&a->pool, TIER_REPL) },
		.zygotes = zygotes_alive(&a->zygotes),
		.audit_failures = a->audit.failures,
		.sessions = a->sessions.live,
		.sessions_max = a->sessions.limits.count,
		.sessions_reserved_bytes = a->sessions.memory.bytes,
		.sessions_limits_bytes = a->sessions.memory.limits_bytes,
		.in_flight_max = a->executions.limits.concurrency,
		.queued_max = a->executions.limits.queue,
		.started_ms = a->started_ms,
		.has_probed = a->health.has_probed,
		.probe_succeeded = a->health.succeeded,
		.probe_age_ms = a->health.has_probed ? clock_ms() - a->health.probed_ms : 0,
	};
	struct http_reply reply = { .status = 200, .content_type = "text/plain; version=0.0.4" };
	struct cj_error err = { 0 };

	if (metrics_write(a->metrics, &gauges, &reply.text, &reply.size, &err) < 0)
		(void)api_refuse(c, API_INTERNAL, &err);
	else
		exchange_reply(c->exchange, &reply);
}

/* The document that tools/bundle-openapi writes; the Makefile makes an object of it. */
extern const char openapi_start[] __asm__("_binary_openapi_json_start");
extern const char openapi_end[] __asm__("_binary_openapi_json_end");

static void show_openapi(struct api_call *c)
{
	struct http_reply reply = { .status = 200,
				    .content_type = "application/json",
				    .size = (size_t)(openapi_end - openapi_start) };

	reply.text = strndup(openapi_start, reply.size);
	exchange_reply(c->exchange, &reply);
}
