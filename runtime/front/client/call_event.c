/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/client/call_event.h"

#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/jail/supervise/call_line.h"
#include "runtime/jail/supervise/calls.h"

#define RETRY_MAX_S 60

static const char begin[] = "{\"type\":\"call\",", before_arguments[] = ",\"arguments\":";

bool call_event_is(const char *text, size_t size)
{
	return size > sizeof(begin) && strncmp(text, begin, sizeof(begin) - 1) == 0 &&
	       strstr(text, before_arguments);
}

int call_event_read(char *text, size_t size, uint64_t last_id, struct arena *a,
		    struct call_event *out, struct cj_error *err)
{
	const struct json_node *head = NULL, *given = NULL;
	char *cut = strstr(text, before_arguments);
	const char *end = text + size - 1;

	if (!cut || *end != '}')
		return cj_reject(err, "the service sent a call without the end of its arguments");
	char *arguments = cut + sizeof(before_arguments) - 1;
	*out = (struct call_event){ .head = { text, (size_t)(cut - text) + 1 },
				    .arguments = { arguments, (size_t)(end - arguments) } };
	if (out->arguments.size > CALL_LINE_MAX)
		return cj_reject(err, "the service sent a call of more than %u bytes",
				 CALL_LINE_MAX);
	*cut = '}';
	if (json_parse_capped("the service's call", text, out->head.size, a, &head, err) < 0 ||
	    json_parse_capped("the service's call", arguments, out->arguments.size, a, &given,
			      err) < 0)
		return -err->code;
	if (given->type != JSON_OBJECT)
		return cj_reject(err, "the service sent a call whose arguments are no object");
	call_line_flatten(arguments, out->arguments.size);
	out->name = json_get_text(head, "name");
	if (!out->name || !json_get_u64(head, "call", &out->id) || out->id <= last_id)
		return cj_reject(err, "the service sent a call without a name or a new number");
	return 0;
}

enum call_reply call_event_reply(const struct http_answer *said, bool is_whole,
				 uint64_t *out_wait_ms)
{
	enum { NOT_FOUND = 404, CONFLICT = 409, TOO_MANY = 429, UNAVAILABLE = 503 };
	const unsigned status = said->status;

	*out_wait_ms = CALL_RETRY_MS;
	if (is_whole && said->retry_after > 0)
		*out_wait_ms =
		    1000 * (said->retry_after < RETRY_MAX_S ? said->retry_after : RETRY_MAX_S);
	if (!is_whole || status == TOO_MANY || status == UNAVAILABLE)
		return CALL_REPLY_LATER;
	return http_answer_is_success(said) || status == NOT_FOUND || status == CONFLICT
		   ? CALL_REPLY_TAKEN
		   : CALL_REPLY_REFUSED;
}
