/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail_network - the supervisor's stages of the network.  netns/ does the work.
 *
 * The names of --allow are resolved before anything is held.  A network that starts early is built
 * while init builds the root; its uplink is awaited last: it takes longest.  Any other network is
 * built when the program asks for it: the notified call waits, and the supervisor's loop goes on.
 */
#pragma once

#include "runtime/base/error.h"

struct http_upstream;
struct http_upstream_use;
struct jail;
struct outcome;

int jail_network_names_enter(struct jail *j, struct cj_error *err);
int jail_network_enter(struct jail *j, struct cj_error *err);
void jail_network_leave(struct jail *j);
int jail_network_uplink_enter(struct jail *j, struct cj_error *err);

/* Notes whether the packet filter is in force: at the end of the stages, and when the network has
 * been built later. */
void jail_network_assess(struct jail *j);

/*
 * jail_network_advance - the next part of the network that a call waits for
 * (filter_watch_wants_network()).
 *
 * The first part blocks for some milliseconds, a later one does not.  False: the uplink is awaited,
 * call again after NETWORK_LOOK_MS.  True: the call goes on, with a network, or with a warning and
 * the loopback alone.
 */
bool jail_network_advance(struct jail *j);

/* As http_upstream_read(), for the result.  `all`: NULL without upstreams. */
int jail_network_read_upstreams(const struct http_upstream *all, struct http_upstream_use *before,
				struct outcome *out, struct cj_error *err);

/* Calls jail_io.network if the network became ready, or failed, since the last call. */
void jail_network_report(struct jail *j);
