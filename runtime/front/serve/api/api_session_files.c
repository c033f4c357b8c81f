/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/sessions/ID/files/PATH.  Acts: replies. */
#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/front/serve/api/api_sessions.h"
#include "runtime/front/serve/config/service_config.h"
#include "runtime/front/serve/sessions/keepers.h"

/* What a request for a file names.  False: it was refused. */
static bool read_target(struct api_call *c, unsigned parameters, struct api_query *out_query,
			char path[static INPUT_PATH_MAX])
{
	struct cj_error err = { 0 };

	if (api_query_parse(exchange_query(c->exchange), parameters, out_query, &err) == 0 &&
	    api_file_path(c->names.rest, (out_query->given & PARAMETER_LIST) != 0, path, &err) == 0)
		return true;
	exchange_refuse(c->exchange, API_BAD_REQUEST, err.msg, err.hint, 0);
	return false;
}

static uint64_t file_max(const struct api_call *c)
{
	size_t most = c->api->config->caps.file_bytes;
	return most < FILE_BYTES_MAX ? most : FILE_BYTES_MAX;
}

void api_get_file(struct api_call *c)
{
	struct session_entry *e = api_find_live_session(c);
	unsigned part = PARAMETER_OFFSET | PARAMETER_LENGTH;
	struct api_query query;
	char path[INPUT_PATH_MAX];

	if (!e || !read_target(c, PARAMETER_LIST | part, &query, path))
		return;
	bool is_list = (query.given & PARAMETER_LIST) != 0;
	if (is_list && (query.given & part)) {
		exchange_refuse(c->exchange, API_BAD_REQUEST,
				"'offset' and 'length' are of a file, not of a list", NULL, 0);
		return;
	}
	const struct file_job job = { .op = is_list ? FILE_LIST : FILE_GET,
				      .path = path,
				      .is_part = (query.given & part) != 0,
				      .offset = query.offset,
				      .max_bytes = query.length > 0 && query.length < file_max(c)
						       ? query.length
						       : file_max(c) };
	keeper_file(c->api->keepers, e, &job, c->exchange);
}

void api_put_file(struct api_call *c)
{
	struct session_entry *e = api_find_live_session(c);
	struct api_query query;
	char path[INPUT_PATH_MAX];
	size_t size = 0;

	if (!e || !read_target(c, PARAMETER_EXECUTABLE, &query, path))
		return;
	auto_free char *body = exchange_take_body(c->exchange, &size);
	if (size > file_max(c)) {
		exchange_refuse(c->exchange, API_TOO_LARGE, NULL, NULL, 0);
		return;
	}
	const struct file_job job = { .op = FILE_PUT,
				      .path = path,
				      .content = { body ? body : "", size },
				      .is_executable = (query.given & PARAMETER_EXECUTABLE) != 0 };
	keeper_file(c->api->keepers, e, &job, c->exchange);
}

void api_remove_file(struct api_call *c)
{
	struct session_entry *e = api_find_live_session(c);
	struct api_query query;
	char path[INPUT_PATH_MAX];

	if (!e || !read_target(c, 0, &query, path))
		return;
	const struct file_job job = { .op = FILE_REMOVE, .path = path };
	keeper_file(c->api->keepers, e, &job, c->exchange);
}
