/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_linux - "linux" of a config.json as plain data.
 */
#pragma once

#include "runtime/container/config/oci_resources.h"
#include "runtime/container/config/oci_value.h"
#include "runtime/kernel/seccomp/policy.h"

/* In the order in which setns(2) needs them: the user namespace gives the right to the others. */
enum oci_namespace_type {
	OCI_NS_USER,
	OCI_NS_CGROUP,
	OCI_NS_IPC,
	OCI_NS_UTS,
	OCI_NS_NETWORK,
	OCI_NS_PID,
	OCI_NS_TIME,
	OCI_NS_MOUNT,
	OCI_NS_COUNT
};
/* As config.json calls them: "network", "mount". */
extern const char *const oci_namespace_names[OCI_NS_COUNT];

/* Not wanted: the container stays in the caller's. */
struct oci_namespace {
	bool is_wanted;
	const char *path; /* to join, absolute; NULL: a new one */
};

struct oci_id_map {
	uint32_t container_id, host_id, size;
};
struct oci_id_maps {
	const struct oci_id_map *items;
	size_t count;
};

/* A node to make in the container. */
struct oci_device {
	const char *path; /* absolute */
	char type;        /* 'c', 'u' (like 'c'), 'b', 'p' */
	uint32_t major, minor;
	struct oci_u64 file_mode; /* permission bits; not set: 0666 */
	struct oci_u64 uid, gid;  /* not set: 0 */
};

/* Of a new time namespace. */
struct oci_time_offset {
	bool is_given;
	int64_t secs;
	uint32_t nanosecs;
};

/* personality(2). */
struct oci_personality {
	bool is_given;
	uint32_t domain; /* PER_LINUX, PER_LINUX32 */
};

/* set_mempolicy(2). */
struct oci_memory_policy {
	bool is_given;
	uint32_t mode, flags;        /* MPOL_BIND, MPOL_F_STATIC_NODES */
	const struct oci_set *nodes; /* NULL: none */
};

/* A device of the caller's network namespace, and its name in the container's. */
struct oci_net_device {
	const char *host_name, *name;
};

/* A class of service of the resctrl file system. */
struct oci_rdt {
	bool is_given;
	const char *clos_id;                   /* a directory's name; NULL: the container's id */
	const char *l3_schema, *memory_schema; /* NULL: none; the latter is one line "MB:..." */
	struct strings schemata;               /* lines */
	bool has_monitoring;
};

/*
 * "seccomp".  Names of system calls stay names.  One that libseccomp does not know is skipped by
 * the compiler, as each engine's default profile expects.
 */
struct oci_seccomp_rule {
	struct strings names;
	enum policy_action action;
	struct oci_u64 errno_ret;      /* of ERRNO; the message of TRACE; at most UINT16_MAX */
	const struct policy_arg *args; /* process_filter.c says how several are read */
	size_t nargs;
};

struct oci_seccomp {
	bool is_given;
	enum policy_action default_action;
	struct oci_u64 default_errno_ret; /* not set: EPERM */
	const uint32_t *architectures;    /* SCMP_ARCH_X86_64; none: the native one */
	size_t narchitectures;
	uint32_t flags;                /* SECCOMP_FILTER_FLAG_LOG | ... of linux/seccomp.h */
	const char *listener_path;     /* a unix socket, absolute; NULL: none */
	const char *listener_metadata; /* NULL: none */
	const struct oci_seccomp_rule *rules;
	size_t nrules;
	bool notifies; /* an action is NOTIFY: listener_path is given */
};

struct oci_linux {
	struct oci_namespace namespaces[OCI_NS_COUNT];
	struct oci_id_maps uid_maps, gid_maps; /* of a new user namespace; both or none */
	struct oci_time_offset monotonic, boottime;
	struct oci_pairs sysctl;
	const char *cgroups_path; /* "/a/b", "a/b", "slice:prefix:name"; NULL: not given */
	struct oci_resources resources;
	const struct oci_device *devices;
	size_t ndevices;
	struct oci_seccomp seccomp;
	const char *mount_label;                     /* of SELinux; NULL: none */
	uint32_t rootfs_propagation;                 /* MS_SLAVE | MS_REC; 0: not given */
	struct strings masked_paths, readonly_paths; /* absolute, in the container */
	struct oci_personality personality;
	struct oci_memory_policy memory_policy;
	const struct oci_net_device *net_devices;
	size_t nnet_devices;
	struct oci_rdt rdt;
};

/*
 * oci_id_maps_format - the lines of uid_map or gid_map: user_namespaces(7).  In the arena; NULL: no
 * memory.
 */
const char *oci_id_maps_format(const struct oci_id_maps *maps, struct arena *a);

/* As config.json and `features` write them. */
extern const struct oci_names oci_memory_modes, oci_memory_flags;
extern const struct oci_names oci_seccomp_actions, oci_seccomp_archs, oci_seccomp_flags;

/* For oci_config.c: "linux", and an item of "uidMappings". */
extern const struct json_record oci_linux_record, oci_id_map_record;
