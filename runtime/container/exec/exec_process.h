/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec_process - what exec is to run: a process.json, or the container's process with what the
 * command line changes.
 */
#pragma once

#include "runtime/container/call/oci_options.h"
#include "runtime/container/config/oci_config.h"

/*
 * exec_process_file - reads the file of --process; without one it does nothing.
 *
 * Fails: EINVAL for a flag that --process has in itself; for --process-label, which is not
 *        supported.
 */
int exec_process_file(const struct oci_options *o, struct arena *a, struct oci_process *out,
		      struct cj_error *err);

/*
 * exec_process_merge - the container's process with the flags of the command line.  Pure.
 *
 * All of *out is in the arena, so that the command line may be wiped.
 * Fails: EINVAL without a command.
 * --cap adds to the bounding, effective and permitted sets, never to the inheritable or ambient one
 * (CVE-2022-29162).
 */
int exec_process_merge(const struct oci_options *o, const struct oci_process *of_container,
		       struct arena *a, struct oci_process *out, struct cj_error *err);
