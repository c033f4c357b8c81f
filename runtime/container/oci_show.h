/* SPDX-License-Identifier: Apache-2.0 */
/* oci_show - the verbs that need no container: features, spec. */
#pragma once

#include "runtime/container/call/oci_log.h"

/* On standard output. */
oci_verb oci_show_features;

/* "config.json" in the bundle.  Fails: EEXIST, and leaves the file that is there as it is. */
oci_verb oci_show_spec;
