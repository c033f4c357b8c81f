/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/cgroup/scope_helper.h"

#include <sys/stat.h>

#include "runtime/base/files/libexec.h"

static void put_unix(struct scope_address *out, const char *path)
{
	struct stat st;
	int size = snprintf(out->text, sizeof(out->text), "unix:path=%s", path);
	/* ',' ';' and '%' have a meaning in an address; systemd's paths have none of them. */
	if (size < 0 || (size_t)size >= sizeof(out->text) || strpbrk(path, ",;%") ||
	    stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		out->text[0] = '\0';
}

/*
 * The user's bus comes first, by its address or where sessions have it; the manager's private
 * socket last, as systemctl(1) uses it where no bus daemon runs.
 */
static struct scope_address address_of_user(size_t i)
{
	const char *runtime_dir = getenv("XDG_RUNTIME_DIR"),
		   *bus = getenv("DBUS_SESSION_BUS_ADDRESS");
	char path[300], usual[40];
	struct scope_address out = { .is_bus = i < 2 };
	if (i == 0) {
		if (bus && strlen(bus) < sizeof(out.text))
			memcpy(out.text, bus, strlen(bus) + 1);
		return out;
	}
	/* With an emptied environment: the path that pam_systemd(8) documents. */
	(void)snprintf(usual, sizeof(usual), "/run/user/%u", geteuid());
	(void)snprintf(path, sizeof(path), "%.200s/%s",
		       runtime_dir && runtime_dir[0] == '/' ? runtime_dir : usual,
		       i == 1 ? "bus" : "systemd/private");
	put_unix(&out, path);
	return out;
}

struct scope_address scope_helper_address(bool is_system, size_t i)
{
	/* The manager's own first: it answers without a bus daemon, as systemctl(1) asks it. */
	static const char *const of_system[] = { "/run/systemd/private",
						 "/run/dbus/system_bus_socket" };
	if (!is_system)
		return address_of_user(i);
	struct scope_address out = { .is_bus = i == 1 };
	if (i < COUNT_OF(of_system))
		put_unix(&out, of_system[i]);
	return out;
}

bool scope_helper_is_there(bool is_system)
{
	struct stat st;
	if (is_system)
		return lstat("/run/systemd/system", &st) == 0 && S_ISDIR(st.st_mode);
	for (size_t i = 0; i < SCOPE_ADDRESSES; i++)
		if (scope_helper_address(false, i).text[0] != '\0')
			return true;
	return false;
}

/* The arguments are those of runtime/front/helpers/scope_main.c. */
static int run(const char *const *args, struct cj_error *err)
{
	const struct libexec_call call = {
		.name = "scope-helper",
		.what = "the helper that asks systemd",
		.args = args,
	};
	return libexec_run(&call, err) < 0 ? -err->code : 0;
}

static const char *put_pid(char out[static 16], pid_t pid)
{
	(void)snprintf(out, 16, "%d", (int)pid);
	return out;
}

static const char *manager_of(const struct container_scope *scope)
{
	return scope->is_system ? "system" : "user";
}

int scope_helper_enter(const char *id, struct cj_error *err)
{
	char pid[16], unit[64];
	(void)snprintf(unit, sizeof(unit), "cejail-%s.scope", id);
	return run((const char *const[]){ "enter", "user", unit, put_pid(pid, getpid()), NULL },
		   err);
}

int scope_helper_start(const struct container_scope *scope, struct cj_error *err)
{
	char pid[16];
	return run((const char *const[]){ "start", manager_of(scope), scope->unit,
					  put_pid(pid, getpid()), scope->slice, NULL },
		   err);
}

int scope_helper_attach(const struct container_scope *scope, const char *child, pid_t pid,
			struct cj_error *err)
{
	char text[16];
	return run((const char *const[]){ "attach", manager_of(scope), scope->unit,
					  put_pid(text, pid), child, NULL },
		   err);
}

int scope_helper_stop(const struct container_scope *scope, struct cj_error *err)
{
	return run((const char *const[]){ "stop", manager_of(scope), scope->unit, NULL }, err);
}
