/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_artifacts - `run --remote -o DIR`: the files that came with a result, into a directory.
 *
 * As careful as artifacts.h is with the jail: no path leads out of the directory, no link in it is
 * followed, a name appears when its file is whole, what is passed over is a warning.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/json/json.h"
#include "runtime/jail/outcome.h"

/* Fills o->artifacts and adds warnings; dest_fd -1: nothing is stored.  False: something failed. */
bool remote_artifacts_store(const struct json_node *result, int dest_fd, struct outcome *o);
