/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_read - between the files that read a seccomp profile: policy.c has the file's
 * keys, policy_rule.c a rule's, policy_value.c the words and numbers of both.  Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "profiles/policy/policy.h"
#include "runtime/base/json/json.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct policy_reader {
	const char *path;
	struct arena *arena;
	struct policy *policy;
	struct policy_rule *rules; /* of policy, while they are written */
	bool has_default, has_default_errno;
	bool names_arches, names_native, names_sub; /* in "architectures", "archMap" */
};

int policy_no_memory(struct cj_error *err);

/* Refuses a node of another type, with its place. */
int policy_expect(const struct policy_reader *r, const struct json_node *node, enum json_type type,
		  struct cj_error *err);

/* Go writes an empty list or object as null. */
bool policy_is_absent(const struct json_node *node);

int policy_read_number(const struct policy_reader *r, const struct json_node *node, uint64_t max,
		       uint64_t *out, struct cj_error *err);
int policy_read_errno_number(const struct policy_reader *r, const struct json_node *node, int *out,
			     struct cj_error *err);
/* Podman's way: "EPERM". */
int policy_read_errno_name(const struct policy_reader *r, const struct json_node *node, int *out,
			   struct cj_error *err);
int policy_read_action(const struct policy_reader *r, const struct json_node *node,
		       enum policy_action *out, struct cj_error *err);

/* One more sentence for the user; NULL: there was no memory for it. */
int policy_add_note(const struct policy_reader *r, const char *text, struct cj_error *err);

/* An item of "syscalls": one more rule, unless its conditions on the host leave it out. */
int policy_read_rule(struct policy_reader *r, const struct json_node *node, struct cj_error *err);
