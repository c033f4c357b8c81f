/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair - two TCP connections whose bytes go to each other: a client in the jail and a server of
 * the host's.  Acts.
 *
 * Each direction has one buffer: it is read into when it is empty and not before, so that a slow
 * reader slows its writer and nobody else.  The end of one direction is passed on, a reset ends
 * both.  Never blocks; one call moves at most a buffer each way.
 */
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PAIR_BYTES 65536 /* each direction's buffer */

enum pair_side { PAIR_JAIL, PAIR_HOST };

enum pair_state {
	PAIR_LIVE,
	PAIR_UNREACHED, /* the server can't be connected: pair_connect() to another, or destroy */
	PAIR_OVER       /* destroy it */
};

struct pair;

/*
 * pair_create - a pair with its jail's side only.
 *
 * Its events come from epoll_fd (borrowed) with data.u32 `id` (jail) and `id + 1` (host).
 * Owns:  takes jail_fd on success.
 * Fails: NULL without memory.
 */
struct pair *pair_create(int epoll_fd, uint32_t id, int jail_fd);

/* Resets both sides unless both directions have ended. */
void pair_destroy(struct pair **p);

/*
 * Lets `judge` look at what comes from the jail before it goes on.  It may change the bytes and
 * make *size smaller.  It returns how many bytes at the front may go now (it gets the rest again,
 * with more behind it), or -1 to end the pair.  What it holds back must stay below PAIR_BYTES.
 */
void pair_judge(struct pair *p, ssize_t (*judge)(void *arg, uint8_t *bytes, size_t *size),
		void *arg);

/* Begins to connect the host's side, in the calling process' namespace.  PAIR_LIVE or UNREACHED. */
enum pair_state pair_connect(struct pair *p, const struct sockaddr *address, socklen_t size);

/* What an event of this side asks for. */
enum pair_state pair_serve(struct pair *p, enum pair_side side, uint32_t events);

/* Bytes moved so far, both ways: a pair where it does not grow is idle. */
uint64_t pair_moved(const struct pair *p);
