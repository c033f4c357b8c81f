/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of OCI / Docker seccomp profiles.  Pure, but for policy_load().
 *
 * Every key is a row of a table; a key without a row, an action, an operator or a
 * value we do not understand refuses the file with its place, because a rule that is
 * skipped could be the one that closes something.
 */
#include "profiles/policy/policy.h"

#include <stdio.h>
#include <string.h>

#include "profiles/policy/policy_read.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"

#if defined(__x86_64__)
#define ARCH_OCI "SCMP_ARCH_X86_64"
static const char *const sub_arches[] = { "SCMP_ARCH_X86", "SCMP_ARCH_X32" };
#elif defined(__aarch64__)
#define ARCH_OCI "SCMP_ARCH_AARCH64"
static const char *const sub_arches[] = { "SCMP_ARCH_ARM" };
#endif

static int read_default_action(struct policy_reader *r, const struct json_node *node,
			       struct cj_error *err)
{
	r->has_default = true;
	return policy_read_action(r, node, &r->policy->default_action, err);
}

/* Podman writes number and name. */
static int set_default_errno(struct policy_reader *r, const struct json_node *node, int code,
			     struct cj_error *err)
{
	if (r->has_default_errno && code != r->policy->default_errno)
		return json_reject(r->path, node, err,
				   "'defaultErrno' and 'defaultErrnoRet' differ");
	r->policy->default_errno = code;
	r->has_default_errno = true;
	return 0;
}

static int read_default_errno(struct policy_reader *r, const struct json_node *node,
			      struct cj_error *err)
{
	int code = r->policy->default_errno;
	if (policy_is_absent(node))
		return 0;
	if (policy_read_errno_number(r, node, &code, err) < 0)
		return -err->code;
	return set_default_errno(r, node, code, err);
}

static int read_default_errno_name(struct policy_reader *r, const struct json_node *node,
				   struct cj_error *err)
{
	int code = r->policy->default_errno;
	if (node->type == JSON_STRING && node->text[0] == '\0')
		return 0;
	if (policy_read_errno_name(r, node, &code, err) < 0)
		return -err->code;
	return set_default_errno(r, node, code, err);
}

static int read_arch(struct policy_reader *r, const struct json_node *node, struct cj_error *err)
{
	if (policy_expect(r, node, JSON_STRING, err) < 0)
		return -err->code;
	if (strncmp(node->text, "SCMP_ARCH_", strlen("SCMP_ARCH_")) != 0)
		return json_reject(r->path, node, err, "unknown architecture '%s'", node->text);
	r->names_arches = true;
	r->names_native = r->names_native || strcmp(node->text, ARCH_OCI) == 0;
	for (size_t i = 0; i < COUNT_OF(sub_arches); i++)
		r->names_sub = r->names_sub || strcmp(node->text, sub_arches[i]) == 0;
	return 0;
}

static int read_arches(struct policy_reader *r, const struct json_node *node, struct cj_error *err)
{
	if (policy_is_absent(node))
		return 0;
	if (policy_expect(r, node, JSON_ARRAY, err) < 0)
		return -err->code;
	for (const struct json_node *item = node->child; item; item = item->next) {
		if (read_arch(r, item, err) < 0)
			return -err->code;
	}
	return 0;
}

static int read_arch_map_entry(struct policy_reader *r, const struct json_node *entry,
			       struct cj_error *err)
{
	if (policy_expect(r, entry, JSON_OBJECT, err) < 0)
		return -err->code;
	for (const struct json_node *member = entry->child; member; member = member->next) {
		int rc;
		if (strcmp(member->key, "architecture") == 0)
			rc = read_arch(r, member, err);
		else if (strcmp(member->key, "subArchitectures") == 0)
			rc = read_arches(r, member, err);
		else
			rc = json_reject_key(r->path, member, err, "unknown key '%s' in 'archMap'",
					     member->key);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int read_arch_map(struct policy_reader *r, const struct json_node *node,
			 struct cj_error *err)
{
	if (policy_is_absent(node))
		return 0;
	if (policy_expect(r, node, JSON_ARRAY, err) < 0)
		return -err->code;
	for (const struct json_node *entry = node->child; entry; entry = entry->next) {
		if (read_arch_map_entry(r, entry, err) < 0)
			return -err->code;
	}
	return 0;
}

/* The flags of seccomp(2) are cejail's to choose; a file that asks for one is told so. */
static int read_flags(struct policy_reader *r, const struct json_node *node, struct cj_error *err)
{
	if (policy_is_absent(node))
		return 0;
	if (policy_expect(r, node, JSON_ARRAY, err) < 0)
		return -err->code;
	for (const struct json_node *item = node->child; item; item = item->next) {
		if (policy_expect(r, item, JSON_STRING, err) < 0)
			return -err->code;
		if (strncmp(item->text, "SECCOMP_FILTER_FLAG_", 20) != 0)
			return json_reject(r->path, item, err, "unknown flag '%s'", item->text);
		const char *note = arena_printf(r->arena, "%s:%u: flag '%.64s' is not used",
						r->path, item->line, item->text);
		if (policy_add_note(r, note, err) < 0)
			return -err->code;
	}
	return 0;
}

static int read_listener(struct policy_reader *r, const struct json_node *node,
			 struct cj_error *err)
{
	if (policy_expect(r, node, JSON_STRING, err) < 0)
		return -err->code;
	return policy_add_note(r,
			       arena_printf(r->arena,
					    "%s:%u: '%s' is not used: cejail's supervisor answers",
					    r->path, node->line, node->key),
			       err);
}

static int read_file_comment(struct policy_reader *r, const struct json_node *node,
			     struct cj_error *err)
{
	return policy_is_absent(node) ? 0 : policy_expect(r, node, JSON_STRING, err);
}

static int read_rules(struct policy_reader *r, const struct json_node *node, struct cj_error *err)
{
	if (policy_is_absent(node))
		return 0;
	if (policy_expect(r, node, JSON_ARRAY, err) < 0)
		return -err->code;
	r->rules = arena_array(r->arena, node->count, sizeof(*r->rules));
	if (!r->rules)
		return policy_no_memory(err);
	r->policy->rules = r->rules;
	for (const struct json_node *item = node->child; item; item = item->next) {
		if (policy_read_rule(r, item, err) < 0)
			return -err->code;
	}
	return 0;
}

static const struct file_key {
	const char *key;
	int (*read)(struct policy_reader *r, const struct json_node *node, struct cj_error *err);
} file_keys[] = {
	{ "defaultAction", read_default_action },
	{ "defaultErrnoRet", read_default_errno },
	{ "defaultErrno", read_default_errno_name },
	{ "architectures", read_arches },
	{ "archMap", read_arch_map },
	{ "flags", read_flags },
	{ "listenerPath", read_listener },
	{ "listenerMetadata", read_listener },
	{ "syscalls", read_rules },
	{ "comment", read_file_comment },
};

static int read_file_member(struct policy_reader *r, const struct json_node *member,
			    struct cj_error *err)
{
	for (size_t i = 0; i < COUNT_OF(file_keys); i++) {
		if (strcmp(file_keys[i].key, member->key) == 0)
			return file_keys[i].read(r, member, err);
	}
	return json_reject_key(r->path, member, err, "unknown key '%s'", member->key);
}

static int note_arches(struct policy_reader *r, struct cj_error *err)
{
	if (r->names_sub &&
	    policy_add_note(
		r, arena_printf(r->arena, "%s: 32-bit system calls stay closed", r->path), err) < 0)
		return -err->code;
	if (r->names_arches && !r->names_native)
		return policy_add_note(
		    r,
		    arena_printf(r->arena, "%s: not written for this architecture, " ARCH_OCI,
				 r->path),
		    err);
	return 0;
}

static int read_file(struct policy_reader *r, const struct json_node *root, struct cj_error *err)
{
	if (policy_expect(r, root, JSON_OBJECT, err) < 0)
		return -err->code;
	for (const struct json_node *member = root->child; member; member = member->next) {
		if (read_file_member(r, member, err) < 0)
			return -err->code;
	}
	if (!r->has_default)
		return json_reject(r->path, root, err, "a seccomp profile needs 'defaultAction'");
	return note_arches(r, err);
}

int policy_parse(const char *path, const char *text, size_t size, struct arena *a,
		 const struct policy **out, struct cj_error *err)
{
	const struct json_node *root;
	struct policy *policy = arena_alloc(a, sizeof(*policy));
	if (!policy)
		return policy_no_memory(err);
	policy->path = arena_strdup(a, path);
	policy->default_errno = EPERM; /* what the OCI runtime specification says */
	if (!policy->path)
		return policy_no_memory(err);
	if (json_parse(path, text, size, a, &root, err) < 0)
		return -err->code;

	struct policy_reader r = { .path = path, .arena = a, .policy = policy };
	if (read_file(&r, root, err) < 0)
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