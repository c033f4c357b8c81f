/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control - the verbs that act on a container through its cgroup.
 *
 * Each needs a container that has a cgroup and runs.  A container that create has made and start
 * has not reached yet counts as running.
 */
#pragma once

#include "runtime/container/oci_call.h"

/* Each is the verb of its name: cejail-oci(8). */
oci_verb control_pause, control_resume, control_ps, control_update, control_events;
