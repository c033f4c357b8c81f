/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_namespace - makes the jail's network namespace beside init.
 *
 * The kernel needs longer for it (0.2 ms) than for all other namespaces together.  So init is
 * created without one, a child of init makes it while init builds the root, and init enters it.
 * The child shares init's memory, so it costs little.  It has its own descriptors, and it has ended
 * before anything of the program is inside.
 */
#pragma once

#include "runtime/base/error.h"
#include "runtime/jail/jail_state.h"

/* Starts the child.  Runs in: init, with all capabilities over its user namespace. */
int net_namespace_begin(struct net_namespace_maker *m, struct cj_error *err);

/*
 * net_namespace_enter - wait for the child's end, and enter the namespace.
 *
 * Fails: as unshare(2) did in the child.  Then the caller is still in the network namespace of the
 *        host and must end.
 */
int net_namespace_enter(struct net_namespace_maker *m, struct cj_error *err);

/*
 * net_namespace_explain - init fails before net_namespace_enter(): why?
 *
 * Waits for the child, if there is one.  If it failed, its error replaces *err: the child shares
 * init's errno, so init's own failure may have been a consequence.
 */
void net_namespace_explain(struct net_namespace_maker *m, struct cj_error *err);
