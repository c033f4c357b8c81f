/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a container's cgroup: found, made, opened again, removed.
 * Follows Documentation/admin-guide/cgroup-v2.rst and cgroups(7).
 */
#include "runtime/container/cgroup/container_cgroup.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup_tree.h"
#include "runtime/container/cgroup/device_rules.h"
#include "runtime/container/cgroup/resource_limits.h"
#include "runtime/kernel/cgroup/cgroup.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/scope_helper.h"

#define MAKE_ATTEMPTS   16   /* another delete may remove a parent that it finds empty */
#define EMPTY_WAIT_MS   5000 /* for killed processes; one in uninterruptible sleep takes longer */
#define REMOVE_WAIT_MS  1000
#define MANAGER_MS      1000 /* in which systemd removes an empty scope itself */
#define END_WAIT_MS     5000 /* a busy manager is late; twice, when it must be asked */
#define RUNTIME_CHILD   "runtime"
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

void container_cgroup_close(struct container_cgroup *c)
{
	cj_close(&c->dir_fd);
}

/* What is to be made, and for the way back, what has been. */
struct making {
	const struct container_cgroup_wanted *wanted;
	struct container_cgroup *cgroup;
	struct resource_writes writes;
	size_t made_from; /* length of the first path that was made; 0: none was */
};

/*
 * No cgroup can be had.  Without limits the container runs in the caller's, and why_none is kept;
 * device rules count where a process of the container could make and open any device.
 */
static int do_without(const struct making *m, const char *why, struct cj_error *err)
{
	const struct resource_write *limit = resource_first_limit(&m->writes, NULL);
	if (limit || (m->wanted->resources->ndevices > 0 && device_rules_can_attach())) {
		cj_refuse_as(err, ENOENT, "linux.resources.%s can't be enforced: %.300s",
			     limit ? limit->field : "devices", why);
		return resource_hint(limit ? limit->controller : "devices", err);
	}
	(void)snprintf(m->cgroup->why_none, sizeof(m->cgroup->why_none), "%s", why);
	m->cgroup->record.path[0] = '\0';
	return 0;
}

/*
 *	SCOPE/runtime      create moves itself there, to be allowed to clone into the scope
 *	SCOPE/container    the container, with its limits
 *
 * The scope is delegated, so systemd writes to neither.
 */

/* Root of the host asks the system's manager. */
static struct container_scope scope_of(const struct container_cgroup *c)
{
	return (struct container_scope){ .is_system = device_rules_can_attach(),
					 .unit = c->record.unit,
					 .slice = c->slice };
}

/* `path` is "slice:prefix:name" or NULL. */
static int find_scope(const char *path, const char *id, struct container_cgroup *out,
		      struct cj_error *err)
{
	struct cgroup_scope_name name;
	bool is_system = device_rules_can_attach();
	if (cgroup_path_scope(path, id, &name, err) < 0)
		return -err->code;
	if (!scope_helper_is_there(is_system)) {
		cj_refuse_as(err, ENOENT, "--systemd-cgroup needs a %s, and none runs here",
			     is_system ? "systemd" : "systemd user manager");
		return cj_hint(err, "use --cgroup-manager cgroupfs%s",
			       is_system ? ""
					 : ", log in with a session, or 'loginctl "
					   "enable-linger'");
	}
	const char *slice = is_system ? "system.slice" : "user.slice";
	memcpy(out->record.unit, name.unit, sizeof(out->record.unit));
	(void)snprintf(out->slice, sizeof(out->slice), "%s", name.slice[0] ? name.slice : slice);
	return 0;
}

/*
 * Starts the scope around this process and moves it to the child "runtime", so that it may clone
 * into the scope.  *out_fd is the scope's directory.
 */
static int start_scope(struct container_cgroup *c, int *out_fd, struct cj_error *err)
{
	const struct container_scope scope = scope_of(c);
	struct cgroup_host host;
	if (scope_helper_start(&scope, err) < 0)
		return -err->code;
	cgroup_host_read(&host);
	const char *last = strrchr(host.own_path, '/');
	if (!last || strcmp(last + 1, c->record.unit) != 0)
		return cj_reject_as(err, ENOENT, "the scope '%s' can't be seen in '%s'",
				    c->record.unit, host.mount.point);
	memcpy(c->record.path, host.own_path, sizeof(c->record.path));
	auto_fd int fd = open(c->record.path, DIRECTORY_FLAGS);
	if (fd < 0)
		return cj_fail(err, errno, "open the scope '%s'", c->record.path);
	int rc = system_file_make_dir(fd, RUNTIME_CHILD);
	if (rc == 0)
		rc = system_file_write(fd, RUNTIME_CHILD "/cgroup.procs", "0"); /* this process */
	if (rc < 0)
		return cj_fail(err, -rc, "move to '%s/" RUNTIME_CHILD "'", c->record.path);
	*out_fd = take_fd(&fd);
	return 0;
}

/* A cgroup that is delegated to us, or the root of our container; "": there is none. */
static void find_delegated(char out[static CGROUP_PATH_MAX])
{
	struct cgroup_parent_report reports[8];
	size_t count = cgroup_parent_reports(reports, 8);
	out[0] = '\0';
	for (size_t i = 0; i < count && out[0] == '\0'; i++) {
		const struct cgroup_parent_report *r = &reports[i];
		bool is_whole = strlen(r->detail) + 1 < sizeof(r->detail);
		if (r->serves && is_whole &&
		    (strcmp(r->name, "delegated") == 0 || strcmp(r->name, "container") == 0))
			(void)snprintf(out, CGROUP_PATH_MAX, "%s", r->detail);
	}
}

static int put_path(struct container_cgroup *out, const char *base, const char *path,
		    struct cj_error *err)
{
	int size = snprintf(out->record.path, sizeof(out->record.path), "%s%s%s", base,
			    path[0] == '/' ? "" : "/", path);
	if (size < 0 || (size_t)size >= sizeof(out->record.path))
		return cj_reject(err, "cgroupsPath '%.200s...' is too long", path);
	return 0;
}

/* A relative path is below what is delegated to us; root's without that, below the root. */
static int find_path(const struct making *m, struct cj_error *err)
{
	const char *wanted = m->wanted->path;
	struct container_cgroup *out = m->cgroup;
	char path[CGROUP_PATH_MAX], base[CGROUP_PATH_MAX];
	struct cgroup_host host;
	if (!wanted || wanted[0] == '\0')
		(void)snprintf(path, sizeof(path), "cejail-oci.%.300s", m->wanted->id);
	else if (cgroup_path_clean(wanted, path, err) < 0)
		return -err->code;

	cgroup_host_read(&host);
	if (host.mount.point[0] == '\0')
		return do_without(m, "no cgroup v2 hierarchy is mounted here", err);
	if (path[0] == '/')
		return put_path(out, host.mount.point, path, err);
	find_delegated(base);
	out->is_below_own = base[0] != '\0';
	if (out->is_below_own)
		return put_path(out, base, path, err);
	if (faccessat(AT_FDCWD, host.mount.point, W_OK, AT_EACCESS) == 0)
		return put_path(out, host.mount.point, path, err);
	if (scope_helper_is_there(false)) {
		out->manager = CGROUP_MANAGER_SYSTEMD;
		return find_scope(NULL, m->wanted->id, out, err);
	}
	return do_without(m, "no cgroup here is delegated to this user", err);
}

int container_cgroup_find(const struct container_cgroup_wanted *wanted,
			  struct container_cgroup *out, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct making m = { .wanted = wanted, .cgroup = out };
	*out = CONTAINER_CGROUP_NULL;
	out->manager = wanted->manager;
	if (wanted->manager == CGROUP_MANAGER_DISABLED)
		return 0;
	if (resource_writes_plan(wanted->resources, NULL, &a, &m.writes, err) < 0)
		return -err->code;
	if (wanted->manager == CGROUP_MANAGER_SYSTEMD)
		return find_scope(wanted->path, wanted->id, out, err);
	return find_path(&m, err);
}

/* Processes of ours in the delegated cgroup itself keep controllers from its children. */
static int enable(const struct making *m, int dir_fd, const char *path, struct cj_error *err)
{
	int rc = resource_enable(dir_fd, path, &m->writes, err);
	if (rc != -EBUSY || !m->cgroup->is_below_own)
		return rc;
	int moved = cgroup_tree_vacate(dir_fd);
	if (moved < 0)
		return cj_fail(err, -moved, "move the processes of '%.200s' to a leaf", path);
	return resource_enable(dir_fd, path, &m->writes, err);
}

/* Makes `name`, unless it exists, and opens it: a descriptor or -errno. */
static int make_level(int parent_fd, const char *name, bool *out_is_new)
{
	for (unsigned attempt = 0; attempt < MAKE_ATTEMPTS; attempt++) {
		int rc = system_file_make_dir(parent_fd, name);
		if (rc < 0 && rc != -EEXIST && rc != -ENOENT)
			return rc;
		*out_is_new = rc == 0;
		int fd = openat(parent_fd, name, DIRECTORY_FLAGS);
		if (fd >= 0)
			return fd;
		rc = -errno;
		if (*out_is_new)
			(void)unlinkat(parent_fd, name, AT_REMOVEDIR); /* ours, and empty */
		if (rc != -ENOENT)
			return rc;
	}
	return -ENOENT;
}

/* One component of the path, in *fd; `path` is that of *fd. */
static int descend(struct making *m, int *fd, const char *path, const char *name,
		   struct cj_error *err)
{
	bool is_new = false;
	if (enable(m, *fd, path, err) < 0)
		return -err->code;
	int child_fd = make_level(*fd, name, &is_new);
	if (child_fd < 0)
		return cj_fail(err, -child_fd, "make the cgroup '%.300s/%s'", path, name);
	if (is_new && m->made_from == 0)
		m->made_from = strlen(path) + 1 + strlen(name);
	cj_close(fd);
	*fd = child_fd;
	return 0;
}

/*
 * The mount itself is opened by path, all below it component by component.  The first cgroups exist
 * and may be others': they get no controller that they have already.
 */
static int make_levels(struct making *m, struct cj_error *err)
{
	char path[CGROUP_PATH_MAX];
	struct cgroup_host host;
	cgroup_host_read(&host);
	size_t used = strlen(host.mount.point);
	memcpy(path, m->cgroup->record.path, sizeof(path));
	if (strncmp(path, host.mount.point, used) != 0 || path[used] != '/')
		return cj_reject(err, "cgroup '%s' is not below '%s'", path, host.mount.point);

	path[used] = '\0';
	auto_fd int fd = open(path, DIRECTORY_FLAGS);
	if (fd < 0)
		return cj_fail(err, errno, "open '%s'", path);
	while (m->cgroup->record.path[used] == '/') {
		const char *name = path + used + 1;
		size_t next = used + 1 + strcspn(m->cgroup->record.path + used + 1, "/");
		path[next] = '\0';
		if (descend(m, &fd, path, name, err) < 0)
			return -err->code;
		path[used] = '/';
		used = next;
	}
	m->cgroup->dir_fd = take_fd(&fd);
	return 0;
}

/* The limits and the device rules of the cgroup that is made, and its number. */
static int apply_all(struct making *m, struct cj_error *err)
{
	const struct oci_resources *r = m->wanted->resources;
	struct container_cgroup *c = m->cgroup;
	struct stat st;
	if (fstat(c->dir_fd, &st) < 0)
		return cj_fail(err, errno, "look at the cgroup '%s'", c->record.path);
	c->record.inode = st.st_ino;
	if (cgroup_tree_event(c->dir_fd, "populated"))
		return cj_reject_as(err, EBUSY,
				    "cgroup '%s' contains processes: give each "
				    "container a cgroupsPath of its own",
				    c->record.path);
	if (resource_apply(c->dir_fd, &m->writes, err) < 0)
		return -err->code;
	return device_rules_set(c->dir_fd, r->devices, r->ndevices, err);
}

/* Removes the directories that were made, the last first; they are empty. */
static int undo(struct making *m, int rc)
{
	char path[CGROUP_PATH_MAX];
	memcpy(path, m->cgroup->record.path, sizeof(path));
	for (size_t size; m->made_from > 0 && (size = strlen(path)) >= m->made_from;) {
		(void)rmdir(path); /* ENOENT: not made yet */
		*strrchr(path, '/') = '\0';
	}
	cj_close(&m->cgroup->dir_fd);
	return rc;
}

static int make_path(struct making *m, struct cj_error *err)
{
	int rc = make_levels(m, err);
	/* An ordinary user may ask for a path in a hierarchy that is not delegated to it. */
	if ((rc == -EACCES || rc == -EPERM || rc == -EROFS) && !device_rules_can_attach()) {
		const struct cj_error why = *err;
		(void)undo(m, rc);
		return do_without(m, why.msg, err);
	}
	if (rc == 0)
		rc = apply_all(m, err);
	return rc < 0 ? undo(m, rc) : 0;
}

static int make_scope(struct making *m, struct cj_error *err)
{
	struct container_cgroup *c = m->cgroup;
	char scope[CGROUP_PATH_MAX];
	int scope_fd = -1;
	int rc = start_scope(c, &scope_fd, err);
	if (rc < 0 && m->wanted->manager != CGROUP_MANAGER_SYSTEMD) {
		const struct cj_error why = *err; /* a manager that ends, for example */
		c->manager = m->wanted->manager;
		c->record.unit[0] = '\0';
		return do_without(m, why.msg, err);
	}
	if (rc < 0)
		return rc;
	auto_fd int fd = scope_fd;
	memcpy(scope, c->record.path, sizeof(scope));
	if (put_path(c, scope, CONTAINER_SCOPE_CHILD, err) < 0 ||
	    descend(m, &fd, scope, CONTAINER_SCOPE_CHILD, err) < 0)
		return -err->code;
	c->dir_fd = take_fd(&fd);
	rc = apply_all(m, err);
	return rc < 0 ? undo(m, rc) : 0;
}

int container_cgroup_make(const struct container_cgroup_wanted *wanted, struct container_cgroup *c,
			  struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct making m = { .wanted = wanted, .cgroup = c };
	if (c->manager == CGROUP_MANAGER_DISABLED || c->why_none[0] != '\0')
		return 0;
	if (resource_writes_plan(wanted->resources, NULL, &a, &m.writes, err) < 0)
		return -err->code;
	return c->manager == CGROUP_MANAGER_SYSTEMD ? make_scope(&m, err) : make_path(&m, err);
}

int container_cgroup_open(const struct container_cgroup_record *record,
			  struct container_cgroup *out, struct cj_error *err)
{
	*out = CONTAINER_CGROUP_NULL;
	out->record = *record;
	out->manager = record->unit[0] != '\0'   ? CGROUP_MANAGER_SYSTEMD
		       : record->path[0] != '\0' ? CGROUP_MANAGER_CGROUPFS
						 : CGROUP_MANAGER_DISABLED;
	if (record->path[0] == '\0')
		return 0;

	struct statfs fs;
	struct stat st;
	auto_fd int fd =
	    sys_openat2(AT_FDCWD, record->path, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
	if (fd < 0)
		return errno == ENOENT || errno == ENODEV
			   ? 0
			   : cj_fail(err, errno, "open the cgroup '%s'", record->path);
	if (fstatfs(fd, &fs) < 0 || fstat(fd, &st) < 0)
		return cj_fail(err, errno, "look at the cgroup '%s'", record->path);
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return cj_reject(err, "'%s' is not in a cgroup v2 hierarchy", record->path);
	if (record->inode == 0 || st.st_ino == record->inode)
		out->dir_fd = take_fd(&fd);
	return 0;
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

/* Waits until systemd has removed the empty scope, so that its name is free; best effort. */
static void end_scope(const struct container_cgroup *c, int scope_fd)
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

int container_cgroup_remove(const struct container_cgroup *c, struct cj_error *err)
{
	if (c->dir_fd < 0)
		return 0;
	/* Without an inode number the record is older than the cgroup, which may be another's. */
	if (c->record.inode != 0 && cgroup_tree_kill(c->dir_fd, EMPTY_WAIT_MS, err) < 0)
		return -err->code;
	auto_fd int parent_fd = openat(c->dir_fd, "..", DIRECTORY_FLAGS);
	if (parent_fd < 0 && (errno == ENODEV || errno == ENOENT))
		return 0;
	if (parent_fd < 0)
		return cj_fail(err, errno, "open the cgroup above '%s'", c->record.path);
	int rc = cgroup_tree_remove(parent_fd, strrchr(c->record.path, '/') + 1, REMOVE_WAIT_MS);
	if (rc < 0)
		return cj_fail(err, -rc, "remove the cgroup '%s'", c->record.path);
	if (c->record.unit[0] != '\0')
		end_scope(c, parent_fd);
	return 0;
}
