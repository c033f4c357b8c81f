/* SPDX-License-Identifier: Apache-2.0 */
/* state_socket - the socket "start" of a state directory: init listens, start connects. */
#pragma once

#include "runtime/container/state/state.h"

/* Each returns the descriptor of a SOCK_SEQPACKET, O_CLOEXEC. */
int state_socket_listen(const struct state *s, struct cj_error *err);
int state_socket_connect(const struct state *s, struct cj_error *err);
