/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as tools.  Acts. */
#include "runtime/run/mcp/mcp_profiles.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "netns/uplink/uplink.h"

const char *const mcp_profiles_standard[] = { "python", "node", "shell", NULL };

bool mcp_profiles_has_interpreter(const struct config *c)
{
	static const char *const places[] = { "/usr/local/bin", "/usr/bin", "/bin" };
	const char *name = c->command.count > 0 ? c->command.items[0] : NULL;
	char path[128];

	if (name && name[0] == '{')
		name = c->command.items[1];
	if (!name || strchr(name, '/') || strcmp(c->rootfs, "host") != 0)
		return true;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", places[i], name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

bool mcp_profiles_has_uplink(const struct config *c)
{
	static const enum uplink_kind kinds[] = { UPLINK_HOST, UPLINK_PASTA, UPLINK_SLIRP4NETNS };
	struct cj_error unavailable = { 0 };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((c->uplink == UPLINK_AUTO || c->uplink == kinds[i]) &&
		    uplink_probe(kinds[i], NULL, &unavailable) == 0)
			return true;
	return false;
}

int mcp_profiles_describe(struct mcp_tool *t, const char *prefix, const char *profile,
			  const struct config *c, const char *about, struct arena *a,
			  struct cj_error *err)
{
	(void)snprintf(t->name, sizeof(t->name), "%srun_%s", prefix, profile);
	t->profile = profile;
	rights_ceilings_of(c, &t->limits);
	t->has_network = c->network == NETWORK_PUBLIC;
	t->has_allow_list = c->allow.count > 0;
	t->writes_host = c->binds.count > 0;
	t->reaches_host = c->connects.count > 0;
	t->about = about ? arena_strdup(a, about) : NULL;
	t->value_path = c->value_path ? arena_strdup(a, c->value_path) : NULL;
	if ((about && !t->about) || (c->value_path && !t->value_path))
		return cj_fail(err, ENOMEM, "describe the tools");
	return 0;
}

void mcp_profiles_add_sessions(struct mcp_tool *tools, size_t *count, const char *prefix)
{
	size_t nruns = *count;

	for (size_t i = 0; i < nruns; i++)
		tools[i].has_sessions = true;
	for (size_t i = MCP_TOOL_SESSION_CREATE; i < MCP_TOOL_KIND_COUNT; i++)
		mcp_tool_init_session(&tools[(*count)++], (enum mcp_tool_kind)i, prefix, tools,
				      nruns);
}
