/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beside - where a program of ours lies: beside the running one, wherever it was installed; never
 * found by PATH.
 */
#pragma once

#include <limits.h>

#include "runtime/base/error.h"

/* The path of `name`, which is relative to the directory of the running program. */
int beside_find(const char *name, char out[static PATH_MAX], struct cj_error *err);
