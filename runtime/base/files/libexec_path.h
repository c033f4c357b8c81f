/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libexec_path - where a helper of ours lies: in PREFIX/libexec/cejail, of the PREFIX that has the
 * running program in bin or there, too; never found by PATH.
 */
#pragma once

#include <limits.h>

#include "runtime/base/error.h"

/* The path of the running program, also when that is a copy in memory: own_copy.h. */
int libexec_path_self(char out[static PATH_MAX], struct cj_error *err);

/* The path of the helper `name`. */
int libexec_path_find(const char *name, char out[static PATH_MAX], struct cj_error *err);
