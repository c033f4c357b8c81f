/* SPDX-License-Identifier: Apache-2.0 */
/* `cejail session exec`, `wait` and `kill`.  A program in a session is a run: ../run.c. */
#include "runtime/front/client/remote.h"
#include "runtime/front/cli/session/session_verbs.h"

#include <string.h>

#include "runtime/base/scope.h"

static int run(struct session_call *c, const struct remote_exec *exec)
{
	struct cli cli = *c->cli;

	cli.args = c->rest.args;
	return run_in_session(&cli, exec);
}

int session_exec(struct session_call *c)
{
	const struct remote_exec exec = {
		.kind = c->detach ? REMOTE_EXEC_DETACHED : REMOTE_EXEC_STREAMED,
		.session = c->operands[0],
		.interrupts = c->interrupt,
	};

	return run(c, &exec);
}

int session_wait(struct session_call *c)
{
	const struct remote_exec exec = {
		.kind = REMOTE_EXEC_AWAITED,
		.session = c->operands[0],
		.id = c->operands[1],
	};

	return run(c, &exec);
}

static int send_signal(struct session_call *c, struct cj_error *err)
{
	const char *const parts[] = { c->operands[0], "execs", c->operands[1], "signal", NULL };
	auto_json_writer struct json_writer *body = json_writer_create(false);
	const char *name = strncmp(c->signal, "SIG", 3) == 0 ? c->signal + 3 : c->signal;
	char url[REMOTE_URL_MAX];

	if (!body)
		return cj_fail(err, ENOMEM, "send a signal");
	json_open_object(body);
	json_member_text(body, "signal", name);
	json_close_object(body);
	if (session_url(url, parts, err) < 0)
		return -err->code;
	return session_tell(c, "POST", url, body, err);
}

int session_kill(struct session_call *c, struct cj_error *err)
{
	const char *const parts[] = { c->operands[0], "execs", c->operands[1], NULL };
	char url[REMOTE_URL_MAX];

	if (session_find_service(c, err) < 0)
		return -err->code;
	if (c->signal)
		return send_signal(c, err);
	if (session_url(url, parts, err) < 0)
		return -err->code;
	return session_tell(c, "DELETE", url, NULL, err);
}
