/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_copy - copies a directory of a hostile tree into a new file system (tmpcopyup).  Acts.
 */
#pragma once

#include "runtime/base/error.h"

#define TREE_COPY_DEPTH_MAX   64
#define TREE_COPY_ENTRIES_MAX 100000

/*
 * tree_copy - directories, regular files and links below from_fd, with owner, mode, times and hard
 * links; of the extended attributes user.*, file capabilities and ACLs.
 *
 * The directory to_fd itself gets mode and owner of from_fd.  No link is followed, no device or
 * fifo is opened, and no other mount is entered.  How many bytes are copied is limited by the size
 * of the file system that to_fd is in.  An attribute that a tmpfs can't have is omitted.
 *
 * Runs in: the container's init before pivot_root(2): it uses the host's /proc/self/fd.
 * Fails:   for devices, fifos and sockets; E2BIG past a limit; ENOSPC.
 */
int tree_copy(int from_fd, int to_fd, const char *name, struct cj_error *err);
