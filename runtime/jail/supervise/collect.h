/* SPDX-License-Identifier: Apache-2.0 */
/* collect - what jail_collect(), jail_read_value() and others of jail.h do. */
#pragma once

#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/jail/outcome.h"

struct jail;

int collect_into_directory(struct jail *j, int dest_fd, struct outcome *out, struct cj_error *err);
void collect_value(const struct jail *j, struct outcome *out);
void collect_forget_value(const struct jail *j, const char *path);
int collect_into_memory(struct jail *j, uint64_t max_bytes, struct outcome *out,
			struct cj_error *err);
