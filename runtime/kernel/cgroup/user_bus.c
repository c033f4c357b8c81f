/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where systemd listens.  Of the user's manager: the user's bus comes first, by its address or
 * where sessions have it; the manager's private socket last, as systemctl(1) uses it where no bus
 * daemon runs.
 */
#include "runtime/kernel/cgroup/user_bus.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_socket(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static void put_unix(struct user_bus *out, const char *path)
{
	int size = snprintf(out->address, sizeof(out->address), "unix:path=%s", path);
	/* ',' ';' and '%' have a meaning in an address; systemd's paths have none of them. */
	if (size < 0 || (size_t)size >= sizeof(out->address) || strpbrk(path, ",;%") ||
	    !is_socket(path))
		out->address[0] = '\0';
}

static struct user_bus bus_of_environment(const char *runtime_dir)
{
	(void)runtime_dir;
	struct user_bus bus = { .is_bus = true };
	const char *address = getenv("DBUS_SESSION_BUS_ADDRESS");
	if (address && strlen(address) < sizeof(bus.address))
		memcpy(bus.address, address, strlen(address) + 1);
	return bus;
}

static struct user_bus bus_of_session(const char *runtime_dir)
{
	struct user_bus bus = { .is_bus = true };
	char path[USER_BUS_ADDRESS_MAX];
	(void)snprintf(path, sizeof(path), "%.200s/bus", runtime_dir);
	put_unix(&bus, path);
	return bus;
}

static struct user_bus private_socket(const char *runtime_dir)
{
	struct user_bus bus = { .is_bus = false };
	char path[USER_BUS_ADDRESS_MAX];
	(void)snprintf(path, sizeof(path), "%.200s/systemd/private", runtime_dir);
	put_unix(&bus, path);
	return bus;
}

static struct user_bus (*const finders[])(const char *runtime_dir) = {
	bus_of_environment,
	bus_of_session,
	private_socket,
};
static_assert(sizeof(finders) / sizeof(finders[0]) == USER_BUS_ADDRESSES, "as the header says");

/* With an emptied environment: the path that pam_systemd(8) documents. */
static void find_runtime_dir(char *out, size_t size)
{
	const char *named = getenv("XDG_RUNTIME_DIR");
	if (named && named[0] == '/')
		(void)snprintf(out, size, "%s", named);
	else
		(void)snprintf(out, size, "/run/user/%u", geteuid());
}

struct user_bus user_bus_find(size_t i)
{
	char runtime_dir[256];
	find_runtime_dir(runtime_dir, sizeof(runtime_dir));
	return finders[i](runtime_dir);
}

struct user_bus system_bus_find(size_t i)
{
	/* The manager's own first: it answers without a bus daemon, as systemctl(1) asks it. */
	static const char *const paths[] = { "/run/systemd/private",
					     "/run/dbus/system_bus_socket" };
	struct user_bus bus = { .is_bus = i == 1 };
	if (i < sizeof(paths) / sizeof(paths[0]))
		put_unix(&bus, paths[i]);
	return bus;
}

bool system_bus_is_there(void)
{
	struct stat st;
	return lstat("/run/systemd/system", &st) == 0 && S_ISDIR(st.st_mode);
}

bool user_bus_is_there(void)
{
	for (size_t i = 0; i < USER_BUS_ADDRESSES; i++)
		if (user_bus_find(i).address[0] != '\0')
			return true;
	return false;
}
