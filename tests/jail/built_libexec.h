/* SPDX-License-Identifier: Apache-2.0 */
/* built_libexec - programs and libraries of this build: tests lie elsewhere than cejail. */
/* What includes it says: WRAP: libexec_find */
#pragma once

#include "runtime/base/files/libexec.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

int __wrap_libexec_find(const char *name, char out[static PATH_MAX], struct cj_error *err);
int __wrap_libexec_find(const char *name, char out[static PATH_MAX], struct cj_error *err)
{
	(void)err;
	char self[PATH_MAX];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(size > 0);
	self[size] = '\0';
	*strstr(self, "/tests/") = '\0';
	assert_true(snprintf(out, PATH_MAX, "%s/libexec/cejail/%s", self, name) < PATH_MAX);
	return 0;
}
