/* SPDX-License-Identifier: Apache-2.0 */
/* Apart from capabilities.c: libcap's names come with a constructor, six system calls, which a
 * program that names no capability does without. */
#include "runtime/kernel/process/capabilities.h"

#include <sys/capability.h>

uint64_t capabilities_bit(const char *name)
{
	cap_value_t value = 0;
	if (cap_from_name(name, &value) < 0 || value < 0 || value >= 64)
		return 0;
	return UINT64_C(1) << value;
}
