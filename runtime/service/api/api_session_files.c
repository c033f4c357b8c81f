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

static void operate(struct api_call *c, struct session_entry *e, const struct file_job *job)
{
	const struct file_order order = {
		.job = *job,
		.wants_head = strcmp(exchange_method(c->exchange), "HEAD") == 0,
	};
	if (order.wants_head && job->op == FILE_WATCH) {
		exchange_refuse(c->exchange, API_BAD_REQUEST, "HEAD can't watch a directory",
				"use GET");
		return;
	}
	sessions_file(e, &order, c->exchange);
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

void api_get_file(struct api_call *c)
{
	const unsigned parameters = PARAMETER_LIST | PARAMETER_STAT | PARAMETER_WATCH |
				    PARAMETER_DEPTH | PARAMETER_OFFSET | PARAMETER_LENGTH;
	struct session_entry *e = api_find_live_session(c);
	size_t max = c->api->config->caps.file_bytes;
	struct api_query query;
	char path[INPUT_PATH_MAX];

	if (!e || !read_target(c, parameters, &query, path))
		return;
	const struct file_job job = { .op = op_of(query.given),
				      .path = path,
				      .to = "",
				      .offset = query.offset,
				      .max_bytes = query.length > 0 ? query.length : max,
				      .depth = query.depth > 0 ? query.depth : FILE_LIST_DEPTH };
	operate(c, e, &job);
}

/* The head of the request is there; `body` is its body, or NULL: it is to come. */
static void put(struct api_call *c, char *body, size_t size)
{
	struct session_entry *e = api_find_live_session(c);
	struct api_query query;
	char path[INPUT_PATH_MAX];

	if (!e || !read_target(c, PARAMETER_EXECUTABLE, &query, path)) {
		free(body);
		return;
	}
	const struct file_order order = {
		.job = { .op = FILE_PUT,
			 .path = path,
			 .to = "",
			 .max_bytes = c->api->config->caps.file_bytes,
			 .is_executable = (query.given & PARAMETER_EXECUTABLE) != 0 },
		.bytes = body,
		.size = size,
	};
	sessions_file(e, &order, c->exchange);
}

void api_begin_put(struct api_call *c)
{
	put(c, NULL, 0);
}

/* A request without a connection has its body from the start. */
void api_put_file(struct api_call *c)
{
	size_t size = 0;

	if (exchange_diverted_to(c->exchange)) {
		sessions_file_whole(c->exchange);
		return;
	}
	char *body = exchange_take_body(c->exchange, &size);
	if (!body)
		body = strdup("");
	if (!body || size > c->api->config->caps.file_bytes) {
		enum api_code why = body ? API_TOO_LARGE : API_INTERNAL;
		free(body);
		exchange_refuse(c->exchange, why, NULL, NULL);
		return;
	}
	put(c, body, size);
}

void api_remove_file(struct api_call *c)
{
	struct session_entry *e = api_find_live_session(c);
	struct api_query query;
	char path[INPUT_PATH_MAX];

	if (!e || !read_target(c, 0, &query, path))
		return;
	const struct file_job job = { .op = FILE_REMOVE, .path = path, .to = "" };
	operate(c, e, &job);
}

void api_change_file(struct api_call *c)
{
	auto_arena struct arena a = { 0 };
	struct session_entry *e = api_find_live_session(c);
	struct api_body body = { 0 };
	struct api_query query;
	char path[INPUT_PATH_MAX];

	if (!e || !read_target(c, 0, &query, path) || !api_body_take(c, API_BODY_CHANGE, &a, &body))
		return;
	const struct file_job job = { .op = body.is_mkdir ? FILE_MKDIR : FILE_RENAME,
				      .path = path,
				      .to = body.to ? body.to : "" };
	operate(c, e, &job);
}
