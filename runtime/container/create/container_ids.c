/* SPDX-License-Identifier: Apache-2.0 */
/* Writes id maps.  Acts. */
#include "runtime/container/create/container_ids.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"

#define MAP_MAX 4096 /* the kernel takes one write of less than a page: user_namespaces(7) */

static int format_map(const struct oci_id_maps *maps, const char *name, struct arena *a,
		      const char **out, struct cj_error *err)
{
	if (maps->count == 0)
		return cj_reject(err, "a new user namespace needs linux.%s",
				 name[0] == 'u' ? "uidMappings" : "gidMappings");
	*out = oci_id_maps_format(maps, a);
	if (!*out)
		return cj_fail(err, ENOMEM, "format the %s of the container", name);
	if (strlen(*out) >= MAP_MAX)
		return cj_reject(err, "%s has %zu ranges, which is more than the kernel takes",
				 name, maps->count);
	return 0;
}

static int write_map(int proc_fd, const struct oci_id_maps *maps, const char *name,
		     struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	const char *text = NULL;

	if (format_map(maps, name, &a, &text, err) < 0)
		return -err->code;
	int rc = system_file_write(proc_fd, name, text);
	if (rc == 0)
		return 0;
	rc = cj_fail(err, -rc, "write the %s of the container", name);
	if (geteuid() != 0 && rc == -EPERM)
		cj_hint(err, "an ordinary user may map one id, its own; podman maps more");
	return rc;
}

int container_ids_write(const struct oci_linux *config, pid_t pid, struct cj_error *err)
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
