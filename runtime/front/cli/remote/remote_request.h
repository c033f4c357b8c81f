/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_request - `run --remote`: options and a program as the body of POST /v1/runs.  Pure.
 *
 * Only what the caller asked for goes into it; the profile is the service's.  Schema:
 * profiles/schema/request.json.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "profiles/config.h"
#include "runtime/base/json/json.h"

struct remote_bytes {
	const char *bytes; /* NULL: none */
	size_t size;
};

/* A file that is sent along. */
struct remote_file {
	const char *path; /* absolute, in the jail */
	struct remote_bytes content;
	bool is_executable;
};

struct remote_request {
	const char *profile, *id;
	const char *file_name;       /* what the code is called inside; NULL: as the profile says */
	const struct config *config; /* the options' values; */
	const bool *wanted;          /* rows of settings[] that go into the request */
	bool is_command;
	struct remote_bytes code, input;
	const char *const *args; /* behind the code; or the command; NULL-terminated */
	const struct json_node *args_json;
	const struct remote_file *files;
	size_t nfiles;
	bool wants_artifacts;
};

void remote_request_write(struct json_writer *w, const struct remote_request *r);

/*
 * remote_absolute - "SRC[:DST]" with SRC made absolute by `dir`; every part of it where
 * `each_part`, as in --rootfs DIR:DIR.  `skip` characters in front stay as they are.
 * NULL: no memory.
 */
const char *remote_absolute(const char *text, size_t skip, bool each_part, const char *dir,
			    struct arena *a);
