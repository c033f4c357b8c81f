/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_files - `--files DIR`: the files of each run are stored in DIR/RUN_ID.  Acts.
 *
 * The rules of remote_result_store() apply: no path leads out of the directory, links in it are not
 * followed, and a file that is not stored causes a warning.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/base/json/json.h"

struct mcp_files {
	int dir_fd;       /* -1: no directory was given */
	const char *path; /* absolute */
};

/* Creates the directory if it is missing.  *out_path lives in the arena. */
int mcp_files_open(struct mcp_files *f, const char *path, struct arena *a, struct cj_error *err);
void mcp_files_close(struct mcp_files *f);

/*
 * mcp_files_store - store the files of a result.
 *
 * *out has what was stored, and a warning for each file that was not.  It lives in the arena.
 */
struct mcp_stored {
	const char *directory; /* NULL: nothing was stored */
	struct strings paths, warnings;
};
void mcp_files_store(const struct mcp_files *f, const struct json_node *result, struct arena *a,
		     struct mcp_stored *out);
