/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote.so: loaded into an interpreter by zygote_spawn(), it replaces fork(3).  In the zygote the
 * first call serves requests; in its children later calls are those of the C library.
 */
#include <dlfcn.h>
#include <sys/prctl.h>

#include "runtime/jail/zygote/zygote_inside.h"

#define PRELOAD "LD_PRELOAD="

/* No trace stays in the environment of the interpreter, or in /proc/self/environ. */
__attribute__((constructor)) static void leave_environment(void)
{
	char **kept = environ;
	for (char **e = environ; *e; e++) {
		if (strncmp(*e, PRELOAD, strlen(PRELOAD)) == 0)
			explicit_bzero(*e, strlen(*e));
		else
			*kept++ = *e;
	}
	*kept = NULL;
	/* It was executed by descriptor, and is called by its number. */
	(void)prctl(PR_SET_NAME, program_invocation_short_name, 0, 0, 0);
}

__attribute__((visibility("default"))) pid_t fork(void)
{
	static bool is_launcher; /* set in the children only: the zygote never returns */
	pid_t (*fork_now)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
	if (!fork_now)
		abort();
	if (is_launcher)
		return fork_now();
	(void)zygote_serve(fork_now);
	is_launcher = true;
	return 0;
}
