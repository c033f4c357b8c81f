/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter_name - the name of a refused call, for the result: "mount", "socket(AF_ALG)".  Pure.
 *
 * It comes from tables and numbers.  Memory behind a pointer is never read.
 */
#pragma once

#include <linux/seccomp.h>

#define FILTER_NAME_MAX 48

void filter_name_call(const struct seccomp_data *data, char out[FILTER_NAME_MAX]);
