/* SPDX-License-Identifier: Apache-2.0 */
/* From profiles to tools.  Acts. */
#include "runtime/front/mcp/mcp_setup.h"

#include <string.h>

#include "profiles/profile.h"
#include "profiles/settings.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/client/remote.h"
#include "runtime/run/mcp/mcp_profiles.h"
#include "runtime/front/mcp/mcp_remote.h"

/* The next tool: what the settings and the command line decide. */
static int add_tool(struct mcp_setup *s, const struct mcp_options *o, const char *profile,
		    const struct config *c, const char *about, struct cj_error *err)
{
	struct mcp_tool *t = &s->tools[s->count++];

	*t = (struct mcp_tool){ .stores_files = o->files != NULL, .text_max = o->text_max };
	return mcp_profiles_describe(t, o->prefix, profile, c, about, &s->arena, err);
}

/* --- here --------------------------------------------------------------------------- */

static int add_local(struct mcp_setup *s, const struct mcp_options *o, const char *profile,
		     bool is_standard, struct cj_error *err)
{
	struct config c;

	config_init(&c);
	int rc = profile_load(&c, profile, err);
	if (rc == 0)
		rc = options_apply_rest(&o->run, &c, err);
	if (rc == 0 && (!is_standard || mcp_profiles_has_interpreter(&c)))
		rc = add_tool(s, o, profile, &c, c.description, err);
	if (s->count > 0)
		s->tools[s->count - 1].lacks_uplink = !mcp_profiles_has_uplink(&c);
	for (size_t i = 0; rc == 0 && i < c.accept_weaker.count; i++)
		if (strings_add(&s->accepted, &s->arena,
				arena_strdup(&s->arena, c.accept_weaker.items[i])) < 0)
			rc = cj_fail(err, ENOMEM, "read profile '%s'", profile);
	config_fini(&c);
	return rc;
}

static int add_all_local(struct mcp_setup *s, const struct mcp_options *o, struct cj_error *err)
{
	bool is_standard = !o->profiles[0];
	const char *const *names = is_standard ? mcp_profiles_standard : o->profiles;

	for (; *names; names++)
		if (add_local(s, o, *names, is_standard, err) < 0)
			return -err->code;
	return 0;
}

/* --- at a service ------------------------------------------------------------------- */

static const struct json_node *find_profile(const struct json_node *list, const char *name)
{
	for (const struct json_node *m = list->child; m; m = m->next) {
		const char *found = json_get_text(m, "name");
		if (found && strcmp(found, name) == 0 && mcp_member(m, "limits"))
			return m;
	}
	return NULL;
}

/* The service's values, where the command line has none of its own. */
static int add_remote(struct mcp_setup *s, const struct mcp_options *o, const char *name,
		      const struct json_node *profile, struct cj_error *err)
{
	const struct json_node *limits = mcp_member(profile, "limits"),
			       *cpus = mcp_member(limits, "cpus");
	const char *network = json_get_text(profile, "network");
	struct cj_error ignored = { 0 }; /* then the tool does not say how many CPUs there are */
	struct config c;

	config_init(&c);
	(void)json_get_u64(limits, "memory_bytes", &c.memory_bytes);
	(void)json_get_u64(limits, "timeout_ms", &c.wall_ms);
	(void)json_get_u64(limits, "disk_bytes", &c.disk_bytes);
	(void)json_get_u64(limits, "max_output_bytes", &c.output_bytes);
	if (cpus && cpus->type == JSON_NUMBER)
		(void)!parse_cpus(cpus->text, &c.millicpus, &ignored);
	c.network = network && strcmp(network, "none") == 0 ? NETWORK_NONE : NETWORK_PUBLIC;
	int rc = options_apply_rest(&o->run, &c, err);
	if (rc == 0)
		rc = add_tool(s, o, name, &c, json_get_text(profile, "description"), err);
	config_fini(&c);
	return rc;
}

static int add_all_remote(struct mcp_setup *s, const struct mcp_options *o, struct cj_error *err)
{
	bool is_standard = !o->profiles[0];
	const char *const *names = is_standard ? mcp_profiles_standard : o->profiles;
	const struct json_node *list = NULL;

	s->socket = o->config.remote;
	if (s->socket[0] == '\0' && remote_find_socket(&s->arena, &s->socket, err) < 0)
		return -err->code;
	if (mcp_remote_list_profiles(s->socket, &s->arena, &list, err) < 0)
		return -err->code;
	for (; *names; names++) {
		const struct json_node *profile = find_profile(list, *names);
		if (!profile && is_standard)
			continue;
		if (!profile)
			return cj_reject(err,
					 "--profile: the service has no profile '%s' for this "
					 "user",
					 *names);
		if (add_remote(s, o, *names, profile, err) < 0)
			return -err->code;
	}
	return 0;
}

int mcp_setup_read(struct mcp_setup *s, const struct mcp_options *o, struct cj_error *err)
{
	*s = (struct mcp_setup){ .count = 0 };
	int rc = o->config.remote ? add_all_remote(s, o, err) : add_all_local(s, o, err);
	if (rc < 0)
		return rc;
	if (s->count > 0) {
		mcp_profiles_add_sessions(s->tools, &s->count, o->prefix);
		return 0;
	}
	(void)!cj_reject(err, "there is no interpreter for the profiles python, node and shell");
	return cj_hint(err, "install python3, or name a profile: --profile NAME");
}

void mcp_setup_fini(struct mcp_setup *s)
{
	arena_fini(&s->arena);
}
