/* SPDX-License-Identifier: Apache-2.0 */
/* POST /mcp: messages, and the answers that need no run. */
#include "runtime/service/api/api_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiles/plan/plan.h"
#include "runtime/base/loop.h"
#include "runtime/base/scope.h"
#include "runtime/run/mcp/mcp_tool.h"
#include "runtime/service/access/account.h"
#include "runtime/service/config/profile_cache.h"
#include "runtime/service/config/service_config.h"

#define JSON_TYPE "application/json"

/* A message while it is answered. */
struct message {
	struct mcp_protocol protocol;
	struct api_call *call;
	struct arena arena;
	struct mcp_tool tools[API_MCP_TOOLS_MAX + MCP_SESSION_TOOLS];
};

/* What the profile gives, within the ceilings of the caller. */
static int clamp(const struct rights *rights, const struct config *profile, struct config *out,
		 struct cj_error *err)
{
	struct rights_clamp ceilings;

	if (config_copy(out, profile, err) < 0 ||
	    rights_validate(rights, out, profile, &ceilings, err) < 0)
		return -err->code;
	rights_clamp_apply(&ceilings, out);
	return 0;
}

/* A profile that cannot be read has no tool; the service's log says why when it is listed. */
static int add_tool(struct message *p, const char *name, bool is_standard, struct cj_error *err)
{
	struct api_call *c = p->call;
	const struct config *profile = NULL;
	struct cj_error ignored = { 0 };
	struct config config;

	if (p->protocol.ntools == API_MCP_TOOLS_MAX ||
	    !rights_has_profile(c->account->rights, name) ||
	    profile_cache_get(c->api->profiles, name, &profile, &ignored) < 0 ||
	    (is_standard && !mcp_profiles_has_interpreter(profile)))
		return 0;
	config_init(&config);
	int rc = clamp(c->account->rights, profile, &config, err);
	p->tools[p->protocol.ntools].text_max = c->api->config->mcp.text_max;
	p->tools[p->protocol.ntools].lacks_uplink = !mcp_profiles_has_uplink(&config);
	if (rc == 0)
		rc = mcp_profiles_describe(&p->tools[p->protocol.ntools++], "", name, &config,
					   profile->description, &p->arena, err);
	config_fini(&config);
	return rc;
}

static int load_tools(struct mcp_protocol *protocol, struct cj_error *err)
{
	struct message *p = watch_owner(protocol, struct message, protocol);
	const struct strings *chosen = &p->call->api->config->mcp.profiles;
	int rc = 0;

	protocol->tools = p->tools;
	for (size_t i = 0; i < chosen->count && rc == 0; i++)
		rc = add_tool(p, chosen->items[i], false, err);
	for (size_t i = 0; chosen->count == 0 && mcp_profiles_standard[i] && rc == 0; i++)
		rc = add_tool(p, mcp_profiles_standard[i], true, err);
	bool may_have_sessions = p->call->api->config->sessions > 0 &&
				 p->call->account->rights->sessions > 0;
	if (rc == 0 && protocol->ntools > 0 && may_have_sessions)
		mcp_profiles_add_sessions(p->tools, &protocol->ntools, "");
	return rc;
}

void api_mcp_reply(struct exchange *x, unsigned status, struct json_writer *w)
{
	if (mcp_headers_accept(exchange_header(x, "Accept"), JSON_TYPE)) {
		exchange_reply_json(x, status, w);
		return;
	}
	exchange_begin_stream(x, API_MCP_EVENTS, NULL);
	(void)api_mcp_put_event(x, w, true);
	exchange_end_stream(x);
}

bool api_mcp_put_event(struct exchange *x, struct json_writer *w, bool must)
{
	struct cj_error ignored = { 0 };
	const char *text = NULL;
	auto_free char *event = NULL;
	size_t size = 0;

	if (json_writer_take(w, &text, &size, &ignored) < 0)
		return false;
	int length = asprintf(&event, "event: message\ndata: %s\n\n", text);
	if (length < 0) {
		event = NULL;
		return false;
	}
	return exchange_put(x, event, (size_t)length, must);
}

static bool is_acceptable(struct exchange *x)
{
	const char *accept = exchange_header(x, "Accept");
	const char *type = exchange_header(x, "Content-Type");

	if (!type || !posted_is_type(type, JSON_TYPE)) {
		exchange_refuse(x, API_UNSUPPORTED_MEDIA_TYPE, NULL, NULL);
		return false;
	}
	if (mcp_headers_accept(accept, JSON_TYPE) || mcp_headers_accept(accept, API_MCP_EVENTS))
		return true;
	exchange_refuse(x, API_NOT_ACCEPTABLE, NULL,
			"accept application/json and text/event-stream");
	return false;
}

/* The label of the client's calls: nobody else can guess it. */
static bool open_session(struct exchange *x, char label[static PLAN_ID_MAX])
{
	struct cj_error ignored = { 0 };

	if (plan_mint_id(label, &ignored) < 0)
		return false;
	exchange_add_header(x, "Mcp-Session-Id", label);
	return true;
}

static void answer(struct message *p, const struct mcp_asked *asked, struct json_writer *w)
{
	struct exchange *x = p->call->exchange;
	char label[PLAN_ID_MAX];

	if (p->protocol.was_opened && !open_session(x, label))
		exchange_refuse(x, API_INTERNAL, NULL, NULL);
	else
		api_mcp_reply(x, asked->http_status, w);
}

static void act(struct message *p, const char *body, size_t size, struct json_writer *w)
{
	struct mcp_asked asked;

	mcp_protocol_take(&p->protocol, body, size, &p->arena, w, &asked);
	if (asked.action == MCP_ANSWER) {
		answer(p, &asked, w);
	} else if (asked.action == MCP_TASK) {
		mcp_tasks_answer(&p->call->api->mcp_tasks, p->call->account->name, &asked, w);
		answer(p, &asked, w);
	} else if (asked.action == MCP_CALL) {
		api_mcp_call_begin(p->call, &asked);
	} else {
		if (asked.action == MCP_CANCEL)
			api_mcp_call_cancel(p->call, &asked.id);
		/* a notification has no answer */
		exchange_reply(p->call->exchange,
			       &(struct http_reply){ .status = 202,
						     .content_type = "text/plain",
						     .text = strdup("") });
	}
}

void api_post_mcp(struct api_call *c)
{
	struct exchange *x = c->exchange;
	const struct mcp_headers headers = { .version = exchange_header(x, "MCP-Protocol-Version"),
					     .method = exchange_header(x, "Mcp-Method"),
					     .name = exchange_header(x, "Mcp-Name") };
	auto_json_writer struct json_writer *w = json_writer_create(false);
	struct message *p = calloc(1, sizeof(*p));
	size_t size = 0;

	if (!p || !w) {
		exchange_refuse(x, API_INTERNAL, NULL, NULL);
	} else if (is_acceptable(x)) {
		auto_free char *body = exchange_take_body(x, &size);
		p->call = c;
		p->protocol.load = load_tools;
		p->protocol.headers = &headers;
		act(p, body ? body : "", size, w);
	}
	if (p)
		arena_fini(&p->arena);
	free(p);
}
