/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_posted - the body of a new run, session or exec, while it is validated.  Acts.
 *
 * A request is validated here before a process is made for it: its JSON and its sizes, the profile,
 * the rights and ceilings of its caller, the room in the queue.  Each step answers the caller when
 * it returns false.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/base/arena.h"
#include "runtime/run/request/request.h"
#include "runtime/service/api/api.h"
#include "runtime/service/queue/execution.h"

struct posted {
	struct api_call *call;
	struct arena arena;
	char *body;
	size_t size;
	struct request request;
	const struct config *profile; /* borrowed from profile_cache.h, or of a session */
	struct config asked;          /* with the request's settings */
	struct rights_clamp clamp;
};

/* Takes the body out of the exchange. */
void posted_init(struct posted *p, struct api_call *call);
void posted_fini(struct posted *p);

/* No service that drains takes new ones. */
bool posted_is_accepted(struct posted *p);
/* `profile`: the session's, of REQUEST_EXEC. */
bool posted_parse(struct posted *p, enum request_kind kind, const char *profile);
/* Is the header Content-Type this type, with or without parameters? */
bool posted_is_type(const char *content_type, const char *wanted);
/* Is the body of a small request JSON by its Content-Type? */
bool posted_is_json(struct posted *p);
/* Sets p->profile. */
bool posted_find_profile(struct posted *p);
/* The request onto `base`, against the rights and ceilings of its caller. */
bool posted_validate(struct posted *p, const struct config *base);
/* Room in the queue, and an id that is free. */
bool posted_has_room(struct posted *p, char id[static PLAN_ID_MAX]);

/* What was decided about it, with the body, which moves. */
struct run_order posted_order(struct posted *p, enum job_kind kind, const char *id);

void posted_refuse(struct posted *p, enum api_code code, const struct cj_error *err,
		   uint64_t retry_ms);
/* The caller is not at fault: the reason only goes to the log. */
void posted_fail(struct posted *p, const struct cj_error *err, const char *what);
