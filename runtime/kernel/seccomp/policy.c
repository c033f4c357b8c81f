/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of OCI / Docker seccomp profiles.  No system calls but that of policy_load(), and
 * uname(2): "minKernel" speaks of the running kernel.
 *
 * Every key is a row of a table; a key without a row, an action, an operator or a
 * value we do not understand refuses the file with its place, because a rule that is
 * skipped could be the one that closes something.
 */
#include "runtime/kernel/seccomp/policy.h"

#include <sys/utsname.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/json/json_record.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define ERRNO_MAX     4095 /* the kernel clamps larger ones: seccomp(2), SECCOMP_RET_DATA */
#define ARGS_MAX      6
#define CALL_NAME_MAX 64 /* the longest call's name has 27 characters */

/* As the OCI specification, and as Go, and so Docker, call this architecture. */
#if defined(__x86_64__)
#define ARCH_OCI    "SCMP_ARCH_X86_64"
#define ARCH_DOCKER "amd64"
static const char *const sub_arches[] = { "SCMP_ARCH_X86", "SCMP_ARCH_X32" };
#elif defined(__aarch64__)
#define ARCH_OCI    "SCMP_ARCH_AARCH64"
#define ARCH_DOCKER "arm64"
static const char *const sub_arches[] = { "SCMP_ARCH_ARM" };
#else
#error "no seccomp filter for this architecture yet"
#endif

/* Go writes an empty list or object as null. */
#define TAKES_TEXT    JSON_TAKES_STRING
#define TAKES_TEXTS   (JSON_TAKES_STRING | JSON_NULL_IS_ABSENT), .is_list = true
#define TAKES_OBJECT  (JSON_TAKES_OBJECT | JSON_NULL_IS_ABSENT)
#define TAKES_OBJECTS TAKES_OBJECT, .is_list = true
#define TAKES_COMMENT (JSON_TAKES_STRING | JSON_NULL_IS_ABSENT), .set = json_set_nothing
#define TAKES_ERRNO_NUMBER                                                                         \
	(JSON_TAKES_NUMBER | JSON_NULL_IS_ABSENT), .set = json_set_int, .max = ERRNO_MAX
#define TAKES_ERRNO_NAME JSON_TAKES_STRING, .set = json_set_errno_name

static const struct action_name {
	const char *name;
	enum policy_action action;
} action_names[] = {
	{ "SCMP_ACT_ALLOW", POLICY_ALLOW },
	{ "SCMP_ACT_ERRNO", POLICY_ERRNO },
	{ "SCMP_ACT_KILL", POLICY_KILL_PROCESS },
	{ "SCMP_ACT_KILL_THREAD", POLICY_KILL_PROCESS },
	{ "SCMP_ACT_KILL_PROCESS", POLICY_KILL_PROCESS },
	{ "SCMP_ACT_LOG", POLICY_LOG },
	{ "SCMP_ACT_TRAP", POLICY_TRAP },
	{ "SCMP_ACT_NOTIFY", POLICY_ERRNO },
};

/* One more sentence for the user; NULL: there was no memory for it. */
static int add_note(const struct json_reader *in, const char *text, struct cj_error *err)
{
	struct policy *policy = in->context;
	if (strings_add(&policy->notes, in->arena, text) < 0)
		return cj_fail(err, ENOMEM, "read a seccomp profile");
	return 0;
}

static JSON_SETTER(nothing)
{
	return 0;
}

/* "EPERM", as Podman writes it; "": none. */
static JSON_SETTER(errno_name)
{
	if (text[0] == '\0')
		return 0;
	for (int code = 1; code <= ERRNO_MAX; code++) {
		const char *name = strerrorname_np(code);
		if (name && strcmp(name, text) == 0) {
			*(int *)json_field(k, record) = code;
			return 0;
		}
	}
	return cj_reject(err, "unknown error name '%s'", text);
}

/* Podman writes number and name; -1: not given.  Both must agree. */
static int choose_errno(const struct json_reader *in, const struct json_node *node,
			const int given[2], int *out, struct cj_error *err)
{
	if (given[0] >= 0 && given[1] >= 0 && given[0] != given[1])
		return json_reject(in->file, node, err, "the error's number and name differ");
	if (given[0] >= 0 || given[1] >= 0)
		*out = given[0] >= 0 ? given[0] : given[1];
	return 0;
}

/*
 * What cannot be had as written becomes the nearest action that refuses at least as much: there is
 * no tracer and no agent of the file's own to decide, so the call is refused.
 */
static JSON_READER(action)
{
	enum policy_action *out = json_field(k, record);
	for (size_t i = 0; i < COUNT_OF(action_names); i++) {
		if (strcmp(action_names[i].name, node->text) != 0)
			continue;
		*out = action_names[i].action;
		if (strcmp(node->text, "SCMP_ACT_NOTIFY") != 0)
			return 0;
		return add_note(in,
				arena_printf(in->arena,
					     "%s:%u: SCMP_ACT_NOTIFY: cejail's supervisor answers, "
					     "and refuses",
					     in->file, node->line),
				err);
	}
	return json_reject(in->file, node, err, "'%s' is not an action cejail has", node->text);
}

/* One of Docker's conditions on the host. */
struct condition {
	bool is_given, is_met;
};

enum match { MATCH_CAPS, MATCH_ARCHES, MATCH_KERNEL, MATCH_COUNT };
struct host_match {
	struct condition conditions[MATCH_COUNT];
};

/* One rule while it is read: what the members of its object say. */
struct draft {
	struct policy_rule rule;
	struct policy_arg *args; /* the rule's, while they are written */
	int errno_value[2];      /* number, name; -1: not given */
	struct host_match includes, excludes;
};

const char *const policy_op_names[POLICY_OP_COUNT] = {
	[POLICY_NE] = "SCMP_CMP_NE",
	[POLICY_LT] = "SCMP_CMP_LT",
	[POLICY_LE] = "SCMP_CMP_LE",
	[POLICY_EQ] = "SCMP_CMP_EQ",
	[POLICY_GE] = "SCMP_CMP_GE",
	[POLICY_GT] = "SCMP_CMP_GT",
	[POLICY_MASKED_EQ] = "SCMP_CMP_MASKED_EQ",
};

#define AT(field) .offset = offsetof(struct policy_arg, field)
static const struct json_key arg_keys[] = {
	{ "index", JSON_TAKES_NUMBER, .set = json_set_int, .max = ARGS_MAX - 1, .is_required = true,
	  AT(index) },
	{ "value", JSON_TAKES_NUMBER, .set = json_set_u64, .is_required = true, AT(value) },
	{ "valueTwo", JSON_TAKES_NUMBER, .set = json_set_u64, AT(value_two) },
	{ "op", JSON_TAKES_STRING, .set = json_set_name, .detail = policy_op_names,
	  .max = POLICY_OP_COUNT, .is_required = true, AT(op) },
};
#undef AT
static const struct json_record arg_record = JSON_RECORD(arg_keys, "a condition");

/* Other runtimes read two conditions on one argument as "either", a reader as "both": refused. */
static JSON_READER(arg)
{
	struct draft *d = record;
	struct policy_arg arg = { 0 };
	const struct json_reader below = json_below(in, k->name);

	if (json_record_read(&below, node, &arg_record, &arg, err) < 0)
		return -err->code;
	if (arg.op == POLICY_MASKED_EQ && (arg.value_two & ~arg.value) != 0)
		return json_reject(
		    in->file, node, err,
		    "the condition never holds: 'valueTwo' has bits outside 'value', "
		    "which is the mask");
	for (size_t i = 0; i < d->rule.nargs; i++)
		if (d->args[i].index == arg.index)
			return json_reject(in->file, node, err,
					   "two conditions on one argument: write a rule for each");
	if (!arena_append(in->arena, d->args, d->rule.nargs, arg))
		return cj_fail(err, ENOMEM, "read a seccomp profile");
	d->rule.args = d->args;
	return 0;
}

static JSON_SETTER(call)
{
	struct draft *d = record;
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
	if (len == 0 || len >= CALL_NAME_MAX || text[len] != '\0')
		return cj_reject(err, "not the name of a system call");
	if (strings_add(&d->rule.names, in->arena, text) < 0)
		return cj_fail(err, ENOMEM, "read a seccomp profile");
	return 0;
}

/* Includes and excludes: Docker's conditions on the host. */

/* A jail has no capabilities. */
static JSON_SETTER(cap)
{
	struct host_match *m = record;
	m->conditions[MATCH_CAPS].is_given = true;
	return 0;
}

static JSON_SETTER(match_arch)
{
	struct host_match *m = record;
	m->conditions[MATCH_ARCHES].is_given = true;
	m->conditions[MATCH_ARCHES].is_met |= strcmp(text, ARCH_DOCKER) == 0;
	return 0;
}

/* "4.8", as far as Docker's format goes; what follows the second number (".0-13-amd64") is cut. */
static bool parse_release(const char *text, unsigned *major, unsigned *minor)
{
	return sscanf(text, "%4u.%4u", major, minor) == 2;
}

static JSON_SETTER(kernel)
{
	struct host_match *m = record;
	unsigned want_major, want_minor, major, minor;
	struct utsname host;

	if (text[0] == '\0')
		return 0;
	if (!parse_release(text, &want_major, &want_minor))
		return cj_reject(err, "not a kernel release: '%s'", text);
	if (uname(&host) < 0 || !parse_release(host.release, &major, &minor))
		return cj_reject(err, "the release of the running kernel is unknown");
	m->conditions[MATCH_KERNEL] =
	    (struct condition){ true, major > want_major ||
					  (major == want_major && minor >= want_minor) };
	return 0;
}

static const struct json_key match_keys[] = {
	{ "caps", TAKES_TEXTS, .set = json_set_cap },
	{ "arches", TAKES_TEXTS, .set = json_set_match_arch },
	{ "minKernel", TAKES_TEXT, .set = json_set_kernel },
};
static const struct json_record match_record = JSON_RECORD(match_keys, "conditions");

/* All that "includes" gives must be met, and nothing that "excludes" gives. */
static bool is_wanted(const struct draft *d)
{
	const struct condition *in = d->includes.conditions, *ex = d->excludes.conditions;
	bool is_wanted = true;
	for (size_t i = 0; i < MATCH_COUNT; i++)
		is_wanted &= (!in[i].is_given || in[i].is_met) && !ex[i].is_met;
	return is_wanted;
}

#define AT(field) .offset = offsetof(struct draft, field)
static const struct json_key rule_keys[] = {
	{ "name", TAKES_TEXT, .set = json_set_call },
	{ "names", TAKES_TEXTS, .set = json_set_call },
	{ "action", TAKES_TEXT, .read = json_read_action, .is_required = true, AT(rule.action) },
	{ "errnoRet", TAKES_ERRNO_NUMBER, AT(errno_value[0]) },
	{ "errno", TAKES_ERRNO_NAME, AT(errno_value[1]) },
	{ "args", TAKES_OBJECTS, .read = json_read_arg },
	{ "includes", TAKES_OBJECT, .read = json_read_record, .detail = &match_record,
	  AT(includes) },
	{ "excludes", TAKES_OBJECT, .read = json_read_record, .detail = &match_record,
	  AT(excludes) },
	{ "comment", TAKES_COMMENT },
};
#undef AT
static const struct json_record rule_record = JSON_RECORD(rule_keys, "a rule");

static int check_rule(const struct json_reader *in, const struct json_node *node, struct draft *d,
		      struct cj_error *err)
{
	int given = -1;

	if (d->rule.names.count == 0)
		return json_reject(in->file, node, err, "a rule needs 'names'");
	if (choose_errno(in, node, d->errno_value, &given, err) < 0)
		return -err->code;
	if (given >= 0 && d->rule.action != POLICY_ERRNO)
		return json_reject(in->file, node, err, "'errnoRet' only goes with SCMP_ACT_ERRNO");
	d->rule.errno_value = given >= 0 ? given : EPERM;
	return 0;
}

/* An item of "syscalls": one more rule, unless its conditions on the host leave it out. */
static JSON_READER(rule)
{
	struct draft d = { .errno_value = { -1, -1 } };
	struct policy *policy = in->context;
	const struct json_reader below = json_below(in, k->name);

	if (json_record_read(&below, node, &rule_record, &d, err) < 0 ||
	    check_rule(in, node, &d, err) < 0)
		return -err->code;
	if (!is_wanted(&d))
		return 0;
	return arena_append(in->arena, policy->rules, policy->nrules, d.rule)
		   ? 0
		   : cj_fail(err, ENOMEM, "read a seccomp profile");
}

/* The file while it is read: what the members of its object say. */
struct policy_draft {
	enum policy_action default_action;
	int default_errno[2];                       /* number, name; -1: not given */
	bool names_arches, names_native, names_sub; /* in "architectures", "archMap" */
};

static JSON_SETTER(arch)
{
	struct policy_draft *d = record;
	if (!text_begins_with(text, "SCMP_ARCH_"))
		return cj_reject(err, "unknown architecture '%s'", text);
	d->names_arches = true;
	d->names_native = d->names_native || strcmp(text, ARCH_OCI) == 0;
	for (size_t i = 0; i < COUNT_OF(sub_arches); i++)
		d->names_sub = d->names_sub || strcmp(text, sub_arches[i]) == 0;
	return 0;
}

/* The flags of seccomp(2) are cejail's to choose; a note says so. */
static JSON_READER(flag)
{
	if (!text_begins_with(node->text, "SECCOMP_FILTER_FLAG_"))
		return json_reject(in->file, node, err, "unknown flag '%s'", node->text);
	return add_note(in,
			arena_printf(in->arena, "%s:%u: flag '%.64s' is not used", in->file,
				     node->line, node->text),
			err);
}

static JSON_READER(listener)
{
	return add_note(in,
			arena_printf(in->arena,
				     "%s:%u: '%s' is not used: cejail's supervisor answers",
				     in->file, node->line, k->name),
			err);
}

static const struct json_key arch_map_keys[] = {
	{ "architecture", TAKES_TEXT, .set = json_set_arch },
	{ "subArchitectures", TAKES_TEXTS, .set = json_set_arch },
};
static const struct json_record arch_map_record = JSON_RECORD(arch_map_keys, "an architecture");

#define AT(field) .offset = offsetof(struct policy_draft, field)
static const struct json_key file_keys[] = {
	{ "defaultAction", TAKES_TEXT, .read = json_read_action, .is_required = true,
	  AT(default_action) },
	{ "defaultErrnoRet", TAKES_ERRNO_NUMBER, AT(default_errno[0]) },
	{ "defaultErrno", TAKES_ERRNO_NAME, AT(default_errno[1]) },
	{ "architectures", TAKES_TEXTS, .set = json_set_arch },
	{ "archMap", TAKES_OBJECTS, .read = json_read_record, .detail = &arch_map_record },
	{ "flags", TAKES_TEXTS, .read = json_read_flag },
	{ "listenerPath", TAKES_TEXT, .read = json_read_listener },
	{ "listenerMetadata", TAKES_TEXT, .read = json_read_listener },
	{ "syscalls", TAKES_OBJECTS, .read = json_read_rule },
	{ "comment", TAKES_COMMENT },
};
static const struct json_record file_record = JSON_RECORD(file_keys, "a seccomp profile");

static int note_arches(const struct json_reader *in, const struct policy_draft *d,
		       struct cj_error *err)
{
	if (d->names_sub &&
	    add_note(in, arena_printf(in->arena, "%s: 32-bit system calls stay closed", in->file),
		     err) < 0)
		return -err->code;
	if (d->names_arches && !d->names_native)
		return add_note(in,
				arena_printf(in->arena,
					     "%s: not written for this architecture, " ARCH_OCI,
					     in->file),
				err);
	return 0;
}

static int read_file(const struct json_reader *in, const struct json_node *root,
		     struct cj_error *err)
{
	struct policy_draft d = { .default_errno = { -1, -1 } };
	struct policy *policy = in->context;

	if (json_record_read(in, root, &file_record, &d, err) < 0 ||
	    choose_errno(in, root, d.default_errno, &policy->default_errno, err) < 0)
		return -err->code;
	policy->default_action = d.default_action;
	return note_arches(in, &d, err);
}

int policy_parse(const char *path, const char *text, size_t size, struct arena *a,
		 const struct policy **out, struct cj_error *err)
{
	const struct json_node *root;
	struct policy *policy = arena_alloc(a, sizeof(*policy));
	if (!policy)
		return cj_fail(err, ENOMEM, "read a seccomp profile");
	policy->path = arena_strdup(a, path);
	policy->default_errno = EPERM; /* what the OCI runtime specification says */
	if (!policy->path)
		return cj_fail(err, ENOMEM, "read a seccomp profile");
	if (json_parse(path, text, size, a, &root, err) < 0)
		return -err->code;

	const struct json_reader in = { .file = path, .arena = a, .context = policy };
	if (read_file(&in, root, err) < 0)
		return -err->code;
	*out = policy;
	return 0;
}

int policy_load(const char *path, struct arena *a, const struct policy **out, struct cj_error *err)
{
	auto_fd int fd = fd_open_regular(path, err);
	if (fd < 0)
		return -err->code;

	char *text;
	size_t size;
	if (fd_read_all(fd, JSON_BYTES_MAX, a, &text, &size, path, err) < 0)
		return -err->code;
	return policy_parse(path, text, size, a, out, err);
}