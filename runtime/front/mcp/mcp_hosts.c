/* SPDX-License-Identifier: Apache-2.0 */
/* A table of programs that start MCP servers.  Pure. */
#include "runtime/front/mcp/mcp_hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 256

static const struct host {
	const char *name;
	const char *file;
	const char *key;  /* of the object with all servers */
	const char *type; /* a member "type"; NULL: none */
} hosts[] = {
	{ "claude", "claude_desktop_config.json (Settings, Developer, Edit Config)", "mcpServers",
	  NULL },
	{ "claude-code", ".mcp.json in the project", "mcpServers", "stdio" },
	{ "vscode", ".vscode/mcp.json in the project", "servers", "stdio" },
	{ "cursor", "~/.cursor/mcp.json", "mcpServers", NULL },
	{ "windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers", NULL },
	{ "gemini", "~/.gemini/settings.json", "mcpServers", NULL },
	{ "zed", "settings.json of Zed", "context_servers", NULL },
};
#define HOSTS (sizeof(hosts) / sizeof(hosts[0]))

static const struct host *find_host(const char *name)
{
	for (size_t i = 0; i < HOSTS; i++)
		if (strcmp(hosts[i].name, name) == 0)
			return &hosts[i];
	return NULL;
}

static int reject_host(const char *name, struct cj_error *err)
{
	char names[NAMES_MAX] = "";
	size_t size = 0;

	for (size_t i = 0; i < HOSTS && size < sizeof(names); i++)
		size += (size_t)snprintf(names + size, sizeof(names) - size, "%s%s",
					 i > 0 ? ", " : "", hosts[i].name);
	int rc = cj_reject(err, "--print-config: '%s' is not known", name);
	cj_hint(err, "known are %s", names);
	return rc;
}

static void put_server(struct json_writer *w, const struct host *h, const char *program,
		       const char *const *args)
{
	json_open_object(w);
	if (h->type)
		json_member_text(w, "type", h->type);
	json_member_text(w, "command", program);
	json_put_key(w, "args");
	json_open_array(w);
	json_put_string(w, "mcp");
	for (; *args; args++)
		json_put_string(w, *args);
	json_close_array(w);
	json_close_object(w);
}

int mcp_hosts_write(const char *host, const char *program, const char *const *args, char **out_text,
		    const char **out_file, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(true);
	const struct host *h = find_host(host);
	const char *text = NULL;
	size_t size = 0;

	if (!h)
		return reject_host(host, err);
	if (!w)
		return cj_fail(err, ENOMEM, "write the configuration");
	json_open_object(w);
	json_put_key(w, h->key);
	json_open_object(w);
	json_put_key(w, "cejail");
	put_server(w, h, program, args);
	json_close_object(w);
	json_close_object(w);
	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	*out_text = strndup(text, size);
	*out_file = h->file;
	return *out_text ? 0 : cj_fail(err, ENOMEM, "write the configuration");
}
