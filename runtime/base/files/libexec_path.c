/* SPDX-License-Identifier: Apache-2.0 */
/* Where a program of ours lies.  Acts: asks /proc for the running one. */
#include "runtime/base/files/libexec_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/text.h"

#define LIBEXEC "/libexec/cejail"

int libexec_path_find(const char *name, char out[static PATH_MAX], struct cj_error *err)
{
	char self[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (size < 0)
		return cj_fail(err, errno, "read '/proc/self/exe'");
	self[size] = '\0';

	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	int used = snprintf(out, PATH_MAX, "%s%s/%s", self,
			    text_ends_with(self, LIBEXEC) ? "" : "/.." LIBEXEC, name);
	return used < PATH_MAX ? 0 : cj_fail(err, ENAMETOOLONG, "find the helper of '%s'", self);
}
