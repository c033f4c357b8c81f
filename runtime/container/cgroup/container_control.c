/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a running container through its cgroup. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"
#include "runtime/container/cgroup/container_cgroup.h"
#include "runtime/container/cgroup/device_rules.h"
#include "runtime/container/cgroup/resource_limits.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/scope_helper.h"

#define FREEZE_WAIT_MS 10000 /* a process in uninterruptible sleep stops late */
#define KILL_WAIT_MS   1000

int container_cgroup_need(const struct container_cgroup *c, const char *what, struct cj_error *err)
{
	if (c->dir_fd >= 0)
		return 0;
	return cj_reject_as(err, ENOENT, "the container has no cgroup, which '%s' needs", what);
}

/*
 * The directory below the container's cgroup in which `pid` is.  The container chose its name, so
 * it is opened beneath ours.
 */
static int open_cgroup_of(const struct container_cgroup *c, pid_t pid)
{
	char path[CGROUP_PATH_MAX];
	struct cgroup_host host;
	struct cgroup_self self;
	int rc = cgroup_self_read(pid, &self);
	if (rc < 0)
		return rc;
	cgroup_host_read(&host);
	const char *below = cgroup_text_locate(&host.mount, self.path, path)
				? text_path_below(path, c->record.path)
				: NULL;
	if (!below || *below == '\0')
		return -ENOENT;
	int fd = sys_openat2(c->dir_fd, below + 1, O_PATH | O_DIRECTORY, 0,
			     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	return fd < 0 ? -errno : fd;
}

int container_cgroup_join_below(const struct container_cgroup *c, const char *path,
				struct cj_error *err)
{
	const char *below = path + strspn(path, "/");

	if (container_cgroup_need(c, "exec --cgroup", err) < 0)
		return -err->code;
	auto_fd int fd = sys_openat2(c->dir_fd, below[0] ? below : ".", O_PATH | O_DIRECTORY, 0,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
	int rc = fd < 0 ? -errno : cgroup_move(fd, 0);
	return rc < 0 ? cj_fail(err, -rc, "--cgroup: join '%s' below the container's cgroup '%s'",
				path, c->record.path)
		      : 0;
}

int container_cgroup_join(const struct container_cgroup *c, pid_t init_pid, struct cj_error *err)
{
	if (c->dir_fd < 0)
		return 0;
	int rc = cgroup_move(c->dir_fd, 0);
	if (rc == -EBUSY && init_pid > 0) {
		auto_fd int fd = open_cgroup_of(c, init_pid);
		rc = fd < 0 ? fd : cgroup_move(fd, 0);
	}
	if (rc == -EACCES && c->record.unit[0] != '\0') {
		/* into the container's cgroup in the scope, where only the manager may move it */
		const struct container_scope scope = { .is_system = device_rules_can_attach(),
						       .unit = c->record.unit };
		return scope_helper_attach(&scope, "/" CONTAINER_SCOPE_CHILD, getpid(), err);
	}
	if (rc == 0)
		return 0;
	rc = cj_fail(err, -rc, "move a process into the cgroup '%s'", c->record.path);
	if (err->code == EACCES || err->code == EPERM)
		(void)cj_hint(err, "start cejail-oci in a cgroup that is delegated to this user: "
				   "'systemd-run --user --scope -p Delegate=yes'");
	return rc;
}

static const char *read_text(int dir_fd, const char *file, char *text, size_t size)
{
	return system_file_read(dir_fd, file, text, size) > 0 ? text : NULL;
}

int container_cgroup_update(const struct container_cgroup *c, const struct oci_resources *resources,
			    struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct resource_writes writes;
	if (container_cgroup_need(c, "update", err) < 0)
		return -err->code;
	char memory_max[64], cpu_max[64];
	const struct resource_current current = {
		.memory_max = read_text(c->dir_fd, "memory.max", memory_max, sizeof(memory_max)),
		.cpu_max = read_text(c->dir_fd, "cpu.max", cpu_max, sizeof(cpu_max)),
	};
	if (resource_writes_plan(resources, &current, &a, &writes, err) < 0 ||
	    resource_check_usage(c->dir_fd, resources, err) < 0)
		return -err->code;

	auto_fd int parent_fd = openat(c->dir_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent_fd < 0)
		return cj_fail(err, errno, "open the cgroup above '%s'", c->record.path);
	/* A controller that appeared after create; what can't be had fails by its file. */
	struct cj_error ignored;
	(void)resource_enable(parent_fd, c->record.path, &writes, &ignored);
	int rc = resource_apply(c->dir_fd, &writes, err);
	if (rc < 0 || resources->ndevices == 0)
		return rc;
	return device_rules_set(c->dir_fd, resources->devices, resources->ndevices, err);
}

int container_cgroup_freeze(const struct container_cgroup *c, bool frozen, struct cj_error *err)
{
	if (container_cgroup_need(c, frozen ? "pause" : "resume", err) < 0)
		return -err->code;
	int rc = cgroup_tree_freeze(c->dir_fd, frozen, FREEZE_WAIT_MS);
	if (rc == -ETIMEDOUT && frozen)
		(void)system_file_write(c->dir_fd, "cgroup.freeze", "0"); /* as it was */
	return rc < 0 ? cj_fail(err, -rc, "%s the cgroup '%s'", frozen ? "freeze" : "thaw",
				c->record.path)
		      : 0;
}

bool container_cgroup_is_frozen(const struct container_cgroup *c)
{
	char text[16];
	return c->dir_fd >= 0 &&
	       system_file_read(c->dir_fd, "cgroup.freeze", text, sizeof(text)) > 0 &&
	       text[0] == '1';
}

int container_cgroup_kill(const struct container_cgroup *c, int signal, struct cj_error *err)
{
	if (container_cgroup_need(c, "kill --all", err) < 0)
		return -err->code;
	return signal == SIGKILL ? cgroup_tree_kill(c->dir_fd, KILL_WAIT_MS, err)
				 : cgroup_tree_signal(c->dir_fd, signal, err);
}

bool container_cgroup_is_populated(const struct container_cgroup *c)
{
	return c->dir_fd >= 0 && cgroup_tree_event(c->dir_fd, "populated");
}

int container_cgroup_pids(const struct container_cgroup *c, struct arena *a, pid_t **out,
			  size_t *out_count, struct cj_error *err)
{
	int rc = container_cgroup_need(c, "ps", err);
	return rc < 0 ? rc : cgroup_tree_pids(c->dir_fd, a, out, out_count, err);
}
