/* SPDX-License-Identifier: Apache-2.0 */
/* cejail-oci: an OCI runtime.  Reads the command line, runs a verb, reports its failure. */

#include "runtime/base/files/fd.h"
#include "runtime/base/log.h"
#include "runtime/container/call/oci_log.h"
#include "runtime/container/config/oci_config.h"
#include "runtime/container/container/container.h"
#include "runtime/container/create/creation.h"
#include "runtime/container/exec/exec.h"
#include "runtime/container/oci_show.h"
#include "runtime/container/process/process.h"

#define STATUS_FAILED      1
#define STATUS_EXEC_FAILED 255 /* a status that few programs have */

static oci_verb *const verbs[OCI_VERB_COUNT] = {
	[OCI_CREATE] = container_create, [OCI_START] = container_start,
	[OCI_STATE] = container_state,   [OCI_KILL] = container_kill,
	[OCI_DELETE] = container_delete, [OCI_RUN] = container_run,
	[OCI_LIST] = container_list,     [OCI_PS] = container_ps,
	[OCI_PAUSE] = container_pause,   [OCI_RESUME] = container_resume,
	[OCI_UPDATE] = container_update, [OCI_EVENTS] = container_events,
	[OCI_EXEC] = exec_run,           [OCI_FEATURES] = oci_show_features,
	[OCI_SPEC] = oci_show_spec,
};

static int perform(struct oci_call *call, char *const argv[], struct cj_error *err)
{
	const struct oci_options *o = call->options;

	if (o->wants_help) {
		oci_options_print_help(o->verb);
		return 0;
	}
	if (o->wants_version) {
		(void)printf("cejail-oci version %s\nspec: " OCI_VERSION_MAX "\n", CJ_VERSION);
		return 0;
	}
	/* A process of these enters a container. */
	bool needs_copy = o->verb == OCI_CREATE || o->verb == OCI_RUN || o->verb == OCI_EXEC;
	if (needs_copy && own_copy_enter(argv, err) < 0)
		return -err->code;
	oci_log_debug(o, "%s", oci_options_verb(o->verb));
	return verbs[o->verb](call, err);
}

int main(int argc, char **argv)
{
	auto_arena struct arena arena = { 0 };
	struct cj_error err = { 0 };
	struct oci_options options = { .verb = OCI_VERB_COUNT };
	struct oci_call call = { .options = &options, .arena = &arena };
	unsigned were_open;

	(void)argc;
	log_set_program("cejail-oci");
	if (fd_claim_stdio(&were_open, &err) < 0 ||
	    oci_options_parse((const char *const *)argv + (argv[0] ? 1 : 0), &arena, &options,
			      &err) < 0 ||
	    perform(&call, argv, &err) < 0 || fd_flush_stdout(&err) < 0) {
		oci_log_error(&options, &err);
		return options.verb == OCI_EXEC ? STATUS_EXEC_FAILED : STATUS_FAILED;
	}
	return call.exit_status;
}
