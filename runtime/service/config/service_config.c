/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the service's configuration and the reader of its file. */
#include "runtime/service/config/service_config.h"

#include <assert.h>
#include <string.h>
#include <sys/un.h>

#include "runtime/base/json/json_record.h"
#include "runtime/base/text.h"
#include "runtime/run/mcp/mcp_tool.h"
#include "runtime/service/config/service_values.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define CONCURRENCY_MAX 4096
#define QUEUE_MAX       65536
#define PREPARED_MAX    64 /* of one profile and kind */
#define SESSIONS_MAX    1024
#define RATE_MAX        1000000
#define CHILDREN_MAX    1000000
#define BODY_MIN        1024
#define BODY_MAX        (256u << 20)
#define DAY_MS          (24ull * 3600 * 1000)
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define FILE_PATH_MAX   255
#define GROUP_NAME_MAX  31

static int read_pool(const struct json_reader *in, const struct json_node *node,
		     struct cj_error *err);
static int read_callers(const struct json_reader *in, const struct json_node *node,
			struct cj_error *err);
static int read_audit(const struct json_reader *in, const struct json_node *node,
		      struct cj_error *err);
static int read_mcp(const struct json_reader *in, const struct json_node *node,
		    struct cj_error *err);

/* --- the tables ------------------------------------------------------------- */

#define VALUE(called, how) .kind = SERVICE_VALUE, .value = (called), .set = service_set_##how
#define NUMBER(called, how, least, most)                                                           \
	VALUE(called, how), .is_number = true, .min = (least), .max = (most)
#define AT(field) .offset = offsetof(struct service_config, field)

static const struct service_key file_keys[] = {
	{ "socket", "socket", VALUE("PATH", path), AT(socket), .max = SOCKET_PATH_MAX,
	  .standard = "(the runtime directory)/cejail/api.sock",
	  .help = "the Unix socket, unless systemd passes one" },
	{ "socket_mode", NULL, VALUE("MODE", mode), AT(socket_mode), .standard = "0600",
	  .help = "mode of the socket: 0600, 0660 or 0666" },
	{ "socket_group", NULL, VALUE("GROUP", group), AT(socket_group), .max = GROUP_NAME_MAX,
	  .standard = "(the service's)", .help = "group of the socket, for mode 0660" },
	{ "tcp", "tcp", VALUE("ADDRESS:PORT", tcp), AT(tcp), .standard = "(none)",
	  .help = "also listen on this loopback address; callers need a token" },
	{ "token_file", "token-file", VALUE("FILE", path), AT(token_file), .max = FILE_PATH_MAX,
	  .standard = "(the systemd credential \"token\")",
	  .help = "file with the token of the caller \"token:default\"" },

	{ "concurrency", NULL, NUMBER("N", count, 1, CONCURRENCY_MAX), AT(concurrency),
	  .standard = "(four for each CPU)", .help = "maximum concurrent runs" },
	{ "queue", NULL, NUMBER("N", count, 1, QUEUE_MAX), AT(queue), .standard = "256",
	  .help = "maximum queued runs; more are refused" },
	{ "queue_wait", NULL, NUMBER("DUR", duration, 1, DAY_MS), AT(queue_ms), .standard = "30s",
	  .help = "maximum time in the queue; then a run is refused" },
	{ "receive_timeout", NULL, NUMBER("DUR", duration, 100, DAY_MS), AT(receive_ms),
	  .standard = "30s", .help = "maximum time for a whole request to arrive" },
	{ "body_max", NULL, NUMBER("SIZE", bytes, BODY_MIN, BODY_MAX), AT(caps.body_bytes),
	  .standard = "16M", .help = "maximum size of a whole request" },
	{ "code_max", NULL, NUMBER("SIZE", bytes, BODY_MIN, BODY_MAX), AT(caps.code_bytes),
	  .standard = "1M", .help = "maximum size of its code" },
	{ "file_max", NULL, NUMBER("SIZE", bytes, BODY_MIN, BODY_MAX), AT(caps.file_bytes),
	  .standard = "64M", .help = "maximum size of each of its files, and of a session's" },
	{ "stdin_max", NULL, NUMBER("SIZE", bytes, BODY_MIN, BODY_MAX), AT(caps.stdin_bytes),
	  .standard = "64M",
	  .help = "maximum size of its standard input, and of that streamed to an exec" },

	{ "pool", NULL, SERVICE_OBJECT, "PROFILE: {...}", .read = read_pool,
	  .standard = "python: 1 jail, 2 interpreters",
	  .help = "workers prepared ahead, by profile; replaces the whole default" },
	{ "sessions", NULL, NUMBER("N", count, 0, SESSIONS_MAX), AT(sessions), .standard = "64",
	  .help = "maximum sessions at once; 0: none" },
	{ "session_lease", NULL, NUMBER("DUR", duration, 1000, 365 * DAY_MS), AT(session_lease_ms),
	  .standard = "1h", .help = "maximum lease of a session" },
	{ "session_idle", NULL, NUMBER("DUR", duration, 1000, 365 * DAY_MS), AT(session_idle_ms),
	  .standard = "10m", .help = "maximum time of a session without an exec, and the default" },
	{ "session_memory", NULL, NUMBER("SIZE", bytes, 1u << 20, 1ull << 50), AT(session_memory),
	  .standard = "(half of the host's)",
	  .help = "maximum memory that all sessions reserve together" },
	{ "session_reserve", NULL, VALUE("used|limit", session_reserve),
	  AT(session_reserves_limits), .standard = "used",
	  .help = "what a session reserves between two execs: what it uses, or its limit" },
	{ "pool_age", NULL, NUMBER("DUR", duration, 1000, 365 * DAY_MS), AT(pool_age_ms),
	  .standard = "10m", .help = "maximum age of a prepared jail" },
	{ "zygote_age", NULL, NUMBER("DUR", duration, 1000, 365 * DAY_MS), AT(zygote_age_ms),
	  .standard = "10m", .help = "age at which a zygote is replaced" },
	{ "zygote_children", NULL, NUMBER("N", count, 1, CHILDREN_MAX), AT(zygote_children),
	  .standard = "1000", .help = "number of jails after which a zygote is replaced" },
	{ "callers", NULL, SERVICE_OBJECT, "NAME: {...}", .read = read_callers,
	  .standard = "(the built-in rights)",
	  .help = "per-caller permissions: \"default\", \"uid:N\", \"token:NAME\"" },
	{ "audit", NULL, SERVICE_OBJECT, "{...}", .read = read_audit, .standard = "(none)",
	  .help = "where to write a line before and after each run" },
	{ "mcp", NULL, SERVICE_OBJECT, "{...}", .read = read_mcp, .standard = "(standard tools)",
	  .help = "tools of the Model Context Protocol at POST /mcp" },

	{ "drain", NULL, NUMBER("DUR", duration, 1, DAY_MS), AT(drain_ms), .standard = "30s",
	  .help = "after SIGTERM, the time for running programs to end" },
	{ "probe_interval", NULL, NUMBER("DUR", duration, 1000, DAY_MS), AT(probe_ms),
	  .standard = "1m", .help = "time between two probes, which are real runs" },
	{ "probe_profile", NULL, VALUE("PROFILE", profile), AT(probe_profile),
	  .standard = "(the strictest)",
	  .help = "profile of the probe; default: the first strict one, else base" },
};

#undef AT
#define AT(field) .offset = offsetof(struct pool_config, field)
static const struct service_key pool_keys[] = {
	{ "jails", NULL, NUMBER("N", count, 0, PREPARED_MAX), AT(jails), .standard = "0",
	  .help = "number of prepared jails" },
	{ "interpreters", NULL, NUMBER("N", count, 0, PREPARED_MAX), AT(interpreters),
	  .standard = "0", .help = "number of prepared jails with the interpreter started" },
	{ "repls", NULL, NUMBER("N", count, 0, PREPARED_MAX), AT(repls), .standard = "0",
	  .help = "number of prepared sessions with the context \"repl\"" },
};

#undef AT
#define AT(field) .offset = offsetof(struct audit_config, field)
static const struct service_key audit_keys[] = {
	{ "file", NULL, VALUE("FILE", path), AT(file), .max = FILE_PATH_MAX, .standard = "(none)",
	  .help = "append JSON lines to this file" },
	{ "journal", NULL, SERVICE_FLAG, .set = service_set_flag, AT(journal), .standard = "false",
	  .help = "write structured entries to systemd's journal" },
	{ "sync", NULL, SERVICE_FLAG, .set = service_set_flag, AT(sync), .standard = "false",
	  .help = "write each line to the disk before its run goes on" },
};

#undef AT
#define AT(field) .offset = offsetof(struct mcp_config, field)
static const struct service_key mcp_keys[] = {
	{ "profiles", NULL, SERVICE_LIST, "PROFILE", .set = service_add_profile, AT(profiles),
	  .standard = "(python, node, shell, where installed)",
	  .help = "profiles that get a tool, for callers that may use them" },
	{ "text_max", NULL, NUMBER("SIZE", bytes, MCP_TEXT_LEAST, MCP_TEXT_MOST), AT(text_max),
	  .standard = "64K", .help = "maximum of stdout and of stderr in an answer" },
};

#undef AT
#define AT(field) .offset = offsetof(struct caller_row, field)
#define CEILING(how)                                                                               \
	.is_number = true, .standard = "(the profile's value)", VALUE("MOST", ceiling),            \
	.parse = (how)
static const struct service_key caller_keys[] = {
	{ "profiles", NULL, SERVICE_LIST, "PROFILE", .set = service_add_profile,
	  AT(rights.profiles), .standard = "(all)", .help = "profiles that the caller may use" },
	{ "memory", NULL, CEILING(service_parse_bytes), AT(rights.ceilings.memory_bytes),
	  .help = "ceiling, or \"unlimited\"; it also clamps the profile's value" },
	{ "cpus", NULL, CEILING(parse_cpus), AT(rights.ceilings.millicpus),
	  .help = "ceiling, as for memory" },
	{ "pids", NULL, CEILING(service_parse_number), AT(rights.ceilings.pids),
	  .help = "ceiling, as for memory" },
	{ "timeout", NULL, CEILING(parse_duration), AT(rights.ceilings.wall_ms),
	  .help = "ceiling, as for memory" },
	{ "disk", NULL, CEILING(service_parse_bytes), AT(rights.ceilings.disk_bytes),
	  .help = "ceiling, as for memory" },
	{ "max_output", NULL, CEILING(service_parse_bytes), AT(rights.ceilings.output_bytes),
	  .help = "ceiling, as for memory" },
	{ "network", NULL, VALUE("none|profile|public", network_right), AT(rights.network),
	  .standard = "profile",
	  .help = "no network, what the profile gives, or what the caller asks" },
	{ "host_paths", NULL, SERVICE_FLAG, .set = service_set_flag, AT(rights.host_paths),
	  .standard = "false",
	  .help = "may name files and end points of this host; like an account here" },
	{ "concurrent", NULL, NUMBER("N", count, 1, CONCURRENCY_MAX), AT(rights.concurrent),
	  .standard = "(half of concurrency)", .help = "maximum concurrent runs of the caller" },
	{ "queued", NULL, NUMBER("N", count, 1, QUEUE_MAX), AT(rights.queued), .standard = "64",
	  .help = "maximum queued runs of the caller" },
	{ "sessions", NULL, NUMBER("N", count, 0, SESSIONS_MAX), AT(rights.sessions),
	  .standard = "8", .help = "maximum sessions of the caller at once; 0: none" },
	{ "rate_per_minute", NULL, NUMBER("N", count, 0, RATE_MAX), AT(rights.rate_per_minute),
	  .standard = "600",
	  .help = "requests a minute; each MiB sent counts as one; 0: no limit" },
	{ "burst", NULL, NUMBER("N", count, 1, RATE_MAX), AT(rights.burst), .standard = "100",
	  .help = "requests that may come at once" },
	{ "token_file", NULL, VALUE("FILE", path), AT(token_file), .max = FILE_PATH_MAX,
	  .standard = "(none)", .help = "file with the token of a caller \"token:NAME\"" },
};

enum { TABLE_FILE, TABLE_POOL, TABLE_CALLER, TABLE_AUDIT, TABLE_MCP };

const struct service_table service_tables[] = {
	[TABLE_FILE] = { "", file_keys, LENGTH(file_keys) },
	[TABLE_POOL] = { "pool.PROFILE", pool_keys, LENGTH(pool_keys) },
	[TABLE_CALLER] = { "callers.NAME", caller_keys, LENGTH(caller_keys) },
	[TABLE_AUDIT] = { "audit", audit_keys, LENGTH(audit_keys) },
	[TABLE_MCP] = { "mcp", mcp_keys, LENGTH(mcp_keys) },
};
const size_t service_tables_count = LENGTH(service_tables);

void service_config_init(struct service_config *c)
{
	*c = (struct service_config){
		.socket_mode = 0600,
		.queue = 256,
		.queue_ms = 30 * 1000,
		.receive_ms = 30 * 1000,
		.mcp.text_max = MCP_TEXT_DEFAULT,
		.caps = { .body_bytes = 16u << 20,
			  .code_bytes = 1u << 20,
			  .file_bytes = 64u << 20,
			  .stdin_bytes = 64u << 20 },
		.pools = { { "python", .jails = 1, .interpreters = 2 } },
		.npools = 1,
		.sessions = 64,
		.session_lease_ms = 60 * 60 * 1000,
		.session_idle_ms = 10 * 60 * 1000,
		.pool_age_ms = 10 * 60 * 1000,
		.zygote_age_ms = 10 * 60 * 1000,
		.zygote_children = 1000,
		.drain_ms = 30 * 1000,
		.probe_ms = 60 * 1000,
	};
	callers_init(&c->callers);
}

void service_config_fini(struct service_config *c)
{
	arena_fini(&c->arena);
	service_config_init(c); /* nothing points into freed memory afterwards */
}

int service_config_set(struct service_config *c, const struct service_key *k, const char *named,
		       const char *text, struct cj_error *err)
{
	int rc = k->set(c, k, c, text, err);
	return rc < 0 ? cj_wrap(err, "%s", named) : 0;
}

/* --- one object of the file --------------------------------------------------- */

static int set_key(const struct json_reader *in, const struct json_key *k, const char *text,
		   void *record, struct cj_error *err)
{
	const struct service_key *key = k->detail;
	return key->set(in->context, key, record, text, err);
}

static int read_inner(const struct json_reader *in, const struct json_key *k,
		      const struct json_node *node, void *record, struct cj_error *err)
{
	const struct service_key *key = k->detail;
	(void)record;
	return key->read(in, node, err);
}

static unsigned types_of(const struct service_key *k)
{
	if (k->kind == SERVICE_FLAG)
		return JSON_TAKES_BOOL;
	if (k->kind == SERVICE_OBJECT)
		return JSON_TAKES_OBJECT;
	return JSON_TAKES_STRING | (k->is_number ? JSON_TAKES_NUMBER : 0);
}

static struct json_key json_key_of(const struct service_key *k)
{
	const bool is_list = k->kind == SERVICE_LIST;
	return (struct json_key){
		.name = k->key,
		.types = types_of(k),
		.is_list = is_list,
		.replaces = is_list,
		.if_empty = is_list ? "leave it out to allow all" : NULL,
		.offset = k->offset,
		.detail = k,
		.set = set_key,
		.read = k->kind == SERVICE_OBJECT ? read_inner : NULL,
	};
}

/* The members of `node` are keys of one table, into the record at `base`. */
static int read_object(const struct json_reader *in, const struct json_node *node,
		       const struct service_table *table, void *base, struct cj_error *err)
{
	struct json_key keys[JSON_KEYS_MAX];

	assert(table->count <= JSON_KEYS_MAX);
	for (size_t i = 0; i < table->count; i++)
		keys[i] = json_key_of(&table->keys[i]);
	const struct json_record record = { keys, table->count, "the configuration" };
	return json_record_read(in, node, &record, base, err);
}

/* --- the objects ------------------------------------------------------------- */

static int read_audit(const struct json_reader *in, const struct json_node *node,
		      struct cj_error *err)
{
	struct service_config *c = in->context;
	const struct json_reader below = json_below(in, node->key);
	return read_object(&below, node, &service_tables[TABLE_AUDIT], &c->audit, err);
}

static int read_mcp(const struct json_reader *in, const struct json_node *node,
		    struct cj_error *err)
{
	struct service_config *c = in->context;
	const struct json_reader below = json_below(in, node->key);
	return read_object(&below, node, &service_tables[TABLE_MCP], &c->mcp, err);
}

static int read_one_pool(const struct json_reader *in, const struct json_node *node,
			 struct cj_error *err)
{
	struct service_config *c = in->context;
	struct pool_config pool = { .profile = node->key };

	if (!is_name(node->key))
		return json_reject_key(in->file, node, err, "pool: '%s' is not a profile's name",
				       node->key);
	if (c->npools == POOLS_MAX)
		return json_reject_key(in->file, node, err, "pool: more than %d profiles",
				       POOLS_MAX);
	const struct json_reader below = json_below(in, node->key);
	int rc = read_object(&below, node, &service_tables[TABLE_POOL], &pool, err);
	if (rc == 0)
		c->pools[c->npools++] = pool;
	return rc;
}

static int read_pool(const struct json_reader *in, const struct json_node *node,
		     struct cj_error *err)
{
	struct service_config *c = in->context;
	const struct json_reader below = json_below(in, node->key);
	int rc = 0;

	c->npools = 0;
	for (const struct json_node *n = node->child; n && rc == 0; n = n->next)
		rc = read_one_pool(&below, n, err);
	return rc;
}

static bool is_uid_name(const char *name)
{
	struct cj_error unused = { 0 };
	uint64_t uid;
	if (strncmp(name, "uid:", 4) != 0 || (name[4] == '0' && name[5] != '\0'))
		return false; /* names are compared as they stand: "uid:007" would never match */
	return parse_u64(name + 4, 0, UINT32_MAX - 1, &uid, &unused) == 0;
}

static bool is_token_name(const char *name)
{
	return strncmp(name, "token:", 6) == 0 && is_name(name + 6);
}

/* What a row leaves out is as in "default". */
static int read_caller(const struct json_reader *in, const struct json_node *node,
		       struct caller_row *out, struct cj_error *err)
{
	const struct service_config *c = in->context;
	struct caller_row row = { .name = node->key, .rights = c->callers.standard };
	const struct json_reader below = json_below(in, node->key);
	int rc = read_object(&below, node, &service_tables[TABLE_CALLER], &row, err);
	if (rc == 0 && row.token_file && !is_token_name(node->key))
		rc = json_reject(in->file, json_get(node, "token_file"), err,
				 "%s.token_file: only a caller \"token:NAME\" has a token",
				 below.within);
	if (rc == 0)
		*out = row;
	return rc;
}

static int read_default(const struct json_reader *in, const struct json_node *node,
			struct cj_error *err)
{
	struct service_config *c = in->context;
	struct caller_row row;
	const struct json_node *standard = json_get(node, "default");
	int rc = standard ? read_caller(in, standard, &row, err) : 0;
	if (rc == 0 && standard)
		c->callers.standard = row.rights;
	return rc;
}

static int read_row(const struct json_reader *in, const struct json_node *node,
		    struct cj_error *err)
{
	struct service_config *c = in->context;

	if (!is_uid_name(node->key) && !is_token_name(node->key)) {
		int rc = json_reject_key(in->file, node, err, "callers: '%s' is not a caller",
					 node->key);
		cj_hint(err, "write \"default\", \"uid:1000\" or \"token:NAME\"");
		return rc;
	}
	if (c->callers.count == CALLERS_MAX)
		return json_reject_key(in->file, node, err, "callers: more than %d", CALLERS_MAX);
	int rc = read_caller(in, node, &c->callers.rows[c->callers.count], err);
	if (rc == 0)
		c->callers.count++;
	return rc;
}

static int read_callers(const struct json_reader *in, const struct json_node *node,
			struct cj_error *err)
{
	const struct json_reader below = json_below(in, node->key);
	int rc = read_default(&below, node, err); /* first, wherever it stands */
	for (const struct json_node *n = node->child; n && rc == 0; n = n->next)
		if (strcmp(n->key, "default") != 0)
			rc = read_row(&below, n, err);
	return rc;
}

/* --- the whole ---------------------------------------------------------------- */

int service_config_read(struct service_config *c, const char *path, const char *text, size_t size,
			struct cj_error *err)
{
	const struct json_node *root;
	const struct json_reader in = { .file = path, .arena = &c->arena, .context = c };
	int rc = json_parse(path, text, size, &c->arena, &root, err);
	return rc < 0 ? rc : read_object(&in, root, &service_tables[TABLE_FILE], c, err);
}

int service_config_check(const struct service_config *c, struct cj_error *err)
{
	int rc = 0;
	if (c->socket_group && (c->socket_mode & 0060) != 0060) {
		rc = cj_reject(err, "socket_group: its members can't connect with mode 0%o",
			       c->socket_mode);
		cj_hint(err, "add \"socket_mode\": \"0660\"");
	} else if (c->audit.sync && !c->audit.file) {
		rc = cj_reject(err, "audit.sync: there is no audit.file to be written to the disk");
	}
	return rc;
}
