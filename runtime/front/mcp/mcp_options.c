/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of `cejail mcp`: options of the server, and those of `run` that describe a jail. */

#include "runtime/front/mcp/mcp_server.h"

#include "profiles/profile.h"
#include "profiles/settings.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/front/client/remote.h"
#include "runtime/front/client/remote_request.h"
#include "runtime/run/options/option_syntax.h"

#define PREFIX_MAX 64

static const struct own_option own_rows[] = {
	{ "tool-prefix", 0, "TEXT", "begin the names of the tools with this",
	  offsetof(struct mcp_options, prefix) },
	{ "files", 0, "DIR", "store the files of each run in this directory, and link them",
	  offsetof(struct mcp_options, files) },
	{ "text-max", 0, "SIZE", "maximum of stdout and of stderr in an answer; the default is 64K",
	  offsetof(struct mcp_options, text_size) },
	{ "tools-from", 0, "FILE", "let programs call the tools of the MCP servers in this file",
	  offsetof(struct mcp_options, tools_from) },
	{ "check", 0, NULL, "with --tools-from: start the servers, list their tools, and exit",
	  offsetof(struct mcp_options, checks) },
	{ "print-config", 0, "HOST",
	  "print the configuration for this program, and exit: claude, claude-code, vscode, "
	  "cursor, ...",
	  offsetof(struct mcp_options, host) },
	{ "url", 0, "URL", "with --print-config: of a service's /mcp, in place of this program",
	  offsetof(struct mcp_options, url) },
	{ "help", 0, NULL, "this text", offsetof(struct mcp_options, wants_help) },
};

/* Options of `run` that describe no jail, and are useful here. */
static const char *const run_options[] = { "profile", "remote", "env-file", "trace-file", NULL };

static bool is_usable(const struct setting *s)
{
	return s->scope != SCOPE_NO_REQUEST || text_is_one_of(s->option, run_options);
}

/* Operands stay in *out_rest, where they are refused later. */
static int split(const char *const *args, struct mcp_options *o, const char ***out_rest,
		 struct cj_error *err)
{
	const struct own_options own = {
		.verb = "mcp", .rows = own_rows, .count = COUNT_OF(own_rows), .out = o
	};
	struct own_rest rest = { 0 }, others = { 0 };

	if (own_rest_init(&others, args, &o->config.arena, err) < 0 ||
	    own_rest_init(&rest, args, &o->config.arena, err) < 0)
		return -err->code;
	rest.all = o->others = others.args;
	rest.left_out = "print-config";
	if (own_options_take(&own, &args, &rest, err) < 0)
		return -err->code;
	while (*args)
		rest.args[rest.count++] = *args++;
	*out_rest = rest.args;
	return 0;
}

static int take_profiles(struct mcp_options *o, struct cj_error *err)
{
	size_t count = 0;

	for (size_t i = 0; i < o->run.count; i++) {
		const char *name = o->run.items[i].value;
		if (strcmp(o->run.items[i].setting->option, "profile") != 0)
			continue;
		if (!is_name(name)) {
			cj_refuse(err, "--profile: '%s' is not a name", name);
			return cj_hint(
			    err, "save the profile in ~/.config/cejail/profiles, and give its "
				 "name");
		}
		if (count == MCP_PROFILES_MAX)
			return cj_reject(err, "more than %d profiles", MCP_PROFILES_MAX);
		if (text_is_one_of(name, o->profiles))
			return cj_reject(err, "--profile: '%s' is given twice", name);
		o->profiles[count++] = name;
	}
	return 0;
}

static int read_run_options(struct mcp_options *o, const char *const *rest,
			    const char *const *caller_env, struct cj_error *err)
{
	struct config *c = &o->config;

	if (options_scan("mcp", rest, &c->arena, &o->run, err) < 0)
		return -err->code;
	o->wants_help = o->run.wants_help;
	const struct options *run = &o->run;
	if (*run->operands || run->has_separator) {
		cj_refuse(err, "'cejail mcp' takes no program: its client sends it");
		return cj_hint(err, "see 'cejail mcp --help'");
	}
	if (options_check(run, is_usable, "mcp", err) < 0 ||
	    options_expand(&o->run, caller_env, &c->arena, err) < 0 || take_profiles(o, err) < 0)
		return -err->code;
	if (options_apply_delivery(&o->run, c, err) < 0 || options_apply_rest(&o->run, c, err) < 0)
		return -err->code;
	if (remote_request_gather_settings(c, &o->run, &o->given.wanted, err) < 0)
		return -err->code;
	o->given.config = c;
	/* Files are read anew for each call, by the process that runs it. */
	bool *wanted = arena_array(&c->arena, settings_count, sizeof(*wanted));
	if (!wanted)
		return cj_fail(err, ENOMEM, "read the options");
	memcpy(wanted, o->given.wanted, settings_count * sizeof(*wanted));
	wanted[setting_by_option("file") - settings] = c->files.count > 0;
	o->given.wanted = wanted;
	for (size_t i = 0; i < c->files.count; i++)
		if (remote_request_make_absolute(&c->files.items[i], 0, false, &c->arena, err) < 0)
			return -err->code;
	return 0;
}

int mcp_options_parse(const char *const *args, const char *const *caller_env, struct mcp_options *o,
		      struct cj_error *err)
{
	const char **rest = NULL;

	*o = (struct mcp_options){ .prefix = "" };
	config_init(&o->config);
	if (split(args, o, &rest, err) < 0 || o->wants_help)
		return -err->code;
	/* MCP allows these in names of tools. */
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	if (strlen(o->prefix) > PREFIX_MAX || o->prefix[strspn(o->prefix, allowed)] != '\0')
		return cj_reject(err, "--tool-prefix: '%s' is not at most %d of A-Z a-z 0-9 _ . -",
				 o->prefix, PREFIX_MAX);
	if (o->text_size &&
	    parse_size_within(o->text_size, MCP_TEXT_LEAST, MCP_TEXT_MOST, &o->text_max, err) < 0)
		return cj_wrap(err, "--text-max");
	if (o->url && !o->host)
		return cj_reject(err, "--url: it needs --print-config HOST");
	if (o->checks && !o->tools_from)
		return cj_reject(err, "--check: it needs --tools-from FILE");
	if (read_run_options(o, rest, caller_env, err) < 0)
		return -err->code;
	if (o->config.trace_file && o->config.remote) {
		cj_refuse(err, "--trace-file: the service has the runs, and writes their spans");
		return cj_hint(err, "leave out --remote, or set trace_file in the service's "
				    "configuration: cejail-serve(8)");
	}
	return 0;
}

void mcp_options_print_help(void)
{
	(void)printf("Usage: cejail mcp [OPTION...]\n"
		     "       cejail mcp wrap [OPTION...] -- COMMAND [ARG...]\n\n"
		     "Gives AI agents tools that run code in jails. An MCP client starts it, and\n"
		     "speaks the Model Context Protocol with it on standard input and output.\n"
		     "'cejail mcp wrap' runs an MCP server of somebody else in a jail; see\n"
		     "'cejail mcp wrap --help'.\n\n");
	own_options_print_help(own_rows, COUNT_OF(own_rows));
	(void)printf("\nOptions of 'cejail run' that apply to every call. A call can only lower\n"
		     "limits:\n");
	options_print_help(is_usable);
	(void)printf("\nThe manual is cejail-mcp(1).\n");
}

/* The next tool: what the settings and the command line decide. */
static int add_tool(struct mcp_setup *s, const struct mcp_options *o, const char *profile,
		    const struct config *c, const char *about, struct cj_error *err)
{
	struct mcp_tool *t = &s->tools[s->count++];

	*t = (struct mcp_tool){ .stores_files = o->files != NULL, .text_max = o->text_max };
	return mcp_profiles_describe(t, o->prefix, profile, c, about, &s->arena, err);
}

/* On this machine. */
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
	if (rc == 0 && strings_add_all(&s->accepted, &s->arena, &c.accept_weaker) < 0)
		rc = cj_fail(err, ENOMEM, "read profile '%s'", profile);
	config_fini(&c);
	return rc;
}

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
	(void)json_get_u64(limits, "memory_bytes", &c.limits.memory_bytes);
	(void)json_get_u64(limits, "timeout_ms", &c.run_limits.wall_ms);
	(void)json_get_u64(limits, "disk_bytes", &c.limits.disk_bytes);
	(void)json_get_u64(limits, "max_output_bytes", &c.run_limits.output_bytes);
	if (cpus && cpus->type == JSON_NUMBER)
		(void)!parse_cpus(cpus->text, &c.limits.millicpus, &ignored);
	c.network = network && strcmp(network, "none") == 0 ? NETWORK_NONE : NETWORK_PUBLIC;
	int rc = options_apply_rest(&o->run, &c, err);
	if (rc == 0)
		rc = add_tool(s, o, name, &c, json_get_text(profile, "description"), err);
	config_fini(&c);
	return rc;
}

static int add_all_remote(struct mcp_setup *s, const struct mcp_options *o,
			  const char *const *names, bool is_standard, struct cj_error *err)
{
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
	const bool is_standard = !o->profiles[0];
	const char *const *names = is_standard ? mcp_profiles_standard : o->profiles;

	*s = (struct mcp_setup){ .count = 0 };
	int rc = o->config.remote ? add_all_remote(s, o, names, is_standard, err) : 0;
	for (; rc == 0 && !o->config.remote && *names; names++)
		rc = add_local(s, o, *names, is_standard, err);
	if (rc < 0)
		return rc;
	if (s->count > 0) {
		mcp_profiles_add_sessions(s->tools, &s->count, o->prefix);
		return 0;
	}
	cj_refuse(err, "there is no interpreter for the profiles python, node and shell");
	return cj_hint(err, "install python3, or name a profile: --profile NAME");
}

static const struct mcp_host {
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

static void put_program(struct json_writer *w, const struct mcp_host *h, const char *program,
			const char *const *args)
{
	json_member_given(w, "type", h->type);
	json_member_text(w, "command", program);
	json_member_array(w, "args");
	json_put_string(w, "mcp");
	for (; *args; args++)
		json_put_string(w, *args);
	json_close_array(w);
}

static void put_url(struct json_writer *w, const struct mcp_host *h, const char *url)
{
	char header[64];

	(void)snprintf(header, sizeof(header), "Bearer %s", h->token);
	json_member_given(w, "type", h->url_type);
	json_member_text(w, h->url_key, url);
	json_member_object(w, "headers");
	json_member_text(w, "Authorization", header);
	json_close_object(w);
}

int mcp_options_print_config(const struct mcp_options *o, const char *program, struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(true);
	const struct mcp_host *h = NULL;

	for (size_t i = 0; i < COUNT_OF(hosts) && !h; i++)
		if (strcmp(hosts[i].name, o->host) == 0)
			h = &hosts[i];
	if (!h) {
		char names[256] = "";

		for (size_t i = 0; i < COUNT_OF(hosts); i++)
			text_append(names, sizeof(names), "%s%s", i > 0 ? ", " : "", hosts[i].name);
		cj_refuse(err, "--print-config: '%s' is not known", o->host);
		return cj_hint(err, "known are %s", names);
	}
	if (o->url && !text_begins_with(o->url, "http://") && !text_begins_with(o->url, "https://"))
		return cj_reject(err, "--url: '%s' does not begin with http:// or https://",
				 o->url);
	if (o->url && !h->url_key) {
		cj_refuse(err, "--url: '%s' cannot send a token to a URL", h->name);
		return cj_hint(err, "leave --url out, and use --remote");
	}
	if (!w)
		return cj_fail(err, ENOMEM, "write the configuration");
	json_open_object(w);
	json_member_object(w, h->key);
	json_member_object(w, "cejail");
	if (o->url)
		put_url(w, h, o->url);
	else
		put_program(w, h, program, o->others);
	json_close_object(w);
	json_close_object(w);
	json_close_object(w);
	log_note("add this to %s", h->file);
	return json_print(w, err);
}
