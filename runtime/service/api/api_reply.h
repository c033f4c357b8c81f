/* SPDX-License-Identifier: Apache-2.0 */
/* api_reply - a JSON value as the reply to a request.  Acts. */
#pragma once

struct exchange;
struct json_writer;

/* The writer's value as the reply; NULL, or a writer that failed, is an internal error. */
void api_reply_json(struct exchange *x, unsigned status, struct json_writer *w);
