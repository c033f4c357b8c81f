/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the service's configuration and the reader of its file. */
#include "runtime/service/config/service_config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <limits.h>
#include <sys/un.h>

#include "runtime/base/text.h"
#include "runtime/run/mcp/mcp_tool.h"

#define CONCURRENCY_MAX 4096
#define QUEUE_MAX       65536
#define PREPARED_MAX    64 /* of one profile and kind */
#define SESSIONS_MAX    1024
#define RATE_MAX        1000000
#define CHILDREN_MAX    1000000
#define BODY_MIN        1024
#define BODY_MAX        (256u << 20)
#define DAY_MS          (24ull * 3600 * 1000)
#define YEAR_MS         (365 * DAY_MS)
#define SOCKET_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define FILE_PATH_MAX   255
#define GROUP_NAME_MAX  31
#define LIST_MAX        256
#define UNLIMITED       "unlimited"
#define NOT_A_PROFILE   "'%s' is not a profile's name (a-z 0-9 _ -)"

/* Values: each reader takes one whole text, and writes the field only on success. */

static JSON_SETTER(bytes) /* size_t */
{
	uint64_t bytes;
	int rc = parse_size_within(text, k->min, k->max, &bytes, err);

	if (rc == 0)
		*(size_t *)json_field(k, record) = (size_t)bytes;
	return rc;
}

/* Absolute.  The name of a socket fits its address, that of a file nearly everywhere. */
static JSON_SETTER(path)
{
	size_t size = strlen(text);

	if (text[0] != '/')
		return cj_reject(err, "'%s' is not an absolute path", text);
	if (size > k->max)
		return cj_reject(err, "the path has %zu characters, %u are the most", size,
				 (unsigned)k->max);
	*(const char **)json_field(k, record) = text;
	return 0;
}

static JSON_SETTER(group)
{
	size_t size = strcspn(text, ":/, \t\n");

	if (size == 0 || text[size] != '\0' || size > k->max)
		return cj_reject(err, "'%s' is not a group's name", text);
	*(const char **)json_field(k, record) = text;
	return 0;
}

/* One of a few words, into an unsigned. */
struct words {
	const char *refusal;
	struct {
		const char *text;
		unsigned value;
	} rows[4];
};

static JSON_SETTER(word)
{
	const struct words *words = k->detail;

	for (size_t i = 0; words->rows[i].text; i++) {
		if (strcmp(words->rows[i].text, text) != 0)
			continue;
		*(unsigned *)json_field(k, record) = words->rows[i].value;
		return 0;
	}
	return cj_reject(err, "'%s' is %s", text, words->refusal);
}

static const struct words socket_modes = {
	"no mode of a socket: 0600, 0660 or 0666",
	{ { "0600", 0600 }, { "0660", 0660 }, { "0666", 0666 } },
};
static const struct words session_reserves = {
	"neither 'used' nor 'limit'",
	{ { "used", false }, { "limit", true } },
};
static const struct words network_rights = {
	"neither 'none' nor 'profile' nor 'public'",
	{ { "profile", NETWORK_AS_PROFILE }, { "none", NETWORK_NEVER }, { "public", NETWORK_ANY } },
};

int tcp_address_parse(const char *text, union tcp_address *out, socklen_t *out_size,
		      struct cj_error *err)
{
	const char *colon = strrchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : 0;
	char host[INET6_ADDRSTRLEN + 2];
	union tcp_address a = { 0 };
	uint64_t port;

	if (!colon || size >= sizeof(host)) {
		cj_refuse(err, "'%s' is not ADDRESS:PORT", text);
		return cj_hint(err, "\"127.0.0.1:8090\" or \"[::1]:8090\"");
	}
	(void)snprintf(host, sizeof(host), "%.*s", (int)size, text);
	if (parse_u64(colon + 1, 1, 65535, &port, err) < 0)
		return cj_wrap(err, "the port");
	if (strcmp(host, "[::1]") == 0) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
		a.v6.sin6_port = htons((uint16_t)port);
		*out_size = sizeof(a.v6);
	} else if (inet_pton(AF_INET, host, &a.v4.sin_addr) == 1 &&
		   ntohl(a.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons((uint16_t)port);
		*out_size = sizeof(a.v4);
	} else {
		cj_refuse(err, "'%s' is not an address of the loopback", host);
		return cj_hint(err, "write 127.0.0.1 or [::1]; for other hosts, put a proxy with "
				    "TLS before it");
	}
	*out = a;
	return 0;
}

static JSON_SETTER(tcp)
{
	union tcp_address address;
	socklen_t size;
	int rc = tcp_address_parse(text, &address, &size, err);

	if (rc == 0)
		*(const char **)json_field(k, record) = text;
	return rc;
}

static JSON_SETTER(profile)
{
	if (!is_name(text))
		return cj_reject(err, NOT_A_PROFILE, text);
	*(const char **)json_field(k, record) = text;
	return 0;
}

/* One more of a list. */
static JSON_SETTER(profiles)
{
	struct strings *list = json_field(k, record);

	if (!is_name(text))
		return cj_reject(err, NOT_A_PROFILE, text);
	if (list->count >= LIST_MAX)
		return cj_reject(err, "more than %d of them", LIST_MAX);
	if (strings_add(list, in->arena, text) < 0)
		return cj_fail(err, ENOMEM, "keep a setting");
	return 0;
}

/* A PiB, as in profiles: more is a slip of the pen. */
static int parse_bytes(const char *text, uint64_t *out, struct cj_error *err)
{
	uint64_t bytes;
	int rc = parse_size(text, &bytes, err);

	if (rc < 0)
		return rc;
	if (bytes > 1ull << 50)
		return cj_reject(err, "'%s' is too much, write \"" UNLIMITED "\"", text);
	*out = bytes;
	return 0;
}

static int parse_number(const char *text, uint64_t *out, struct cj_error *err)
{
	return parse_u64(text, 1, INT_MAX, out, err);
}

struct ceiling {
	int (*parse)(const char *text, uint64_t *out, struct cj_error *err);
};

/* Nobody writes 0, which is the profile's own value. */
static JSON_SETTER(ceiling)
{
	const struct ceiling *ceiling = k->detail;
	uint64_t value = CEILING_NONE;
	int rc = strcmp(text, UNLIMITED) == 0 ? 0 : ceiling->parse(text, &value, err);

	if (rc == 0)
		*(uint64_t *)json_field(k, record) = value;
	return rc;
}

static JSON_READER(table);
static JSON_READER(pools);
static JSON_READER(callers);

/* So clang-format fills the lines of a row. */
#define KEY(...)                                                                                   \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}
#define NUMBER                (JSON_TAKES_STRING | JSON_TAKES_NUMBER)
#define TEXT(how)             JSON_TAKES_STRING, .set = json_set_##how
#define FLAG                  JSON_TAKES_BOOL, .set = json_set_bool
#define WORD(words)           TEXT(word), .detail = &(words)
#define COUNT(least, most)    NUMBER, .set = json_set_int, .min = (least), .max = (most)
#define DURATION(least, most) NUMBER, .set = json_set_duration, .min = (least), .max = (most)
#define BYTES(least, most)    NUMBER, .set = json_set_bytes, .min = (least), .max = (most)
#define CEILING(how)                                                                               \
	NUMBER, .set = json_set_ceiling, .detail = &(const struct ceiling)                         \
	{                                                                                          \
		how                                                                                \
	}
#define PROFILES                                                                                   \
	TEXT(profiles), .is_list = true, .replaces = true, .if_empty = "leave it out to allow all"
#define OBJECT(how) JSON_TAKES_OBJECT, .read = (how)
#define TABLE(name) OBJECT(json_read_table), .detail = &service_tables[name]

enum { TABLE_FILE, TABLE_POOL, TABLE_CALLER, TABLE_AUDIT, TABLE_MCP };

#define AT(field) .offset = offsetof(struct service_config, field)
static const struct service_key file_keys[] = {
	{ KEY("socket", TEXT(path), AT(socket), .max = SOCKET_PATH_MAX), .option = "socket",
	  .value = "PATH", .standard = "(the runtime directory)/cejail/api.sock",
	  .help = "the Unix socket, unless systemd passes one" },
	{ KEY("socket_mode", WORD(socket_modes), AT(socket_mode)), .value = "MODE",
	  .standard = "0600", .help = "mode of the socket: 0600, 0660 or 0666" },
	{ KEY("socket_group", TEXT(group), AT(socket_group), .max = GROUP_NAME_MAX),
	  .value = "GROUP", .standard = "(the service's)",
	  .help = "group of the socket, for mode 0660" },
	{ KEY("tcp", TEXT(tcp), AT(tcp)), .option = "tcp", .value = "ADDRESS:PORT",
	  .standard = "(none)",
	  .help = "also listen on this loopback address; callers need a token" },
	{ KEY("token_file", TEXT(path), AT(token_file), .max = FILE_PATH_MAX),
	  .option = "token-file", .value = "FILE", .standard = "(the systemd credential \"token\")",
	  .help = "file with the token of the caller \"token:default\"" },

	{ KEY("concurrency", COUNT(1, CONCURRENCY_MAX), AT(concurrency)), .value = "N",
	  .standard = "(four for each CPU)", .help = "maximum concurrent runs" },
	{ KEY("queue", COUNT(1, QUEUE_MAX), AT(queue)), .value = "N", .standard = "256",
	  .help = "maximum queued runs; more are refused" },
	{ KEY("queue_wait", DURATION(1, DAY_MS), AT(queue_ms)), .value = "DUR", .standard = "30s",
	  .help = "maximum time in the queue; then a run is refused" },
	{ KEY("receive_timeout", DURATION(100, DAY_MS), AT(receive_ms)), .value = "DUR",
	  .standard = "30s", .help = "maximum time for a whole request to arrive" },
	{ KEY("body_max", BYTES(BODY_MIN, BODY_MAX), AT(caps.body_bytes)), .value = "SIZE",
	  .standard = "16M", .help = "maximum size of a whole request" },
	{ KEY("code_max", BYTES(BODY_MIN, BODY_MAX), AT(caps.code_bytes)), .value = "SIZE",
	  .standard = "1M", .help = "maximum size of its code" },
	{ KEY("file_max", BYTES(BODY_MIN, BODY_MAX), AT(caps.file_bytes)), .value = "SIZE",
	  .standard = "64M", .help = "maximum size of each of its files, and of a session's" },
	{ KEY("stdin_max", BYTES(BODY_MIN, BODY_MAX), AT(caps.stdin_bytes)), .value = "SIZE",
	  .standard = "64M",
	  .help = "maximum size of its standard input, and of that streamed to an exec" },

	{ KEY("pool", OBJECT(json_read_pools)), .value = "PROFILE: {...}",
	  .standard = "python: 1 jail, 2 interpreters",
	  .help = "workers prepared ahead, by profile; replaces the whole default" },
	{ KEY("sessions", COUNT(0, SESSIONS_MAX), AT(sessions)), .value = "N", .standard = "64",
	  .help = "maximum sessions at once; 0: none" },
	{ KEY("session_lease", DURATION(1000, YEAR_MS), AT(session_lease_ms)), .value = "DUR",
	  .standard = "1h", .help = "maximum lease of a session" },
	{ KEY("session_idle", DURATION(1000, YEAR_MS), AT(session_idle_ms)), .value = "DUR",
	  .standard = "10m", .help = "maximum time of a session without an exec, and the default" },
	{ KEY("session_memory", BYTES(1u << 20, 1ull << 50), AT(session_memory)), .value = "SIZE",
	  .standard = "(half of the host's)",
	  .help = "maximum memory that all sessions reserve together" },
	{ KEY("session_reserve", WORD(session_reserves), AT(session_reserves_limits)),
	  .value = "used|limit", .standard = "used",
	  .help = "what a session reserves between two execs: what it uses, or its limit" },
	{ KEY("pool_age", DURATION(1000, YEAR_MS), AT(pool_age_ms)), .value = "DUR",
	  .standard = "10m", .help = "maximum age of a prepared jail" },
	{ KEY("zygote_age", DURATION(1000, YEAR_MS), AT(zygote_age_ms)), .value = "DUR",
	  .standard = "10m", .help = "age at which a zygote is replaced" },
	{ KEY("zygote_children", COUNT(1, CHILDREN_MAX), AT(zygote_children)), .value = "N",
	  .standard = "1000", .help = "number of jails after which a zygote is replaced" },
	{ KEY("callers", OBJECT(json_read_callers)), .value = "NAME: {...}",
	  .standard = "(the built-in rights)",
	  .help = "per-caller permissions: \"default\", \"uid:N\", \"token:NAME\"" },
	{ KEY("audit", TABLE(TABLE_AUDIT), AT(audit)), .value = "{...}", .standard = "(none)",
	  .help = "where to write a line before and after each run" },
	{ KEY("trace_file", TEXT(path), AT(trace_file), .max = FILE_PATH_MAX), .value = "FILE",
	  .standard = "(none)",
	  .help = "append each run and its calls to FILE, as spans of OpenTelemetry" },
	{ KEY("mcp", TABLE(TABLE_MCP), AT(mcp)), .value = "{...}", .standard = "(standard tools)",
	  .help = "tools of the Model Context Protocol at POST /mcp" },

	{ KEY("drain", DURATION(1, DAY_MS), AT(drain_ms)), .value = "DUR", .standard = "30s",
	  .help = "after SIGTERM, the time for running programs to end" },
	{ KEY("probe_interval", DURATION(1000, DAY_MS), AT(probe_ms)), .value = "DUR",
	  .standard = "1m", .help = "time between two probes, which are real runs" },
	{ KEY("probe_profile", TEXT(profile), AT(probe_profile)), .value = "PROFILE",
	  .standard = "(the strictest)",
	  .help = "profile of the probe; default: the first strict one, else base" },
};

#undef AT
#define AT(field) .offset = offsetof(struct pool_config, field)
static const struct service_key pool_keys[] = {
	{ KEY("jails", COUNT(0, PREPARED_MAX), AT(jails)), .value = "N", .standard = "0",
	  .help = "number of prepared jails" },
	{ KEY("interpreters", COUNT(0, PREPARED_MAX), AT(interpreters)), .value = "N",
	  .standard = "0", .help = "number of prepared jails with the interpreter started" },
	{ KEY("repls", COUNT(0, PREPARED_MAX), AT(repls)), .value = "N", .standard = "0",
	  .help = "number of prepared sessions with the context \"repl\"" },
};

#undef AT
#define AT(field) .offset = offsetof(struct audit_config, field)
static const struct service_key audit_keys[] = {
	{ KEY("file", TEXT(path), AT(file), .max = FILE_PATH_MAX), .value = "FILE",
	  .standard = "(none)", .help = "append JSON lines to this file" },
	{ KEY("journal", FLAG, AT(journal)), .standard = "false",
	  .help = "write structured entries to systemd's journal" },
	{ KEY("sync", FLAG, AT(sync)), .standard = "false",
	  .help = "write each line to the disk before its run goes on" },
	{ KEY("arguments", BYTES(1, AUDIT_ARGUMENTS_MAX), AT(arguments)), .value = "SIZE",
	  .standard = "(none)", .help = "record the arguments of each call that has at most SIZE" },
};

#undef AT
#define AT(field) .offset = offsetof(struct mcp_config, field)
static const struct service_key mcp_keys[] = {
	{ KEY("profiles", PROFILES, AT(profiles)), .value = "PROFILE",
	  .standard = "(python, node, shell, where installed)",
	  .help = "profiles that get a tool, for callers that may use them" },
	{ KEY("text_max", BYTES(MCP_TEXT_LEAST, MCP_TEXT_MOST), AT(text_max)), .value = "SIZE",
	  .standard = "64K", .help = "maximum of stdout and of stderr in an answer" },
};

#undef AT
#define AT(field) .offset = offsetof(struct caller_row, field)
static const struct service_key caller_keys[] = {
	{ KEY("profiles", PROFILES, AT(rights.profiles)), .value = "PROFILE", .standard = "(all)",
	  .help = "profiles that the caller may use" },
	{ KEY("memory", CEILING(parse_bytes), AT(rights.ceilings.memory_bytes)), .value = "MOST",
	  .standard = "(the profile's value)",
	  .help = "ceiling, or \"unlimited\"; it also clamps the profile's value" },
	{ KEY("cpus", CEILING(parse_cpus), AT(rights.ceilings.millicpus)), .value = "MOST",
	  .standard = "(the profile's value)", .help = "ceiling, as for memory" },
	{ KEY("pids", CEILING(parse_number), AT(rights.ceilings.pids)), .value = "MOST",
	  .standard = "(the profile's value)", .help = "ceiling, as for memory" },
	{ KEY("timeout", CEILING(parse_duration), AT(rights.ceilings.wall_ms)), .value = "MOST",
	  .standard = "(the profile's value)", .help = "ceiling, as for memory" },
	{ KEY("disk", CEILING(parse_bytes), AT(rights.ceilings.disk_bytes)), .value = "MOST",
	  .standard = "(the profile's value)", .help = "ceiling, as for memory" },
	{ KEY("max_output", CEILING(parse_bytes), AT(rights.ceilings.output_bytes)),
	  .value = "MOST", .standard = "(the profile's value)", .help = "ceiling, as for memory" },
	{ KEY("network", WORD(network_rights), AT(rights.network)), .value = "none|profile|public",
	  .standard = "profile",
	  .help = "no network, what the profile gives, or what the caller asks" },
	{ KEY("host_paths", FLAG, AT(rights.host_paths)), .standard = "false",
	  .help = "may name files and end points of this host; like an account here" },
	{ KEY("concurrent", COUNT(1, CONCURRENCY_MAX), AT(rights.concurrent)), .value = "N",
	  .standard = "(half of concurrency)", .help = "maximum concurrent runs of the caller" },
	{ KEY("queued", COUNT(1, QUEUE_MAX), AT(rights.queued)), .value = "N", .standard = "64",
	  .help = "maximum queued runs of the caller" },
	{ KEY("sessions", COUNT(0, SESSIONS_MAX), AT(rights.sessions)), .value = "N",
	  .standard = "8", .help = "maximum sessions of the caller at once; 0: none" },
	{ KEY("rate_per_minute", COUNT(0, RATE_MAX), AT(rights.rate_per_minute)), .value = "N",
	  .standard = "600",
	  .help = "requests a minute; each MiB sent counts as one; 0: no limit" },
	{ KEY("burst", COUNT(1, RATE_MAX), AT(rights.burst)), .value = "N", .standard = "100",
	  .help = "requests that may come at once" },
	{ KEY("token_file", TEXT(path), AT(token_file), .max = FILE_PATH_MAX), .value = "FILE",
	  .standard = "(none)", .help = "file with the token of a caller \"token:NAME\"" },
};

const struct service_table service_tables[] = {
	[TABLE_FILE] = { "", file_keys, COUNT_OF(file_keys) },
	[TABLE_POOL] = { "pool.PROFILE", pool_keys, COUNT_OF(pool_keys) },
	[TABLE_CALLER] = { "callers.NAME", caller_keys, COUNT_OF(caller_keys) },
	[TABLE_AUDIT] = { "audit", audit_keys, COUNT_OF(audit_keys) },
	[TABLE_MCP] = { "mcp", mcp_keys, COUNT_OF(mcp_keys) },
};
const size_t service_tables_count = COUNT_OF(service_tables);

/* The texts of a table's defaults, read; those in parentheses are no values. */
static void set_defaults(const struct service_table *table, void *record)
{
	const struct json_reader in = { .arena = NULL }; /* no default needs memory */
	struct cj_error err = { 0 };

	for (size_t i = 0; i < table->count; i++) {
		const struct service_key *k = &table->keys[i];
		bool is_good = k->standard[0] == '(' || !k->json.set ||
			       k->json.set(&in, &k->json, k->standard, record, &err) == 0;
		assert(is_good);
	}
}

void service_config_init(struct service_config *c)
{
	*c = (struct service_config){
		.pools = { { "python", .jails = 1, .interpreters = 2 } },
		.npools = 1,
	};
	callers_init(&c->callers);
	set_defaults(&service_tables[TABLE_FILE], c);
	set_defaults(&service_tables[TABLE_MCP], &c->mcp);
}

void service_config_fini(struct service_config *c)
{
	arena_fini(&c->arena);
	service_config_init(c); /* nothing points into freed memory afterwards */
}

/* The members of `node` are keys of one table, into the record at `base`. */
static int read_object(const struct json_reader *in, const struct json_node *node,
		       const struct service_table *table, void *base, struct cj_error *err)
{
	const struct json_record record = { &table->keys->json, table->count, "the configuration",
					    .stride = sizeof(struct service_key) };
	return json_record_read(in, node, &record, base, err);
}

static JSON_READER(table)
{
	const struct json_reader below = json_below(in, k->name);
	return read_object(&below, node, k->detail, json_field(k, record), err);
}

static JSON_READER(pools)
{
	struct service_config *c = record;
	const struct json_reader pools = json_below(in, k->name);

	c->npools = 0;
	for (const struct json_node *n = node->child; n; n = n->next) {
		struct pool_config pool = { .profile = n->key };
		const struct json_reader below = json_below(&pools, n->key);
		if (!is_name(n->key))
			return json_reject_key(in->file, n, err,
					       "pool: '%s' is not a profile's name", n->key);
		if (c->npools == POOLS_MAX)
			return json_reject_key(in->file, n, err, "pool: more than %d profiles",
					       POOLS_MAX);
		if (read_object(&below, n, &service_tables[TABLE_POOL], &pool, err) < 0)
			return -err->code;
		c->pools[c->npools++] = pool;
	}
	return 0;
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
		       const struct rights *standard, struct caller_row *out, struct cj_error *err)
{
	struct caller_row row = { .name = node->key, .rights = *standard };
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

static JSON_READER(callers)
{
	struct callers *c = &((struct service_config *)record)->callers;
	const struct json_reader below = json_below(in, k->name);
	const struct json_node *standard = json_get(node, "default");
	struct caller_row row;

	/* first, wherever it stands: the others begin with it */
	if (standard && read_caller(&below, standard, &c->standard, &row, err) < 0)
		return -err->code;
	if (standard)
		c->standard = row.rights;
	for (const struct json_node *n = node->child; n; n = n->next) {
		if (n == standard)
			continue;
		if (!is_uid_name(n->key) && !is_token_name(n->key)) {
			(void)!json_reject_key(in->file, n, err, "callers: '%s' is not a caller",
					       n->key);
			return cj_hint(err, "write \"default\", \"uid:1000\" or \"token:NAME\"");
		}
		if (c->count == CALLERS_MAX)
			return json_reject_key(in->file, n, err, "callers: more than %d",
					       CALLERS_MAX);
		if (read_caller(&below, n, &c->standard, &c->rows[c->count], err) < 0)
			return -err->code;
		c->count++;
	}
	return 0;
}

int service_config_read(struct service_config *c, const char *path, const char *text, size_t size,
			struct cj_error *err)
{
	const struct json_node *root;
	const struct json_reader in = { .file = path, .arena = &c->arena };
	int rc = json_parse(path, text, size, &c->arena, &root, err);
	return rc < 0 ? rc : read_object(&in, root, &service_tables[TABLE_FILE], c, err);
}

int service_config_check(const struct service_config *c, struct cj_error *err)
{
	if (c->socket_group && (c->socket_mode & 0060) != 0060) {
		cj_refuse(err, "socket_group: its members can't connect with mode 0%o",
			  c->socket_mode);
		return cj_hint(err, "add \"socket_mode\": \"0660\"");
	}
	if (c->audit.sync && !c->audit.file)
		return cj_reject(err,
				 "audit.sync: there is no audit.file to be written to the disk");
	if (c->audit.arguments > 0 && !c->audit.file && !c->audit.journal)
		return cj_reject(err, "audit.arguments: there is no audit.file or audit.journal");
	return 0;
}
