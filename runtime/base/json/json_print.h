/* SPDX-License-Identifier: Apache-2.0 */
/* json_print - what a command shows as JSON. */
#pragma once

#include "runtime/base/json/json.h"

/*
 * json_print - write the finished text and a newline to standard output.
 *
 * Fails: as json_writer_take().  Whether the output could be written, stdout's error flag says.
 */
int json_print(struct json_writer *w, struct cj_error *err);
