/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of cejail-oci, by two tables. */
#include "runtime/container/call/oci_options.h"

#include "runtime/base/text.h"
#include "runtime/run/options/option_syntax.h"

#define NAMED_MAX 64

#define BIT(verb) (1u << (verb))
#define MAKING    (BIT(OCI_CREATE) | BIT(OCI_RUN))
#define JOINING   (MAKING | BIT(OCI_EXEC))

static const struct verb_row {
	const char *name;
	const char *operands; /* the first is the id; "": it takes none */
	const char *help;
	unsigned operands_max; /* behind the id */
	bool ends_options;     /* the first operand ends the options */
} verbs[OCI_VERB_COUNT] = {
	[OCI_CREATE] = { "create", "ID", "make a container that waits for start" },
	[OCI_START] = { "start", "ID", "let a created container execute its program" },
	[OCI_STATE] = { "state", "ID", "print a container's state as JSON" },
	[OCI_KILL] = { "kill", "ID [SIGNAL]", "send a signal to a container's first process (TERM)",
		       .operands_max = 1 },
	[OCI_DELETE] = { "delete", "ID", "remove a stopped container" },
	[OCI_RUN] = { "run", "ID", "create and start; the exit status is the program's" },
	[OCI_EXEC] = { "exec", "ID [COMMAND [ARG...]]", "run one more process in a container",
		       .operands_max = OCI_OPERANDS_MAX, .ends_options = true },
	[OCI_LIST] = { "list", "", "list the containers below --root" },
	[OCI_PS] = { "ps", "ID", "list the processes of a container",
		     .operands_max = OCI_OPERANDS_MAX },
	[OCI_PAUSE] = { "pause", "ID", "freeze a container's processes" },
	[OCI_RESUME] = { "resume", "ID", "thaw a container's processes" },
	[OCI_UPDATE] = { "update", "ID", "change the limits of a container" },
	[OCI_EVENTS] = { "events", "ID", "print a container's use of resources as JSON" },
	[OCI_FEATURES] = { "features", "", "print what this program supports, as JSON" },
	[OCI_SPEC] = { "spec", "", "write an example config.json" },
};

struct option_row;
struct option_reader;
typedef int limit_parser(const char *text, void *field, struct cj_error *err);
typedef int option_setter(const struct option_row *row, const char *value, struct option_reader *r,
			  struct cj_error *err);

struct option_row {
	const char *name;
	char letter;       /* 0: none */
	const char *value; /* what --help calls it; NULL: takes none */
	unsigned verbs;    /* 0: before the verb */
	size_t offset;
	option_setter *set;
	const char *help;
	limit_parser *parse; /* of set_limit */
};

static option_setter set_flag, set_text, set_list, set_fds, set_json, set_manager, set_limit,
    set_nothing;
static limit_parser parse_bytes, parse_signed, parse_number, parse_list, refuse;

#define FIELD(field) offsetof(struct oci_options, field)
#define FLAG(field)  FIELD(field), set_flag
#define TEXT(field)  FIELD(field), set_text
#define LIMIT(name, field, what, parse)                                                            \
	{                                                                                          \
		name, 0, what, BIT(OCI_UPDATE), FIELD(limits.field), set_limit,                    \
		    "replace this limit", parse                                                    \
	}

static const struct option_row rows[] = {
	{ "root", 0, "DIR", 0, TEXT(root), "where the states of containers are kept" },
	{ "log", 0, "FILE", 0, TEXT(log), "append messages to this file, too" },
	{ "log-format", 0, "FORMAT", 0, FIELD(is_log_json), set_json, "text or json" },
	{ "systemd-cgroup", 0, NULL, 0, FLAG(uses_systemd), "ask systemd for the cgroup" },
	{ "cgroup-manager", 0, "NAME", 0, 0, set_manager, "cgroupfs, systemd or disabled" },
	{ "result-dir", 0, "DIR", 0, TEXT(result_dir),
	  "the directory of files that io.cejail.result names" },
	{ "rootless", 0, "VALUE", 0, 0, set_nothing,
	  "accepted: whether the caller is root is found out" },
	{ "debug", 0, NULL, 0, FLAG(is_debug), "write a line for each step" },
	{ "help", 'h', NULL, 0, FLAG(wants_help), "this text" },
	{ "version", 'v', NULL, 0, FLAG(wants_version), "the version" },

	{ "help", 'h', NULL, ~0u, FLAG(wants_help), "this text" },
	{ "bundle", 'b', "DIR", MAKING | BIT(OCI_SPEC), TEXT(bundle),
	  "the bundle; default: the working directory" },
	{ "config", 'f', "FILE", MAKING, TEXT(config), "read this in place of config.json" },
	{ "pid-file", 0, "FILE", JOINING, TEXT(pid_file), "write the process id to this file" },
	{ "console-socket", 0, "SOCKET", JOINING, TEXT(console_socket),
	  "send the terminal's descriptor to this socket" },
	{ "no-pivot", 0, NULL, MAKING, 0, set_nothing, "accepted, without effect" },
	{ "no-new-keyring", 0, NULL, MAKING, FLAG(no_new_keyring), "keep the caller's keyring" },
	{ "preserve-fds", 0, "N", JOINING, 0, set_fds, "keep N descriptors from 3 on" },
	{ "no-subreaper", 0, NULL, BIT(OCI_RUN), 0, set_nothing, "accepted, without effect" },
	{ "detach", 'd', NULL, BIT(OCI_RUN) | BIT(OCI_EXEC), FLAG(is_detached),
	  "do not wait for the end" },
	{ "keep", 0, NULL, BIT(OCI_RUN), FLAG(keep), "do not delete the container at its end" },

	{ "all", 'a', NULL, BIT(OCI_KILL), FLAG(all), "signal every process of the container" },
	{ "force", 'f', NULL, BIT(OCI_DELETE), FLAG(force),
	  "kill what still runs; no error if it "
	  "does not exist" },

	{ "process", 'p', "FILE", BIT(OCI_EXEC), TEXT(process), "the process, as in config.json" },
	{ "tty", 't', NULL, BIT(OCI_EXEC), FLAG(wants_tty), "give it a terminal" },
	{ "user", 'u', "UID[:GID]", BIT(OCI_EXEC), TEXT(user), "run as these ids" },
	{ "cwd", 0, "DIR", BIT(OCI_EXEC), TEXT(cwd), "the working directory" },
	{ "env", 'e', "NAME=VALUE", BIT(OCI_EXEC), FIELD(env), set_list, "set a variable" },
	{ "cap", 'c', "CAPABILITY", BIT(OCI_EXEC), FIELD(caps), set_list, "add a capability" },
	{ "additional-gids", 'g', "GID", BIT(OCI_EXEC), FIELD(additional_gids), set_list,
	  "add a supplementary group" },
	{ "no-new-privs", 0, NULL, BIT(OCI_EXEC), FLAG(no_new_privs), "set no_new_privs" },
	{ "apparmor", 0, "PROFILE", BIT(OCI_EXEC), TEXT(apparmor), "the AppArmor profile" },
	{ "process-label", 0, "LABEL", BIT(OCI_EXEC), TEXT(process_label), "the SELinux label" },
	{ "cgroup", 0, "PATH", BIT(OCI_EXEC), TEXT(cgroup),
	  "an existing cgroup below the container's" },
	{ "ignore-paused", 0, NULL, BIT(OCI_EXEC), FLAG(ignore_paused),
	  "also in a paused container" },

	{ "format", 'f', "FORMAT", BIT(OCI_LIST) | BIT(OCI_PS), FIELD(is_json), set_json,
	  "table or json" },
	{ "quiet", 'q', NULL, BIT(OCI_LIST), FLAG(is_quiet), "print the ids alone" },

	{ "resources", 'r', "FILE", BIT(OCI_UPDATE), TEXT(resources),
	  "the limits as JSON; '-': standard input" },
	LIMIT("memory", memory.limit, "BYTES", parse_bytes),
	LIMIT("memory-reservation", memory.reservation, "BYTES", parse_bytes),
	LIMIT("memory-swap", memory.swap, "BYTES", parse_bytes),
	LIMIT("pids-limit", pids_limit, "N", parse_signed),
	LIMIT("cpu-quota", cpu.quota, "US", parse_signed),
	LIMIT("cpu-period", cpu.period, "US", parse_number),
	LIMIT("cpu-share", cpu.shares, "N", parse_number),
	LIMIT("cpu-rt-period", cpu, "US", refuse),
	LIMIT("cpu-rt-runtime", cpu, "US", refuse),
	LIMIT("cpu-burst", cpu.burst, "US", parse_number),
	LIMIT("cpu-idle", cpu.idle, "N", parse_signed),
	LIMIT("cpuset-cpus", cpu.cpus, "LIST", parse_list),
	LIMIT("cpuset-mems", cpu.mems, "LIST", parse_list),
	LIMIT("blkio-weight", block_io.weight, "N", parse_number),

	{ "stats", 0, NULL, BIT(OCI_EVENTS), FLAG(stats_once), "print once and end" },
	{ "interval", 0, "TIME", BIT(OCI_EVENTS), TEXT(interval), "time between two lines" },

	{ "rootless", 0, NULL, BIT(OCI_SPEC), FLAG(rootless), "for a caller who is not root" },
};

/* Where the reader is: before the verb, or in its options. */
struct option_reader {
	const char *const *next;
	bool has_verb, options_ended, has_id;
	struct arena *arena;
	struct oci_options *out;
};

static void *field(const struct option_row *row, struct option_reader *r)
{
	return (char *)r->out + row->offset;
}

/* The head of a setter. */
#define SETTER(name)                                                                               \
	int set_##name(MAYBE_UNUSED const struct option_row *row, MAYBE_UNUSED const char *value,  \
		       MAYBE_UNUSED struct option_reader *r, MAYBE_UNUSED struct cj_error *err)

static SETTER(flag)
{
	*(bool *)field(row, r) = true;
	return 0;
}

static SETTER(text)
{
	*(const char **)field(row, r) = value;
	return 0;
}

static SETTER(list)
{
	if (strings_add(field(row, r), r->arena, value) < 0)
		return cj_fail(err, ENOMEM, "option '--%s'", row->name);
	return 0;
}

static SETTER(fds)
{
	if (parse_u64(value, 0, PRESERVED_FDS_MAX, &r->out->preserve_fds, err) < 0)
		return cj_wrap(err, "option '--%s'", row->name);
	return 0;
}

static SETTER(nothing)
{
	return 0;
}

static SETTER(json)
{
	const char *other = row->verbs ? "table" : "text";
	bool is_json = strcmp(value, "json") == 0;

	if (!is_json && strcmp(value, other) != 0)
		return cj_reject(err, "option '--%s' takes %s or json, not '%s'", row->name, other,
				 value);
	*(bool *)field(row, r) = is_json;
	return 0;
}

static SETTER(manager)
{
	bool is_systemd = strcmp(value, "systemd") == 0,
	     is_disabled = strcmp(value, "disabled") == 0;

	if (!is_systemd && !is_disabled && strcmp(value, "cgroupfs") != 0)
		return cj_reject(err,
				 "option '--%s' takes cgroupfs or systemd or disabled, not '%s'",
				 row->name, value);
	r->out->uses_systemd = is_systemd;
	r->out->has_no_cgroup = is_disabled;
	return 0;
}

/* It may have a unit ("64M"); -1 stands for no limit, as for parse_signed(). */
static int parse_bytes(const char *text, void *field, struct cj_error *err)
{
	bool is_none = strcmp(text, "-1") == 0;
	uint64_t bytes = 0;

	if (!is_none && parse_size_within(text, 1, INT64_MAX, &bytes, err) < 0)
		return -err->code;
	*(struct oci_i64 *)field = (struct oci_i64){ true, is_none ? -1 : (int64_t)bytes };
	return 0;
}

static int parse_signed(const char *text, void *field, struct cj_error *err)
{
	bool is_none = strcmp(text, "-1") == 0;
	uint64_t value = 0;

	if (!is_none && parse_u64(text, 0, INT64_MAX, &value, err) < 0)
		return -err->code;
	*(struct oci_i64 *)field = (struct oci_i64){ true, is_none ? -1 : (int64_t)value };
	return 0;
}

static int parse_number(const char *text, void *field, struct cj_error *err)
{
	uint64_t value;

	if (parse_u64(text, 0, UINT64_MAX, &value, err) < 0)
		return -err->code;
	*(struct oci_u64 *)field = (struct oci_u64){ true, value };
	return 0;
}

static int parse_list(const char *text, void *field, struct cj_error *err)
{
	if (text[0] == '\0')
		return cj_reject(err, "the list is empty");
	*(const char **)field = text;
	return 0;
}

static int refuse(const char *text, void *field, struct cj_error *err)
{
	(void)text, (void)field;
	return cj_reject(err, "cgroup v2 has no such setting: leave it out");
}

static SETTER(limit)
{
	if (row->parse(value, field(row, r), err) < 0)
		return cj_wrap(err, "--%s '%.64s'", row->name, value);
	r->out->has_limits = true;
	return 0;
}

/* `verb`: a bit, or 0 before the verb. */
static bool is_row_of(const struct option_row *row, unsigned verb)
{
	return verb ? (row->verbs & verb) != 0 : row->verbs == 0;
}

static unsigned verb_bit(const struct option_reader *r)
{
	return r->has_verb ? BIT(r->out->verb) : 0;
}

/* The row with this name, or with this letter where `given` is NULL; NULL: there is none. */
static const struct option_row *find_row(const struct long_option *given, char letter,
					 const struct option_reader *r)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (is_row_of(&rows[i], verb_bit(r)) &&
		    (given ? option_has_name(given, rows[i].name) : rows[i].letter == letter))
			return &rows[i];
	return NULL;
}

/* The nearest of the names, or the help.  Returns -err->code. */
static int hint(const char *nearest, const char *dashes, const struct option_reader *r,
		struct cj_error *err)
{
	if (nearest)
		return cj_hint(err, "did you mean '%s%s'?", dashes, nearest);
	return cj_hint(err, "see 'cejail-oci %s%s--help'",
		       r->has_verb ? verbs[r->out->verb].name : "", r->has_verb ? " " : "");
}

static int reject_option(const char *named, const struct option_reader *r, struct cj_error *err)
{
	const char *names[COUNT_OF(rows) + 1] = { NULL };
	size_t n = 0;

	cj_refuse(err, "unknown option '%.*s'", NAMED_MAX, named);
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (is_row_of(&rows[i], verb_bit(r)))
			names[n++] = rows[i].name;
	return hint(strlen(named) > 3 ? text_nearest(named + 2, names) : NULL, "--", r, err);
}

static int take_row(const struct option_row *row, const char *attached, struct option_reader *r,
		    struct cj_error *err)
{
	const char *value = attached;

	if (!row->value && attached) {
		/* Go's flags, which engines know, may be written --flag=true. */
		if (strcmp(attached, "false") == 0)
			return 0;
		if (strcmp(attached, "true") != 0)
			return cj_reject(err, "option '--%s' takes no value", row->name);
	}
	if (row->value && !attached && !*r->next) {
		cj_refuse(err, "option '--%s' needs a value (%s)", row->name, row->value);
		return hint(NULL, "", r, err);
	}
	if (row->value && !attached)
		value = *r->next++;
	return row->set(row, value, r, err);
}

/* "-b DIR", "-bDIR", "-dt". */
static int take_letters(const char *arg, struct option_reader *r, struct cj_error *err)
{
	for (const char *c = arg + 1; *c; c++) {
		const struct option_row *row = find_row(NULL, *c, r);
		if (!row)
			return reject_option(arg, r, err);
		if (row->value)
			return take_row(row, c[1] ? c + 1 : NULL, r, err);
		if (take_row(row, NULL, r, err) < 0)
			return -err->code;
	}
	return 0;
}

static int take_verb(const char *arg, struct option_reader *r, struct cj_error *err)
{
	const char *names[OCI_VERB_COUNT + 1] = { NULL };

	for (int i = 0; i < OCI_VERB_COUNT; i++) {
		names[i] = verbs[i].name;
		if (strcmp(arg, names[i]) != 0)
			continue;
		r->out->verb = (enum oci_verb_id)i;
		r->has_verb = true;
		return 0;
	}
	cj_refuse(err, "unknown command '%s'", arg);
	return hint(text_nearest(arg, names), "", r, err);
}

static int take_operand(const char *arg, struct option_reader *r, struct cj_error *err)
{
	struct oci_options *o = r->out;

	if (!r->has_verb)
		return take_verb(arg, r, err);
	const struct verb_row *verb = &verbs[o->verb];
	if (verb->ends_options)
		r->options_ended = true;
	if (verb->operands[0] && !r->has_id) {
		o->id = arg;
		r->has_id = true;
		return 0;
	}
	if (o->operands.count >= verb->operands_max) {
		cj_refuse(err, "%s: unexpected argument '%s'", verb->name, arg);
		return hint(NULL, "", r, err);
	}
	if (strings_add(&o->operands, r->arena, arg) < 0)
		return cj_fail(err, ENOMEM, "read the arguments");
	return 0;
}

static int take_argument(struct option_reader *r, struct cj_error *err)
{
	const char *arg = *r->next++;
	struct long_option given;

	if (r->options_ended || arg[0] != '-' || arg[1] == '\0')
		return take_operand(arg, r, err);
	if (strcmp(arg, "--") == 0) {
		r->options_ended = true;
		return 0;
	}
	if (!option_split(arg, &given))
		return take_letters(arg, r, err);
	const struct option_row *row = find_row(&given, 0, r);
	return row ? take_row(row, given.value, r, err) : reject_option(arg, r, err);
}

int oci_options_parse(const char *const *args, struct arena *a, struct oci_options *out,
		      struct cj_error *err)
{
	struct option_reader r = { .next = args, .arena = a, .out = out };

	*out = (struct oci_options){ .verb = OCI_VERB_COUNT };
	while (*r.next)
		if (take_argument(&r, err) < 0)
			return -err->code;
	if (out->wants_help || out->wants_version)
		return 0;
	if (!r.has_verb)
		cj_refuse(err, "no command is given");
	else if (verbs[out->verb].operands[0] && !r.has_id)
		cj_refuse(err, "%s: no container id is given", verbs[out->verb].name);
	else
		return 0;
	return hint(NULL, "", &r, err);
}

const char *oci_options_verb(enum oci_verb_id verb)
{
	return verbs[verb].name;
}

static void print_rows(unsigned verb)
{
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct option_row *row = &rows[i];
		int width;

		if (!is_row_of(row, verb))
			continue;
		width = row->letter ? printf("  -%c, --%s", row->letter, row->name)
				    : printf("  --%s", row->name);
		width += row->value ? printf(" %s", row->value) : 0;
		help_print(width, row->help);
	}
}

void oci_options_print_help(enum oci_verb_id verb)
{
	if (verb != OCI_VERB_COUNT) {
		(void)printf("Usage: cejail-oci %s [OPTION...] %s\n%s: cejail-oci(8).\n\n",
			     verbs[verb].name, verbs[verb].operands, verbs[verb].help);
		print_rows(BIT(verb));
		return;
	}
	(void)printf("Usage: cejail-oci [OPTION...] COMMAND [OPTION...] [ID]\n"
		     "An OCI runtime for podman, containerd and CRI-O: cejail-oci(8).\n\n"
		     "Commands:\n");
	for (int i = 0; i < OCI_VERB_COUNT; i++)
		help_print(printf("  %s %s", verbs[i].name, verbs[i].operands), verbs[i].help);
	(void)printf("\nOptions before the command:\n");
	print_rows(0);
}
