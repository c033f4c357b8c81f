/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_resources - "linux.resources" of a config.json, and the file of `update --resources`.
 *
 * Numbers are as the file has them, in units of cgroup v1 where the specification uses those
 * (shares, swap with memory included).  The room cgroup/ converts them.
 */
#pragma once

#include "runtime/container/config/oci_value.h"

/* A rule of the device controller.  The last one that matches counts. */
struct oci_device_rule {
	bool allow;
	char type;                   /* 'a' (both), 'b', 'c' */
	struct oci_i64 major, minor; /* not set, or -1: every */
	bool may_read, may_write, may_mknod;
};

struct oci_memory {
	struct oci_i64 limit, reservation, swap; /* bytes; -1: no limit; swap includes memory */
	struct oci_u64 swappiness;
	bool disable_oom_killer, check_before_update;
};

struct oci_cpu {
	struct oci_u64 shares;        /* 2..262144, 1024 is one */
	struct oci_i64 quota;         /* microseconds; -1: no limit */
	struct oci_u64 burst, period; /* microseconds */
	struct oci_i64 idle;          /* 1: SCHED_IDLE for the group */
	const char *cpus, *mems;      /* cpuset(7)'s list format; NULL: not given */
};

struct oci_block_weight {
	uint32_t major, minor;
	struct oci_u64 weight;
};

enum oci_throttle {
	OCI_THROTTLE_READ_BPS,
	OCI_THROTTLE_WRITE_BPS,
	OCI_THROTTLE_READ_IOPS,
	OCI_THROTTLE_WRITE_IOPS,
	OCI_THROTTLE_COUNT
};
struct oci_block_rate {
	uint32_t major, minor;
	uint64_t rate;
};
struct oci_block_rates {
	const struct oci_block_rate *items;
	size_t count;
};

struct oci_block_io {
	struct oci_u64 weight; /* 10..1000 */
	const struct oci_block_weight *weights;
	size_t nweights;
	struct oci_block_rates rates[OCI_THROTTLE_COUNT];
};

struct oci_huge_page {
	const char *page_size; /* "2MB" */
	uint64_t limit;        /* bytes */
};

struct oci_rdma {
	const char *device;
	struct oci_u64 handles, objects;
};

struct oci_resources {
	const struct oci_device_rule *devices;
	size_t ndevices;
	struct oci_memory memory;
	struct oci_cpu cpu;
	struct oci_i64 pids_limit; /* -1: no limit */
	struct oci_block_io block_io;
	const struct oci_huge_page *huge_pages;
	size_t nhuge_pages;
	const struct oci_rdma *rdma;
	size_t nrdma;
	struct oci_pairs unified; /* a cgroup v2 file's name and what is written */
};

/* oci_resources_read - the file of `update --resources`.  Like oci_config_read(). */
int oci_resources_read(const char *name, const char *text, size_t size, struct arena *a,
		       struct oci_resources *out, struct cj_error *err);

extern const struct json_record oci_resources_record; /* "resources", for oci_linux.c */
