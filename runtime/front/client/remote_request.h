/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_request - `run --remote`: writes the body of POST /v1/runs.  Pure.
 *
 * The body has only the settings that the caller gave; the service adds its profile.  Schema:
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

/* A file in the request. */
struct remote_file {
	const char *path; /* absolute, in the jail */
	struct remote_bytes content;
	bool is_executable;
};

struct remote_request {
	const char *profile; /* NULL: that of the session */
	const char *id;
	const char *file_name; /* name of the code in the jail; NULL: the profile chooses it */
	const struct config *config; /* the values of the options */
	const bool *wanted;          /* rows of settings[] that go into the request */
	bool is_command;
	struct remote_bytes code, input;
	const char *const *args; /* arguments of the code, or the command; NULL-terminated */
	const struct json_node *args_json;
	const struct remote_file *files;
	size_t nfiles;
	uint64_t artifacts_bytes;                     /* at most so many; 0: none */
	bool interrupts, is_detached, has_open_stdin; /* of an exec in a session */
};

void remote_request_write(struct json_writer *w, const struct remote_request *r);

/*
 * remote_absolute - make SRC of "SRC[:DST]" absolute by prepending `dir`.
 *
 * `each_part`: the same for each part, as in --rootfs DIR:DIR.  `skip`: characters at the start to
 * leave unchanged.  Returns: NULL without memory.
 */
const char *remote_absolute(const char *text, size_t skip, bool each_part, const char *dir,
			    struct arena *a);
