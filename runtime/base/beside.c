/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program of ours lies.  Acts: asks /proc for the running one. */
#include "runtime/base/beside.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIBEXEC "/libexec/cejail"

int beside_find(const char *name, char out[static PATH_MAX], struct cj_error *err)
{
	char self[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (size < 0)
		return cj_fail(err, errno, "read '/proc/self/exe'");
	self[size] = '\0';

	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	size_t size_of_dir = strlen(self), size_of_theirs = strlen(LIBEXEC);
	bool is_theirs = size_of_dir >= size_of_theirs &&
			 strcmp(self + size_of_dir - size_of_theirs, LIBEXEC) == 0;
	int used = snprintf(out, PATH_MAX, "%s%s/%s", self, is_theirs ? "" : "/.." LIBEXEC, name);
	return used < PATH_MAX ? 0 : cj_fail(err, ENAMETOOLONG, "find the helper of '%s'", self);
}
