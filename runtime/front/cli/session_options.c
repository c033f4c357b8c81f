/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/cli/cli.h"

#include "profiles/settings.h"
#include "runtime/base/text.h"
#include "runtime/front/client/remote.h"
#include "runtime/run/options/options.h"

static const char *const verb_options[] = { "remote", "json", "verbose", "quiet", NULL };
static const char *const network_options[] = { "allow", "deny", "network", NULL };
static const char *const create_options[] = { "profile", "env-file", NULL };
static const char *const wait_options[] = { "artifacts", "result-fd", "no-report", NULL };
static const char *const exec_options[] = {
	"code",      "env-file",  "interactive", "file",  "file-text", "args-json", "id",
	"events-fd", "artifacts", "result-fd",   "tools", "calls-fd",  "no-report", NULL,
};

bool session_options_of_verb(const struct setting *s)
{
	return text_is_one_of(s->option, verb_options);
}

bool session_options_of_network(const struct setting *s)
{
	return text_is_one_of(s->option, network_options) || session_options_of_verb(s);
}

bool session_options_of_create(const struct setting *s)
{
	if (strcmp(s->option, "file") == 0 || strcmp(s->option, "interactive") == 0)
		return false; /* input of a program */
	return s->scope != SCOPE_NO_REQUEST || text_is_one_of(s->option, create_options) ||
	       session_options_of_verb(s);
}

bool session_options_of_exec(const struct setting *s)
{
	return s->scope == SCOPE_RUN || s->scope == SCOPE_EXEC ||
	       text_is_one_of(s->option, exec_options) || session_options_of_verb(s);
}

bool session_options_of_wait(const struct setting *s)
{
	return text_is_one_of(s->option, wait_options) || session_options_of_verb(s);
}

static int reject(const struct given *g, const char *verb, struct cj_error *err)
{
	int rc = cj_reject(err, "option '%s' is not for 'cejail session %s'", g->named, verb);

	if (strcmp(g->setting->option, "tools-from") == 0)
		cj_hint(err, "give --tools FILE to 'cejail session exec', and answer the calls on "
			     "--calls-fd: cejail-tools(7)");
	else if (session_options_of_exec(g->setting))
		cj_hint(err, "it belongs to the exec: give it to 'cejail session exec'");
	else if (session_options_of_create(g->setting))
		cj_hint(err, "it belongs to the jail: give it to 'cejail session create'");
	else
		cj_hint(err, "see 'cejail session %s --help'", verb);
	return rc;
}

int session_options_check(const struct options *o, const struct remote_exec *exec,
			  struct cj_error *err)
{
	bool waits = exec->kind == REMOTE_EXEC_AWAITED;

	for (size_t i = 0; i < o->count; i++) {
		const struct setting *s = o->items[i].setting;
		if (!(waits ? session_options_of_wait(s) : session_options_of_exec(s)))
			return reject(&o->items[i], waits ? "wait" : "exec", err);
	}
	if (exec->kind == REMOTE_EXEC_DETACHED && options_has(o, "interactive"))
		return cj_reject(err, "'--detach' and '--interactive' exclude each other: nobody "
				      "forwards the input");
	if (exec->kind == REMOTE_EXEC_DETACHED && options_has(o, "tools"))
		return cj_reject(err, "'--detach' and '--tools' exclude each other: nobody "
				      "forwards the calls");
	if (waits && *o->operands)
		return cj_reject(err,
				 "'cejail session wait' takes one session and one exec, but "
				 "also got '%s'",
				 *o->operands);
	return 0;
}
