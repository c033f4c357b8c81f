/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mcp_tool - a tool as tools/list shows it: one for each profile, and those of sessions.
 *
 * Title, description, schemas and annotations are made from the settings that are in force: the
 * profile's, with the options of the command line.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/base/arena.h"
#include "runtime/base/json/json.h"
#include "runtime/run/mcp/mcp_message.h"
#include "runtime/run/request/rights.h"

#define MCP_TOOL_NAME_MAX 128
#define MCP_FILE_MAX      (256u << 10) /* a larger file is not part of an answer */
#define MCP_IMAGE_MAX     (4u << 20)
#define MCP_FILES_MAX     (8u << 20) /* files and images of one answer together */
#define MCP_TEXT_LEAST    (1u << 10)
#define MCP_TEXT_MOST     (16u << 20)
#define MCP_TEXT_DEFAULT  (64u << 10)

/* Tools of sessions come after those of runs. */
enum mcp_tool_kind {
	MCP_TOOL_RUN,
	MCP_TOOL_SESSION_CREATE,
	MCP_TOOL_SESSION_EXEC,
	MCP_TOOL_SESSION_PUT_FILE,
	MCP_TOOL_SESSION_GET_FILE,
	MCP_TOOL_SESSION_LIST_FILES,
	MCP_TOOL_SESSION_NETWORK,
	MCP_TOOL_SESSION_END,
	MCP_TOOL_KIND_COUNT
};
#define MCP_SESSION_TOOLS (MCP_TOOL_KIND_COUNT - MCP_TOOL_SESSION_CREATE)

struct mcp_tool {
	enum mcp_tool_kind kind;
	char name[MCP_TOOL_NAME_MAX + 1]; /* "run_python" */
	const char *profile;
	const char *about;      /* the profile's description; NULL: none */
	const char *calls;      /* what programs may call, for the description; NULL: nothing */
	const char *value_path; /* where the program leaves its return value; NULL: nowhere */
	uint64_t text_max;      /* bytes of stdout and of stderr in an answer; 0: 64K */
	struct ceilings limits; /* of a run: in force, and the most that a call may ask for */
	bool has_network;       /* the public one */
	bool lacks_uplink;      /* of the host: that network reaches nothing */
	bool has_allow_list;    /* only some destinations of it */
	bool writes_host;       /* a host directory is mounted writable */
	bool reaches_host;      /* it may connect to an end point of the host */
	bool stores_files;      /* the server has a directory for files */
	bool has_sessions;      /* of a run: it may take place in a session */
	/* of sessions: the tools of the profiles, whose limits these have, too; borrowed */
	const struct mcp_tool *runs;
	size_t nruns;
};

/*
 * mcp_tool_limits - the most that a call may ask for in a run, or in a session of `profile`.
 *
 * Of a profile that is not known (NULL), or that has no tool: the lowest of all tools' limits.
 */
void mcp_tool_limits(const struct mcp_tool *tool, const char *profile, struct ceilings *out);

/* The most that an answer has of stdout and of stderr. */
uint64_t mcp_tool_text_max(const struct mcp_tool *tool);

/*
 * mcp_tool_init_session - the tool of sessions of this kind.
 *
 * `runs`: the tools of the profiles that a session may have; borrowed.
 */
void mcp_tool_init_session(struct mcp_tool *t, enum mcp_tool_kind kind, const char *prefix,
			   const struct mcp_tool *runs, size_t nruns);

/* Writes the elements of "tools".  Fails: ENOMEM. */
int mcp_tools_put(struct json_writer *w, const struct mcp_tool *tools, size_t count,
		  enum mcp_era era, struct cj_error *err);

/* --- from the settings of a profile to its tool ------------------------------------------- */

/* Those that are offered where nobody chose any, if their interpreter is installed. */
extern const char *const mcp_profiles_standard[];

/* Is the first word of its command on this host?  In a tree of its own, it may be anywhere. */
bool mcp_profiles_has_interpreter(const struct config *c);

/* Has this host an uplink for jails of this process with these settings? */
bool mcp_profiles_has_uplink(const struct config *c);

/*
 * mcp_profiles_add_sessions - the tools of sessions, after those of the profiles.
 *
 * `tools` has room for MCP_SESSION_TOOLS more; *count goes on from those of the profiles, which can
 * then run in a session, too.  Those of sessions have their limits, so the array must not move.
 * Where no profile has a network, there is no tool that closes one.
 */
void mcp_profiles_add_sessions(struct mcp_tool *tools, size_t *count, const char *prefix);

/* The name, and what the settings say.  Texts are copied into the arena, but for `profile`. */
int mcp_profiles_describe(struct mcp_tool *t, const char *prefix, const char *profile,
			  const struct config *c, const char *about, struct arena *a,
			  struct cj_error *err);
