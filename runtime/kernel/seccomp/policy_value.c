/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a seccomp profile.  Pure. */
#include "runtime/kernel/seccomp/policy_read.h"

#include <string.h>

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
	{ "SCMP_ACT_NOTIFY", POLICY_NOTIFY },
};

int policy_no_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read a seccomp profile");
}

int policy_add_note(const struct json_reader *in, const char *text, struct cj_error *err)
{
	struct policy *policy = in->context;
	if (!text || strings_add(&policy->notes, in->arena, text) < 0)
		return policy_no_memory(err);
	return 0;
}

int policy_set_nothing(const struct json_reader *in, const struct json_key *k, const char *text,
		       void *record, struct cj_error *err)
{
	(void)in, (void)k, (void)text, (void)record, (void)err;
	return 0;
}

int policy_set_errno_name(const struct json_reader *in, const struct json_key *k, const char *text,
			  void *record, struct cj_error *err)
{
	(void)in;
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

int policy_choose_errno(const struct json_reader *in, const struct json_node *node,
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
int policy_read_action(const struct json_reader *in, const struct json_key *k,
		       const struct json_node *node, void *record, struct cj_error *err)
{
	enum policy_action *out = json_field(k, record);
	for (size_t i = 0; i < COUNT_OF(action_names); i++) {
		if (strcmp(action_names[i].name, node->text) != 0)
			continue;
		*out = action_names[i].action;
		if (*out != POLICY_NOTIFY)
			return 0;
		return policy_add_note(
		    in,
		    arena_printf(in->arena,
				 "%s:%u: SCMP_ACT_NOTIFY: cejail's supervisor answers, "
				 "and refuses",
				 in->file, node->line),
		    err);
	}
	return json_reject(in->file, node, err, "'%s' is not an action cejail has", node->text);
}
