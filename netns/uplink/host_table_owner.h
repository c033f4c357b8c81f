/* SPDX-License-Identifier: Apache-2.0 */
/* host_table_owner - asks the kernel who owns a table.  Acts. */
#pragma once

#include "runtime/base/error.h"

/*
 * host_table_check_owner - does this socket own the inet table `name` of our network namespace?
 * 0: it does.
 *
 * Fails: EPERM if it does not; ENOENT without the table; ENOPROTOOPT before Linux 5.14.
 * Follows: SO_NETNS_COOKIE and SO_PROTOCOL in socket(7), NFTA_TABLE_OWNER in nf_tables.h.
 */
int host_table_check_owner(int rules_fd, const char *name, struct cj_error *err);
