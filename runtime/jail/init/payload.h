/* SPDX-License-Identifier: Apache-2.0 */
/* payload - the last steps before the untrusted program, from vfork(2) to execve(2). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "runtime/base/error.h"
#include "runtime/jail/protocol.h"

struct payload {
	char *const *argv, *const *env;
	char *const *own_argv; /* tried first: by the interpreter of its "#!" line; NULL: none */
	int stdio[3];
	int channel_fd; /* becomes descriptor 3 of a launcher or a REPL; -1: a program gets none */
	int calls_fd;   /* becomes descriptor 4, for the calls of its tools; -1: it gets none */
	int domain_fd;  /* the ruleset of a Landlock domain, in a session; -1: it enters none */
	bool has_tty;   /* stdio is a terminal of its own, to become the controlling one */
};

/* Returns its pid once it runs; 0 when execve(2) failed, with the reason in *out. */
pid_t payload_start(const struct payload *p, struct executed *out, struct cj_error *err);
