/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zygote_serve - the fork(3) of a zygote: it makes a child for each request, for ever.
 */
#pragma once

#include <sys/types.h>

#define ZYGOTE_SOCK_FD 3 /* where zygote_spawn() puts the socket */

/*
 * zygote_serve - say that the zygote is ready, then serve requests from ZYGOTE_SOCK_FD.
 *
 * Returns only in the children, with 0: each is sealed, in its jail, and a child of its init.
 * The zygote ends (exit status 0) when every other end of its socket is closed.
 * A zygote with more than one task answers each request with EBUSY: a fork has only one of them.
 * `fork_now` is fork(3) of the C library.
 */
pid_t zygote_serve(pid_t (*fork_now)(void));
