/* SPDX-License-Identifier: Apache-2.0 */
/* The validation of bodies, step by step. */
#include "runtime/service/api/api_parts.h"

#include <strings.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/service/config/profile_cache.h"

#define SESSION_BODY_MAX (256u << 10) /* its settings stay in memory for as long as it lives */

bool posted_is_type(const char *content_type, const char *wanted)
{
	size_t size = strlen(wanted);

	return strncasecmp(content_type, wanted, size) == 0 &&
	       strchr("; \t", content_type[size]) != NULL;
}

/* The default type of `curl -d` is accepted, but not on TCP: web forms send it, too. */
static bool is_json(const struct exchange *x)
{
	const char *type = exchange_header(x, "Content-Type");

	return !type || posted_is_type(type, "application/json") ||
	       (!exchange_caller(x).is_tcp &&
		posted_is_type(type, "application/x-www-form-urlencoded"));
}

void posted_init(struct posted *p, struct api_call *call)
{
	*p = (struct posted){ .call = call };
	config_init(&p->asked);
	p->body = exchange_take_body(call->exchange, &p->size);
}

void posted_fini(struct posted *p)
{
	free(p->body);
	config_fini(&p->asked);
	arena_fini(&p->arena);
}

/* Validation, step by step; false: the request is refused. */

bool posted_is_accepted(struct posted *p)
{
	return !p->call->api->executions.is_draining || api_refuse(p->call, API_DRAINING, NULL);
}

bool posted_parse(struct posted *p, enum request_kind kind, const struct session_entry *of)
{
	struct api_call *c = p->call;
	const struct blob body = { p->body ? p->body : "", p->size };
	struct request_caps caps = c->api->config->caps;
	struct cj_error err = { 0 };

	caps.kind = kind;
	if (kind == REQUEST_SESSION && caps.body_bytes > SESSION_BODY_MAX)
		caps.body_bytes = SESSION_BODY_MAX;
	caps.profile = of ? of->profile : NULL;
	if (!is_json(c->exchange))
		return api_refuse(c, API_UNSUPPORTED_MEDIA_TYPE, NULL);
	int rc = request_parse(body, &caps, &p->arena, &p->request, &err);
	if (rc < 0)
		return api_refuse(c,
				  rc == -EFBIG    ? API_TOO_LARGE
				  : rc == -ENOMEM ? API_INTERNAL
						  : API_BAD_REQUEST,
				  &err);
	if (!of)
		return true;
	p->profile = &of->base;
	/* a reload may have taken the profile away from the caller */
	return rights_has_profile(c->account->rights, of->profile) ||
	       api_refuse(c, API_FORBIDDEN_PROFILE, NULL);
}

bool posted_find_profile(struct posted *p)
{
	struct api_call *c = p->call;
	const char *name = p->request.profile;
	struct cj_error err = { 0 };

	if (!is_name(name)) {
		cj_refuse(&err, "profile: '%s' is not a profile's name", name);
		return api_refuse(c, API_BAD_REQUEST, &err);
	}
	if (!rights_has_profile(c->account->rights, name))
		return api_refuse(c, API_FORBIDDEN_PROFILE, NULL);
	int rc = profile_cache_get(c->api->profiles, name, &p->profile, &err);
	if (rc == -ENOENT) {
		cj_refuse(&err, "profile: there is no '%s'", name);
		cj_hint(&err, "GET /v1/profiles lists them");
		return api_refuse(c, API_BAD_REQUEST, &err);
	}
	return rc == 0 || api_refuse(c, API_INTERNAL, &err);
}

/* The request against the rights and ceilings of its caller. */
bool posted_validate(struct posted *p, const struct config *base)
{
	const struct rights *rights = p->call->account->rights;
	struct cj_error err = { 0 };

	if (config_copy(&p->asked, base, &err) < 0)
		return api_refuse(p->call, API_INTERNAL, &err);
	int rc = request_apply(&p->request, rights->host_paths, &p->asked, &err);
	if (rc == 0)
		rc = request_check(&p->request, &p->asked, &p->arena, &err);
	if (rc < 0)
		return api_refuse(p->call,
				  rc == -EACCES  ? API_FORBIDDEN_HOST_PATH
				  : rc == -EPERM ? API_ABOVE_CEILING
						 : API_BAD_REQUEST,
				  &err);
	rc = rights_validate(rights, &p->asked, p->profile, &p->clamp, &err);
	if (rc == 0 && p->clamp.no_network && json_get(p->request.root, "network"))
		rc = rights_refuse_network(&err);
	if (rc < 0)
		return api_refuse(p->call, API_ABOVE_CEILING, &err);
	rights_clamp_apply(&p->clamp, &p->asked);
	return true;
}

/* A process with open_calls answers the calls itself.  An inner request has no reader of events. */
bool posted_may_call(const struct posted *p)
{
	const struct api_call *c = p->call;

	return c->api->executions.open_calls ||
	       (c->wants_events && !p->request.detach && !exchange_is_inner(c->exchange));
}

bool posted_is_answerable(struct posted *p)
{
	const struct request *r = &p->request;
	struct cj_error err = { 0 };

	if (r->ntools == 0 || posted_may_call(p))
		return true;
	cj_refuse(&err, "tools: the program's calls come as events, and %s",
		  r->detach ? "a detached exec has none" : "this request asks for none");
	cj_hint(&err, r->detach ? "leave out detach" : "send the header Accept: " HTTP_JSON_LINES);
	return api_refuse(p->call, API_BAD_REQUEST, &err);
}

bool posted_has_room(struct posted *p, char id[static PLAN_ID_MAX])
{
	struct api_call *c = p->call;
	struct cj_error err = { 0 };

	if (p->request.id)
		(void)snprintf(id, PLAN_ID_MAX, "%s", p->request.id);
	else if (plan_mint_id(id, &err) < 0)
		return api_refuse(c, API_INTERNAL, &err);
	if (p->request.id && runs_has_live(&c->api->runs, c->account->name, id))
		return api_refuse(c, API_ID_IN_USE, NULL);
	return api_is_admitted(
	    c, runs_admit(&c->api->runs, c->account, c->api->executions.limits.queue));
}

struct run_order posted_order(struct posted *p, enum job_kind kind, const char *id)
{
	const struct account *account = p->call->account;
	struct run_order o = {
		.job = { .kind = kind,
			 .trace = *exchange_trace(p->call->exchange),
			 .wants_events = p->call->wants_events,
			 .may_name_host_paths = account->rights->host_paths,
			 .clamp = p->clamp,
			 .has_tools = p->request.tools_json != NULL,
			 .body_size = p->size },
		.account = p->call->account,
		.code_bytes = p->request.code.size,
		.fit = rights_clamp_changes_shape(&p->clamp) ? FIT_COLD : p->request.fit,
		.why_cold = p->request.fit == FIT_COLD ? BYPASS_REQUEST : BYPASS_CEILING,
		.audit_required = p->profile->audit_required || p->asked.audit_required,
		.wall_ms = p->asked.run_limits.wall_ms,
		.output_bytes = p->asked.run_limits.output_bytes,
	};

	o.job.body = take_ptr(p->body);
	(void)snprintf(o.job.id, sizeof(o.job.id), "%s", id);
	(void)snprintf(o.caller, sizeof(o.caller), "%s", account->name);
	(void)snprintf(o.profile, sizeof(o.profile), "%s", p->request.profile);
	memcpy(o.job.profile_sha256, p->profile->profile_sha256, sizeof(o.job.profile_sha256));
	if (p->request.code.bytes)
		sha256_hex(p->request.code.bytes, p->request.code.size, o.code_sha256);
	return o;
}
