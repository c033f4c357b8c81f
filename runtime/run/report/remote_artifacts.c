/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on the caller's directory. */
#include "runtime/run/report/remote_artifacts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "rootfs/files/autorun.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/atomic_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/run/report/remote_result.h"

/* A component of a path that artifacts.h would accept from a jail. */
static bool is_plain_name(const char *name, size_t size)
{
	if (size == 0 || size > ARTIFACT_NAME_MAX || name[0] == '-' ||
	    (size == 1 && name[0] == '.') || (size == 2 && memcmp(name, "..", 2) == 0))
		return false;
	for (size_t i = 0; i < size; i++) {
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return false;
	}
	return true;
}

static bool is_plain_path(const char *path)
{
	for (size_t depth = 0; depth <= ARTIFACTS_DEPTH_MAX; depth++) {
		size_t size = strcspn(path, "/");
		if (!is_plain_name(path, size))
			return false;
		if (path[size] == '\0')
			return true;
		path += size + 1;
	}
	return false;
}

/* Opens the directory of the last component and creates it if missing.  *name becomes that
 * component. */
static int open_place(int dest_fd, const char **name, struct cj_error *err)
{
	auto_fd int dir_fd = fcntl(dest_fd, F_DUPFD_CLOEXEC, 3);

	for (size_t size; dir_fd >= 0; *name += size + 1) {
		char part[ARTIFACT_NAME_MAX + 1];
		size = strcspn(*name, "/");
		if ((*name)[size] == '\0')
			return take_fd(&dir_fd);
		memcpy(part, *name, size);
		part[size] = '\0';
		if (mkdirat(dir_fd, part, 0755) < 0 && errno != EEXIST)
			break;
		int next_fd = openat(dir_fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		cj_close(&dir_fd);
		dir_fd = next_fd;
	}
	return cj_fail(err, errno, "create its directory");
}

static int store(int dest_fd, const char *path, const char *bytes, size_t size,
		 struct cj_error *err)
{
	struct atomic_file file;
	const char *name = path;

	if (!is_plain_path(path))
		return cj_reject(
		    err, "its path leads out of the directory, or is not a valid file name");
	auto_fd int dir_fd = open_place(dest_fd, &name, err);
	if (dir_fd < 0)
		return dir_fd;
	int rc = atomic_file_open(dir_fd, 0600, &file);
	if (rc < 0)
		return cj_fail(err, -rc, "create it");
	rc = fd_write_all(file.fd, bytes, size, "it", err);
	if (rc == 0 && fchmod(file.fd, 0644) < 0)
		rc = cj_fail(err, errno, "set its mode");
	int published = rc == 0 ? atomic_file_publish(&file, dir_fd, name) : 0;
	if (published < 0)
		rc = cj_fail(err, -published, "rename it");
	atomic_file_fini(&file);
	return rc;
}

static int store_one(const struct json_node *entry, int dest_fd, struct outcome *o,
		     struct cj_error *err)
{
	const char *path = json_get_text(entry, "path"), *sha256 = json_get_text(entry, "sha256");
	const char *type = json_get_text(entry, "type"), *bytes;
	struct artifact *item = &o->artifacts.items[o->artifacts.count];
	char seen[SHA256_HEX_MAX];
	size_t size;

	if (!path || !sha256 || !type || !remote_bytes_of(entry, &o->arena, &bytes, &size))
		return cj_reject(err, "the service did not send its content");
	sha256_hex(bytes, size, seen);
	if (strcmp(seen, sha256) != 0)
		return cj_reject(err, "its content does not match its SHA-256");
	if (store(dest_fd, path, bytes, size, err) < 0)
		return -err->code;
	*item = (struct artifact){ .path = arena_strdup(&o->arena, path),
				   .bytes = size,
				   .type = arena_strdup(&o->arena, type) };
	memcpy(item->sha256, seen, sizeof(seen));
	if (!item->path || !item->type)
		return cj_fail(err, ENOMEM, "list it");
	o->artifacts.count++;
	return 0;
}

bool remote_artifacts_store(const struct json_node *result, int dest_fd, struct outcome *o)
{
	const struct json_node *list = json_get_typed(result, "artifacts", JSON_ARRAY);
	bool is_complete = true;

	if (dest_fd < 0 || !list || list->count == 0)
		return true;
	o->artifacts.items = arena_array(&o->arena, list->count, sizeof(*o->artifacts.items));
	for (const struct json_node *m = list->child; m; m = m->next) {
		struct cj_error err = { 0 };
		const char *path = json_get_text(m, "path");
		if (path && autorun_has_name(path)) {
			outcome_warn(o, "artifacts: '%s' is not stored: %s", path, AUTORUN_FAULT);
			continue;
		}
		if (o->artifacts.items && store_one(m, dest_fd, o, &err) == 0)
			continue;
		outcome_warn(o, "artifacts: '%s' is not stored: %s", path ? path : "?",
			     err.code ? err.msg : "no memory");
		is_complete = false;
	}
	return is_complete;
}
