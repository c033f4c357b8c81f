/* SPDX-License-Identifier: Apache-2.0 */
/* Attaches device programs.  Acts. */
#include "runtime/container/cgroup/device_attach.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/ids/idmap.h"

#define ATTACHED_MAX 64 /* BPF_CGROUP_MAX_PROGS of the kernel */

static int sys_bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

bool device_attach_is_possible(void)
{
	return geteuid() == 0 && idmap_is_initial();
}

static int load(const struct device_program *program)
{
	static const char license[] = "Apache-2.0";
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE,
		.insns = (uintptr_t)program->insns,
		.insn_cnt = (uint32_t)program->count,
		.license = (uintptr_t)license,
		.prog_name = "cejail_devices",
	};
	return sys_bpf(BPF_PROG_LOAD, &attr);
}

struct attached {
	uint32_t ids[ATTACHED_MAX];
	size_t count;
};

static int list(int cgroup_fd, struct attached *out)
{
	union bpf_attr attr = {
		.query = { .target_fd = (uint32_t)cgroup_fd,
			   .attach_type = BPF_CGROUP_DEVICE,
			   .prog_ids = (uintptr_t)out->ids,
			   .prog_cnt = ATTACHED_MAX },
	};
	if (sys_bpf(BPF_PROG_QUERY, &attr) < 0)
		return -errno;
	out->count = attr.query.prog_cnt;
	return 0;
}

static int attach(int cgroup_fd, int program_fd)
{
	union bpf_attr attr = {
		.target_fd = (uint32_t)cgroup_fd,
		.attach_bpf_fd = (uint32_t)program_fd,
		.attach_type = BPF_CGROUP_DEVICE,
		.attach_flags = BPF_F_ALLOW_MULTI,
	};
	return sys_bpf(BPF_PROG_ATTACH, &attr) < 0 ? -errno : 0;
}

static int detach(int cgroup_fd, uint32_t id)
{
	union bpf_attr by_id = { .prog_id = id };
	auto_fd int program_fd = sys_bpf(BPF_PROG_GET_FD_BY_ID, &by_id);
	if (program_fd < 0)
		return -errno;
	union bpf_attr attr = {
		.target_fd = (uint32_t)cgroup_fd,
		.attach_bpf_fd = (uint32_t)program_fd,
		.attach_type = BPF_CGROUP_DEVICE,
	};
	return sys_bpf(BPF_PROG_DETACH, &attr) < 0 ? -errno : 0;
}

static int replace(int cgroup_fd, int program_fd, struct cj_error *err)
{
	struct attached before = { 0 };
	int rc = list(cgroup_fd, &before);
	if (rc < 0)
		return cj_fail(err, -rc, "list the cgroup's device programs");
	rc = attach(cgroup_fd, program_fd);
	if (rc < 0)
		return cj_fail(err, -rc, "attach the device program to the cgroup");
	for (size_t i = 0; i < before.count; i++) {
		rc = detach(cgroup_fd, before.ids[i]);
		if (rc < 0)
			return cj_fail(err, -rc, "detach the cgroup's former device program");
	}
	return 1;
}

int device_attach(int cgroup_fd, const struct device_program *program, struct cj_error *err)
{
	/* Attaching takes no O_PATH descriptor, and the caller's may be one. */
	auto_fd int dir_fd = openat(cgroup_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return cj_fail(err, errno, "open the cgroup");
	auto_fd int program_fd = load(program);
	if (program_fd >= 0)
		return replace(dir_fd, program_fd, err);
	if (errno == EPERM && !device_attach_is_possible())
		return 0;
	int rc = cj_fail(err, errno, "load the device program");
	(void)cj_hint(err, "linux.resources.devices needs CAP_SYS_ADMIN and a kernel with "
			   "CONFIG_CGROUP_BPF; or use --cgroup-manager disabled");
	return rc;
}
