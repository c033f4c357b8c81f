/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rootfs_spec - the plan of a jail's tree: plain data that every file of rootfs/ reads.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/arena.h"

enum root_kind {
	ROOT_HOST,   /* this host's /usr, read-only, and a skeleton for the rest */
	ROOT_LAYERS, /* directories, first in the list on top */
};

enum bind_kind { BIND_READ_ONLY, BIND_WRITABLE, BIND_SOCKET, BIND_OVERLAY, BIND_TMPFS };

#define OVERLAYS_MAX 16 /* --overlay; their descriptors go to init in one message */

/* A host path that the caller shows in the jail. */
struct bind_spec {
	enum bind_kind kind;
	const char *source; /* absolute, no symbolic link in it (plan.c); BIND_TMPFS: none */
	const char *target; /* absolute, normalised, in the jail */
};

struct rootfs_spec {
	enum root_kind kind;
	struct strings layers; /* ROOT_LAYERS: absolute host paths */
	bool writable;         /* a temporary upper layer in the scratch */
	bool noexec_scratch;
	bool tty; /* the jail has /dev/tty and a controlling terminal */
	uint64_t scratch_bytes, scratch_inodes;
	const struct bind_spec *binds;
	size_t nbinds;
	const char *python;      /* python3 in the jail: /box gets a home for pip; NULL: none */
	const char *packages;    /* in that home: ".local/lib/python3.11/site-packages" */
	const char *hosts;       /* further lines of /etc/hosts; NULL: none */
	const char *resolv_conf; /* all of /etc/resolv.conf; NULL: empty */
	const char *hostname;    /* for /etc/hosts; set in the uts namespace by init */
	uid_t uid;               /* the jail's user, inside ids */
	gid_t gid;
};
