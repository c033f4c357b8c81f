/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_artifacts - `run --remote -o DIR`: stores the files of a result in a directory.
 *
 * The rules of artifacts.h apply: no path leads out of the directory, links in it are not followed,
 * a name appears only when its file is complete, and a file that is skipped causes a warning.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/json/json.h"
#include "runtime/jail/outcome.h"

/* Fills o->artifacts and adds warnings; dest_fd -1: stores nothing.  False: a file is missing. */
bool remote_artifacts_store(const struct json_node *result, int dest_fd, struct outcome *o);
