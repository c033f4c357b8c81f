/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_result - the result a service sent, as the outcome of a run: for the exit status, the
 * notes, and the result that is passed on.  Pure.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/jail/outcome.h"

/*
 * remote_result_read - what notes.h and outcome_exit_status() look at.
 * The output is not taken: what has passed through is in the captures already.
 * Fails: it is no result.
 */
int remote_result_read(const struct json_node *result, struct outcome *o, struct cj_error *err);

/*
 * remote_result_write - the service's result, with the artefacts and the warnings of *o: what was
 * stored here, and what was said here.
 */
void remote_result_write(struct json_writer *w, const struct json_node *result,
			 const struct outcome *o);

/* A service's refusal: {"error":{"code","message","hint","request_id"}}, as one error of ours. */
int remote_refusal_read(unsigned http_status, uint64_t retry_after, const char *body, size_t size,
			struct cj_error *err);

/* The bytes of {"text": ...} or {"base64": ...}, in the arena; false: neither. */
bool remote_bytes_of(const struct json_node *node, struct arena *a, const char **out_bytes,
		     size_t *out_size);
