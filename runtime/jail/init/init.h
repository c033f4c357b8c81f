/* SPDX-License-Identifier: Apache-2.0 */
/* init - pid 1 of the jail, from clone3(2) to its end. */
#pragma once

struct jail;

/* The whole life of init; never returns. */
_Noreturn void init_main(struct jail *j);
