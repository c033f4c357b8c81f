/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/jail/protocol.h"

const char *const step_names[STEP_COUNT] = {
	[STEP_NETWORK] = "network", [STEP_IDS_MAPPED] = "ids mapped",
	[STEP_SEALED] = "sealed",   [STEP_WARM] = "warm",
	[STEP_ADOPT] = "adopt",     [STEP_ADOPTED] = "adopted",
	[STEP_WARMED] = "warmed",   [STEP_INPUT] = "input",
	[STEP_FILES] = "files",     [STEP_SETUP] = "setup",
	[STEP_START] = "start",     [STEP_GO] = "go",
	[STEP_STARTED] = "started", [STEP_EXEC_FAILED] = "exec failed",
	[STEP_ENDED] = "ended",     [STEP_SESSION] = "session",
	[STEP_SERVING] = "serving", [STEP_EXEC] = "exec",
	[STEP_REAPER] = "reaper",   [STEP_EMPTY] = "empty",
};
