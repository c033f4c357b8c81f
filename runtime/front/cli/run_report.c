/* SPDX-License-Identifier: Apache-2.0 */
/* The end of `cejail run`: result, notes, exit status.  Acts on the places that delivery.h
 * opened. */
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/run/options/operands.h"
#include "runtime/front/cli/notes.h"
#include "runtime/front/cli/run_state.h"
#include "runtime/run/report/result.h"

static int send_result(struct run *r, struct cj_error *err)
{
	const struct result_about about = {
		.profile_name = r->config.profile_name,
		.profile_sha256 = r->config.profile_sha256,
		.network = r->config.network,
	};
	const char *text = NULL;
	size_t size = 0;

	if (!r->remote_result)
		return delivery_send(&r->delivery, &r->outcome, &about, err);
	if (json_writer_take(r->remote_result, &text, &size, err) < 0)
		return -err->code;
	return delivery_send_text(&r->delivery, text, size, err);
}

/* The name after "--" is looked up in the jail.  A file of the caller's may have been meant. */
static void explain_exec(struct run *r)
{
	const char *command = r->program.argv.items[0];

	result_explain_exec(&r->outcome, command);
	/* a request shall not learn which files this host has */
	if (r->outcome.exec_errno != ENOENT || !r->invocation.is_command || r->request.root ||
	    !operands_is_file(command))
		return;
	r->outcome.error.hint[0] = '\0';
	cj_hint(
	    &r->outcome.error,
	    "it is a file on this host: write 'cejail run %s', or copy it into the jail with -f %s",
	    command, command);
}

static void note_call(const struct run *r)
{
	const char *file = r->invocation.file;
	bool reads_input = r->config.interactive || (file && strcmp(file, "-") == 0);

	if (r->outcome.status != STATUS_SETUP_ERROR && r->outcome.exec_errno == 0 &&
	    !r->request.root)
		operands_print_notes(r->options.has_separator ? NULL : r->invocation.args,
				     reads_input);
}

int run_report(struct run *r, bool is_complete)
{
	struct cj_error err = { 0 };
	int status = outcome_exit_status(&r->outcome);

	if (r->outcome.exec_errno != 0 && !r->remote_result) /* a service has explained it */
		explain_exec(r);
	/* First: a full pipe at standard error must not hold the result back. */
	int sent = send_result(r, &err);
	if (!r->delivery.to_stdout)
		notes_follow_output(&r->outcome);
	notes_print(&r->outcome, &r->config.accept_weaker);
	note_call(r);
	if (sent < 0) {
		is_complete = false;
		if (err.code != EPIPE) /* the reader of the result has closed it */
			log_error(&err);
	}
	return status == 0 && !is_complete ? CLI_FAILED : status;
}
