/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of JSON.  Acts. */
#include "runtime/service/api/api_reply.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/service/http/http.h"

void api_reply_json(struct exchange *x, unsigned status, struct json_writer *w)
{
	struct http_reply reply = { .status = status, .content_type = "application/json" };
	struct cj_error err = { 0 };
	const char *text = NULL;

	if (!w || json_writer_take(w, &text, &reply.size, &err) < 0) {
		exchange_refuse(x, API_INTERNAL, NULL, NULL, 0);
		return;
	}
	reply.text = malloc(reply.size + 1);
	if (reply.text) {
		memcpy(reply.text, text, reply.size);
		reply.text[reply.size++] = '\n';
	}
	exchange_reply(x, &reply);
}
