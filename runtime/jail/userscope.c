/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One method call to the user's systemd through sd-bus.  Acts.
 *
 * The user's bus comes first, by its address or where sessions have it; the manager's
 * private socket last, as systemctl(1) uses it where no bus daemon runs.
 */
#include "runtime/jail/userscope.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime/base/scope.h"
#include "runtime/jail/cgroup_text.h"
#include "runtime/jail/kernfile.h"
#include "runtime/jail/sdbus.h"

#define ANSWER_LIMIT_US 2000000
#define ENTER_LIMIT_MS  2000
#define ADDRESS_MAX     300

/* --- where the user manager listens ---------------------------------------------------- */

struct door {
	char address[ADDRESS_MAX]; /* D-Bus server address; "": not there */
	bool is_bus;               /* a bus daemon between us and the manager */
};

static bool is_socket(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void put_unix(struct door *out, const char *path)
{
	int size = snprintf(out->address, sizeof(out->address), "unix:path=%s", path);
	/* ',' ';' and '%' mean something in an address: such a path is not one of systemd's. */
	if (size < 0 || (size_t)size >= sizeof(out->address) || strpbrk(path, ",;%") ||
	    !is_socket(path))
		out->address[0] = '\0';
}

static struct door door_of_environment(const char *runtime_dir)
{
	(void)runtime_dir;
	struct door door = { .is_bus = true };
	const char *address = getenv("DBUS_SESSION_BUS_ADDRESS");
	if (address && strlen(address) < sizeof(door.address))
		memcpy(door.address, address, strlen(address) + 1);
	return door;
}

static struct door door_of_bus(const char *runtime_dir)
{
	struct door door = { .is_bus = true };
	char path[ADDRESS_MAX];
	(void)snprintf(path, sizeof(path), "%.200s/bus", runtime_dir);
	put_unix(&door, path);
	return door;
}

static struct door door_of_manager(const char *runtime_dir)
{
	struct door door = { .is_bus = false };
	char path[ADDRESS_MAX];
	(void)snprintf(path, sizeof(path), "%.200s/systemd/private", runtime_dir);
	put_unix(&door, path);
	return door;
}

static struct door (*const doors[])(const char *runtime_dir) = {
	door_of_environment,
	door_of_bus,
	door_of_manager,
};
#define DOORS (sizeof(doors) / sizeof(doors[0]))

/* Programs that start us may have emptied the environment: then as pam_systemd(8) names it. */
static void find_runtime_dir(char *out, size_t size)
{
	const char *named = getenv("XDG_RUNTIME_DIR");
	if (named && named[0] == '/')
		(void)snprintf(out, size, "%s", named);
	else
		(void)snprintf(out, size, "/run/user/%u", geteuid());
}

bool userscope_is_there(void)
{
	char runtime_dir[256];
	find_runtime_dir(runtime_dir, sizeof(runtime_dir));
	for (size_t i = 0; i < DOORS; i++)
		if (doors[i](runtime_dir).address[0] != '\0')
			return true;
	return false;
}

/* --- the call -------------------------------------------------------------------------- */

static int connect_door(const struct sdbus *lib, const struct door *door, struct sd_bus **out,
			struct cj_error *err)
{
	struct sd_bus *bus = NULL;
	int rc = lib->new (&bus);
	if (rc >= 0)
		rc = lib->set_address(bus, door->address);
	if (rc >= 0)
		rc = lib->set_bus_client(bus, door->is_bus);
	if (rc >= 0)
		rc = lib->set_method_call_timeout(bus, ANSWER_LIMIT_US);
	if (rc >= 0)
		rc = lib->start(bus);
	if (rc < 0) {
		(void)lib->flush_close_unref(bus); /* returns NULL */
		return cj_fail(err, -rc, "connect to '%s'", door->address);
	}
	*out = bus;
	return 0;
}

static int start_scope(const struct sdbus *lib, struct sd_bus *bus, const char *unit,
		       struct cj_error *err)
{
	struct sdbus_error error = { 0 };
	int rc = lib->call_method(
	    bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
	    "org.freedesktop.systemd1.Manager", "StartTransientUnit", &error, NULL,
	    "ssa(sv)a(sa(sv))", unit, "fail", 4, /* properties: org.freedesktop.systemd1(5) */
	    "Description", "s", "a jail of cejail", "PIDs", "au", 1, (uint32_t)getpid(), "Delegate",
	    "b", 1, "CollectMode", "s", "inactive-or-failed", 0); /* auxiliary units */
	if (rc < 0)
		rc = cj_fail(err, -rc, "start '%s'%s%.200s", unit, error.message ? ": " : "",
			     error.message ? error.message : "");
	lib->error_free(&error);
	return rc < 0 ? rc : 0;
}

static bool is_in_scope(const char *unit)
{
	char text[KERNFILE_SMALL], tail[96];
	struct cgroup_self self;
	if (kernfile_read(AT_FDCWD, "/proc/self/cgroup", text, sizeof(text)) < 0)
		return false;
	cgroup_text_self(text, &self);

	(void)snprintf(tail, sizeof(tail), "/%s", unit);
	size_t size = strlen(self.path), tail_size = strlen(tail);
	return size >= tail_size && strcmp(self.path + size - tail_size, tail) == 0;
}

/* The answer only says that a job is queued.  Where it leads can be seen. */
static int await_scope(const char *unit, struct cj_error *err)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	for (unsigned ms = 0; ms < ENTER_LIMIT_MS; ms++) {
		if (is_in_scope(unit))
			return 0;
		(void)nanosleep(&pause, NULL); /* early is fine */
	}
	return cj_fail(err, ETIMEDOUT, "wait to be moved into '%s'", unit);
}

static int try_door(const struct sdbus *lib, const struct door *door, const char *unit,
		    struct cj_error *err)
{
	struct sd_bus *bus = NULL;
	int rc = connect_door(lib, door, &bus, err);
	if (rc < 0)
		return rc;
	rc = start_scope(lib, bus, unit, err);
	if (rc == 0)
		rc = await_scope(unit, err);
	(void)lib->flush_close_unref(bus); /* returns NULL */
	return rc;
}

int userscope_enter(const char *id, struct cj_error *err)
{
	struct sdbus lib;
	int rc = sdbus_load(&lib, err);
	if (rc < 0)
		return rc;

	char runtime_dir[256], unit[64];
	find_runtime_dir(runtime_dir, sizeof(runtime_dir));
	(void)snprintf(unit, sizeof(unit), "cejail-%s.scope", id);

	rc = cj_fail(err, ENOENT, "find a user manager in '%s'", runtime_dir);
	for (size_t i = 0; i < DOORS; i++) {
		struct door door = doors[i](runtime_dir);
		if (door.address[0] == '\0')
			continue;
		rc = try_door(&lib, &door, unit, err);
		if (rc == 0 || rc == -ETIMEDOUT)
			break; /* another door leads to the same, slow, manager */
	}
	return rc;
}
