/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_features - the output of the verb `features`: what this runtime supports, on any host.  Pure.
 */
#pragma once

#include "runtime/base/json/json.h"

#define OCI_VERSION_MIN "1.0.0"
#define OCI_VERSION_MAX "1.3.0"

/* In the order of their numbers, NULL-terminated: "CAP_CHOWN". */
extern const char *const oci_features_capabilities[];

/* The features object of the specification, as one value: features.md, features-linux.md. */
void oci_features_write(struct json_writer *w);
