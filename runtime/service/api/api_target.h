/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_target - what the path and the query of a request name.  Pure.
 *
 * The path is decoded once, by http_head.h, before it is split here: an encoded slash separates
 * as any other, and an encoded ".." is refused as any other.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profiles/plan/plan.h"
#include "rootfs/files/inputs.h"
#include "runtime/base/error.h"

#define API_NAMES_MAX 2

/* What the wildcards of a route's pattern match. */
struct api_names {
	char ids[API_NAMES_MAX][PLAN_ID_MAX]; /* each '*': a segment; "": the pattern has none */
	const char *rest;                     /* "**" at the end: all that follows; "" */
};

/* Does the path fit?  A segment longer than any id does not. */
bool api_path_fits(const char *pattern, const char *path, struct api_names *out);

/*
 * api_file_path - "box/a.txt" to "/box/a.txt": a path in the jail.
 *
 * A segment is not empty, "." or ".."; `may_be_directory`: it may have a slash at the end, which
 * *out has not.  Which places of the jail have files for the API, the jail decides.  Fails: EINVAL.
 */
int api_file_path(const char *rest, bool may_be_directory, char out[static INPUT_PATH_MAX],
		  struct cj_error *err);

/* The parameters of all routes of sessions. */
enum api_parameter {
	PARAMETER_LIST = 1,
	PARAMETER_EXECUTABLE = 2,
	PARAMETER_WAIT = 4,
	PARAMETER_STAT = 8,
	PARAMETER_WATCH = 16,
	PARAMETER_DEPTH = 32, /* with PARAMETER_LIST */
	PARAMETER_OFFSET = 64,
	PARAMETER_LENGTH = 128
};
struct api_query {
	unsigned given;                          /* enum api_parameter */
	uint64_t wait_ms, depth, offset, length; /* 0: not given */
};
#define API_WAIT_MAX_MS 60000
#define API_DEPTH_MAX   64

/*
 * "list", "wait=10s", with '&' between; only those of `allowed`, each once, and one of list, stat
 * and watch.  Fails: EINVAL.
 */
int api_query_parse(const char *query, unsigned allowed, struct api_query *out,
		    struct cj_error *err);
