/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jail_network - the supervisor's stages of the network.  netns/ does the work.
 *
 * The names of --allow are resolved before anything is held.  The network is built while init
 * builds the root.  The uplink is awaited last: it takes longest.
 */
#pragma once

#include "runtime/base/error.h"

struct jail;

int jail_network_names_enter(struct jail *j, struct cj_error *err);
int jail_network_enter(struct jail *j, struct cj_error *err);
void jail_network_leave(struct jail *j);
int jail_network_uplink_enter(struct jail *j, struct cj_error *err);
