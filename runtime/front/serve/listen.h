/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen - the sockets on which the service hears: those that systemd hands over, else a Unix
 * socket of its own; and TCP, if asked for, on loopback and for bearers of a token.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/front/serve/loop.h"
#include "runtime/front/serve/config/service_config.h"

#define LISTENERS_MAX   8
#define LISTEN_NAME_MAX 256

struct listener {
	struct watch watch;
	int fd;
	bool is_tcp;
	char name[LISTEN_NAME_MAX]; /* for messages */
	int dir_fd;                 /* of a socket file of our own; -1: it is none */
	char file[LISTEN_NAME_MAX];
	struct stat made; /* the file, to remove no other */
	void *owner;
};

struct listeners {
	struct listener items[LISTENERS_MAX];
	size_t count;
};

/* Fails: somebody answers on the socket already; TCP without any token. */
int listeners_open(const struct service_config *c, struct listeners *out, struct cj_error *err);
/* Closes, and removes the socket files that are ours. */
void listeners_close(struct listeners *l);
