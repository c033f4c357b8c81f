/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends a container's systemd scope.  Acts. */
#include "runtime/container/cgroup/cgroup_scope.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/kernel/cgroup/cgroup_path.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"
#include "runtime/container/cgroup/device_attach.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/scope_helper.h"
#include "runtime/kernel/cgroup/user_bus.h"

#define RUNTIME_CHILD   "runtime"
#define MANAGER_MS      1000 /* in which systemd removes an empty scope itself */
#define END_WAIT_MS     5000 /* a busy manager is late; twice, when it must be asked */
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* Root of the host asks the system's manager. */
static bool is_system(void)
{
	return device_attach_is_possible();
}

static struct container_scope scope_of(const struct container_cgroup *c)
{
	return (struct container_scope){ .is_system = is_system(),
					 .unit = c->record.unit,
					 .slice = c->slice };
}

bool cgroup_scope_is_there(bool of_system)
{
	return of_system ? system_bus_is_there() : scope_helper_is_there();
}

int cgroup_scope_find(const char *path, const char *id, struct container_cgroup *out,
		      struct cj_error *err)
{
	struct cgroup_scope_name name;
	int rc = cgroup_path_scope(path, id, &name, err);
	if (rc < 0)
		return rc;
	if (!cgroup_scope_is_there(is_system())) {
		rc = cj_reject_as(err, ENOENT, "--systemd-cgroup needs a %s, and none runs here",
				  is_system() ? "systemd" : "systemd user manager");
		(void)cj_hint(err, "use --cgroup-manager cgroupfs%s",
			      is_system() ? ""
					  : ", log in with a session, or 'loginctl "
					    "enable-linger'");
		return rc;
	}
	const char *slice = is_system() ? "system.slice" : "user.slice";
	memcpy(out->record.unit, name.unit, sizeof(out->record.unit));
	(void)snprintf(out->slice, sizeof(out->slice), "%s", name.slice[0] ? name.slice : slice);
	return 0;
}

/* The cgroup that the manager moved us to. */
static int put_scope_path(struct container_cgroup *c, struct cj_error *err)
{
	struct cgroup_host host;
	cgroup_host_read(&host);
	const char *last = strrchr(host.own_path, '/');
	if (!last || strcmp(last + 1, c->record.unit) != 0)
		return cj_reject_as(err, ENOENT, "the scope '%s' can't be seen in '%s'",
				    c->record.unit, host.mount.point);
	memcpy(c->record.path, host.own_path, sizeof(c->record.path));
	return 0;
}

int cgroup_scope_start(struct container_cgroup *c, int *out_fd, struct cj_error *err)
{
	const struct container_scope scope = scope_of(c);
	int rc = scope_helper_start(&scope, err);
	if (rc == 0)
		rc = put_scope_path(c, err);
	if (rc < 0)
		return rc;
	auto_fd int fd = open(c->record.path, DIRECTORY_FLAGS);
	if (fd < 0)
		return cj_fail(err, errno, "open the scope '%s'", c->record.path);
	rc = system_file_make_dir(fd, RUNTIME_CHILD);
	if (rc == 0)
		rc = system_file_write(fd, RUNTIME_CHILD "/cgroup.procs", "0"); /* this process */
	if (rc < 0)
		return cj_fail(err, -rc, "move to '%s/" RUNTIME_CHILD "'", c->record.path);
	*out_fd = take_fd(&fd);
	return 0;
}

int cgroup_scope_attach(const struct container_cgroup *c, pid_t pid, struct cj_error *err)
{
	const struct container_scope scope = scope_of(c);
	return scope_helper_attach(&scope, "/" CGROUP_SCOPE_CONTAINER, pid, err);
}

/*
 * False: the scope is there still.  A manager that looked while we removed the container's cgroups
 * found it in use and has forgotten it since.  So we remove it, after the manager had its time.
 */
static bool await_end(int scope_fd, const char *unit)
{
	auto_fd int parent_fd = openat(scope_fd, "..", DIRECTORY_FLAGS);
	for (unsigned ms = 0; ms < END_WAIT_MS; ms++) {
		if (faccessat(scope_fd, "cgroup.events", F_OK, 0) < 0)
			return true;
		if (ms >= MANAGER_MS && parent_fd >= 0)
			(void)unlinkat(parent_fd, unit, AT_REMOVEDIR); /* EBUSY: again */
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return false;
}

void cgroup_scope_end(const struct container_cgroup *c, int scope_fd)
{
	(void)unlinkat(scope_fd, RUNTIME_CHILD, AT_REMOVEDIR); /* create may be in it still */
	if (cgroup_tree_event(scope_fd, "populated"))
		return; /* `run` is in it, and its end is the scope's */

	if (await_end(scope_fd, c->record.unit))
		return;
	struct cj_error ignored; /* the container is gone, and the scope is empty */
	const struct container_scope scope = scope_of(c);
	(void)scope_helper_stop(&scope, &ignored);
	(void)await_end(
	    scope_fd,
	    c->record.unit); /* its name is taken until then, which the next create says */
}
