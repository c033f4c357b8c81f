/* SPDX-License-Identifier: Apache-2.0 */
/* Which plans a zygote suits.  Pure. */
#include "runtime/jail/zygote/zygote.h"

#include <stdbool.h>

#include "profiles/paths.h"

/* Where an interpreter and its modules lie, and what they read there. */
static const char *const shared[] = { "/usr",   "/bin",    "/sbin", "/lib", "/lib32",
				      "/lib64", "/libx32", "/opt",  "/etc" };

/* Init opens its side of the adoption beside what it opens for every jail: init_adoption_open(). */
#define NOFILE_MIN 64

static bool changes_shared(const char *target)
{
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		if (paths_is_below(target, shared[i]) || paths_is_below(shared[i], target))
			return true;
	return false;
}

const char *zygote_refusal(const struct plan *plan)
{
	if (plan->tty)
		return "its program has a terminal";
	if (plan->root.kind != ROOT_HOST)
		return "its root is not the host's /usr";
	if (plan->root.writable)
		return "its root is writable";
	if (plan->limits.nofile > 0 && plan->limits.nofile < NOFILE_MIN)
		return "its limit of open files is below 64";
	for (size_t i = 0; i < plan->root.nbinds; i++)
		if (changes_shared(plan->root.binds[i].target))
			return "a bind changes the directories of the interpreter";
	return NULL;
}
