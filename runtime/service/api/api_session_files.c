/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions/ID/files/PATH. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/service/api/api_parts.h"
#include "runtime/service/config/service_config.h"
#include "runtime/service/sessions/keeper_conn.h"

/* What a request for a file names.  False: it was refused. */
static bool read_target(struct api_call *c, unsigned parameters, struct api_query *out_query,
			char path[static INPUT_PATH_MAX])
{
	struct cj_error err = { 0 };
	int rc = 0;

	if (c->query)
		*out_query = *c->query;
	else
		rc = api_query_parse(exchange_query(c->exchange), parameters, out_query, &err);
	if (rc == 0 && api_file_path(c->names.rest, (out_query->given & ~PARAMETER_EXECUTABLE) != 0,
				     path, &err) == 0)
		return true;
	return api_refuse(c, API_BAD_REQUEST, &err);
}

static enum file_op op_of(unsigned given)
{
	static const struct {
		unsigned bits;
		enum file_op op;
	} rows[] = {
		{ PARAMETER_LIST, FILE_LIST },
		{ PARAMETER_STAT, FILE_STAT },
		{ PARAMETER_WATCH, FILE_WATCH },
		{ PARAMETER_OFFSET | PARAMETER_LENGTH, FILE_PART },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (given & rows[i].bits)
			return rows[i].op;
	return FILE_GET;
}

/* Carries out the order on the file that the request names; takes its bytes. */
static void operate(struct api_call *c, unsigned parameters, struct file_order *o)
{
	struct session_entry *e = api_find_live_session(c);
	size_t max = c->api->config->caps.file_bytes;
	struct file_job *job = &o->job;
	struct api_query query;
	char path[INPUT_PATH_MAX];

	if (!e || !read_target(c, parameters, &query, path)) {
		free(o->bytes);
		return;
	}
	if (job->op == FILE_GET)
		job->op = op_of(query.given);
	job->path = path;
	job->to = job->to ? job->to : "";
	job->offset = query.offset;
	job->max_bytes = query.length > 0 ? query.length : max;
	job->depth = query.depth > 0 ? query.depth : FILE_LIST_DEPTH;
	job->is_executable = (query.given & PARAMETER_EXECUTABLE) != 0;
	o->wants_head = strcmp(exchange_method(c->exchange), "HEAD") == 0;
	if (o->wants_head && job->op == FILE_WATCH)
		exchange_refuse(c->exchange, API_BAD_REQUEST, "HEAD can't watch a directory",
				"use GET");
	else
		sessions_file(e, o, c->exchange);
}

void api_get_file(struct api_call *c)
{
	operate(c,
		PARAMETER_LIST | PARAMETER_STAT | PARAMETER_WATCH | PARAMETER_DEPTH |
		    PARAMETER_OFFSET | PARAMETER_LENGTH,
		&(struct file_order){ .job.op = FILE_GET });
}

/* The head of the request is there, and its body is to come. */
void api_begin_put(struct api_call *c)
{
	operate(c, PARAMETER_EXECUTABLE, &(struct file_order){ .job.op = FILE_PUT });
}

/* A request without a connection has its body from the start. */
void api_put_file(struct api_call *c)
{
	struct file_order order = { .job.op = FILE_PUT };

	if (exchange_diverted_to(c->exchange)) {
		sessions_file_whole(c->exchange);
		return;
	}
	order.bytes = exchange_take_body(c->exchange, &order.size);
	if (!order.bytes)
		order.bytes = strdup("");
	if (!order.bytes || order.size > c->api->config->caps.file_bytes) {
		(void)api_refuse(c, order.bytes ? API_TOO_LARGE : API_INTERNAL, NULL);
		free(order.bytes);
		return;
	}
	operate(c, PARAMETER_EXECUTABLE, &order);
}

void api_remove_file(struct api_call *c)
{
	operate(c, 0, &(struct file_order){ .job.op = FILE_REMOVE });
}

void api_change_file(struct api_call *c)
{
	auto_arena struct arena a = { 0 };
	struct api_body body = { 0 };

	if (!api_find_live_session(c) || !api_body_take(c, API_BODY_CHANGE, &a, &body))
		return;
	operate(c, 0,
		&(struct file_order){
		    .job = { .op = body.is_mkdir ? FILE_MKDIR : FILE_RENAME, .to = body.to } });
}
