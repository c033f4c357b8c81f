/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_service - the service for a new session, started if none listens.  Acts.
 *
 * In this order: the socket of --remote; a service of this user; the system's service, if this user
 * may connect; systemd's socket unit of this user; a process of our own,
 * `cejail serve --until-idle`, which outlives us and ends after its last session.
 */
#pragma once

#include "runtime/front/cli/session/session_call.h"

/* Sets c->socket.  Fails: --remote names a socket where none listens; none can be started. */
int session_service_find(struct session_call *c, struct cj_error *err);
