/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_attach - loads a device program and attaches it to a cgroup: bpf(2),
 * BPF_PROG_TYPE_CGROUP_DEVICE.  Acts.
 */
#pragma once

#include <stdbool.h>

#include "runtime/container/cgroup/device_rules.h"

/*
 * Is this process root of the host?  Another can't load a device program; but in its user namespace
 * the kernel lets no process make device nodes.
 */
bool device_attach_is_possible(void);

/*
 * device_attach - the cgroup's own programs are replaced by this one.
 *
 * While both are attached, both must allow; so no moment is without rules.
 * Unless device_attach_is_possible(), EPERM is success, and nothing is attached: 0.  Returns 1 when
 * the program is attached.
 * Fails: EPERM where this is root of the host without CAP_SYS_ADMIN; EINVAL without
 *        CONFIG_CGROUP_BPF.
 */
int device_attach(int cgroup_fd, const struct device_program *program, struct cj_error *err);
