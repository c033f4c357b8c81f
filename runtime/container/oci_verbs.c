/* SPDX-License-Identifier: Apache-2.0 */
/* The table of verbs.  A verb of another room is a row here. */
#include "runtime/container/oci_verbs.h"

#include "runtime/container/container/container.h"
#include "runtime/container/control/control.h"
#include "runtime/container/exec/exec.h"
#include "runtime/container/oci_show.h"

static oci_verb *const verbs[OCI_VERB_COUNT] = {
	[OCI_CREATE] = container_create, [OCI_START] = container_start,
	[OCI_STATE] = container_state,   [OCI_KILL] = container_kill,
	[OCI_DELETE] = container_delete, [OCI_RUN] = container_run,
	[OCI_LIST] = container_list,     [OCI_PS] = control_ps,
	[OCI_PAUSE] = control_pause,     [OCI_RESUME] = control_resume,
	[OCI_UPDATE] = control_update,   [OCI_EVENTS] = control_events,
	[OCI_EXEC] = exec_run,           [OCI_FEATURES] = oci_show_features,
	[OCI_SPEC] = oci_show_spec,
};

int oci_verbs_run(struct oci_call *call, struct cj_error *err)
{
	return verbs[call->options->verb](call, err);
}
