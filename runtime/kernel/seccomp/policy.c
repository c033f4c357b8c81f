/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of OCI / Docker seccomp profiles.  Pure, but for policy_load().
 *
 * Every key is a row of a table; a key without a row, an action, an operator or a
 * value we do not understand refuses the file with its place, because a rule that is
 * skipped could be the one that closes something.
 */
#include "runtime/kernel/seccomp/policy.h"

#include <stdio.h>
#include <string.h>

#include "runtime/kernel/seccomp/policy_read.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#if defined(__x86_64__)
#define ARCH_OCI "SCMP_ARCH_X86_64"
static const char *const sub_arches[] = { "SCMP_ARCH_X86", "SCMP_ARCH_X32" };
#elif defined(__aarch64__)
#define ARCH_OCI "SCMP_ARCH_AARCH64"
static const char *const sub_arches[] = { "SCMP_ARCH_ARM" };
#endif

/* The file while it is read: what the members of its object say. */
struct file_draft {
	enum policy_action default_action;
	int default_errno[2];                       /* number, name; -1: not given */
	bool names_arches, names_native, names_sub; /* in "architectures", "archMap" */
};

static int set_arch(const struct json_reader *in, const struct json_key *k, const char *text,
		    void *record, struct cj_error *err)
{
	struct file_draft *d = record;
	(void)in, (void)k;
	if (strncmp(text, "SCMP_ARCH_", strlen("SCMP_ARCH_")) != 0)
		return cj_reject(err, "unknown architecture '%s'", text);
	d->names_arches = true;
	d->names_native = d->names_native || strcmp(text, ARCH_OCI) == 0;
	for (size_t i = 0; i < COUNT_OF(sub_arches); i++)
		d->names_sub = d->names_sub || strcmp(text, sub_arches[i]) == 0;
	return 0;
}

/* The flags of seccomp(2) are cejail's to choose; a note says so. */
static int read_flag(const struct json_reader *in, const struct json_key *k,
		     const struct json_node *node, void *record, struct cj_error *err)
{
	(void)k, (void)record;
	if (strncmp(node->text, "SECCOMP_FILTER_FLAG_", 20) != 0)
		return json_reject(in->file, node, err, "unknown flag '%s'", node->text);
	return policy_add_note(in,
			       arena_printf(in->arena, "%s:%u: flag '%.64s' is not used", in->file,
					    node->line, node->text),
			       err);
}

static int read_listener(const struct json_reader *in, const struct json_key *k,
			 const struct json_node *node, void *record, struct cj_error *err)
{
	(void)record;
	return policy_add_note(in,
			       arena_printf(in->arena,
					    "%s:%u: '%s' is not used: cejail's supervisor answers",
					    in->file, node->line, k->name),
			       err);
}

static const struct json_key arch_map_keys[] = {
	{ "architecture", POLICY_TEXT, .set = set_arch },
	{ "subArchitectures", POLICY_TEXTS, .set = set_arch },
};
static const struct json_record arch_map_record = JSON_RECORD(arch_map_keys, "an architecture");

#define AT(field) .offset = offsetof(struct file_draft, field)
static const struct json_key file_keys[] = {
	{ "defaultAction", POLICY_TEXT, .read = policy_read_action, .is_required = true,
	  AT(default_action) },
	{ "defaultErrnoRet", POLICY_ERRNO_NUMBER, AT(default_errno[0]) },
	{ "defaultErrno", POLICY_ERRNO_NAME, AT(default_errno[1]) },
	{ "architectures", POLICY_TEXTS, .set = set_arch },
	{ "archMap", POLICY_OBJECTS, .read = json_read_record, .detail = &arch_map_record },
	{ "flags", POLICY_TEXTS, .read = read_flag },
	{ "listenerPath", POLICY_TEXT, .read = read_listener },
	{ "listenerMetadata", POLICY_TEXT, .read = read_listener },
	{ "syscalls", POLICY_OBJECTS, .read = policy_read_rule },
	{ "comment", POLICY_COMMENT },
};
static const struct json_record file_record = JSON_RECORD(file_keys, "a seccomp profile");

static int note_arches(const struct json_reader *in, const struct file_draft *d,
		       struct cj_error *err)
{
	if (d->names_sub &&
	    policy_add_note(
		in, arena_printf(in->arena, "%s: 32-bit system calls stay closed", in->file), err) <
		0)
		return -err->code;
	if (d->names_arches && !d->names_native)
		return policy_add_note(
		    in,
		    arena_printf(in->arena, "%s: not written for this architecture, " ARCH_OCI,
				 in->file),
		    err);
	return 0;
}

static int read_file(const struct json_reader *in, const struct json_node *root,
		     struct cj_error *err)
{
	struct file_draft d = { .default_errno = { -1, -1 } };
	struct policy *policy = in->context;

	if (json_record_read(in, root, &file_record, &d, err) < 0 ||
	    policy_choose_errno(in, root, d.default_errno, &policy->default_errno, err) < 0)
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
		return policy_no_memory(err);
	policy->path = arena_strdup(a, path);
	policy->default_errno = EPERM; /* what the OCI runtime specification says */
	if (!policy->path)
		return policy_no_memory(err);
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