/* SPDX-License-Identifier: Apache-2.0 */
/* result_cell - the member "cell" of a result: what a cell of a session showed.  Pure. */
#pragma once

struct cell_outcome;
struct json_writer;

/* All of it but the last three members comes from the program.  What is no UTF-8 is replaced, or
 * base64. */
void result_put_cell(struct json_writer *w, const struct cell_outcome *cell);
