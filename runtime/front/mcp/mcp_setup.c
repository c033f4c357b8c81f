/* SPDX-License-Identifier: Apache-2.0 */
/* From profiles to tools.  Acts. */
#include "runtime/front/mcp/mcp_setup.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profiles/profile.h"
#include "profiles/settings.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/cli/remote/remote.h"
#include "runtime/front/mcp/calls/mcp_remote.h"

static const char *const standard_profiles[] = { "python", "node", "shell", NULL };

/* The next tool, with a name and what the command line decides. */
static struct mcp_tool *add_tool(struct mcp_setup *s, const struct mcp_options *o,
				 const char *profile)
{
	struct mcp_tool *t = &s->tools[s->count++];

	*t = (struct mcp_tool){ .profile = profile, .stores_files = o->files != NULL };
	(void)snprintf(t->name, sizeof(t->name), "%srun_%s", o->prefix, profile);
	return t;
}

static int describe_config(struct mcp_setup *s, struct mcp_tool *t, const struct config *c,
			   const char *about, struct cj_error *err)
{
	t->memory_bytes = c->memory_bytes;
	t->millicpus = c->millicpus;
	t->wall_ms = c->wall_ms;
	t->disk_bytes = c->disk_bytes;
	t->output_bytes = c->output_bytes;
	t->has_network = c->network == NETWORK_PUBLIC;
	t->has_allow_list = c->allow.count > 0;
	t->writes_host = c->binds.count > 0;
	t->reaches_host = c->connects.count > 0;
	t->about = about ? arena_strdup(&s->arena, about) : NULL;
	t->value_path = c->value_path ? arena_strdup(&s->arena, c->value_path) : NULL;
	if ((about && !t->about) || (c->value_path && !t->value_path))
		return cj_fail(err, ENOMEM, "describe the tools");
	return 0;
}

/* --- here --------------------------------------------------------------------------- */

/* In a tree of its own, the interpreter may be anywhere. */
static bool has_interpreter(const struct config *c)
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

static int add_local(struct mcp_setup *s, const struct mcp_options *o, const char *profile,
		     bool is_standard, struct cj_error *err)
{
	struct config c;

	config_init(&c);
	int rc = profile_load(&c, profile, err);
	if (rc == 0)
		rc = options_apply_rest(&o->run, &c, err);
	if (rc == 0 && (!is_standard || has_interpreter(&c)))
		rc = describe_config(s, add_tool(s, o, profile), &c, c.description, err);
	config_fini(&c);
	return rc;
}

static int add_all_local(struct mcp_setup *s, const struct mcp_options *o, struct cj_error *err)
{
	bool is_standard = !o->profiles[0];
	const char *const *names = is_standard ? standard_profiles : o->profiles;

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
static int describe_remote(struct mcp_setup *s, struct mcp_tool *t, const struct mcp_options *o,
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
		rc = describe_config(s, t, &c, json_get_text(profile, "description"), err);
	config_fini(&c);
	return rc;
}

static int add_all_remote(struct mcp_setup *s, const struct mcp_options *o, struct cj_error *err)
{
	bool is_standard = !o->profiles[0];
	const char *const *names = is_standard ? standard_profiles : o->profiles;
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
		if (describe_remote(s, add_tool(s, o, *names), o, profile, err) < 0)
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
	if (s->count > 0)
		return 0;
	(void)!cj_reject(err, "there is no interpreter for the profiles python, node and shell");
	return cj_hint(err, "install python3, or name a profile: --profile NAME");
}

void mcp_setup_fini(struct mcp_setup *s)
{
	arena_fini(&s->arena);
}
