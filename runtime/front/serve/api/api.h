/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api - requests to replies: the table of routes, who may come in, and the handlers.
 * profiles/schema/openapi.json describes it; cejail-serve(8) tells it.
 */
#pragma once

#include "runtime/front/serve/service.h"

/* What http.h calls; the context is the service. */
struct http_ops api_ops(struct service *s);

/* --- of use to api*.c only ------------------------------------------------------ */

/* A request that has come in: by whom, and what its path names. */
struct api_call {
	struct service *service;
	struct exchange *exchange;
	struct account *account;
	const char *name; /* what stands for * in the route's path, or "" */
};

void api_post_run(struct api_call *c);
void api_list_runs(struct api_call *c);
void api_show_run(struct api_call *c);
void api_cancel_run(struct api_call *c);
void api_list_profiles(struct api_call *c);

struct json_writer;
/* The writer's value as the reply; NULL, or a writer that failed, is an internal error. */
void api_reply_json(struct exchange *x, unsigned status, struct json_writer *w);
