/* SPDX-License-Identifier: Apache-2.0 */
/* Where a helper lies.  A test replaces this file's functions beneath libexec.c. */
#include "runtime/base/files/libexec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/text.h"

#define LIBEXEC "/libexec/cejail"

#define COPY_BEGIN "/memfd:"
#define COPY_END   " (deleted)"

/* cejail-oci runs from a copy in memory that has the program's path as its name: own_copy.c. */
static void remove_copy(char *self)
{
	const size_t begin = strlen(COPY_BEGIN), size = strlen(self);
	if (strncmp(self, COPY_BEGIN "/", begin + 1) != 0 || !text_ends_with(self, COPY_END))
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
	return used < PATH_MAX ? 0 : cj_fail(err, ENAMETOOLONG, "find the helper of '%s'", self);
}
