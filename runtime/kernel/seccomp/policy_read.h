/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_read - between the files that read a seccomp profile: policy.c has the file's
 * keys, policy_rule.c a rule's, policy_value.c the values of both.  Pure.
 */
#pragma once

#include <stdbool.h>

#include "runtime/kernel/seccomp/policy.h"
#include "runtime/base/json/json_record.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define ERRNO_MAX       4095 /* the kernel clamps larger ones: seccomp(2), SECCOMP_RET_DATA */

/* Go writes an empty list or object as null. */
#define POLICY_TEXT    JSON_TAKES_STRING
#define POLICY_TEXTS   (JSON_TAKES_STRING | JSON_NULL_IS_ABSENT), .is_list = true
#define POLICY_OBJECT  (JSON_TAKES_OBJECT | JSON_NULL_IS_ABSENT)
#define POLICY_OBJECTS POLICY_OBJECT, .is_list = true
#define POLICY_COMMENT (JSON_TAKES_STRING | JSON_NULL_IS_ABSENT), .set = policy_set_nothing
#define POLICY_ERRNO_NUMBER                                                                        \
	(JSON_TAKES_NUMBER | JSON_NULL_IS_ABSENT), .set = json_set_int, .max = ERRNO_MAX
#define POLICY_ERRNO_NAME JSON_TAKES_STRING, .set = policy_set_errno_name

int policy_set_nothing(const struct json_reader *in, const struct json_key *k, const char *text,
		       void *record, struct cj_error *err);
/* "EPERM", as Podman writes it; "": none. */
int policy_set_errno_name(const struct json_reader *in, const struct json_key *k, const char *text,
			  void *record, struct cj_error *err);

/* enum policy_action; a reader's `context` is the policy, for the note that NOTIFY adds. */
int policy_read_action(const struct json_reader *in, const struct json_key *k,
		       const struct json_node *node, void *record, struct cj_error *err);

/* An item of "syscalls": one more rule, unless its conditions on the host leave it out. */
int policy_read_rule(const struct json_reader *in, const struct json_key *k,
		     const struct json_node *node, void *record, struct cj_error *err);

/* Podman writes number and name; -1: not given.  Both must agree. */
int policy_choose_errno(const struct json_reader *in, const struct json_node *node,
			const int given[2], int *out, struct cj_error *err);

/* One more sentence for the user; NULL: there was no memory for it. */
int policy_add_note(const struct json_reader *in, const char *text, struct cj_error *err);

int policy_no_memory(struct cj_error *err);
