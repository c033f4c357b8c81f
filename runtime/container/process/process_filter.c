/* SPDX-License-Identifier: Apache-2.0 */
/* From the rules of config.json to BPF, by libseccomp. */
#include "runtime/container/process/process_parts.h"

#include <assert.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"

#define FILTER_BYTES_MAX (BPF_MAXINSNS * sizeof(struct sock_filter)) /* more the kernel refuses */
#define ARGS_MAX         6                                           /* of a system call */

static void release_filter(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
	*ctx = NULL;
}
#define auto_filter __attribute__((cleanup(release_filter)))

/*
 * By strictness, which is the kernel's: seccomp(2), "the highest-precedence value".  Only ERRNO and
 * TRACE carry a number; the parser refuses errnoRet for the others.
 */
static const struct action {
	enum oci_seccomp_action action;
	uint32_t number;
} actions[] = {
	{ OCI_SECCOMP_ALLOW, SCMP_ACT_ALLOW },
	{ OCI_SECCOMP_LOG, SCMP_ACT_LOG },
	{ OCI_SECCOMP_TRACE, SCMP_ACT_TRACE(0) },
	{ OCI_SECCOMP_NOTIFY, SCMP_ACT_NOTIFY },
	{ OCI_SECCOMP_ERRNO, SCMP_ACT_ERRNO(0) },
	{ OCI_SECCOMP_TRAP, SCMP_ACT_TRAP },
	{ OCI_SECCOMP_KILL_THREAD, SCMP_ACT_KILL_THREAD },
	{ OCI_SECCOMP_KILL_PROCESS, SCMP_ACT_KILL_PROCESS },
};

static unsigned strictness_of(enum oci_seccomp_action action)
{
	unsigned rank = 0;
	while (rank + 1 < sizeof(actions) / sizeof(actions[0]) && actions[rank].action != action)
		rank++;
	assert(actions[rank].action == action);
	return rank;
}

static uint32_t to_action(enum oci_seccomp_action action, const struct oci_u64 *errno_ret)
{
	uint16_t number = (uint16_t)(errno_ret->is_set ? errno_ret->value : EPERM);
	bool has_number = action == OCI_SECCOMP_ERRNO || action == OCI_SECCOMP_TRACE;
	return actions[strictness_of(action)].number | (has_number ? number : 0u);
}

static int check_errno(enum oci_seccomp_action action, const struct oci_u64 *errno_ret,
		       const char *key, struct cj_error *err)
{
	if (!errno_ret->is_set || action == OCI_SECCOMP_ERRNO || action == OCI_SECCOMP_TRACE)
		return 0;
	return cj_reject(err, "seccomp: %s is for SCMP_ACT_ERRNO and SCMP_ACT_TRACE only", key);
}

/* MASKED_EQ has the mask first in both formats. */
static struct scmp_arg_cmp to_condition(const struct policy_arg *arg)
{
	static const enum scmp_compare ops[] = {
		[POLICY_NE] = SCMP_CMP_NE,
		[POLICY_LT] = SCMP_CMP_LT,
		[POLICY_LE] = SCMP_CMP_LE,
		[POLICY_EQ] = SCMP_CMP_EQ,
		[POLICY_GE] = SCMP_CMP_GE,
		[POLICY_GT] = SCMP_CMP_GT,
		[POLICY_MASKED_EQ] = SCMP_CMP_MASKED_EQ,
	};
	return (struct scmp_arg_cmp){
		.arg = arg->index,
		.op = ops[arg->op],
		.datum_a = arg->value,
		.datum_b = arg->value_two,
	};
}

/* libseccomp refuses two conditions on one argument. */
static bool has_alternatives(const struct oci_seccomp_rule *rule)
{
	unsigned seen = 0;
	for (size_t i = 0; i < rule->nargs; i++) {
		unsigned bit = 1u << rule->args[i].index;
		if (seen & bit)
			return true;
		seen |= bit;
	}
	return false;
}

static int add_name(scmp_filter_ctx ctx, const char *name, uint32_t action,
		    const struct oci_seccomp_rule *rule, struct cj_error *err)
{
	struct scmp_arg_cmp conditions[ARGS_MAX];
	size_t at = 0, count = has_alternatives(rule) ? 1 : rule->nargs;
	int nr = seccomp_syscall_resolve_name(name);
	if (nr == __NR_SCMP_ERROR)
		return 0;
	assert(count <= ARGS_MAX);
	do {
		for (size_t i = 0; i < count; i++)
			conditions[i] = to_condition(&rule->args[at + i]);
		int rc = seccomp_rule_add_array(ctx, action, nr, (unsigned)count, conditions);
		if (rc < 0 && rc != -EEXIST) /* the same rule again */
			return cj_fail(err, -rc, "seccomp: add a rule for '%s'", name);
		at += count;
	} while (at < rule->nargs);
	return 0;
}

/* --- several rules for one call ---------------------------------------------------------- */

/* A rule's name. */
struct use {
	const char *name;
	uint32_t action;
	unsigned strictness;
	bool has_conditions;
};
struct uses {
	struct use
	    *items; /* by name; those without conditions first, the strictest of them before */
	size_t count;
};

static int compare_uses(const void *one, const void *other)
{
	const struct use *a = one, *b = other;
	int order = strcmp(a->name, b->name);

	if (order == 0)
		order = (int)a->has_conditions - (int)b->has_conditions;
	if (order == 0)
		order = (int)b->strictness - (int)a->strictness;
	return order != 0 ? order : (a->action > b->action) - (a->action < b->action);
}

static int list_uses(const struct oci_seccomp *seccomp, struct arena *a, struct uses *out,
		     struct cj_error *err)
{
	size_t most = 0;

	for (size_t i = 0; i < seccomp->nrules; i++)
		most += seccomp->rules[i].names.count;
	*out = (struct uses){ .items = arena_array(a, most + 1, sizeof(*out->items)) };
	if (!out->items)
		return cj_fail(err, ENOMEM, "compile the seccomp filter");
	for (size_t i = 0; i < seccomp->nrules; i++) {
		const struct oci_seccomp_rule *rule = &seccomp->rules[i];
		for (size_t n = 0; n < rule->names.count; n++)
			out->items[out->count++] = (struct use){
				.name = rule->names.items[n],
				.action = to_action(rule->action, &rule->errno_ret),
				.strictness = strictness_of(rule->action),
				.has_conditions = rule->nargs > 0,
			};
	}
	qsort(out->items, out->count, sizeof(*out->items), compare_uses);
	return 0;
}

/* The strictest rule without conditions for this call, or NULL. */
static const struct use *find_plain(const struct uses *uses, const char *name)
{
	size_t low = 0, high = uses->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(uses->items[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	const struct use *first = low < uses->count ? &uses->items[low] : NULL;
	return first && strcmp(first->name, name) == 0 && !first->has_conditions ? first : NULL;
}

/*
 * Beside a rule without conditions libseccomp drops all others for that call, and says nothing.  An
 * engine whose profile refuses one ioctl(2) and allows the rest would believe that it is refused.
 */
static int refuse_ignored(const struct uses *uses, uint32_t by_default, struct cj_error *err)
{
	for (size_t i = 0; i < uses->count; i++) {
		const struct use *use = &uses->items[i];
		const struct use *plain = find_plain(uses, use->name);
		if (!use->has_conditions || !plain || plain->action == use->action ||
		    plain->action == by_default) /* add_rules() leaves that one out */
			continue;
		cj_refuse(err,
			  "seccomp: '%.64s' has a rule without args, and another rule "
			  "with another action",
			  use->name);
		return cj_hint(err,
			       "libseccomp would ignore the other rule; write args that exclude "
			       "each other, or remove one of them");
	}
	return 0;
}

/*
 * Of two rules without conditions the stricter one counts: podman's default profile allows setns(2)
 * and refuses it, without CAP_SYS_ADMIN, some rules later.  libseccomp would take the first one.
 * It refuses a rule that does what the default does anyway.
 */
static int add_rules(scmp_filter_ctx ctx, const struct oci_seccomp *seccomp,
		     const struct uses *uses, uint32_t by_default, struct cj_error *err)
{
	for (size_t i = 0; i < seccomp->nrules; i++) {
		const struct oci_seccomp_rule *rule = &seccomp->rules[i];
		uint32_t action = to_action(rule->action, &rule->errno_ret);
		if (check_errno(rule->action, &rule->errno_ret, "errnoRet", err) < 0)
			return -err->code;
		for (size_t n = 0; action != by_default && n < rule->names.count; n++) {
			const char *name = rule->names.items[n];
			const struct use *plain = find_plain(uses, name);
			if (rule->nargs == 0 && plain && plain->action != action)
				continue;
			if (add_name(ctx, name, action, rule, err) < 0)
				return -err->code;
		}
	}
	return 0;
}

/* --- the whole --------------------------------------------------------------------- */

/* libseccomp 2.5 exports to a descriptor only. */
static int export(scmp_filter_ctx ctx, struct arena *a, struct sock_fprog *out,
		  struct cj_error *err)
{
	char *bytes = NULL;
	size_t size = 0;
	auto_fd int fd = memfd_create("cejail-seccomp", MFD_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "create a memfd for the seccomp filter");
	int rc = seccomp_export_bpf(ctx, fd);
	if (rc < 0)
		return cj_fail(err, -rc, "compile the seccomp filter");
	if (lseek(fd, 0, SEEK_SET) < 0)
		return cj_fail(err, errno, "read the seccomp filter");
	if (fd_read_all(fd, FILTER_BYTES_MAX, a, &bytes, &size, "the seccomp filter", err) < 0)
		return -err->code;

	out->filter = (struct sock_filter *)(void *)bytes; /* an arena aligns for any type */
	out->len = (unsigned short)(size / sizeof(struct sock_filter));
	return 0;
}

int process_filter_compile(const struct oci_seccomp *seccomp, struct arena *a,
			   struct sock_fprog *out, struct cj_error *err)
{
	uint32_t by_default = to_action(seccomp->default_action, &seccomp->default_errno_ret);
	struct uses uses;

	if (check_errno(seccomp->default_action, &seccomp->default_errno_ret, "defaultErrnoRet",
			err) < 0 ||
	    list_uses(seccomp, a, &uses, err) < 0 || refuse_ignored(&uses, by_default, err) < 0)
		return -err->code;

	auto_filter scmp_filter_ctx ctx = seccomp_init(by_default);
	if (!ctx)
		return cj_fail(err, ENOMEM, "compile the seccomp filter");
	for (size_t i = 0; i < seccomp->narchitectures; i++) {
		int rc = seccomp_arch_add(ctx, seccomp->architectures[i]);
		if (rc < 0 && rc != -EEXIST)
			return cj_fail(err, -rc, "seccomp: add architecture 0x%x",
				       seccomp->architectures[i]);
	}
	if (add_rules(ctx, seccomp, &uses, by_default, err) < 0)
		return -err->code;
	return export(ctx, a, out, err);
}
