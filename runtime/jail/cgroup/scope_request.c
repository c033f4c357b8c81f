/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks the user's systemd over sd-bus whether this unit is delegated, and for a scope if it is not.
 * Acts; runs in the helper program (runtime/front/scope_helper), so that cejail links no library
 * for it.
 */
#include "runtime/jail/cgroup/scope_request.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/cgroup/cgroup_text.h"
#include "runtime/jail/cgroup/sdbus.h"
#include "runtime/jail/cgroup/user_bus.h"

/* On a busy host the manager answers late.  Without its cgroup the jail's limits are weaker, so the
 * run waits this long. */
#define ANSWER_LIMIT_US 15000000
#define ENTER_LIMIT_MS  15000

#define OBJECT_PATH_MAX 800 /* a unit name has at most 255 bytes */

/* The scope, and the process that is to be in it. */
struct scope_wanted {
	const char *unit;
	pid_t pid;
	int pidfd; /* of pid: readable when it has ended */
};

static int connect_bus(const struct sdbus *lib, const struct user_bus *address, struct sd_bus **out,
		       struct cj_error *err)
{
	struct sd_bus *bus = NULL;
	int rc = lib->new (&bus);
	if (rc >= 0)
		rc = lib->set_address(bus, address->address);
	if (rc >= 0)
		rc = lib->set_bus_client(bus, address->is_bus);
	if (rc >= 0)
		rc = lib->set_method_call_timeout(bus, ANSWER_LIMIT_US);
	if (rc >= 0)
		rc = lib->start(bus);
	if (rc < 0) {
		(void)lib->flush_close_unref(bus); /* returns NULL */
		return cj_fail(err, -rc, "connect to '%s'", address->address);
	}
	*out = bus;
	return 0;
}

/* Waits for authentication.  Another program may listen there and never answer. */
static int await_bus(const struct sdbus *lib, struct sd_bus *bus, struct cj_error *err)
{
	int rc;
	while ((rc = lib->is_ready(bus)) == 0) {
		rc = lib->process(bus, NULL);
		if (rc == 0)
			rc = lib->wait(bus, UINT64_MAX);
		if (rc < 0)
			break;
	}
	return rc < 0 ? cj_fail(err, -rc, "authenticate to the user manager") : 0;
}

/* --- where the process is --------------------------------------------------------- */

static void read_cgroup(pid_t pid, struct cgroup_self *out)
{
	char path[40], text[SYSTEM_FILE_SMALL];
	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (system_file_read(AT_FDCWD, path, text, sizeof(text)) < 0)
		text[0] = '\0'; /* unknown: in no unit */
	cgroup_text_self(text, out);
}

static bool is_in_unit(pid_t pid, const char *unit)
{
	struct cgroup_self self;
	read_cgroup(pid, &self);
	const char *last = strrchr(self.path, '/');
	return last && strcmp(last + 1, unit) == 0;
}

/* The unit whose cgroup this is, if it is one of the user manager's; else NULL. */
static const char *managed_unit(const struct cgroup_self *self)
{
	char manager[64];
	(void)snprintf(manager, sizeof(manager), "/user@%u.service/", getuid());
	return strstr(self->path, manager) ? strrchr(self->path, '/') + 1 : NULL;
}

/* --- is it delegated? --------------------------------------------------------------- */

/* All but letters and digits become _xx: sd_bus_path_encode(3). */
static bool put_object_path(const char *unit, char *out, size_t size)
{
	static const char root[] = "/org/freedesktop/systemd1/unit/";
	size_t used = sizeof(root) - 1;
	if (unit[0] == '\0' || used + strlen(unit) * 3 >= size)
		return false;
	memcpy(out, root, sizeof(root));
	for (const char *c = unit; *c; c++) {
		bool is_plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
				(*c >= '0' && *c <= '9' && c != unit);
		used += (size_t)snprintf(out + used, size - used, is_plain ? "%c" : "_%02x",
					 (unsigned char)*c);
	}
	return true;
}

/* Scopes and services have the same properties, in interfaces of their own. */
static const char *interface_of(const char *unit)
{
	const char *type = strrchr(unit, '.');
	if (type && strcmp(type, ".scope") == 0)
		return "org.freedesktop.systemd1.Scope";
	if (type && strcmp(type, ".service") == 0)
		return "org.freedesktop.systemd1.Service";
	return NULL;
}

/* False also when the manager doesn't answer: then it is asked for a scope. */
static bool is_delegated(const struct sdbus *lib, struct sd_bus *bus, pid_t pid)
{
	struct cgroup_self self;
	read_cgroup(pid, &self);
	cgroup_text_leave_supervisor(self.path); /* another cejail may have moved us there */
	const char *unit = managed_unit(&self), *interface = unit ? interface_of(unit) : NULL;
	char path[OBJECT_PATH_MAX];
	if (!interface || !put_object_path(unit, path, sizeof(path)))
		return false;

	struct sdbus_error error = { 0 };
	int delegates = 0;
	int rc = lib->get_property_trivial(bus, "org.freedesktop.systemd1", path, interface,
					   "Delegate", &error, 'b', &delegates);
	lib->error_free(&error);
	return rc >= 0 && delegates;
}

/* --- a scope ------------------------------------------------------------------------ */

static int start_scope(const struct sdbus *lib, struct sd_bus *bus,
		       const struct scope_wanted *wanted, struct cj_error *err)
{
	struct sdbus_error error = { 0 };
	int rc = lib->call_method(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
				  "org.freedesktop.systemd1.Manager", "StartTransientUnit", &error,
				  NULL, "ssa(sv)a(sa(sv))", wanted->unit, "fail",
				  4, /* properties: org.freedesktop.systemd1(5) */
				  "Description", "s", "a jail of cejail", "PIDs", "au", 1,
				  (uint32_t)wanted->pid, "Delegate", "b", 1, "CollectMode", "s",
				  "inactive-or-failed", 0); /* auxiliary units */
	if (rc < 0)
		rc = cj_fail(err, -rc, "start '%s'%s%.200s", wanted->unit,
			     error.message ? ": " : "", error.message ? error.message : "");
	lib->error_free(&error);
	return rc < 0 ? rc : 0;
}

/*
 * A scope for a process that is dead already never contains a process, so the manager would keep
 * it. An error means that it is gone.
 */
static void stop_scope(const struct sdbus *lib, struct sd_bus *bus, const char *unit)
{
	struct sdbus_error error = { 0 };
	(void)lib->call_method(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
			       "org.freedesktop.systemd1.Manager", "StopUnit", &error, NULL, "ss",
			       unit, "replace");
	lib->error_free(&error);
}

static bool has_ended(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	return poll(&p, 1, 0) > 0;
}

/* The answer only says that a job is queued: /proc/PID/cgroup shows when it is done. */
static int await_scope(const struct sdbus *lib, struct sd_bus *bus,
		       const struct scope_wanted *wanted, struct cj_error *err)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	for (unsigned ms = 0; ms < ENTER_LIMIT_MS; ms++) {
		if (has_ended(wanted->pidfd)) {
			stop_scope(lib, bus, wanted->unit);
			return cj_fail(err, ESRCH, "move a process into '%s'", wanted->unit);
		}
		if (is_in_unit(wanted->pid, wanted->unit))
			return 0;
		(void)nanosleep(&pause, NULL); /* early is fine */
	}
	return cj_fail(err, ETIMEDOUT, "wait to be moved into '%s'", wanted->unit);
}

static int try_bus(const struct sdbus *lib, const struct user_bus *address,
		   const struct scope_wanted *wanted, struct cj_error *err)
{
	struct sd_bus *bus = NULL;
	int rc = connect_bus(lib, address, &bus, err);
	if (rc < 0)
		return rc;
	rc = await_bus(lib, bus, err);
	if (rc == 0 && !is_delegated(lib, bus, wanted->pid)) {
		/* From here this helper outlives the process it asks for, to stop its scope if
		 * it ends. */
		(void)prctl(PR_SET_PDEATHSIG, 0); /* cannot fail */
		rc = start_scope(lib, bus, wanted, err);
		if (rc == 0)
			rc = await_scope(lib, bus, wanted, err);
	}
	(void)lib->flush_close_unref(bus); /* returns NULL */
	return rc;
}

int scope_request_enter(const char *id, pid_t pid, struct cj_error *err)
{
	struct sdbus lib;
	int rc = sdbus_load(&lib, err);
	if (rc < 0)
		return rc;

	auto_fd int pidfd = sys_pidfd_open(pid);
	if (pidfd < 0)
		return cj_fail(err, errno, "open process %d", (int)pid);
	char unit[64];
	(void)snprintf(unit, sizeof(unit), "cejail-%s.scope", id);
	const struct scope_wanted wanted = { .unit = unit, .pid = pid, .pidfd = pidfd };

	rc = cj_reject_as(err, ENOENT, "no user manager was found");
	for (size_t i = 0; i < USER_BUS_ADDRESSES; i++) {
		struct user_bus address = user_bus_find(i);
		if (address.address[0] == '\0')
			continue;
		rc = try_bus(&lib, &address, &wanted, err);
		if (rc == 0 || rc == -ETIMEDOUT || rc == -ESRCH)
			break; /* another address leads to the same manager */
	}
	return rc;
}
