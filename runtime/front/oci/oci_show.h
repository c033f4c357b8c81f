/* SPDX-License-Identifier: Apache-2.0 */
/* oci_show - JSON on standard output, and the verbs that need no container: features, spec. */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/front/oci/oci_call.h"

/* The value of `w` and a newline.  main() checks that standard output takes them. */
int oci_show_json(struct json_writer *w, struct cj_error *err);

/* On standard output. */
oci_verb oci_show_features;

/* "config.json" in the bundle.  Fails: EEXIST, and leaves the file that is there as it is. */
oci_verb oci_show_spec;
