/* SPDX-License-Identifier: Apache-2.0 */
/* resolver_tcp - the sessions of a resolver over TCP; for resolver.c only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netns/relay/resolver_state.h"

void resolver_tcp_accept(struct resolver *r);
void resolver_tcp_serve(struct resolver *r, size_t slot, enum tcp_proxy_side side, uint32_t events);
bool resolver_tcp_sweep(struct resolver *r); /* true: some are open, or clients wait */
void resolver_tcp_fini(struct resolver *r);
