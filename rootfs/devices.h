/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices - the jail's /dev: harmless device nodes of the host, checked by number, and
 * terminals of its own (devpts).  No node is created: all other mounts have nodev.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/error.h"

#define DEVICES_MAX 6

struct device_sources {
	int fds[DEVICES_MAX]; /* detached, in the table's order; -1 where not wanted */
};

/* True when fd (O_PATH is enough) is the character device of that number. */
bool device_is(int fd, unsigned major_number, unsigned minor_number);

/*
 * devices_open - clone the nodes below dev_fd, the host's /dev.
 * with_tty: /dev/tty too.  On failure nothing is open.
 */
int devices_open(struct device_sources *out, int dev_fd, bool with_tty, struct cj_error *err);
void devices_close(struct device_sources *sources);

/* Adds the mount points to the skeleton. */
int devices_add_places(const struct device_sources *sources, int skeleton_fd, struct cj_error *err);

/* Attaches the nodes and a new devpts beneath root_fd/dev. */
int devices_attach(const struct device_sources *sources, int root_fd, struct cj_error *err);
