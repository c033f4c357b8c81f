/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rule of a seccomp profile: names, action, conditions.  Pure, but for uname(2):
 * "minKernel" speaks of the running kernel.
 */
#include "runtime/kernel/seccomp/policy_read.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define ARGS_MAX      6
#define CALL_NAME_MAX 64 /* the longest call's name has 27 characters */

/* As Go, and so Docker, calls this architecture. */
#if defined(__x86_64__)
#define ARCH_DOCKER "amd64"
#elif defined(__aarch64__)
#define ARCH_DOCKER "arm64"
#else
#error "no seccomp filter for this architecture yet"
#endif

/* One of Docker's conditions on the host. */
struct condition {
	bool is_given, is_met;
};

struct host_match {
	struct condition caps, arches, kernel;
};

/* One rule while it is read: what the members of its object say. */
struct draft {
	struct policy_rule rule;
	struct policy_arg *args; /* the rule's, while they are written */
	int errno_value[2];      /* number, name; -1: not given */
	struct host_match includes, excludes;
};

/* --- conditions on arguments ------------------------------------------------- */

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
static bool has_index(const struct draft *d, unsigned index)
{
	for (size_t i = 0; i < d->rule.nargs; i++)
		if (d->args[i].index == index)
			return true;
	return false;
}

static int read_arg(const struct json_reader *in, const struct json_key *k,
		    const struct json_node *node, void *record, struct cj_error *err)
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
	if (has_index(d, arg.index))
		return json_reject(in->file, node, err,
				   "two conditions on one argument: write a rule for each");
	struct policy_arg *args = arena_grow(in->arena, d->args, d->rule.nargs, sizeof(*args));
	if (!args)
		return policy_no_memory(err);
	args[d->rule.nargs++] = arg;
	d->rule.args = d->args = args;
	return 0;
}

/* --- names ------------------------------------------------------------------- */

static int set_call(const struct json_reader *in, const struct json_key *k, const char *text,
		    void *record, struct cj_error *err)
{
	struct draft *d = record;
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
	(void)k;
	if (len == 0 || len >= CALL_NAME_MAX || text[len] != '\0')
		return cj_reject(err, "not the name of a system call");
	if (strings_add(&d->rule.names, in->arena, text) < 0)
		return policy_no_memory(err);
	return 0;
}

/* --- includes and excludes: Docker's conditions on the host ------------------- */

/* A jail has no capabilities. */
static int set_cap(const struct json_reader *in, const struct json_key *k, const char *text,
		   void *record, struct cj_error *err)
{
	struct host_match *m = record;
	(void)in, (void)k, (void)text, (void)err;
	m->caps.is_given = true;
	return 0;
}

static int set_match_arch(const struct json_reader *in, const struct json_key *k, const char *text,
			  void *record, struct cj_error *err)
{
	struct host_match *m = record;
	(void)in, (void)k, (void)err;
	m->arches.is_given = true;
	m->arches.is_met = m->arches.is_met || strcmp(text, ARCH_DOCKER) == 0;
	return 0;
}

/* "4.8", as far as Docker's format goes; what follows the second number (".0-13-amd64") is cut. */
static bool parse_release(const char *text, unsigned *major, unsigned *minor)
{
	return sscanf(text, "%4u.%4u", major, minor) == 2;
}

static int set_kernel(const struct json_reader *in, const struct json_key *k, const char *text,
		      void *record, struct cj_error *err)
{
	struct host_match *m = record;
	unsigned want_major, want_minor, major, minor;
	struct utsname host;

	(void)in, (void)k;
	if (text[0] == '\0')
		return 0;
	if (!parse_release(text, &want_major, &want_minor))
		return cj_reject(err, "not a kernel release: '%s'", text);
	if (uname(&host) < 0 || !parse_release(host.release, &major, &minor))
		return cj_reject(err, "the release of the running kernel is unknown");
	m->kernel.is_given = true;
	m->kernel.is_met = major > want_major || (major == want_major && minor >= want_minor);
	return 0;
}

static const struct json_key match_keys[] = {
	{ "caps", POLICY_TEXTS, .set = set_cap },
	{ "arches", POLICY_TEXTS, .set = set_match_arch },
	{ "minKernel", POLICY_TEXT, .set = set_kernel },
};
static const struct json_record match_record = JSON_RECORD(match_keys, "conditions");

static bool fits(struct condition c)
{
	return !c.is_given || c.is_met;
}

/* All that "includes" gives must be met, and nothing that "excludes" gives. */
static bool is_wanted(const struct draft *d)
{
	const struct host_match *in = &d->includes, *ex = &d->excludes;
	return fits(in->caps) && fits(in->arches) && fits(in->kernel) && !ex->caps.is_met &&
	       !ex->arches.is_met && !ex->kernel.is_met;
}

/* --- one rule ---------------------------------------------------------------- */

#define AT(field) .offset = offsetof(struct draft, field)
static const struct json_key rule_keys[] = {
	{ "name", POLICY_TEXT, .set = set_call },
	{ "names", POLICY_TEXTS, .set = set_call },
	{ "action", POLICY_TEXT, .read = policy_read_action, .is_required = true, AT(rule.action) },
	{ "errnoRet", POLICY_ERRNO_NUMBER, AT(errno_value[0]) },
	{ "errno", POLICY_ERRNO_NAME, AT(errno_value[1]) },
	{ "args", POLICY_OBJECTS, .read = read_arg },
	{ "includes", POLICY_OBJECT, .read = json_read_record, .detail = &match_record,
	  AT(includes) },
	{ "excludes", POLICY_OBJECT, .read = json_read_record, .detail = &match_record,
	  AT(excludes) },
	{ "comment", POLICY_COMMENT },
};
static const struct json_record rule_record = JSON_RECORD(rule_keys, "a rule");

static int check_rule(const struct json_reader *in, const struct json_node *node, struct draft *d,
		      struct cj_error *err)
{
	int given = -1;

	if (d->rule.names.count == 0)
		return json_reject(in->file, node, err, "a rule needs 'names'");
	if (policy_choose_errno(in, node, d->errno_value, &given, err) < 0)
		return -err->code;
	bool refuses = d->rule.action == POLICY_ERRNO || d->rule.action == POLICY_NOTIFY;
	if (given >= 0 && !refuses)
		return json_reject(in->file, node, err, "'errnoRet' only goes with SCMP_ACT_ERRNO");
	d->rule.errno_value = given >= 0 ? given : EPERM;
	return 0;
}

int policy_read_rule(const struct json_reader *in, const struct json_key *k,
		     const struct json_node *node, void *record, struct cj_error *err)
{
	struct draft d = { .errno_value = { -1, -1 } };
	struct policy *policy = in->context;
	const struct json_reader below = json_below(in, k->name);

	(void)record;
	if (json_record_read(&below, node, &rule_record, &d, err) < 0 ||
	    check_rule(in, node, &d, err) < 0)
		return -err->code;
	if (!is_wanted(&d))
		return 0;
	struct policy_rule *rules =
	    arena_grow(in->arena, policy->rules, policy->nrules, sizeof(*rules));
	if (!rules)
		return policy_no_memory(err);
	rules[policy->nrules++] = d.rule;
	policy->rules = rules;
	return 0;
}
