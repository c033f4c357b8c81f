/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_request - `run --remote`: reads everything that the request contains (code, files,
 * standard input, arguments as data, variables), and writes the body of POST /v1/runs.
 *
 * The body has only the settings that the caller gave; the service adds its profile.  Schema:
 * profiles/schema/request.json.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/base/json/json_record.h"
#include "runtime/front/client/remote.h"

#define REMOTE_INPUT_MAX (64u << 20)  /* standard input, and each file */
#define REMOTE_FILES_MAX (128u << 20) /* all files together */

struct remote_request {
	const char *profile; /* NULL: that of the session */
	const char *id;
	const char *file_name; /* name of the code in the jail; NULL: the profile chooses it */
	const struct config *config; /* the values of the options */
	const bool *wanted;          /* rows of settings[] that go into the request */
	bool is_command;
	struct blob code, input; /* bytes NULL: none */
	const char *const *args; /* arguments of the code, or the command; NULL-terminated */
	const struct json_node *args_json;
	const struct tool_list *tools; /* NULL, or without a catalogue: none */
	const struct copy_spec *files; /* bytes, at absolute paths in the jail */
	size_t nfiles;
	uint64_t artifacts_bytes;                     /* at most so many; 0: none */
	bool interrupts, is_detached, has_open_stdin; /* of an exec in a session */
};

/*
 * remote_request_gather - fill *out.
 *
 * Data read lives in the arena of call->config, which has no profile.  An empty directory is not
 * sent, and *warnings says so.  Standard input of an exec is not read: remote_input_start() has it
 * sent.
 * Fails: among others, a symbolic link in a directory, whose target the service could not know.
 */
int remote_request_gather(const struct remote_call *call, struct remote_request *out,
			  struct strings *warnings, struct cj_error *err);

/*
 * remote_request_gather_settings - the options as settings of a request, without contents of files.
 *
 * Variables get their values, and host paths become absolute.  *out_wanted has the rows of
 * settings[] that were given; it lives in the arena of `c`.
 */
int remote_request_gather_settings(struct config *c, const struct options *o,
				   const bool **out_wanted, struct cj_error *err);

void remote_request_write(struct json_writer *w, const struct remote_request *r);

/*
 * remote_request_absolute - make SRC of "SRC[:DST]" absolute by prepending `dir`.
 *
 * `each_part`: the same for each part, as in --rootfs DIR:DIR.  `skip`: characters at the start to
 * leave unchanged.  Returns: NULL without memory.
 */
const char *remote_request_absolute(const char *text, size_t skip, bool each_part, const char *dir,
				    struct arena *a);
/* The same with the current directory. */
int remote_request_make_absolute(const char **text, size_t skip, bool each_part, struct arena *a,
				 struct cj_error *err);
