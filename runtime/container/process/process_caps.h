/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_caps - the capability sets of a process, from the names in config.json.
 *
 * A set that config.json does not name is empty.  So nothing is inheritable or ambient unless the
 * engine asks for it (CVE-2022-29162, CVE-2022-27650).  capabilities(7)
 */
#pragma once

#include <stdint.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/config/oci_process.h"
#include "runtime/kernel/process/capabilities.h"

/* The bit of "CAP_KILL"; 0: no such capability is known. */
uint64_t process_caps_bit(const char *name);

/*
 * process_caps_resolve - names to sets.
 *
 * A capability that is unknown, or not in `available`, or whose set needs another set that lacks
 * it, is left out, with a warning: the specification wants no error.  -ENOMEM.
 */
int process_caps_resolve(const struct oci_capabilities *wanted, uint64_t available, struct arena *a,
			 struct capabilities *out, struct strings *warnings);
