/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_error - the error body that a caller reads: a stable code and a sentence.  errno,
 * paths and stages are only in the log, under the same request id.
 */
#pragma once

enum api_code {
	API_OK, /* no error */
	API_BAD_REQUEST,
	API_UNAUTHORIZED,
	API_FORBIDDEN_ORIGIN,
	API_FORBIDDEN_PROFILE,
	API_ABOVE_CEILING,
	API_FORBIDDEN_FILE,
	API_FORBIDDEN_HOST_PATH,
	API_NOT_FOUND,
	API_METHOD_NOT_ALLOWED,
	API_NOT_ACCEPTABLE,
	API_RECEIVE_TIMEOUT,
	API_ID_IN_USE,
	API_SESSION_ENDED,
	API_NOT_RUNNING,
	API_CALL_ENDED,
	API_NOT_REGULAR,
	API_EXISTS,
	API_TOO_LARGE,
	API_NO_SPACE,
	API_UNSUPPORTED_MEDIA_TYPE,
	API_RATE_LIMITED,
	API_TOO_MANY_SESSIONS,
	API_TOO_MANY_WAITING,
	API_QUEUE_FULL,
	API_SESSIONS_FULL,
	API_DRAINING,
	API_QUEUE_TIMEOUT,
	API_AUDIT_UNAVAILABLE,
	API_INTERNAL,
	API_CODE_COUNT
};

struct api_row {
	const char *code;
	unsigned http_status;
	const char *message; /* the default message */
};
extern const struct api_row api_rows[API_CODE_COUNT]; /* API_OK has no texts */

/*
 * {"error":{...}} and a newline, malloc'ed; NULL: no memory.  `type` is a member before it: "error"
 * for the last line of a stream of events.  It, `message` and `hint` may be NULL.
 */
char *api_error_text(const char *type, enum api_code code, const char *message, const char *hint,
		     const char *request_id, size_t *out_size);
