/* SPDX-License-Identifier: Apache-2.0 */
/* The "process" of a config.json, and the file of `exec --process`. */
#include "runtime/container/config/oci_process.h"

#include <linux/ioprio.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/resource.h>

#include "runtime/base/text.h"

#define IO_LEVELS     8 /* ioprio_set(2) */
#define ID_TEXT_MAX   10
#define OOM_SCORE_MIN (-1000)
#define OOM_SCORE_MAX 1000

/* "username" is for Windows and ignored. */
static const struct json_key user_keys[] = {
	{ "uid", OCI_ID, .is_required = true, AT(oci_user, uid) },
	{ "gid", OCI_ID, .is_required = true, AT(oci_user, gid) },
	{ "umask", OCI_NUMBER, .set = json_set_oci_u64, .max = 0777, AT(oci_user, umask) },
	{ "additionalGids", OCI_NUMBER, .is_list = true, .set = json_set_oci_ids,
	  ITEMS(oci_user, groups, ngroups) },
};
static const struct json_record user_record = OCI_TABLE(user_keys);

static int parse_id(const char *text, uint32_t *out, struct cj_error *err)
{
	uint64_t value = 0;
	int rc = parse_u64(text, 0, OCI_ID_MAX, &value, err);

	if (rc == 0)
		*out = (uint32_t)value;
	return rc;
}

int oci_user_parse(const char *text, uint32_t *out_uid, uint32_t *out_gid, struct cj_error *err)
{
	char uid_text[ID_TEXT_MAX + 1] = "";
	const char *colon = strchr(text, ':');
	size_t size = colon ? (size_t)(colon - text) : strlen(text);
	uint32_t uid = 0, gid = 0;

	if (size == 0 || size > ID_TEXT_MAX)
		return cj_reject(err, "'%.32s' is not a user: write UID or UID:GID, in digits",
				 text);
	memcpy(uid_text, text, size);
	if (parse_id(uid_text, &uid, err) < 0 || (colon && parse_id(colon + 1, &gid, err) < 0))
		return -err->code;
	*out_uid = uid;
	if (colon)
		*out_gid = gid;
	return 0;
}

static const struct json_key capability_keys[] = {
	{ "bounding", OCI_TEXTS, AT(oci_capabilities, bounding) },
	{ "effective", OCI_TEXTS, AT(oci_capabilities, effective) },
	{ "inheritable", OCI_TEXTS, AT(oci_capabilities, inheritable) },
	{ "permitted", OCI_TEXTS, AT(oci_capabilities, permitted) },
	{ "ambient", OCI_TEXTS, AT(oci_capabilities, ambient) },
};

static const struct json_record capability_record =
    OCI_TABLE(capability_keys, .check = json_check_oci_given);

static const struct oci_name rlimit_names[] = {
	{ "RLIMIT_AS", RLIMIT_AS },
	{ "RLIMIT_CORE", RLIMIT_CORE },
	{ "RLIMIT_CPU", RLIMIT_CPU },
	{ "RLIMIT_DATA", RLIMIT_DATA },
	{ "RLIMIT_FSIZE", RLIMIT_FSIZE },
	{ "RLIMIT_LOCKS", RLIMIT_LOCKS },
	{ "RLIMIT_MEMLOCK", RLIMIT_MEMLOCK },
	{ "RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE },
	{ "RLIMIT_NICE", RLIMIT_NICE },
	{ "RLIMIT_NOFILE", RLIMIT_NOFILE },
	{ "RLIMIT_NPROC", RLIMIT_NPROC },
	{ "RLIMIT_RSS", RLIMIT_RSS },
	{ "RLIMIT_RTPRIO", RLIMIT_RTPRIO },
	{ "RLIMIT_RTTIME", RLIMIT_RTTIME },
	{ "RLIMIT_SIGPENDING", RLIMIT_SIGPENDING },
	{ "RLIMIT_STACK", RLIMIT_STACK },
};
static const struct oci_names rlimits = NAMES(rlimit_names);

const char *oci_rlimit_name(int resource)
{
	for (size_t i = 0; i < rlimits.count; i++)
		if (rlimits.items[i].value == (uint32_t)resource)
			return rlimits.items[i].name;
	return "a limit";
}

#define NOFILE_MIN 4 /* the standard streams, and what execve(2) and ld.so(8) open */

static const struct json_key rlimit_keys[] = {
	{ "type", OCI_NAME(rlimits), .is_required = true, AT(oci_rlimit, resource) },
	{ "soft", JSON_TAKES_NUMBER, .set = json_set_u64, .is_required = true,
	  AT(oci_rlimit, soft) },
	{ "hard", JSON_TAKES_NUMBER, .set = json_set_u64, .is_required = true,
	  AT(oci_rlimit, hard) },
};

static JSON_CHECK(rlimit)
{
	const struct oci_rlimit *limit = record;

	if (limit->soft > limit->hard)
		return oci_reject(in, node, err, "the soft limit is above the hard limit");
	if (limit->resource == RLIMIT_NOFILE && limit->soft < NOFILE_MIN)
		return oci_reject(in, node, err,
				  "RLIMIT_NOFILE %u is too low: a program needs %d open files to "
				  "start",
				  (unsigned)limit->soft, NOFILE_MIN);
	return 0;
}
static const struct json_record rlimit_record =
    OCI_TABLE(rlimit_keys, .size = sizeof(struct oci_rlimit), .check = json_check_rlimit);

static const struct oci_name policy_names[] = {
	{ "SCHED_OTHER", SCHED_OTHER }, { "SCHED_FIFO", SCHED_FIFO },
	{ "SCHED_RR", SCHED_RR },       { "SCHED_BATCH", SCHED_BATCH },
	{ "SCHED_IDLE", SCHED_IDLE },   { "SCHED_DEADLINE", SCHED_DEADLINE },
};
static const struct oci_names policies = NAMES(policy_names);

static const struct oci_name scheduler_flag_names[] = {
	{ "SCHED_FLAG_RESET_ON_FORK", SCHED_FLAG_RESET_ON_FORK },
	{ "SCHED_FLAG_RECLAIM", SCHED_FLAG_RECLAIM },
	{ "SCHED_FLAG_DL_OVERRUN", SCHED_FLAG_DL_OVERRUN },
	{ "SCHED_FLAG_KEEP_POLICY", SCHED_FLAG_KEEP_POLICY },
	{ "SCHED_FLAG_KEEP_PARAMS", SCHED_FLAG_KEEP_PARAMS },
	{ "SCHED_FLAG_UTIL_CLAMP_MIN", SCHED_FLAG_UTIL_CLAMP_MIN },
	{ "SCHED_FLAG_UTIL_CLAMP_MAX", SCHED_FLAG_UTIL_CLAMP_MAX },
};
static const struct oci_names scheduler_flags = NAMES(scheduler_flag_names);

#define U64 OCI_NUMBER, .set = json_set_u64
#define I32 OCI_NUMBER, .set = json_set_oci_i32
static const struct json_key scheduler_keys[] = {
	{ "policy", OCI_NAME(policies), .is_required = true, AT(oci_scheduler, policy) },
	{ "nice", I32, AT(oci_scheduler, nice) },
	{ "priority", I32, AT(oci_scheduler, priority) },
	{ "flags", OCI_BITS(scheduler_flags), AT(oci_scheduler, flags) },
	{ "runtime", U64, AT(oci_scheduler, runtime_ns) },
	{ "deadline", U64, AT(oci_scheduler, deadline_ns) },
	{ "period", U64, AT(oci_scheduler, period_ns) },
};

static const struct json_record scheduler_record =
    OCI_TABLE(scheduler_keys, .check = json_check_oci_given);

static const struct oci_name io_class_names[] = {
	{ "IOPRIO_CLASS_RT", IOPRIO_CLASS_RT },
	{ "IOPRIO_CLASS_BE", IOPRIO_CLASS_BE },
	{ "IOPRIO_CLASS_IDLE", IOPRIO_CLASS_IDLE },
};
static const struct oci_names io_classes = NAMES(io_class_names);

static const struct json_key io_priority_keys[] = {
	{ "class", OCI_NAME(io_classes), .is_required = true, AT(oci_io_priority, io_class) },
	{ "priority", OCI_NUMBER, .set = json_set_oci_u32, .max = IO_LEVELS - 1,
	  AT(oci_io_priority, level) },
};

static const struct json_record io_priority_record =
    OCI_TABLE(io_priority_keys, .check = json_check_oci_given);

/* Into the process itself. */
#define LENGTH OCI_NUMBER, .set = json_set_oci_u32, .max = UINT16_MAX /* ioctl_tty(2) */
static const struct json_key console_keys[] = {
	{ "height", LENGTH, AT(oci_process, console_height) },
	{ "width", LENGTH, AT(oci_process, console_width) },
};
static const struct json_record console_record = OCI_TABLE(console_keys);

static JSON_SETTER(env)
{
	if (text[0] == '=' || !strchr(text, '='))
		return cj_reject(err, "'%.64s' is not NAME=VALUE", text);
	return json_set_strings(in, k, text, record, err);
}

static const struct json_key affinity_keys[] = {
	{ "initial", OCI_STRING, .set = json_set_oci_set, AT(oci_affinity, initial) },
	{ "final", OCI_STRING, .set = json_set_oci_set, AT(oci_affinity, final) },
};
static const struct json_record affinity_record = OCI_TABLE(affinity_keys);

/* "commandLine" is for Windows and ignored. */
static const struct json_key process_keys[] = {
	{ "terminal", OCI_FLAG, AT(oci_process, has_terminal) },
	{ "consoleSize", OCI_RECORD(console_record) },
	{ "user", OCI_RECORD(user_record), AT(oci_process, user) },
	{ "args", OCI_TEXTS, .is_required = true, AT(oci_process, args) },
	{ "env", OCI_STRING, .is_list = true, .set = json_set_env, AT(oci_process, env) },
	{ "cwd", OCI_PATH, .is_required = true, AT(oci_process, cwd) },
	{ "capabilities", OCI_RECORD(capability_record), AT(oci_process, capabilities) },
	{ "rlimits", OCI_RECORDS(rlimit_record), ITEMS(oci_process, rlimits, nrlimits) },
	{ "noNewPrivileges", OCI_FLAG, AT(oci_process, no_new_privileges) },
	{ "oomScoreAdj", OCI_NUMBER, .set = json_set_oci_i64, AT(oci_process, oom_score_adj) },
	{ "apparmorProfile", OCI_TEXT, AT(oci_process, apparmor_profile) },
	{ "scheduler", OCI_RECORD(scheduler_record), AT(oci_process, scheduler) },
	{ "ioPriority", OCI_RECORD(io_priority_record), AT(oci_process, io_priority) },
	{ "selinuxLabel", OCI_TEXT, AT(oci_process, selinux_label) },
	{ "execCPUAffinity", OCI_RECORD(affinity_record), AT(oci_process, exec_affinity) },
};

static JSON_CHECK(process)
{
	const struct oci_process *process = record;

	if (process->args.count == 0)
		return oci_reject(in, node, err, "args is empty: there is no program to execute");
	if (!process->cwd)
		return oci_reject(in, node, err, "cwd is empty: write an absolute path");
	if (process->oom_score_adj.value < OOM_SCORE_MIN ||
	    process->oom_score_adj.value > OOM_SCORE_MAX)
		return oci_reject(in, node, err, "oomScoreAdj must be from %d to %d", OOM_SCORE_MIN,
				  OOM_SCORE_MAX);
	for (size_t i = 0; i < process->nrlimits; i++)
		for (size_t k = 0; k < i; k++)
			if (process->rlimits[i].resource == process->rlimits[k].resource)
				return oci_reject(in, node, err, "rlimits has one type twice");
	return 0;
}
const struct json_record oci_process_record = OCI_TABLE(process_keys, .check = json_check_process);

int oci_process_read(const char *name, const char *text, size_t size, struct arena *a,
		     struct oci_process *out, struct cj_error *err)
{
	return oci_file_read(name, text, size, a, &oci_process_record, out, sizeof(*out), err);
}
