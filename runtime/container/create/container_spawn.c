/* SPDX-License-Identifier: Apache-2.0 */
/* Makes init, and writes its id maps. */
#include "runtime/container/create/creation.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "runtime/base/child.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

static const uint64_t clone_flags[OCI_NS_COUNT] = {
	[OCI_NS_USER] = CLONE_NEWUSER,   [OCI_NS_CGROUP] = CLONE_NEWCGROUP,
	[OCI_NS_IPC] = CLONE_NEWIPC,     [OCI_NS_UTS] = CLONE_NEWUTS,
	[OCI_NS_NETWORK] = CLONE_NEWNET, [OCI_NS_PID] = CLONE_NEWPID,
	[OCI_NS_TIME] = CLONE_NEWTIME,   [OCI_NS_MOUNT] = CLONE_NEWNS,
};

/* The root of a cgroup namespace is the cgroup of the process that makes it, and a time namespace
 * needs its offsets before a process is in it: init makes both. */
static uint64_t new_flags(const struct creation *c)
{
	const struct oci_namespace *ns = creation_namespaces(c);
	uint64_t flags = 0;

	for (int i = 0; i < OCI_NS_COUNT; i++)
		if (ns[i].is_wanted && !ns[i].path && i != OCI_NS_CGROUP && i != OCI_NS_TIME)
			flags |= clone_flags[i];
	return flags;
}

static int reject_clone(const struct creation *c, int code, struct cj_error *err)
{
	int rc = cj_fail(err, code, "clone the container's init");

	if (code == EPERM && geteuid() != 0)
		cj_hint(err,
			"unprivileged user namespaces are off: see cejail(1), HOST REQUIREMENTS");
	else if (code == ENOSPC)
		cj_hint(err, "a limit of /proc/sys/user is reached: namespaces(7)");
	else if (code == EBUSY || code == EOPNOTSUPP)
		cj_hint(err, "the cgroup '%s' takes no process", c->cgroup.record.path);
	return rc;
}

static int clone_init(struct creation *c, uint64_t flags, int signal_at_end, struct cj_error *err)
{
	struct spawn_place place = creation_place(c);

	if (flags & CLONE_PARENT)
		place.cgroup_fd = -1; /* the intermediate process is in it already */
	pid_t pid = spawn_process(&place, flags, signal_at_end, NULL);
	if (pid == 0)
		container_init_main(c);
	if (pid < 0)
		return reject_clone(c, errno, err);
	c->init_pid = pid;
	return 0;
}

struct joined {
	int fds[OCI_NS_COUNT]; /* -1: not joined by path, or joined already */
	int count;             /* that are joined by path */
};

static void joined_fini(struct joined *j)
{
	for (int i = 0; i < OCI_NS_COUNT; i++)
		cj_close(&j->fds[i]);
}
#define auto_joined __attribute__((cleanup(joined_fini)))

/* By this process, before init exists: a path under /proc/PID names the same process for both. */
static int open_paths(const struct creation *c, struct joined *out, struct cj_error *err)
{
	const struct oci_namespace *ns = creation_namespaces(c);

	for (int i = 0; i < OCI_NS_COUNT; i++)
		out->fds[i] = -1;
	for (int i = 0; i < OCI_NS_COUNT; i++) {
		if (!ns[i].is_wanted || !ns[i].path)
			continue;
		out->count++;
		out->fds[i] = open(ns[i].path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (out->fds[i] < 0)
			return cj_fail(err, errno, "open the %s namespace '%s'",
				       oci_namespace_names[i], ns[i].path);
	}
	return 0;
}

static int join(const struct creation *c, struct joined *j, int type, struct cj_error *err)
{
	if (j->fds[type] < 0)
		return 0;
	if (setns(j->fds[type], (int)clone_flags[type]) < 0)
		return cj_fail(err, errno, "join the %s namespace '%s'", oci_namespace_names[type],
			       creation_namespaces(c)[type].path);
	cj_close(&j->fds[type]);
	return 0;
}

/*
 * In a network namespace by path: by sockets with the caller's own rights, or, if it belongs to
 * the user namespace that is joined, with the rights there.  The loader has the caller's.  Init has
 * none over a network of the host's.
 */
static int load_rules(struct creation *c, bool is_last, struct cj_error *err)
{
	const struct oci_namespace *net = &creation_namespaces(c)[OCI_NS_NETWORK];
	struct cj_error refused = { 0 };

	if (!c->annotations.has_network || !net->path || c->network.rules_fd >= 0)
		return 0;
	if (annotations_load_network(&c->loader, &c->rules, &c->network, &refused) == 0)
		return 0;
	if (!is_last && refused.code == EPERM)
		return 0;
	*err = refused;
	return -err->code;
}

/* What the caller may join comes first; what belongs to the container's user namespace, later. */
static int join_all(struct creation *c, struct joined *j, struct cj_error *err)
{
	bool joins_user = j->fds[OCI_NS_USER] >= 0;

	for (int i = 0; i < OCI_NS_COUNT; i++) {
		struct cj_error refused = { 0 };
		if (i == OCI_NS_USER || join(c, j, i, &refused) == 0)
			continue;
		if (!joins_user || refused.code != EPERM) {
			*err = refused;
			return -err->code;
		}
	}
	if (j->fds[OCI_NS_NETWORK] < 0 && load_rules(c, !joins_user, err) < 0)
		return -err->code;
	for (int i = OCI_NS_USER; i < OCI_NS_COUNT; i++)
		if (join(c, j, i, err) < 0)
			return -err->code;
	return load_rules(c, true, err);
}

/* Shared with the intermediate process. */
struct ids_answer {
	pid_t init_pid; /* 0: it failed */
	struct cj_error err;
};

static _Noreturn void intermediate_main(struct creation *c, struct joined *j,
					struct ids_answer *answer)
{
	if (join_all(c, j, &answer->err) < 0)
		_exit(1);
	joined_fini(j); /* init must not have them */
	/* Init begins as a copy of this process, and the namespace's processes see it at once. */
	if (child_become_undumpable(&answer->err) < 0)
		_exit(1);
	if (clone_init(c, new_flags(c) | CLONE_PARENT, 0, &answer->err) == 0)
		answer->init_pid = c->init_pid;
	_exit(0);
}

static int spawn_joined(struct creation *c, struct joined *j, struct cj_error *err)
{
	struct ids_answer *answer =
	    mmap(NULL, sizeof(*answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (answer == MAP_FAILED)
		return cj_fail(err, errno, "map memory for the intermediate process");
	const struct spawn_place place = creation_place(c);
	pid_t pid = spawn_process(&place, 0, SIGCHLD, NULL);
	if (pid == 0)
		intermediate_main(c, j, answer);
	int rc = pid < 0 ? reject_clone(c, errno, err) : 0;
	if (pid > 0)
		(void)sys_waitpid(pid, NULL, 0); /* the answer says how it went */
	c->init_pid = answer->init_pid;
	if (rc == 0 && c->init_pid <= 0)
		rc = answer->err.code ? cj_adopt(err, &answer->err, "the intermediate process")
				      : cj_fail(err, ECHILD, "clone the container's init");
	(void)munmap(answer, sizeof(*answer)); /* cannot fail for a mapping of ours */
	return rc;
}

int container_spawn(struct creation *c, struct cj_error *err)
{
	const struct oci_namespace *user = &creation_namespaces(c)[OCI_NS_USER];
	auto_joined struct joined j = { .count = 0 };

	if (open_paths(c, &j, err) < 0)
		return -err->code;
	/*
	 * An ordinary user can't open the id maps of a process that is not dumpable: proc(5).  No
	 * process has a right in a user namespace that is new.  In a joined one others may have
	 * CAP_SYS_PTRACE, and init still has the host's root: there it is never dumpable.
	 */
	bool writes_map = geteuid() != 0 && user->is_wanted && !user->path;
	if (writes_map && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return cj_fail(err, errno, "become dumpable");
	int rc = j.count > 0 ? spawn_joined(c, &j, err) : clone_init(c, new_flags(c), SIGCHLD, err);
	if (writes_map)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail with these arguments */
	if (rc < 0)
		return rc;
	c->init_pidfd = sys_pidfd_open(c->init_pid);
	return c->init_pidfd < 0 ? cj_fail(err, errno, "open the container's init") : 0;
}

#define MAP_MAX 4096 /* the kernel takes one write of less than a page: user_namespaces(7) */

static int write_map(int proc_fd, const struct oci_id_maps *maps, const char *name,
		     struct cj_error *err)
{
	auto_arena struct arena a = { 0 };

	if (maps->count == 0)
		return cj_reject(err, "a new user namespace needs linux.%s",
				 name[0] == 'u' ? "uidMappings" : "gidMappings");
	const char *text = oci_id_maps_format(maps, &a);
	if (!text)
		return cj_fail(err, ENOMEM, "format the %s of the container", name);
	if (strlen(text) >= MAP_MAX)
		return cj_reject(err, "%s has %zu ranges, which is more than the kernel takes",
				 name, maps->count);
	int rc = system_file_write(proc_fd, name, text);
	if (rc == 0)
		return 0;
	rc = cj_fail(err, -rc, "write the %s of the container", name);
	if (geteuid() != 0 && rc == -EPERM)
		cj_hint(err, "an ordinary user may map one id, its own; podman maps more");
	return rc;
}

int container_spawn_map_ids(const struct oci_linux *config, pid_t pid, struct cj_error *err)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	auto_fd int proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	if (write_map(proc_fd, &config->uid_maps, "uid_map", err) < 0)
		return -err->code;
	if (geteuid() != 0) {
		int rc = system_file_write(proc_fd, "setgroups", "deny");
		if (rc < 0)
			return cj_fail(err, -rc, "deny setgroups(2) in the container");
	}
	return write_map(proc_fd, &config->gid_maps, "gid_map", err);
}
