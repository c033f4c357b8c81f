/* SPDX-License-Identifier: Apache-2.0 */
/* "linux.seccomp" of a config.json as plain data. */
#include "runtime/container/config/oci_seccomp.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#define ARGS_MAX        6
#define ACTION_DATA_MAX UINT16_MAX /* seccomp(2), SECCOMP_RET_DATA */

static const struct oci_name action_names[] = {
	{ "SCMP_ACT_KILL", POLICY_KILL_THREAD },
	{ "SCMP_ACT_KILL_PROCESS", POLICY_KILL_PROCESS },
	{ "SCMP_ACT_KILL_THREAD", POLICY_KILL_THREAD },
	{ "SCMP_ACT_TRAP", POLICY_TRAP },
	{ "SCMP_ACT_ERRNO", POLICY_ERRNO },
	{ "SCMP_ACT_TRACE", POLICY_TRACE },
	{ "SCMP_ACT_ALLOW", POLICY_ALLOW },
	{ "SCMP_ACT_LOG", POLICY_LOG },
	{ "SCMP_ACT_NOTIFY", POLICY_NOTIFY },
};
const struct oci_names oci_seccomp_actions = NAMES(action_names);

/* libseccomp's numbers: the kernel's, but for x32, which shares that of x86_64. */
#define ARCH_X32 (EM_X86_64 | __AUDIT_ARCH_LE)
static const struct oci_name arch_names[] = {
	{ "SCMP_ARCH_X86", AUDIT_ARCH_I386 },
	{ "SCMP_ARCH_X86_64", AUDIT_ARCH_X86_64 },
	{ "SCMP_ARCH_X32", ARCH_X32 },
	{ "SCMP_ARCH_ARM", AUDIT_ARCH_ARM },
	{ "SCMP_ARCH_AARCH64", AUDIT_ARCH_AARCH64 },
	{ "SCMP_ARCH_MIPS", AUDIT_ARCH_MIPS },
	{ "SCMP_ARCH_MIPS64", AUDIT_ARCH_MIPS64 },
	{ "SCMP_ARCH_MIPS64N32", AUDIT_ARCH_MIPS64N32 },
	{ "SCMP_ARCH_MIPSEL", AUDIT_ARCH_MIPSEL },
	{ "SCMP_ARCH_MIPSEL64", AUDIT_ARCH_MIPSEL64 },
	{ "SCMP_ARCH_MIPSEL64N32", AUDIT_ARCH_MIPSEL64N32 },
	{ "SCMP_ARCH_PPC", AUDIT_ARCH_PPC },
	{ "SCMP_ARCH_PPC64", AUDIT_ARCH_PPC64 },
	{ "SCMP_ARCH_PPC64LE", AUDIT_ARCH_PPC64LE },
	{ "SCMP_ARCH_S390", AUDIT_ARCH_S390 },
	{ "SCMP_ARCH_S390X", AUDIT_ARCH_S390X },
	{ "SCMP_ARCH_PARISC", AUDIT_ARCH_PARISC },
	{ "SCMP_ARCH_PARISC64", AUDIT_ARCH_PARISC64 },
	{ "SCMP_ARCH_RISCV64", AUDIT_ARCH_RISCV64 },
};
const struct oci_names oci_seccomp_archs = NAMES(arch_names);

static const struct oci_name flag_names[] = {
	{ "SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC },
	{ "SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG },
	{ "SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW },
	{ "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV },
};
const struct oci_names oci_seccomp_flags = NAMES(flag_names);

/* --- rules ------------------------------------------------------------------------- */

static const struct json_key arg_keys[] = {
	{ "index", JSON_TAKES_NUMBER, .set = json_set_oci_u32, .max = ARGS_MAX - 1,
	  .is_required = true, AT(policy_arg, index) },
	{ "value", JSON_TAKES_NUMBER, .set = json_set_u64, .is_required = true,
	  AT(policy_arg, value) },
	{ "valueTwo", OCI_NUMBER, .set = json_set_u64, AT(policy_arg, value_two) },
	{ "op", JSON_TAKES_STRING, .set = json_set_name, .detail = policy_op_names,
	  .max = POLICY_OP_COUNT, .is_required = true, AT(policy_arg, op) },
};
static const struct json_record arg_record = OCI_TABLE(arg_keys, .size = sizeof(struct policy_arg));

#define ACTION OCI_NAME(oci_seccomp_actions), .is_required = true
#define DATA   OCI_NUMBER, .set = json_set_oci_u64, .max = ACTION_DATA_MAX
static const struct json_key rule_keys[] = {
	{ "names", OCI_TEXTS, .is_required = true, AT(oci_seccomp_rule, names) },
	{ "action", ACTION, AT(oci_seccomp_rule, action) },
	{ "errnoRet", DATA, AT(oci_seccomp_rule, errno_ret) },
	{ "args", OCI_RECORDS(arg_record), ITEMS(oci_seccomp_rule, args, nargs) },
};

static JSON_CHECK(rule)
{
	const struct oci_seccomp_rule *rule = record;

	if (rule->names.count == 0)
		return oci_reject(in, node, err, "a rule needs names of system calls");
	return 0;
}
static const struct json_record rule_record =
    OCI_TABLE(rule_keys, .size = sizeof(struct oci_seccomp_rule), .check = json_check_rule);

/* --- the filter -------------------------------------------------------------------- */

static const struct json_key seccomp_keys[] = {
	{ "defaultAction", ACTION, AT(oci_seccomp, default_action) },
	{ "defaultErrnoRet", DATA, AT(oci_seccomp, default_errno_ret) },
	{ "architectures", OCI_STRING, .is_list = true, .set = json_set_oci_values,
	  .detail = &oci_seccomp_archs, ITEMS(oci_seccomp, architectures, narchitectures) },
	{ "flags", OCI_BITS(oci_seccomp_flags), AT(oci_seccomp, flags) },
	{ "listenerPath", OCI_PATH, AT(oci_seccomp, listener_path) },
	{ "listenerMetadata", OCI_TEXT, AT(oci_seccomp, listener_metadata) },
	{ "syscalls", OCI_RECORDS(rule_record), ITEMS(oci_seccomp, rules, nrules) },
};

static JSON_CHECK(seccomp)
{
	struct oci_seccomp *seccomp = record;

	seccomp->is_given = true;
	if (seccomp->default_action == POLICY_NOTIFY)
		return oci_reject(in, node, err,
				  "defaultAction must not be SCMP_ACT_NOTIFY: nobody could answer "
				  "for the calls that pass the listener on");
	for (size_t i = 0; i < seccomp->nrules; i++)
		seccomp->notifies |= seccomp->rules[i].action == POLICY_NOTIFY;
	if (seccomp->notifies && !seccomp->listener_path)
		return oci_reject(in, node, err, "SCMP_ACT_NOTIFY needs listenerPath");
	return 0;
}
const struct json_record oci_seccomp_record = OCI_TABLE(seccomp_keys, .check = json_check_seccomp);
