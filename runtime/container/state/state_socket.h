/* SPDX-License-Identifier: Apache-2.0 */
/* state_socket - the sockets of a state directory: on "start" init listens, and start connects; on
 * "notify" cejail-oci receives datagrams of the program. */
#pragma once

#include "runtime/container/state/state.h"

/* Each returns the descriptor of a SOCK_SEQPACKET, O_CLOEXEC. */
int state_socket_listen(const struct state *s, struct cj_error *err);
int state_socket_connect(const struct state *s, struct cj_error *err);

/* A datagram socket, O_CLOEXEC.  Every user of the container may send to it.  On the host the mode
 * of the state directory keeps others away. */
int state_socket_notify(const struct state *s, struct cj_error *err);
