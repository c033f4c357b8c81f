/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program of ours lies.  Acts: asks /proc for the running one. */
#include "runtime/base/files/libexec_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/text.h"

#define LIBEXEC "/libexec/cejail"

#define COPY_BEGIN "/memfd:"
#define COPY_END   " (deleted)"

/* cejail-oci runs from a copy in memory that has the program's path as its name: own_copy.h. */
static char *without_copy(char *self)
{
	const size_t begin = strlen(COPY_BEGIN), size = strlen(self);
	if (strncmp(self, COPY_BEGIN "/", begin + 1) != 0 || !text_ends_with(self, COPY_END))
		return self;
	self[size - strlen(COPY_END)] = '\0';
	return self + begin;
}

int libexec_path_find(const char *name, char out[static PATH_MAX], struct cj_error *err)
{
	char link[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", link, sizeof(link) - 1);
	if (size < 0)
		return cj_fail(err, errno, "read '/proc/self/exe'");
	link[size] = '\0';
	char *self = without_copy(link);

	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	int used = snprintf(out, PATH_MAX, "%s%s/%s", self,
			    text_ends_with(self, LIBEXEC) ? "" : "/.." LIBEXEC, name);
	return used < PATH_MAX ? 0 : cj_fail(err, ENAMETOOLONG, "find the helper of '%s'", self);
}
