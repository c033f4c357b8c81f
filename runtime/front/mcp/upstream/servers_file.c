/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/front/mcp/upstream/servers_file.h"

#include <arpa/inet.h>
#include <strings.h>

#include "profiles/settings.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/front/mcp/upstream/tool_choice.h"

#define TEXT_MAX       4096
#define ENV_MAX        (64u << 10)
#define TIMEOUT_MS_MAX 86400000u

static int refuse_url(const char *url, struct cj_error *err)
{
	cj_refuse(err, "'%.100s' is no http:// URL of this machine", url);
	return cj_hint(err,
		       "the host is localhost, an address 127.x.x.x or [::1]; for others use a "
		       "bridge: \"command\": \"npx\", \"args\": [\"mcp-remote\", URL]");
}

static bool is_local(struct server_address *a)
{
	struct in_addr four;
	struct in6_addr six;

	if (strcasecmp(a->host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, a->host, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	if (a->host[0] != '[')
		return false;
	size_t size = strlen(a->host);
	char inner[sizeof(a->host)];
	(void)snprintf(inner, sizeof(inner), "%.*s", (int)size - 2, a->host + 1);
	a->is_ipv6 = inet_pton(AF_INET6, inner, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
	return a->is_ipv6;
}

/* Printable characters, but for blanks and those of `refused`. */
static bool is_visible(const char *text, const char *refused)
{
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7f || strchr(refused, *text))
			return false;
	return true;
}

int servers_file_split_url(const char *url, struct server_address *out, struct cj_error *err)
{
	static const char scheme[] = "http://";
	uint64_t port = 80;

	*out = (struct server_address){ .path = "" };
	if (strncasecmp(url, "https://", strlen("https://")) == 0) {
		cj_refuse(err, "cejail has no TLS, so it cannot connect to an https:// URL");
		return cj_hint(err, "use a bridge: \"command\": \"npx\", \"args\": "
				    "[\"mcp-remote\", URL]");
	}
	if (strncasecmp(url, scheme, strlen(scheme)) != 0)
		return refuse_url(url, err);
	const char *host = url + strlen(scheme);
	size_t size = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?");
	if (size >= sizeof(out->host) || size > strlen(host))
		return refuse_url(url, err);
	memcpy(out->host, host, size);
	const char *at = host + size;
	if (*at == ':') {
		at = text_take_u64(at + 1, &port);
		if (!at || port == 0 || port > UINT16_MAX)
			return refuse_url(url, err);
	}
	if ((*at && *at != '/') || !is_visible(at, "#") /* RFC 9112, 3.2 */ || !is_local(out))
		return refuse_url(url, err);
	out->port = (uint16_t)port;
	out->path = at;
	return 0;
}

static int no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read the list of servers");
}

/* cejail sets these itself. */
static bool is_own_header(const char *name)
{
	static const char *const own[] = { "Host", "Content-Length", "Transfer-Encoding",
					   "Connection", "Mcp-Session-Id" };

	for (size_t i = 0; i < COUNT_OF(own); i++)
		if (strcasecmp(own[i], name) == 0)
			return true;
	return false;
}

/* No line end, which would begin another header: RFC 9110, 5.5. */
static bool is_header_value(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return false;
	return true;
}

/* An object of strings: "NAME=VALUE" or, with a `detail`, "Name: value". */
static JSON_READER(pairs)
{
	bool is_header = k->detail != NULL;

	for (const struct json_node *n = node->child; n; n = n->next) {
		if (n->type != JSON_STRING)
			return json_reject(in->file, n, err, "%s.%s.%.64s must be a string",
					   in->within, k->name, n->key);
		if (!*n->key || !(is_header ? is_visible(n->key, "()<>@,;:\\\"/[]?={}") &&
						  is_header_value(n->text)
					    : !strchr(n->key, '=')))
			return json_reject_key(in->file, n, err, "%s.%s: '%.64s' is no %s",
					       in->within, k->name, n->key,
					       is_header ? "HTTP header" : "name of a variable");
		if (is_header && is_own_header(n->key))
			return json_reject_key(in->file, n, err,
					       "%s.%s: cejail itself sets the header '%.64s'",
					       in->within, k->name, n->key);
		const char *text =
		    arena_printf(in->arena, is_header ? "%s: %s" : "%s=%s", n->key, n->text);
		if (strings_add(json_field(k, record), in->arena, text) < 0)
			return no_memory(err);
		if (strlen(text) > ENV_MAX)
			return json_reject(in->file, n, err, "%s.%s.%.64s is too long", in->within,
					   k->name, n->key);
	}
	return 0;
}

/* The option of `cejail mcp wrap` that has the name of the key; wrap itself checks --cache. */
static JSON_READER(option)
{
	const struct setting *setting = setting_by_option(k->name);
	const bool is_flag = node->type == JSON_BOOL;
	struct server_spec *s = record;
	struct config scratch;

	if (is_flag && !node->boolean)
		return 0;
	const char *named = arena_printf(in->arena, "%s:%u:%u: %s.%s", in->file, node->line,
					 node->column, in->within, k->name);
	const char *option = is_flag ? arena_printf(in->arena, "--%s", k->name)
				     : arena_printf(in->arena, "--%s=%s", k->name, node->text);
	config_init(&scratch);
	int rc = setting && named
		     ? setting_set(&scratch, setting, named, is_flag ? NULL : node->text, err)
		     : 0;
	config_fini(&scratch);
	if (rc < 0)
		return rc;
	return strings_add(&s->jail, in->arena, option) == 0 ? 0 : no_memory(err);
}

static JSON_SETTER(pattern)
{
	if (!tool_choice_is_pattern(text))
		return cj_reject(err,
				 "'%.140s' is no pattern: a name of a tool, with '*' and '?' for "
				 "any characters",
				 text);
	return json_set_strings(in, k, text, record, err);
}

/* As lines of --env-file, by which `cejail mcp wrap` gets them. */
static bool are_lines(const struct strings *env)
{
	const struct setting *setting = setting_by_option("env");
	struct config scratch;
	bool are = true;

	config_init(&scratch);
	for (size_t i = 0; are && i < env->count; i++) {
		const char *variable = env->items[i];
		struct cj_error ignored = { 0 };
		are = setting_set(&scratch, setting, "env", variable, &ignored) == 0 &&
		      !strchr(variable, '\n') && variable[strlen(variable) - 1] != '\r';
	}
	config_fini(&scratch);
	return are;
}

static int check_server(const struct json_reader *in, const struct json_node *node, void *record,
			struct cj_error *err)
{
	struct server_spec *s = record;
	const char *wrong = NULL;
	bool is_http = s->url != NULL;

	if (!s->command == !s->url)
		wrong = "needs either \"command\" or \"url\"";
	else if (is_http && (s->args.count > 0 || s->env.count > 0 || s->cwd || s->is_jailed))
		wrong = "has a \"url\", so \"args\", \"env\", \"cwd\" and \"jail\" mean nothing";
	else if (s->is_jailed && s->cwd)
		wrong = "has a \"jail\", so \"cwd\" means nothing: use \"workdir\" in \"jail\"";
	else if (s->is_jailed && !are_lines(&s->env))
		wrong = "has a \"jail\", so \"env\" needs names of letters, digits and '_', and "
			"values of one line";
	else if (!is_http && s->headers.count > 0)
		wrong = "has a \"command\", so \"headers\" mean nothing";
	else if (s->type && strcmp(s->type, "stdio") != 0 && strcmp(s->type, "http") != 0 &&
		 strcmp(s->type, "streamable-http") != 0)
		wrong = "has an unknown \"type\": \"stdio\" and \"http\" are known";
	else if (s->type && is_http == (strcmp(s->type, "stdio") == 0))
		wrong = "has another \"type\" than \"command\" or \"url\" say";
	if (wrong)
		return json_reject(in->file, node, err, "the server '%.64s' %s", s->name, wrong);
	/* Patterns of which one names a tool that the other matches are wrong, whether the server
	 * has that tool or not. */
	for (size_t i = 0; i < s->allow.count; i++)
		for (size_t k = 0; k < s->deny.count; k++) {
			const char *allow = s->allow.items[i], *deny = s->deny.items[k];
			bool is_wrong =
			    strcmp(allow, deny) == 0 ||
			    (!strpbrk(allow, "*?") && tool_choice_matches(deny, allow)) ||
			    (!strpbrk(deny, "*?") && tool_choice_matches(allow, deny));
			if (is_wrong)
				return json_reject(in->file, node, err,
						   "the server '%.64s' allows '%s' and denies "
						   "'%s': change one of the two patterns",
						   s->name, allow, deny);
		}
	return 0;
}

static JSON_SETTER(url)
{
	struct server_address address;

	return servers_file_split_url(text, &address, err) < 0
		   ? -err->code
		   : json_set_string(in, k, text, record, err);
}

#define AT(field)   .offset = offsetof(struct server_spec, field)
#define TEXT(field) JSON_TAKES_STRING, .set = json_set_string, .min = 1, .max = TEXT_MAX, AT(field)
#define LIST(how)   JSON_TAKES_STRING, .is_list = true, .set = (how)

#define OPTION  .read = json_read_option
#define OPTIONS JSON_TAKES_STRING, .is_list = true, OPTION
static const struct json_key jail_keys[] = {
	{ "profile", JSON_TAKES_STRING, OPTION },
	{ "rootfs", JSON_TAKES_STRING, OPTION },
	{ "cache", JSON_TAKES_STRING, OPTION },
	{ "workdir", JSON_TAKES_STRING, OPTION },
	{ "ro-bind", OPTIONS },
	{ "bind", OPTIONS },
	{ "connect", OPTIONS },
	{ "upstream", OPTIONS },
	{ "network", JSON_TAKES_STRING, OPTION },
	{ "allow", OPTIONS },
	{ "deny", OPTIONS },
	{ "memory", JSON_TAKES_STRING | JSON_TAKES_NUMBER, OPTION },
	{ "cpus", JSON_TAKES_STRING | JSON_TAKES_NUMBER, OPTION },
	{ "pids-limit", JSON_TAKES_NUMBER, OPTION },
	{ "disk", JSON_TAKES_STRING | JSON_TAKES_NUMBER, OPTION },
	{ "strict", JSON_TAKES_BOOL, OPTION },
};
static const struct json_record jail_table = JSON_RECORD(jail_keys, "the jail");

static JSON_READER(jail)
{
	const struct json_reader below = json_below(in, k->name);
	struct server_spec *s = record;

	s->is_jailed = true;
	return json_record_read(&below, node, &jail_table, s, err);
}

static const struct json_key server_keys[] = {
	{ "command", TEXT(command) },
	{ "args", LIST(json_set_strings), .max = ENV_MAX, AT(args) },
	{ "env", JSON_TAKES_OBJECT, .read = json_read_pairs, AT(env) },
	{ "cwd", TEXT(cwd) },
	{ "url", JSON_TAKES_STRING, .set = json_set_url, .min = 1, .max = TEXT_MAX, AT(url) },
	{ "headers", JSON_TAKES_OBJECT, .read = json_read_pairs, .detail = "header", AT(headers) },
	{ "type", TEXT(type) },
	{ "allow", LIST(json_set_pattern), .min = 1, .max = TOOL_CHOICE_PATTERN_MAX, AT(allow) },
	{ "deny", LIST(json_set_pattern), .min = 1, .max = TOOL_CHOICE_PATTERN_MAX, AT(deny) },
	{ "timeout", JSON_TAKES_STRING | JSON_TAKES_NUMBER, .set = json_set_duration,
	  .max = TIMEOUT_MS_MAX, AT(timeout_ms) },
	{ "jail", JSON_TAKES_OBJECT, .read = json_read_jail },
};

static const struct json_record server_table = {
	.keys = server_keys,
	.count = COUNT_OF(server_keys),
	.name = "the server",
	.check = check_server,
};

/* json_read_named(), with the name of the server in messages about its keys. */
static JSON_READER(servers)
{
	const struct json_reader all = json_below(in, k->name);

	for (const struct json_node *n = node->child; n; n = n->next) {
		const struct json_reader one = json_below(&all, n->key);
		struct server_spec *s = json_add_item(in, k, sizeof(*s), record);
		if (!s)
			return no_memory(err);
		s->name = n->key;
		if (n->type != JSON_OBJECT)
			return json_reject(in->file, n, err, "%s must be an object", one.within);
		if (json_record_read(&one, n, &server_table, s, err) < 0)
			return -err->code;
	}
	return 0;
}

#undef AT
#define AT(field) .offset = offsetof(struct servers_file, field)
static const struct json_key file_keys[] = {
	{ "mcpServers", JSON_TAKES_OBJECT, .is_required = true, .read = json_read_servers,
	  AT(servers), .known = offsetof(struct servers_file, count) },
};
static const struct json_record file_table = JSON_RECORD(file_keys, "the list of servers");

int servers_file_parse(struct servers_file *f, const char *path, const char *text, size_t size,
		       struct cj_error *err)
{
	const struct json_node *root = NULL;
	const struct json_reader in = { .file = path, .arena = &f->arena };

	*f = (struct servers_file){ .path = path };
	if (json_parse(path, text, size, &f->arena, &root, err) < 0)
		return -err->code;
	if (root->type != JSON_OBJECT)
		return json_reject(path, root, err, "the list of servers must be an object");
	if (json_record_read(&in, root, &file_table, f, err) < 0)
		return -err->code;
	const struct json_node *all = json_get(root, "mcpServers");
	if (f->count == 0)
		return json_reject(f->path, all, err, "\"mcpServers\" names no server");
	if (f->count > SERVERS_MAX)
		return json_reject(f->path, all, err, "there are %zu servers, the maximum is %d",
				   f->count, SERVERS_MAX);
	for (const struct json_node *n = all->child; n; n = n->next)
		if (!*n->key || strlen(n->key) > SERVERS_NAME_MAX)
			return json_reject_key(f->path, n, err,
					       "the name of a server has 1 to %d bytes",
					       SERVERS_NAME_MAX);
	return 0;
}

int servers_file_read(struct servers_file *f, const char *path, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *text = NULL;
	size_t size = 0;

	*f = (struct servers_file){ .path = path };
	auto_fd int fd = fd_open_linked(path, err);
	if (fd < 0 || fd_read_all(fd, JSON_BYTES_MAX, &a, &text, &size, path, err) < 0)
		return -err->code;
	return servers_file_parse(f, path, text, size, err);
}
