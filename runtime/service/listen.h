/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen - the listening sockets: those of systemd's socket activation, else a Unix socket of its
 * own.  And TCP if it is configured, on a loopback address and for callers with a token.
 */
#pragma once

#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/base/loop.h"
#include "runtime/service/config/service_config.h"

#define LISTENERS_MAX   8
#define LISTEN_NAME_MAX 256

struct listener {
	struct watch watch;
	int fd;
	bool is_tcp;
	char name[LISTEN_NAME_MAX]; /* for messages */
	int dir_fd;                 /* of our own socket file; -1: none */
	char file[LISTEN_NAME_MAX];
	struct stat made; /* identifies the file, so that no other is removed */
	void *owner;
};

struct listeners {
	struct listener items[LISTENERS_MAX];
	size_t count;
};

/* Fails: another service answers on the socket; TCP without any token. */
int listeners_open(const struct service_config *c, struct listeners *out, struct cj_error *err);
/* Closes them, and removes our own socket files. */
void listeners_close(struct listeners *l);
