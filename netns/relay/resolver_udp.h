/* SPDX-License-Identifier: Apache-2.0 */
/* resolver_udp - the queries of a resolver that came over UDP; for resolver.c only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "netns/relay/resolver_state.h"

void resolver_udp_receive(struct resolver *r);             /* queries have arrived */
void resolver_udp_answer(struct resolver *r, size_t slot); /* a server answered or refused */
bool resolver_udp_sweep(struct resolver *r);               /* true: some still wait */
void resolver_udp_fini(struct resolver *r);
