/* SPDX-License-Identifier: Apache-2.0 */
/* The helper's side of libexec_run().  Acts. */
#include "runtime/base/files/libexec_program.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"

void libexec_begin(unsigned life_seconds)
{
	(void)alarm(life_seconds);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* cannot fail for a signal that there is */
}

int libexec_answer(const void *bytes, size_t size)
{
	struct cj_error ignored; /* without a reader there is nobody to tell */
	return fd_write_all(STDOUT_FILENO, bytes, size, "the launcher's pipe", &ignored) < 0
		   ? EXIT_FAILURE
		   : EXIT_SUCCESS;
}

int libexec_fail(const struct cj_error *err)
{
	(void)libexec_answer(err, sizeof(*err)); /* the parent sees the exit status, too */
	return EXIT_FAILURE;
}
