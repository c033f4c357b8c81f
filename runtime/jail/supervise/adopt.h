/* SPDX-License-Identifier: Apache-2.0 */
/* adopt - the supervisor brings a fork of a zygote into a sealed jail, as its launcher. */
#pragma once

#include "runtime/base/error.h"

struct jail;

/*
 * adopt_launcher - the order of steps is in zygote/zygote.h; `stdio` is the launcher's.
 *
 * On success the fork is sealed, as /proc says of it, and its calls are notified to j->watch; init
 * waits for its byte.  Borrows every descriptor.
 */
int adopt_launcher(struct jail *j, int zygote_fd, const int stdio[3], struct cj_error *err);
