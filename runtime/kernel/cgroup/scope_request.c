/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks systemd over sd-bus whether this unit is delegated, for a scope, and for what is done with
 * one.  Runs in the helper program (runtime/front/helpers/scope_main.c), so that cejail links no
 * library for it.
 */
#include "runtime/kernel/cgroup/scope_request.h"

#include <poll.h>
#include <sys/prctl.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/kernel/cgroup/scope_helper.h"

/* On a busy host the manager answers late.  Without its cgroup the jail's limits are weaker, so the
 * run waits this long, and looks the more rarely, which leaves the CPU to the manager. */
#define ANSWER_LIMIT_US   25000000
#define ENTER_LIMIT_MS    25000
#define LOOK_PAUSE_MAX_MS 32

#define OBJECT_PATH_MAX 800 /* a unit name has at most 255 bytes */

/* What is asked of which connection. */
struct scope_call {
	const struct sdbus *lib;
	struct sd_bus *bus;
	const struct scope_request *request;
	int pidfd; /* of the process: readable when it has ended; -1: none */
};

static int connect_bus(const struct sdbus *lib, const struct scope_address *address,
		       struct sd_bus **out, struct cj_error *err)
{
	struct sd_bus *bus = NULL;
	int rc = lib->new (&bus);
	if (rc >= 0)
		rc = lib->set_address(bus, address->text);
	if (rc >= 0)
		rc = lib->set_bus_client(bus, address->is_bus);
	if (rc >= 0)
		rc = lib->set_method_call_timeout(bus, ANSWER_LIMIT_US);
	if (rc >= 0)
		rc = lib->start(bus);
	if (rc < 0) {
		(void)lib->flush_close_unref(bus); /* returns NULL */
		return cj_fail(err, -rc, "connect to '%s'", address->text);
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
	return rc < 0 ? cj_fail(err, -rc, "authenticate to systemd") : 0;
}

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

/* False also when the manager doesn't answer: then it is asked for a scope. */
static bool is_delegated(const struct sdbus *lib, struct sd_bus *bus, pid_t pid)
{
	struct cgroup_self self;
	(void)cgroup_self_read(pid, &self);      /* unreadable: in no unit */
	cgroup_text_leave_supervisor(self.path); /* another cejail may have moved us there */
	char manager[64];
	(void)snprintf(manager, sizeof(manager), "/user@%u.service/", getuid());
	/* The unit whose cgroup this is, if it is one of the user manager's. */
	const char *unit = strstr(self.path, manager) ? strrchr(self.path, '/') + 1 : NULL;
	const char *type = unit ? strrchr(unit, '.') : NULL;
	/* Scopes and services have the same properties, in interfaces of their own. */
	const char *interface = !type                           ? NULL
				: strcmp(type, ".scope") == 0   ? "org.freedesktop.systemd1.Scope"
				: strcmp(type, ".service") == 0 ? "org.freedesktop.systemd1.Service"
								: NULL;
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

#define SYSTEMD "org.freedesktop.systemd1"
#define MANAGER SYSTEMD, "/org/freedesktop/systemd1", SYSTEMD ".Manager"

/* Ends the call's error.  `what` is "start", "stop": of which unit follows. */
static int finish(const struct scope_call *call, struct sdbus_error *error, int rc,
		  const char *what, struct cj_error *err)
{
	if (rc < 0)
		rc = cj_fail(err, -rc, "%s '%.255s'%s%.150s", what, call->request->unit,
			     error->message ? ": " : "", error->message ? error->message : "");
	call->lib->error_free(error);
	return rc < 0 ? rc : 0;
}

/* Properties: org.freedesktop.systemd1(5). */
static int start_jail_scope(const struct scope_call *call, struct cj_error *err)
{
	struct sdbus_error error = { 0 };
	int rc = call->lib->call_method(
	    call->bus, MANAGER, "StartTransientUnit", &error, NULL, "ssa(sv)a(sa(sv))",
	    call->request->unit, "fail", 4, "Description", "s", "a jail of cejail", "PIDs", "au", 1,
	    (uint32_t)call->request->pid, "Delegate", "b", 1, "CollectMode", "s",
	    "inactive-or-failed", 0); /* auxiliary units */
	return finish(call, &error, rc, "start", err);
}

/* The container's own limit of processes counts, not systemd's default for scopes. */
static int start_container_scope(const struct scope_call *call, struct cj_error *err)
{
	struct sdbus_error error = { 0 };
	int rc = call->lib->call_method(
	    call->bus, MANAGER, "StartTransientUnit", &error, NULL, "ssa(sv)a(sa(sv))",
	    call->request->unit, "fail", 6, "Description", "s", "a container of cejail-oci", "PIDs",
	    "au", 1, (uint32_t)call->request->pid, "Delegate", "b", 1, "CollectMode", "s",
	    "inactive-or-failed", "Slice", "s", call->request->slice, "TasksMax", "t", UINT64_MAX,
	    0); /* auxiliary units */
	return finish(call, &error, rc, "start", err);
}

static int attach(const struct scope_call *call, struct cj_error *err)
{
	struct sdbus_error error = { 0 };
	int rc = call->lib->call_method(call->bus, MANAGER, "AttachProcessesToUnit", &error, NULL,
					"ssau", call->request->unit, call->request->child, 1,
					(uint32_t)call->request->pid);
	return finish(call, &error, rc, "move a process into", err);
}

static int stop(const struct scope_call *call, struct cj_error *err)
{
	struct sdbus_error error = { 0 };
	int rc = call->lib->call_method(call->bus, MANAGER, "StopUnit", &error, NULL, "ss",
					call->request->unit, "replace");
	return finish(call, &error, rc, "stop", err);
}

/* The answer only says that a job is queued: /proc/PID/cgroup shows when it is done. */
static int await_scope(const struct scope_call *call, struct cj_error *err)
{
	const char *unit = call->request->unit;
	const uint64_t began_ms = clock_ms();
	for (uint64_t waited_ms = 0; waited_ms < ENTER_LIMIT_MS;
	     waited_ms = clock_ms() - began_ms) {
		if (fd_await(call->pidfd, POLLIN, 0)) {
			/* A scope for a process that is dead already never contains one, so the
			 * manager would keep it.  An error means that it is gone. */
			struct cj_error ignored;
			(void)stop(call, &ignored);
			return cj_fail(err, ESRCH, "move a process into '%s'", unit);
		}
		struct cgroup_self self;
		(void)cgroup_self_read(call->request->pid, &self); /* unreadable: in no unit */
		const char *last = strrchr(self.path, '/');
		if (last && strcmp(last + 1, unit) == 0)
			return 0;
		const uint64_t grown_ms = 1 + waited_ms / 8;
		const uint64_t pause_ms = grown_ms < LOOK_PAUSE_MAX_MS ? grown_ms
								       : LOOK_PAUSE_MAX_MS;
		const struct timespec pause = { .tv_nsec = (long)pause_ms * 1000000 };
		(void)nanosleep(&pause, NULL); /* early is fine */
	}
	return cj_fail(err, ETIMEDOUT, "wait to be moved into '%s'", unit);
}

static int start(const struct scope_call *call, struct cj_error *err)
{
	const struct scope_request *r = call->request;
	if (r->keeps_delegated && is_delegated(call->lib, call->bus, r->pid))
		return 0;
	/* From here this helper outlives the process it asks for, to stop its scope if it ends. */
	(void)prctl(PR_SET_PDEATHSIG, 0); /* cannot fail */
	int rc = r->has_slice ? start_container_scope(call, err) : start_jail_scope(call, err);
	return rc < 0 ? rc : await_scope(call, err);
}

typedef int scope_action(const struct scope_call *call, struct cj_error *err);

static int ask(const struct scope_request *request, int pidfd, scope_action *action,
	       struct cj_error *err)
{
	struct sdbus lib;
	int rc = sdbus_load(&lib, err);
	if (rc < 0)
		return rc;

	struct scope_call call = { .lib = &lib, .request = request, .pidfd = pidfd };
	rc = cj_reject_as(err, ENOENT, "no %s manager was found",
			  request->is_system ? "system" : "user");
	for (size_t i = 0; i < SCOPE_ADDRESSES; i++) {
		struct scope_address address = scope_helper_address(request->is_system, i);
		if (address.text[0] == '\0')
			continue;
		rc = connect_bus(&lib, &address, &call.bus, err);
		if (rc == 0) {
			rc = await_bus(&lib, call.bus, err);
			if (rc == 0)
				rc = action(&call, err);
			(void)lib.flush_close_unref(call.bus); /* returns NULL */
		}
		if (rc == 0 || rc == -ETIMEDOUT || rc == -ESRCH)
			break; /* another address leads to the same manager */
	}
	return rc;
}

int scope_request_start(const struct scope_request *request, struct cj_error *err)
{
	auto_fd int pidfd = sys_pidfd_open(request->pid);
	if (pidfd < 0)
		return cj_fail(err, errno, "open process %d", (int)request->pid);
	return ask(request, pidfd, start, err);
}

int scope_request_attach(const struct scope_request *request, struct cj_error *err)
{
	return ask(request, -1, attach, err);
}

int scope_request_stop(const struct scope_request *request, struct cj_error *err)
{
	return ask(request, -1, stop, err);
}
