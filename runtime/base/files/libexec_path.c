/* SPDX-License-Identifier: Apache-2.0 */
/* Where a helper lies.  A test replaces this file's functions beneath libexec.c. */
#include "runtime/base/files/libexec.h"

#include <sys/stat.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/text.h"

#define LIBEXEC "/libexec/cejail"

#define COPY_BEGIN "/memfd:"
#define COPY_END   " (deleted)"

/* cejail-oci runs from a copy in memory that has the program's path as its name: own_copy.c. */
static void remove_copy(char *self)
{
	const size_t begin = strlen(COPY_BEGIN), size = strlen(self);
	if (!text_begins_with(self, COPY_BEGIN "/") || !text_ends_with(self, COPY_END))
		return;
	self[size - strlen(COPY_END)] = '\0';
	memmove(self, self + begin, strlen(self + begin) + 1);
}

int libexec_self(char out[static PATH_MAX], struct cj_error *err)
{
	ssize_t size = readlink("/proc/self/exe", out, PATH_MAX - 1);
	if (size < 0)
		return cj_fail(err, errno, "read '/proc/self/exe'");
	out[size] = '\0';
	remove_copy(out);
	return 0;
}

/* Besides, whoever owns the program that the caller runs. */
static bool is_trusted(const struct stat *st, const struct stat *own)
{
	const bool is_owned = fd_has_trusted_owner(st) || st->st_uid == own->st_uid;
	const bool is_of_group = st->st_mode & S_IWGRP && st->st_gid != 0 &&
				 st->st_gid != getegid() && st->st_gid != own->st_gid;
	return is_owned && !is_of_group && !(st->st_mode & S_IWOTH);
}

/* What is missing is said where it is used. */
static int check_owner(const char *path, struct cj_error *err)
{
	struct stat own, st;
	if (stat("/proc/self/exe", &own) < 0)
		return cj_fail(err, errno, "look at '/proc/self/exe'");
	if (stat(path, &st) < 0 || is_trusted(&st, &own))
		return 0;
	cj_refuse_as(err, EPERM, "'%.300s' is not used: other users may change it", path);
	return cj_hint(err, "chmod go-w, chown root");
}

int libexec_find(const char *name, char out[static PATH_MAX], struct cj_error *err)
{
	char self[PATH_MAX];
	if (libexec_self(self, err) < 0)
		return -err->code;

	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	int used = snprintf(out, PATH_MAX, "%s%s/%s", self,
			    text_ends_with(self, LIBEXEC) ? "" : "/.." LIBEXEC, name);
	if (used >= PATH_MAX)
		return cj_fail(err, ENAMETOOLONG, "find the helper of '%s'", self);
	char *name_at = strrchr(out, '/');
	*name_at = '\0';
	int rc = check_owner(out, err);
	*name_at = '/';
	return rc < 0 ? rc : check_owner(out, err);
}
