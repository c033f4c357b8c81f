/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_process - the "process" of a config.json, and the file of `exec --process`.
 *
 * What it says is trusted: it comes from the engine.  Zeroed fields are "not given".
 */
#pragma once

#include "runtime/container/config/oci_value.h"

struct oci_user {
	uint32_t uid, gid;      /* at most OCI_ID_MAX */
	struct oci_u64 umask;   /* at most 0777 */
	const uint32_t *groups; /* "additionalGids" */
	size_t ngroups;
};

/* Names as config.json has them: "CAP_KILL".  A name that the kernel lacks is a warning, by the
 * specification. */
struct oci_capabilities {
	bool is_given; /* not given: every set is empty, too */
	struct strings bounding, effective, inheritable, permitted, ambient;
};

/* "RLIMIT_NOFILE" */
const char *oci_rlimit_name(int resource);

struct oci_rlimit {
	int resource;        /* RLIMIT_NOFILE; none twice */
	uint64_t soft, hard; /* soft is at most hard; UINT64_MAX: RLIM_INFINITY */
};

/* sched_setattr(2). */
struct oci_scheduler {
	bool is_given;
	int policy; /* SCHED_OTHER */
	int32_t nice, priority;
	uint32_t flags; /* SCHED_FLAG_* */
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* ioprio_set(2). */
struct oci_io_priority {
	bool is_given;
	int io_class;   /* IOPRIO_CLASS_BE */
	uint32_t level; /* 0..7 */
};

/* Of exec alone, on its way into the container's cgroup. */
struct oci_affinity {
	const struct oci_set *initial, *final; /* before and after; NULL: not given */
};

struct oci_process {
	bool has_terminal;
	uint32_t console_height, console_width; /* characters; 0: not given */
	struct oci_user user;
	struct strings args; /* one at least */
	struct strings env;  /* NAME=VALUE */
	const char *cwd;     /* absolute */
	struct oci_capabilities capabilities;
	const struct oci_rlimit *rlimits;
	size_t nrlimits;
	bool no_new_privileges;
	struct oci_i64 oom_score_adj; /* -1000..1000 */
	const char *apparmor_profile; /* NULL: none */
	const char *selinux_label;    /* NULL: none */
	struct oci_scheduler scheduler;
	struct oci_io_priority io_priority;
	struct oci_affinity exec_affinity;
};

/*
 * oci_process_read - the file of `exec --process`.  `name` is for messages; all that *out points to
 * lives in the arena.
 *
 * Fails: EINVAL with name:line:column; EFBIG, ENOMEM.
 */
int oci_process_read(const char *name, const char *text, size_t size, struct arena *a,
		     struct oci_process *out, struct cj_error *err);

/*
 * oci_user_parse - the value of `exec --user`: UID or UID:GID, decimal digits only.  Without GID
 * *out_gid stays as it is.  Both are written only on success, so a caller must not start
 * from 0: "-1" or "99999999999" may never become root.
 */
int oci_user_parse(const char *text, uint32_t *out_uid, uint32_t *out_gid, struct cj_error *err);

extern const struct json_record oci_process_record; /* "process", for oci_config.c */
