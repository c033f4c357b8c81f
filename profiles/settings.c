/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings, the writers of their values, and the ways to find a row. */
#include "profiles/settings.h"

#include <inttypes.h>
#include <limits.h>

#include "profiles/setting_types.h"
#include "runtime/base/json/json.h"
#include "runtime/base/text.h"

static const void *value_of(const struct config *c, const struct setting *s)
{
	return (const char *)c + s->offset;
}

/* The key without its group: "mode" of "network.mode". */
static const char *key_of(const struct setting *s)
{
	const char *dot = strrchr(s->key, '.');
	return dot ? dot + 1 : s->key;
}

static void put_flag(struct json_writer *w, const struct config *c, const struct setting *s)
{
	json_member_bool(w, key_of(s), *(const bool *)value_of(c, s));
}

struct unit {
	uint64_t factor;
	const char *suffix;
};

/* The largest unit that divides the value, so that reading it back gives the same. */
static void put_in_units(struct json_writer *w, const struct setting *s, uint64_t value,
			 const struct unit *unit)
{
	char text[32];

	while (value % unit->factor != 0)
		unit++;
	(void)snprintf(text, sizeof(text), "%" PRIu64 "%s", value / unit->factor, unit->suffix);
	json_member_text(w, key_of(s), text);
}

static void put_size(struct json_writer *w, const struct config *c, const struct setting *s)
{
	static const struct unit units[] = {
		{ 1ull << 40, "T" }, { 1ull << 30, "G" }, { 1ull << 20, "M" },
		{ 1ull << 10, "K" }, { 1, "" },
	};
	put_in_units(w, s, *(const uint64_t *)value_of(c, s), units);
}

static void put_duration(struct json_writer *w, const struct config *c, const struct setting *s)
{
	static const struct unit units[] = {
		{ 3600 * 1000, "h" },
		{ 60 * 1000, "m" },
		{ 1000, "s" },
		{ 1, "ms" },
	};
	uint64_t ms = *(const uint64_t *)value_of(c, s);
	if (ms > 0) /* 0: no limit, and no way to ask for it */
		put_in_units(w, s, ms, units);
}

static void put_count(struct json_writer *w, const struct config *c, const struct setting *s)
{
	json_member_u64(w, key_of(s), *(const uint64_t *)value_of(c, s));
}

static void put_cpus(struct json_writer *w, const struct config *c, const struct setting *s)
{
	json_member_milli(w, key_of(s), *(const uint64_t *)value_of(c, s));
}

static void put_text(struct json_writer *w, const struct config *c, const struct setting *s)
{
	const char *text = *(const char *const *)value_of(c, s);
	if (text)
		json_member_text(w, key_of(s), text);
}

static void put_value_path(struct json_writer *w, const struct config *c, const struct setting *s)
{
	const char *path = *(const char *const *)value_of(c, s);
	json_member_text(w, key_of(s), path ? path : VALUE_PATH_NONE);
}

static void put_choice(struct json_writer *w, const struct config *c, const struct setting *s)
{
	json_member_text(w, key_of(s), s->choices[*(const unsigned *)value_of(c, s)]);
}

static void put_list(struct json_writer *w, const struct config *c, const struct setting *s)
{
	const struct strings *list = value_of(c, s);
	if (list->count > 0)
		json_member_texts(w, key_of(s), list->items, list->count);
}

/* Profiles hold values only; a bare NAME can come from an option and means nothing here. */
static void put_env(struct json_writer *w, const struct config *c, const struct setting *s)
{
	const struct strings *env = value_of(c, s);
	json_member_object(w, key_of(s));
	for (size_t i = 0; i < env->count; i++) {
		const char *equals = strchr(env->items[i], '=');
		char name[ENV_NAME_LEN + 1];
		if (!equals)
			continue;
		(void)snprintf(name, sizeof(name), "%.*s", (int)(equals - env->items[i]),
			       env->items[i]);
		json_member_text(w, name, equals + 1);
	}
	json_close_object(w);
}

/* A PiB: more is a slip of the pen, and sums stay far from overflow. */
#define BYTES_MAX (1ull << 50)

#define PREFIX_MIN 2 /* characters, to suggest the rest */

#define AT(field) .offset = offsetof(struct config, field)
#define CHOICE(field, names, count, refusal)                                                       \
	.kind = SETTING_VALUE, .parse = set_choice, .write = put_choice, .choices = (names),       \
	.choice_count = (count), .not_a_choice = (refusal), AT(field)
#define FLAG(field) .kind = SETTING_FLAG, .parse = set_flag, .write = put_flag, AT(field)
#define SIZE(field)                                                                                \
	.kind = SETTING_VALUE, .value = "SIZE", .is_number = true, .parse = set_size,              \
	.write = put_size, AT(field)
#define DURATION(field)                                                                            \
	.kind = SETTING_VALUE, .value = "DUR", .is_number = true, .parse = set_duration,           \
	.write = put_duration, AT(field)
#define COUNT(field)                                                                               \
	.kind = SETTING_VALUE, .value = "N", .is_number = true, .parse = set_count,                \
	.write = put_count, AT(field)
#define TEXT(field, set) .kind = SETTING_VALUE, .parse = (set), .write = put_text, AT(field)
#define FD(field)        .parse = set_fd, .max = INT_MAX, AT(field)
#define LIST(field, add) .kind = SETTING_LIST, .parse = (add), .write = put_list, AT(field)

/* In the order of --help and of the manual pages. */
const struct setting settings[] = {
	/* program and profile */
	{ "profile", NULL, 'p', TEXT(profile_name, set_text), .value = "NAME|FILE",
	  .help = "profile to use: a name, or a path with a slash" },
	{ "code", NULL, 'c', SETTING_VALUE, "CODE", .parse = set_code, AT(code),
	  .help = "run this text instead of a file; needs --profile" },
	{ "remote", NULL, 0, SETTING_VALUE, "SOCKET", .value_optional = true, .value_end = ".sock",
	  .parse = set_remote, AT(remote),
	  .help = "run at the service that listens on this socket; see cejail-serve(8)" },
	{ NULL, "description", 0, TEXT(description, set_text), .value = "TEXT",
	  .help = "one-line description for 'cejail profile list'" },
	{ NULL, "extends", 0, SETTING_VALUE, "NAME", .parse = set_extends,
	  .help = "parent profile; its settings apply first" },
	{ NULL, "extensions", 0, LIST(extensions, add_extension), .value = ".EXT",
	  .help = "file name extensions that select this profile by default" },
	{ NULL, "command", 0, LIST(command, add_argument), .value = "WORD",
	  .help = "how to run a file; places such as {file} and {args} are replaced" },
	{ NULL, "shell", 0, LIST(shell, add_argument), .value = "WORD",
	  .help = "interactive command of 'cejail shell'" },
	{ NULL, "file_name", 0, TEXT(file_name, set_file_name), .value = "NAME", .scope = SCOPE_RUN,
	  .help = "name of the program's file in /box, for {file}" },

	{ NULL, "warm.launcher", 0,
	  CHOICE(launcher, launcher_names, LAUNCHER_COUNT, "is no launcher: python, node or none"),
	  .value = "NAME",
	  .help = "for 'cejail serve': script that waits in an interpreter: python, node, none" },
	{ NULL, "warm.preload", 0, LIST(preload, add_module), .value = "MODULE",
	  .help = "modules that the started interpreter loads in advance" },
	{ NULL, "warm.zygote", 0, FLAG(zygote),
	  .help = "for 'cejail serve': start the interpreter once and fork it for each jail" },

	/* limits */
	{ "timeout", "timeout", 't', DURATION(run_limits.wall_ms), .scope = SCOPE_RUN,
	  .help = "wall-clock limit: 500ms, 10s, 2m; without unit: seconds" },
	{ "cpu-time", "cpu_time", 0, DURATION(limits.cpu_ms), .scope = SCOPE_JAIL,
	  .help = "CPU time limit of all processes together" },
	{ "memory", "memory", 'm', SIZE(limits.memory_bytes), .min = 4u << 20, .max = BYTES_MAX,
	  .scope = SCOPE_JAIL,
	  .help = "memory limit of the jail, files in it included: 64M, 1G; no swap" },
	{ "cpus", "cpus", 0, SETTING_VALUE, "N", .is_number = true, .parse = set_cpus,
	  .write = put_cpus, AT(limits.millicpus), .scope = SCOPE_JAIL,
	  .help = "CPU bandwidth limit: 0.5, 2" },
	{ "pids-limit", "pids", 0, COUNT(limits.pids), .min = 1, .max = 4u << 20,
	  .scope = SCOPE_JAIL, .help = "maximum number of processes and threads together" },
	{ "nofile", "nofile", 0, COUNT(limits.nofile), .min = 16, .max = 1u << 20,
	  .scope = SCOPE_JAIL, .help = "maximum number of open files of each process" },
	{ "disk", "disk", 0, SIZE(limits.disk_bytes), .min = 64u << 10, .max = BYTES_MAX,
	  .scope = SCOPE_JAIL,
	  .help = "limit of writable space: /box, /tmp, /dev/shm and --writable together" },
	{ "max-output", "max_output", 0, SIZE(run_limits.output_bytes), .min = 1, .max = 256u << 20,
	  .scope = SCOPE_RUN, .help = "bytes kept of stdout and of stderr, each" },
	{ "on-output-limit", "on_output_limit", 0,
	  CHOICE(run_limits.on_output_limit, output_policy_names, OUTPUT_POLICY_COUNT,
		 "is neither 'truncate' nor 'kill'"),
	  .value = "truncate|kill", .scope = SCOPE_RUN,
	  .help = "beyond --max-output: keep the beginning and the end, or end the run" },

	{ "calls-max", "calls.max", 0, COUNT(run_limits.calls), .min = 1, .max = 1u << 20,
	  .scope = SCOPE_RUN, .help = "with --tools: number of calls of one program" },
	{ "calls-outstanding", "calls.outstanding", 0, COUNT(run_limits.calls_outstanding),
	  .min = 1, .max = CALLS_OUTSTANDING_MAX, .scope = SCOPE_RUN,
	  .help = "calls without an answer at which the next one waits" },
	{ "calls-rate", "calls.rate", 0, COUNT(run_limits.calls_per_second), .min = 1,
	  .max = 1u << 20, .scope = SCOPE_RUN,
	  .help = "calls in a second at which the next one waits" },
	{ "calls-timeout", "calls.timeout", 0, DURATION(run_limits.call_ms), .scope = SCOPE_RUN,
	  .help = "time in which a call must be answered" },

	/* input and output of the program */
	{ "env", "env", 'e', SETTING_LIST, "NAME[=VALUE]", .parse = add_env, .write = put_env,
	  AT(env), .scope = SCOPE_EXEC, .help = "set a variable; without '=': copy the caller's" },
	{ "env-file", NULL, 0, SETTING_LIST, "FILE", .parse = check_text,
	  .help = "read variables from a file, one NAME[=VALUE] per line; --env overrides" },
	{ "interactive", "interactive", 'i', FLAG(interactive),
	  .help = "connect standard input (default: /dev/null)" },
	{ "tty", "tty", 0, FLAG(tty), .help = "give the jail a terminal of its own" },
	{ "workdir", "workdir", 'w', TEXT(workdir, set_directory), .value = "DIR",
	  .scope = SCOPE_EXEC, .help = "directory to start in (default: /box)" },
	{ "file", "file", 'f', LIST(files, add_text), .value = "SRC[:DST]", .scope = SCOPE_HOST,
	  .help = "copy a file or directory in (default: /box/NAME); SRC -: standard input" },
	{ "file-text", NULL, 0, SETTING_LIST, "DST=TEXT", .parse = add_file_text, AT(file_texts),
	  .help = "create a file with this text in the jail" },
	{ "tools", NULL, 0, TEXT(tools, set_text), .value = "FILE",
	  .help = "let the program call the tools that this JSON file describes" },
	{ "tools-from", NULL, 0, TEXT(tools_from, set_text), .value = "FILE",
	  .help = "let the program call the tools of the MCP servers in this file" },
	{ "args-json", NULL, 0, TEXT(args_json, set_text), .value = "JSON|@FILE",
	  .help = "pass arguments as JSON data, in /box/args.json" },
	{ "ro-bind", "ro_bind", 0, LIST(ro_binds, add_text), .value = "SRC[:DST]",
	  .scope = SCOPE_HOST, .help = "make a host path visible, read-only" },
	{ "bind", "bind", 0, LIST(binds, add_text), .value = "SRC[:DST]", .scope = SCOPE_HOST,
	  .help = "make a host path visible, writable" },
	{ "overlay", "overlay", 0, LIST(overlays, add_text), .value = "SRC[:DST]",
	  .scope = SCOPE_HOST,
	  .help = "make a host directory visible, copy-on-write; changes end with the run" },
	{ "tmpfs", "tmpfs", 0, LIST(tmpfs, add_tmpfs), .value = "DST[:SIZE]", .scope = SCOPE_JAIL,
	  .help =
	      "create an empty writable directory; counts towards --disk, where SIZE must fit" },
	{ "venv", NULL, 0, TEXT(venv, set_text), .value = "DIR|none",
	  .help = "use this virtual environment, read-only (default: the active one)" },
	{ "project", NULL, 0, TEXT(project, set_text), .value = "DIR",
	  .help = "make DIR/node_modules visible to the program, read-only" },
	{ "connect", "connect", 0, LIST(connects, add_connect), .value = "ENDPOINT",
	  .scope = SCOPE_HOST,
	  .help = "allow connections to this host endpoint: unix:PATH[:DST], tcp:127.0.0.1:PORT" },
	{ "upstream", "upstream", 0, LIST(upstreams, add_upstream), .value = "NAME=URL",
	  .scope = SCOPE_HOST,
	  .help = "make a server available inside, with a key that the program can't read" },
	{ "artifact-path", "artifact_path", 0, LIST(artifact_paths, add_text), .value = "PATH",
	  .scope = SCOPE_RUN,
	  .help = "with --artifacts: also copy this path out, from below /box or an overlay" },
	{ "value-path", "value_path", 0, SETTING_VALUE, "PATH|none", .parse = set_value_path,
	  .write = put_value_path, AT(value_path), .scope = SCOPE_RUN,
	  .help = "file of the program with its return value, as JSON (see RESULT in cejail(1))" },
	{ "artifacts", NULL, 'o', SETTING_VALUE, "DIR|inline[:SIZE]", .parse = set_artifacts,
	  AT(artifacts),
	  .help = "after the run, copy regular files from /box/out to DIR, or into the result" },

	/* network, files and system calls */
	{ "network", "network.mode", 0,
	  CHOICE(network, network_mode_names, NETWORK_MODE_COUNT, "is neither 'public' nor 'none'"),
	  .value = "public|none", .scope = SCOPE_JAIL,
	  .help =
	      "public: Internet without private, local and metadata addresses; none: loopback" },
	{ "uplink", "network.uplink", 0,
	  CHOICE(uplink, uplink_names, UPLINK_COUNT,
		 "is no uplink: auto, host, pasta, slirp4netns or none"),
	  .value = "KIND", .scope = SCOPE_JAIL,
	  .help = "how packets leave the jail: auto, host, pasta, slirp4netns, none" },
	{ "network-start", "network.start", 0,
	  CHOICE(network_start, network_start_names, NETWORK_START_COUNT,
		 "is neither 'first-use' nor 'early'"),
	  .value = "WHEN", .scope = SCOPE_JAIL,
	  .help = "when the public network is built: first-use, early" },
	{ "allow", "network.allow", 0, LIST(allow, add_target), .value = "HOST[:PORT]",
	  .scope = SCOPE_JAIL,
	  .help = "allow only this destination of the public network; repeatable" },
	{ "deny", "network.deny", 0, LIST(deny, add_denied), .value = "HOST[:PORT]",
	  .scope = SCOPE_JAIL,
	  .help = "deny this destination, whatever else is allowed; repeatable" },
	{ "allow-by", "network.allow_by", 0,
	  CHOICE(allow_by, network_allow_by_names, NETWORK_ALLOW_BY_COUNT,
		 "is neither 'address', 'auto' nor 'name'"),
	  .value = "address|auto|name", .scope = SCOPE_JAIL,
	  .help = "check the names that the program sends in TLS and HTTP (auto: with wildcards)" },
	{ "network-names", "network.names", 0,
	  CHOICE(network_names, network_names_names, NETWORK_NAMES_COUNT,
		 "is neither 'auto', 'live' nor 'start'"),
	  .value = "auto|live|start", .scope = SCOPE_JAIL,
	  .help = "when the names of --allow are looked up (auto: live with wildcards)" },
	{ "allow-private", "network.allow_private", 0, FLAG(allow_private), .scope = SCOPE_HOST,
	  .help = "permit --allow to name addresses in closed ranges" },
	{ "setup", NULL, 0, TEXT(setup, set_text), .value = "COMMAND",
	  .help = "run this shell command in the jail first, then the program" },
	{ "setup-allow", NULL, 0, LIST(setup_allow, add_target), .value = "HOST[:PORT]",
	  .help = "allow this destination to --setup alone; repeatable" },
	{ "setup-timeout", NULL, 0, DURATION(setup_ms),
	  .help = "wall-clock limit of --setup (default: 5m)" },
	{ "hostname", "hostname", 0, TEXT(hostname, set_hostname), .value = "NAME",
	  .scope = SCOPE_JAIL, .help = "host name of the jail (default: cejail)" },
	{ "rootfs", "rootfs", 0, TEXT(rootfs, set_text), .value = "host|NAME|DIR[:DIR...]",
	  .scope = SCOPE_HOST,
	  .help = "root file system: this host's /usr, an image, or directories in layers" },
	{ "writable", "writable", 0, FLAG(writable), .scope = SCOPE_JAIL,
	  .help = "add a writable layer over the root file system, discarded after the run" },
	{ "noexec", "noexec", 0, FLAG(noexec), .scope = SCOPE_JAIL,
	  .help = "mount the writable directories noexec" },
	{ "seccomp", "seccomp", 0, TEXT(seccomp, set_text), .value = "default|FILE",
	  .scope = SCOPE_HOST,
	  .help = "system call filter: built-in, or a file in OCI or Docker format" },
	{ "strict", "strict", 0, FLAG(strict), .scope = SCOPE_JAIL,
	  .help = "refuse to run if a layer is absent or cgroup v2 does not enforce a limit" },
	{ "reduced", "reduced", 0, FLAG(reduced),
	  .help = "run without namespaces, where the host refuses them: a weaker jail" },
	{ "accept-weaker", "accept_weaker", 0, LIST(accept_weaker, add_degraded), .value = "NAME",
	  .scope = SCOPE_RUN,
	  .help = "do not warn that this host lacks this: limits, landlock, network, ..." },
	{ NULL, "audit", 0,
	  CHOICE(audit_required, audit_need_names, AUDIT_NEED_COUNT,
		 "is neither 'required' nor 'optional'"),
	  .value = "required|optional",
	  .help = "for 'cejail serve': refuse a run that cannot be recorded, or run it anyway" },

	/* requests and results */
	{ "request-fd", NULL, 0, SETTING_VALUE, "N", FD(request_fd),
	  .help =
	      "read the run as JSON from this open file descriptor; see REQUESTS in cejail(1)" },
	{ "json", NULL, 0, SETTING_VALUE, "FILE", .value_optional = true, .parse = set_json,
	  AT(json_file), .help = "write the result as JSON, to standard output or to FILE" },
	{ "result-fd", NULL, 0, SETTING_VALUE, "N", FD(result_fd), .min = 1,
	  .help = "write the result to this open file descriptor" },
	{ "events-fd", NULL, 0, SETTING_VALUE, "N", FD(events_fd), .min = 1,
	  .help = "write events to this open file descriptor, as JSON lines" },
	{ "calls-fd", NULL, 0, SETTING_VALUE, "N", FD(calls_fd), .min = 3,
	  .help = "the socket on which the caller answers the calls of --tools" },
	{ "trace-file", NULL, 0, TEXT(trace_file, set_text), .value = "FILE",
	  .help = "append the run and its calls to FILE, as spans of OpenTelemetry" },

	/* other options */
	{ "cgroup-parent", "cgroup_parent", 0, TEXT(cgroup_parent, set_text), .value = "PATH",
	  .scope = SCOPE_HOST, .help = "create the jail's cgroup below this one" },
	{ "id", NULL, 0, SETTING_VALUE, "ID", .parse = set_id, AT(id),
	  .help = "id of the run (default: a unique one)" },
	{ "verbose", NULL, 'v', FLAG(verbose), .help = "print more messages" },
	{ "quiet", NULL, 'q', FLAG(quiet),
	  .help = "print errors, reached limits and denials, but no warnings or notes" },
	{ "no-report", NULL, 0, FLAG(no_report),
	  .help = "do not print reached limits and denials" },
	{ "dry-run", NULL, 0, FLAG(dry_run),
	  .help = "print the plan as JSON and do not run anything" },
};

const size_t settings_count = COUNT_OF(settings);

/* `name_at`: where the name stands in a row, of which NULL is no name. */
static const char *name_of(const struct setting *s, size_t name_at)
{
	return *(const char *const *)((const char *)s + name_at);
}

static const struct setting *find(size_t name_at, const char *name)
{
	for (size_t i = 0; i < COUNT_OF(settings); i++) {
		const char *own = name_of(&settings[i], name_at);
		if (own && strcmp(own, name) == 0)
			return &settings[i];
	}
	return NULL;
}

static const char *suggest(size_t name_at, const char *name)
{
	const char *names[COUNT_OF(settings) + 1] = { NULL };
	size_t n = 0;
	for (size_t i = 0; i < COUNT_OF(settings); i++)
		if (name_of(&settings[i], name_at))
			names[n++] = name_of(&settings[i], name_at);
	return text_nearest(name, names);
}

const struct setting *setting_by_option(const char *name)
{
	return find(offsetof(struct setting, option), name);
}

const struct setting *setting_by_key(const char *dotted)
{
	return find(offsetof(struct setting, key), dotted);
}

const struct setting *setting_by_letter(char letter)
{
	for (size_t i = 0; i < COUNT_OF(settings); i++)
		if (settings[i].letter != 0 && settings[i].letter == letter)
			return &settings[i];
	return NULL;
}

int setting_set(struct config *c, const struct setting *s, const char *named, const char *text,
		struct cj_error *err)
{
	int rc = !text && setting_needs_value(s)
		     ? cj_reject(err, "a value is missing (%s)", s->value)
		     : s->parse(c, s, text, err);
	return rc < 0 ? cj_wrap(err, "%s", named) : 0;
}

/*
 * The one option that begins with `name`; of "network" and "network-start" the shorter one.
 * NULL: none does, or several do.
 */
static const char *find_prefixed(const char *name)
{
	const char *found = NULL;
	for (size_t i = 0; i < COUNT_OF(settings); i++) {
		const char *option = settings[i].option;
		if (!option || !text_begins_with(option, name) ||
		    (found && text_begins_with(option, found)))
			continue;
		if (found && !text_begins_with(found, option))
			return NULL;
		found = option;
	}
	return strlen(name) >= PREFIX_MIN ? found : NULL;
}

const char *setting_suggest_option(const char *name)
{
	const char *prefixed = find_prefixed(name);
	return prefixed ? prefixed : suggest(offsetof(struct setting, option), name);
}

const char *setting_suggest_key(const char *name)
{
	return suggest(offsetof(struct setting, key), name);
}
