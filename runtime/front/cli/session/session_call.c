/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/cli/session/session_call.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/base/text.h"
#include "runtime/front/client/remote.h"

int cli_session_find_service(struct session_call *c, struct cj_error *err)
{
	c->socket = c->config.remote;
	if (c->socket && c->socket[0] != '\0')
		return 0;
	return remote_find_socket(&c->config.arena, &c->socket, err);
}

int cli_session_url(char url[static REMOTE_URL_MAX], const char *const *parts, struct cj_error *err)
{
	url[0] = '\0';
	if (remote_url(url, "/v1/sessions", err) < 0)
		return -err->code;
	for (; *parts; parts++) {
		if (remote_url(url, "/", err) < 0 || remote_url(url, *parts, err) < 0)
			return -err->code;
	}
	return 0;
}

static int make_fetch(const struct session_call *c, const char *method, const char *url,
		      struct json_writer *body, struct remote_fetch *out, struct cj_error *err)
{
	*out = (struct remote_fetch){
		.socket = c->socket,
		.message = { .method = method, .path = url, .accept = "application/json" },
	};
	return body ? json_writer_take(body, &out->message.body, &out->message.size, err) : 0;
}

int cli_session_ask(struct session_call *c, const char *method, const char *url,
		    struct json_writer *body, const struct json_node **out, struct cj_error *err)
{
	struct remote_fetch fetch;

	if (make_fetch(c, method, url, body, &fetch, err) < 0)
		return -err->code;
	return remote_fetch_json(&fetch, &c->config.arena, out, err);
}

int cli_session_tell(struct session_call *c, const char *method, const char *url,
		     struct json_writer *body, struct cj_error *err)
{
	struct remote_fetch fetch;

	if (make_fetch(c, method, url, body, &fetch, err) < 0)
		return -err->code;
	return remote_fetch(&fetch, NULL, NULL, err);
}

int cli_session_wants_json(const struct session_call *c, bool *out, struct cj_error *err)
{
	*out = options_has(&c->options, "json");
	if (*out && options_find(&c->options, "json"))
		return cj_reject(err, "'--json' takes no FILE here");
	return 0;
}

int cli_session_print_json(const struct json_node *node, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	if (!w)
		return cj_fail(err, ENOMEM, "write the answer");
	json_put_node(w, node);
	return json_print(w, err);
}

void cli_session_print_text(const char *text)
{
	char shown[256];
	size_t size = text ? strlen(text) : 0;

	while (size > 0) {
		size_t used = text_escape(text, size, false, shown, sizeof(shown));
		(void)fputs(shown, stdout);
		text += used;
		size -= used;
	}
}
