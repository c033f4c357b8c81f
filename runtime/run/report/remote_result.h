/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_result - converts the result of a service to the outcome of a run, for the exit status and
 * the notes, writes the result to deliver, and stores its artefacts.
 */
#pragma once

#include "runtime/base/json/json.h"
#include "runtime/jail/outcome.h"

/*
 * remote_result_read - read what notes_print() and outcome_exit_status() need.
 *
 * It does not read the output: output that was passed through is in the captures already.
 * Fails: the JSON is not a result.
 */
int remote_result_read(const struct json_node *result, struct outcome *o, struct cj_error *err);

/*
 * remote_result_write - write the service's result with the artefacts and the warnings of *o: those
 * stored here, and those issued here.  `passes_artifacts`: the artefacts stay those of the service,
 * with their content.
 */
void remote_result_write(struct json_writer *w, const struct json_node *result,
			 const struct outcome *o, bool passes_artifacts);

/* Converts an error answer, {"error":{"code","message","hint","request_id"}}, to *err.  Its code is
 * ESHUTDOWN if the service is about to stop. */
int remote_refusal_read(unsigned http_status, uint64_t retry_after, const char *body, size_t size,
			struct cj_error *err);

/* Decodes {"text": ...} or {"base64": ...} into the arena.  False: it is neither. */
bool remote_bytes_of(const struct json_node *node, struct arena *a, const char **out_bytes,
		     size_t *out_size);

/*
 * remote_result_store - store the artefacts of a result in a directory: `run --remote -o DIR`.
 *
 * The rules of artifacts.h apply: no path leads out of the directory, links in it are not followed,
 * a name appears only when its file is complete, and a file that is skipped causes a warning.
 * Fills o->artifacts and adds warnings; dest_fd -1: stores nothing.  False: a file is missing.
 */
bool remote_result_store(const struct json_node *result, int dest_fd, struct outcome *o);
