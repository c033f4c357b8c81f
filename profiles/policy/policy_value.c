/* SPDX-License-Identifier: Apache-2.0 */
/* Words and numbers of a seccomp profile.  Pure. */
#include "profiles/policy/policy_read.h"

#include <string.h>

#include "runtime/base/text.h"

#define ERRNO_MAX 4095 /* the kernel cuts larger ones to this: seccomp(2), SECCOMP_RET_DATA */

static const struct action_word {
	const char *word;
	enum policy_action action;
} action_words[] = {
	{ "SCMP_ACT_ALLOW", POLICY_ALLOW },
	{ "SCMP_ACT_ERRNO", POLICY_ERRNO },
	{ "SCMP_ACT_KILL", POLICY_KILL_PROCESS },
	{ "SCMP_ACT_KILL_THREAD", POLICY_KILL_PROCESS },
	{ "SCMP_ACT_KILL_PROCESS", POLICY_KILL_PROCESS },
	{ "SCMP_ACT_LOG", POLICY_LOG },
	{ "SCMP_ACT_TRAP", POLICY_TRAP },
	{ "SCMP_ACT_NOTIFY", POLICY_NOTIFY },
};

int policy_no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read a seccomp profile");
}

int policy_expect(const struct policy_reader *r, const struct json_node *node, enum json_type type,
		  struct cj_error *err)
{
	if (node->type == type)
		return 0;
	return json_reject(r->path, node, err, "expected %s, not %s", json_type_name(type),
			   json_type_name(node->type));
}

bool policy_is_absent(const struct json_node *node)
{
	return node->type == JSON_NULL;
}

int policy_read_number(const struct policy_reader *r, const struct json_node *node, uint64_t max,
		       uint64_t *out, struct cj_error *err)
{
	struct cj_error why = { 0 };
	if (policy_expect(r, node, JSON_NUMBER, err) < 0)
		return -err->code;
	if (parse_u64(node->text, 0, max, out, &why) < 0)
		return json_reject(r->path, node, err, "%s", why.msg);
	return 0;
}

int policy_read_errno_number(const struct policy_reader *r, const struct json_node *node, int *out,
			     struct cj_error *err)
{
	uint64_t value = 0;
	if (policy_read_number(r, node, ERRNO_MAX, &value, err) < 0)
		return -err->code;
	*out = (int)value;
	return 0;
}

int policy_read_errno_name(const struct policy_reader *r, const struct json_node *node, int *out,
			   struct cj_error *err)
{
	if (policy_expect(r, node, JSON_STRING, err) < 0)
		return -err->code;
	for (int code = 1; code <= ERRNO_MAX; code++) {
		const char *name = strerrorname_np(code);
		if (name && strcmp(name, node->text) == 0) {
			*out = code;
			return 0;
		}
	}
	return json_reject(r->path, node, err, "unknown error name '%s'", node->text);
}

int policy_add_note(const struct policy_reader *r, const char *text, struct cj_error *err)
{
	if (!text || strings_add(&r->policy->notes, r->arena, text) < 0)
		return policy_no_memory(err);
	return 0;
}

/*
 * What cannot be had as written becomes the nearest that refuses at least as much: a
 * tracer or an agent of the file's own isn't there to decide, so the call is refused.
 */
int policy_read_action(const struct policy_reader *r, const struct json_node *node,
		       enum policy_action *out, struct cj_error *err)
{
	if (policy_expect(r, node, JSON_STRING, err) < 0)
		return -err->code;
	for (size_t i = 0; i < COUNT_OF(action_words); i++) {
		if (strcmp(action_words[i].word, node->text) != 0)
			continue;
		*out = action_words[i].action;
		if (*out != POLICY_NOTIFY)
			return 0;
		return policy_add_note(
		    r,
		    arena_printf(r->arena,
				 "%s:%u: SCMP_ACT_NOTIFY: cejail's supervisor answers, "
				 "and refuses",
				 r->path, node->line),
		    err);
	}
	return json_reject(r->path, node, err, "'%s' is not an action cejail has", node->text);
}
