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
	/* Of a server with a URL; NULL: the host cannot send a token to one. */
	const char *url_type, *url_key, *token;
} hosts[] = {
	{ "claude", "claude_desktop_config.json (Settings, Developer, Edit Config)", "mcpServers",
	  NULL, NULL, NULL, NULL },
	{ "claude-code", ".mcp.json in the project", "mcpServers", "stdio", "http", "url",
	  "${CEJAIL_TOKEN}" },
	{ "vscode", ".vscode/mcp.json in the project", "servers", "stdio", "http", "url",
	  "${env:CEJAIL_TOKEN}" },
	{ "cursor", "~/.cursor/mcp.json", "mcpServers", NULL, NULL, "url", "${env:CEJAIL_TOKEN}" },
	{ "windsurf", "~/.codeium/windsurf/mcp_config.json", "mcpServers", NULL, NULL, "serverUrl",
	  "${env:CEJAIL_TOKEN}" },
	{ "gemini", "~/.gemini/settings.json", "mcpServers", NULL, NULL, "httpUrl",
	  "$CEJAIL_TOKEN" },
	{ "zed", "settings.json of Zed", "context_servers", NULL, NULL, "url", "TOKEN" },
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

static void put_program(struct json_writer *w, const struct host *h, const char *program,
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

static void put_url(struct json_writer *w, const struct host *h, const char *url)
{
	char header[64];

	(void)snprintf(header, sizeof(header), "Bearer %s", h->token);
	json_open_object(w);
	if (h->url_type)
		json_member_text(w, "type", h->url_type);
	json_member_text(w, h->url_key, url);
	json_put_key(w, "headers");
	json_open_object(w);
	json_member_text(w, "Authorization", header);
	json_close_object(w);
	json_close_object(w);
}

static int check_url(const struct host *h, const char *url, struct cj_error *err)
{
	if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
		return cj_reject(err, "--url: '%s' does not begin with http:// or https://", url);
	if (h->url_key)
		return 0;
	(void)!cj_reject(err, "--url: '%s' cannot send a token to a URL", h->name);
	return cj_hint(err, "leave --url out, and use --remote");
}

int mcp_hosts_write(const char *host, const struct mcp_hosts_server *server, char **out_text,
		    const char **out_file, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(true);
	const struct host *h = find_host(host);
	const char *text = NULL;
	size_t size = 0;

	if (!h)
		return reject_host(host, err);
	if (server->url && check_url(h, server->url, err) < 0)
		return -err->code;
	if (!w)
		return cj_fail(err, ENOMEM, "write the configuration");
	json_open_object(w);
	json_put_key(w, h->key);
	json_open_object(w);
	json_put_key(w, "cejail");
	if (server->url)
		put_url(w, h, server->url);
	else
		put_program(w, h, server->program, server->args);
	json_close_object(w);
	json_close_object(w);
	if (json_writer_take(w, &text, &size, err) < 0)
		return -err->code;
	*out_text = strndup(text, size);
	*out_file = h->file;
	return *out_text ? 0 : cj_fail(err, ENOMEM, "write the configuration");
}
