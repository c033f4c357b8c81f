/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rule of a seccomp profile: names, action, conditions.  Pure, but for uname(2):
 * "minKernel" speaks of the running kernel.
 */
#include "profiles/policy/policy_read.h"

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

/* One rule while it is read: what the members of its object say. */
struct draft {
	const struct json_node *node;
	struct policy_rule rule;
	bool has_action, is_wanted;
	int errno_value; /* -1: none given */
};

static const struct op_word {
	const char *word;
	enum policy_op op;
} op_words[] = {
	{ "SCMP_CMP_NE", POLICY_NE },
	{ "SCMP_CMP_LT", POLICY_LT },
	{ "SCMP_CMP_LE", POLICY_LE },
	{ "SCMP_CMP_EQ", POLICY_EQ },
	{ "SCMP_CMP_GE", POLICY_GE },
	{ "SCMP_CMP_GT", POLICY_GT },
	{ "SCMP_CMP_MASKED_EQ", POLICY_MASKED_EQ },
};

/* --- conditions -------------------------------------------------------------- */

static int read_op(const struct policy_reader *r, const struct json_node *node, enum policy_op *out,
		   struct cj_error *err)
{
	if (policy_expect(r, node, JSON_STRING, err) < 0)
		return -err->code;
	for (size_t i = 0; i < COUNT_OF(op_words); i++) {
		if (strcmp(op_words[i].word, node->text) == 0) {
			*out = op_words[i].op;
			return 0;
		}
	}
	return json_reject(r->path, node, err, "unknown operator '%s'", node->text);
}

static int read_arg_member(const struct policy_reader *r, const struct json_node *node,
			   struct policy_arg *arg, struct cj_error *err)
{
	uint64_t index;
	if (strcmp(node->key, "index") == 0) {
		if (policy_read_number(r, node, ARGS_MAX - 1, &index, err) < 0)
			return -err->code;
		arg->index = (unsigned)index;
		return 0;
	}
	if (strcmp(node->key, "value") == 0)
		return policy_read_number(r, node, UINT64_MAX, &arg->value, err);
	if (strcmp(node->key, "valueTwo") == 0)
		return policy_read_number(r, node, UINT64_MAX, &arg->value_two, err);
	if (strcmp(node->key, "op") == 0)
		return read_op(r, node, &arg->op, err);
	return json_reject_key(r->path, node, err, "unknown key '%s' in a condition", node->key);
}

static int read_arg(const struct policy_reader *r, const struct json_node *node,
		    struct policy_arg *arg, struct cj_error *err)
{
	static const char *const needed[] = { "index", "value", "op" };

	if (policy_expect(r, node, JSON_OBJECT, err) < 0)
		return -err->code;
	for (size_t i = 0; i < COUNT_OF(needed); i++) {
		if (!json_get(node, needed[i]))
			return json_reject(r->path, node, err, "a condition needs '%s'", needed[i]);
	}
	for (const struct json_node *member = node->child; member; member = member->next) {
		if (read_arg_member(r, member, arg, err) < 0)
			return -err->code;
	}
	if (arg->op == POLICY_MASKED_EQ && (arg->value_two & ~arg->value) != 0)
		return json_reject(
		    r->path, node, err,
		    "the condition never holds: 'valueTwo' has bits outside 'value', "
		    "which is the mask");
	return 0;
}

/* Other runtimes read two conditions on one argument as "either", a reader as "both": refused. */
static bool repeats_index(const struct policy_arg *args, size_t nargs)
{
	unsigned seen = 0;
	for (size_t i = 0; i < nargs; i++) {
		if (seen & (1u << args[i].index))
			return true;
		seen |= 1u << args[i].index;
	}
	return false;
}

static int read_args(struct policy_reader *r, const struct json_node *node, struct draft *d,
		     struct cj_error *err)
{
	if (policy_is_absent(node))
		return 0;
	if (policy_expect(r, node, JSON_ARRAY, err) < 0)
		return -err->code;

	struct policy_arg *args = arena_array(r->arena, node->count, sizeof(*args));
	if (!args)
		return policy_no_memory(err);
	size_t n = 0;
	for (const struct json_node *item = node->child; item; item = item->next) {
		if (read_arg(r, item, &args[n++], err) < 0)
			return -err->code;
	}
	if (repeats_index(args, n))
		return json_reject(r->path, node, err,
				   "two conditions on one argument: write a rule for each");
	d->rule.args = args;
	d->rule.nargs = n;
	return 0;
}

/* --- names ------------------------------------------------------------------- */

static bool is_call_name(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
	return len > 0 && len < CALL_NAME_MAX && text[len] == '\0';
}

static int read_name(struct policy_reader *r, const struct json_node *node, struct draft *d,
		     struct cj_error *err)
{
	if (policy_expect(r, node, JSON_STRING, err) < 0)
		return -err->code;
	if (!is_call_name(node->text))
		return json_reject(r->path, node, err, "not the name of a system call");
	if (strings_add(&d->rule.names, r->arena, node->text) < 0)
		return policy_no_memory(err);
	return 0;
}

static int read_names(struct policy_reader *r, const struct json_node *node, struct draft *d,
		      struct cj_error *err)
{
	if (policy_is_absent(node))
		return 0;
	if (policy_expect(r, node, JSON_ARRAY, err) < 0)
		return -err->code;
	for (const struct json_node *item = node->child; item; item = item->next) {
		if (read_name(r, item, d, err) < 0)
			return -err->code;
	}
	return 0;
}

/* --- includes and excludes: Docker's conditions on the host ------------------- */

struct host_match {
	bool all, any; /* of what is listed; nothing listed: all and not any */
};

static int match_strings(const struct policy_reader *r, const struct json_node *list,
			 const char *have, struct host_match *m, struct cj_error *err)
{
	if (policy_is_absent(list))
		return 0;
	if (policy_expect(r, list, JSON_ARRAY, err) < 0)
		return -err->code;
	bool found = false;
	for (const struct json_node *item = list->child; item; item = item->next) {
		if (policy_expect(r, item, JSON_STRING, err) < 0)
			return -err->code;
		found = found || (have && strcmp(item->text, have) == 0);
	}
	m->all = m->all && (found || list->count == 0);
	m->any = m->any || found;
	return 0;
}

/* "4.8", as far as Docker's format goes; what follows the second number (".0-13-amd64") is cut. */
static bool parse_release(const char *text, unsigned *major, unsigned *minor)
{
	return sscanf(text, "%4u.%4u", major, minor) == 2;
}

static int match_kernel(const struct policy_reader *r, const struct json_node *node,
			struct host_match *m, struct cj_error *err)
{
	unsigned want_major, want_minor, major, minor;
	struct utsname host;

	if (policy_expect(r, node, JSON_STRING, err) < 0)
		return -err->code;
	if (node->text[0] == '\0')
		return 0;
	if (!parse_release(node->text, &want_major, &want_minor))
		return json_reject(r->path, node, err, "not a kernel release: '%s'", node->text);
	if (uname(&host) < 0 || !parse_release(host.release, &major, &minor))
		return json_reject(r->path, node, err, "cannot tell which kernel this is");

	bool reached = major > want_major || (major == want_major && minor >= want_minor);
	m->all = m->all && reached;
	m->any = m->any || reached;
	return 0;
}

static int read_match(const struct policy_reader *r, const struct json_node *node,
		      struct host_match *m, struct cj_error *err)
{
	*m = (struct host_match){ .all = true };
	if (policy_is_absent(node))
		return 0;
	if (policy_expect(r, node, JSON_OBJECT, err) < 0)
		return -err->code;
	for (const struct json_node *member = node->child; member; member = member->next) {
		int rc;
		if (strcmp(member->key, "caps") == 0)
			rc = match_strings(r, member, NULL, m, err); /* a jail has none */
		else if (strcmp(member->key, "arches") == 0)
			rc = match_strings(r, member, ARCH_DOCKER, m, err);
		else if (strcmp(member->key, "minKernel") == 0)
			rc = match_kernel(r, member, m, err);
		else
			rc = json_reject_key(r->path, member, err, "unknown key '%s'", member->key);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_includes(struct policy_reader *r, const struct json_node *node, struct draft *d,
			 struct cj_error *err)
{
	struct host_match m;
	if (read_match(r, node, &m, err) < 0)
		return -err->code;
	d->is_wanted = d->is_wanted && m.all;
	return 0;
}

static int read_excludes(struct policy_reader *r, const struct json_node *node, struct draft *d,
			 struct cj_error *err)
{
	struct host_match m;
	if (read_match(r, node, &m, err) < 0)
		return -err->code;
	d->is_wanted = d->is_wanted && !m.any;
	return 0;
}

/* --- one rule ---------------------------------------------------------------- */

static int read_rule_action(struct policy_reader *r, const struct json_node *node, struct draft *d,
			    struct cj_error *err)
{
	d->has_action = true;
	return policy_read_action(r, node, &d->rule.action, err);
}

static int read_rule_errno(struct policy_reader *r, const struct json_node *node, struct draft *d,
			   struct cj_error *err)
{
	return policy_is_absent(node) ? 0 : policy_read_errno_number(r, node, &d->errno_value, err);
}

/* The number, where both are given, says the same and needs no table. */
static int read_rule_errno_name(struct policy_reader *r, const struct json_node *node,
				struct draft *d, struct cj_error *err)
{
	int code = -1;
	if (node->type == JSON_STRING && node->text[0] == '\0')
		return 0;
	if (policy_read_errno_name(r, node, &code, err) < 0)
		return -err->code;
	if (d->errno_value >= 0 && d->errno_value != code)
		return json_reject(r->path, node, err, "'errno' and 'errnoRet' differ");
	d->errno_value = code;
	return 0;
}

static int read_comment(struct policy_reader *r, const struct json_node *node, struct draft *d,
			struct cj_error *err)
{
	(void)d;
	return policy_is_absent(node) ? 0 : policy_expect(r, node, JSON_STRING, err);
}

static const struct rule_key {
	const char *key;
	int (*read)(struct policy_reader *r, const struct json_node *node, struct draft *d,
		    struct cj_error *err);
} rule_keys[] = {
	{ "name", read_name },
	{ "names", read_names },
	{ "action", read_rule_action },
	{ "errnoRet", read_rule_errno },
	{ "errno", read_rule_errno_name },
	{ "args", read_args },
	{ "includes", read_includes },
	{ "excludes", read_excludes },
	{ "comment", read_comment },
};

static int read_rule_member(struct policy_reader *r, const struct json_node *member,
			    struct draft *d, struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(rule_keys); i++) {
		if (strcmp(rule_keys[i].key, member->key) == 0)
			return rule_keys[i].read(r, member, d, err);
	}
	return json_reject_key(r->path, member, err, "unknown key '%s' in a rule", member->key);
}

static int check_rule(const struct policy_reader *r, struct draft *d, struct cj_error *err)
{
	if (!d->has_action)
		return json_reject(r->path, d->node, err, "a rule needs 'action'");
	if (d->rule.names.count == 0)
		return json_reject(r->path, d->node, err, "a rule needs 'names'");

	bool refuses = d->rule.action == POLICY_ERRNO || d->rule.action == POLICY_NOTIFY;
	if (d->errno_value >= 0 && !refuses)
		return json_reject(r->path, d->node, err,
				   "'errnoRet' only goes with SCMP_ACT_ERRNO");
	d->rule.errno_value = d->errno_value >= 0 ? d->errno_value : EPERM;
	return 0;
}

int policy_read_rule(struct policy_reader *r, const struct json_node *node, struct cj_error *err)
{
	struct draft d = { .node = node, .is_wanted = true, .errno_value = -1 };

	if (policy_expect(r, node, JSON_OBJECT, err) < 0)
		return -err->code;
	for (const struct json_node *member = node->child; member; member = member->next) {
		if (read_rule_member(r, member, &d, err) < 0)
			return -err->code;
	}
	if (check_rule(r, &d, err) < 0)
		return -err->code;
	if (d.is_wanted)
		r->rules[r->policy->nrules++] = d.rule;
	return 0;
}
