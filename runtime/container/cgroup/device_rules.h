/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_rules - the rules of linux.resources.devices as a BPF program, and its cgroup.
 *
 * The program decides on each open(2) and mknod(2) of a device: the kernel's
 * Documentation/admin-guide/cgroup-v2.rst, "Device controller".  For each right that is asked for
 * (read, write, mknod) the last rule that covers it decides; without one it is denied.
 */
#pragma once

#include <linux/bpf.h>

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/config/oci_resources.h"

#define DEVICE_RULES_MAX 1024 /* of a config.json; podman writes about ten */

struct device_program {
	const struct bpf_insn *insns; /* in the arena */
	size_t count;
};

/*
 * device_rules_compile - the program for `rules`, in their order, and then for what every container
 * may do: make a node of any device; use null, zero, full, random, urandom, tty, console, ptmx and
 * the terminals of devpts.
 *
 * So a rule that denies all, which engines write first, leaves these.
 * Fails: EINVAL for more than DEVICE_RULES_MAX; ENOMEM.
 */
int device_rules_compile(const struct oci_device_rule *rules, size_t count, struct arena *a,
			 struct device_program *out, struct cj_error *err);

/*
 * Is this process root of the host?  Another can't load a device program; but in its user namespace
 * the kernel lets no process make device nodes.
 */
bool device_rules_can_attach(void);

/*
 * device_rules_set - compile the rules, and replace the cgroup's own programs by this one.
 *
 * While both are attached, both must allow; so no moment is without rules.
 * Unless device_rules_can_attach(), EPERM is success, and nothing is attached.
 * Fails: device_rules_compile(); EPERM where this is root of the host without CAP_SYS_ADMIN; EINVAL
 *        without CONFIG_CGROUP_BPF.
 */
int device_rules_set(int cgroup_fd, const struct oci_device_rule *rules, size_t count,
		     struct cj_error *err);
