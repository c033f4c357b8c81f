/* SPDX-License-Identifier: Apache-2.0 */
/* The table of error codes. */
#include "runtime/service/log/api_error.h"

#include "runtime/base/json/json.h"

const struct api_row api_rows[API_CODE_COUNT] = {
	[API_BAD_REQUEST] = { "bad_request", 400, "the request is not valid" },
	[API_UNAUTHORIZED] = { "unauthorized", 401, "a bearer token is missing or wrong" },
	[API_FORBIDDEN_ORIGIN] = { "forbidden_origin", 403, "web pages may not call this service" },
	[API_FORBIDDEN_PROFILE] = { "forbidden_profile", 403,
				    "this caller may not use the profile" },
	[API_ABOVE_CEILING] = { "above_ceiling", 403,
				"the request asks for more than this caller may have" },
	[API_FORBIDDEN_FILE] = { "forbidden_file", 403,
				 "the jail's user may not read or write this file" },
	[API_FORBIDDEN_HOST_PATH] = { "forbidden_host_path", 403,
				      "this caller may not name paths or end points of the host" },
	[API_NOT_FOUND] = { "not_found", 404, "there is nothing at this path" },
	[API_METHOD_NOT_ALLOWED] = { "method_not_allowed", 405,
				     "this path does not have this method" },
	[API_NOT_ACCEPTABLE] = { "not_acceptable", 406,
				 "the header Accept allows no type that this path answers with" },
	[API_RECEIVE_TIMEOUT] = { "receive_timeout", 408, "the request did not arrive in time" },
	[API_ID_IN_USE] = { "id_in_use", 409, "an unfinished run of this caller has this id" },
	[API_SESSION_ENDED] = { "session_ended", 409, "the session has ended" },
	[API_NOT_RUNNING] = { "not_running", 409, "the exec or its session has ended" },
	[API_CALL_ENDED] = { "call_ended", 409, "the call has an answer already, or has ended" },
	[API_NOT_REGULAR] = { "not_regular", 409, "the path is not a regular file" },
	[API_EXISTS] = { "exists", 409, "something that cannot be replaced has this path" },
	[API_TOO_LARGE] = { "too_large", 413, "the request is too large" },
	[API_NO_SPACE] = { "no_space", 413,
			   "the file does not fit into the session's disk or memory" },
	[API_UNSUPPORTED_MEDIA_TYPE] = { "unsupported_media_type", 415,
					 "the body must be application/json" },
	[API_RATE_LIMITED] = { "rate_limited", 429, "this caller sends too many requests" },
	[API_TOO_MANY_SESSIONS] = { "too_many_sessions", 429,
				    "this caller has as many sessions as it may have" },
	[API_TOO_MANY_WAITING] = { "too_many_waiting", 429,
				   "this caller has too much waiting: requests, runs, or unread replies" },
	[API_QUEUE_FULL] = { "queue_full", 503,
			     "too much is waiting: requests, runs, or unread replies" },
	[API_SESSIONS_FULL] = { "sessions_full", 503,
				"the service has no room for the session: sessions, or memory reserved for them" },
	[API_DRAINING] = { "draining", 503, "the service is shutting down" },
	[API_QUEUE_TIMEOUT] = { "queue_timeout", 503, "the run waited too long in the queue" },
	[API_AUDIT_UNAVAILABLE] = { "audit_unavailable", 503,
				    "the audit line of the run could not be written, so it has no result" },
	[API_INTERNAL] = { "internal", 500,
			   "internal error; the service's log has the reason under this request id" },
};

char *api_error_text(const char *type, enum api_code code, const char *message, const char *hint,
		     const char *request_id, size_t *out_size)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_open_object(w);
	json_member_given(w, "type", type);
	json_member_object(w, "error");
	json_member_text(w, "code", api_rows[code].code);
	json_member_text(w, "message", message ? message : api_rows[code].message);
	json_member_filled(w, "hint", hint);
	json_member_text(w, "request_id", request_id);
	json_close_object(w);
	json_close_object(w);
	return json_writer_line(w, out_size);
}
