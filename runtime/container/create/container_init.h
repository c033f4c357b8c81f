/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_init - the container's first process, from clone3(2) to its execve(2).
 *
 * It goes down a table of stages, and each failure becomes create's error, or start's.  It is
 * single-threaded, holds no descriptor of the host's but those that the stages need, and is not
 * dumpable from the id map on.
 */
#pragma once

struct creation;

/* c is init's copy.  Never returns: the program, or _exit(2). */
_Noreturn void container_init_main(struct creation *c);
