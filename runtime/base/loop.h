/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop - the event loop of the server: a watch is a descriptor with a callback for when it is
 * ready.
 *
 * A watch is a member of its owner's struct.  loop_unwatch() may be called in any callback and for
 * any watch: events of it that epoll_wait(2) has already returned are dropped.
 */
#pragma once

#include <sys/epoll.h>

#include "runtime/base/error.h"

#define LOOP_BATCH 64

struct watch {
	int fd;          /* borrowed; -1: not watched */
	uint32_t events; /* those that epoll(7) reports */
	void (*ready)(struct watch *w, uint32_t events);
};
#define WATCH_NULL ((struct watch){ .fd = -1 })

/* The struct that the watch `w` lies in. */
#define watch_owner(w, type, member) ((type *)(void *)((char *)(w)-offsetof(type, member)))

struct loop {
	int epoll_fd;
	struct epoll_event batch[LOOP_BATCH];
	int count; /* of the batch in progress */
};
#define LOOP_NULL ((struct loop){ .epoll_fd = -1 })

int loop_open(struct loop *l, struct cj_error *err);
void loop_close(struct loop *l);

/* Calls `ready` whenever the descriptor is readable or closed. */
int loop_watch(struct loop *l, struct watch *w, int fd,
	       void (*ready)(struct watch *w, uint32_t events), struct cj_error *err);
/*
 * `events` as in epoll_ctl(2), level-triggered; with 0, EPOLLHUP and EPOLLERR are still reported.
 */
void loop_rewatch(struct loop *l, struct watch *w, uint32_t events);
void loop_unwatch(struct loop *l, struct watch *w);

/*
 * loop_watch_signals - block SIGTERM, SIGINT and SIGHUP, and call `ready` when one arrives.
 *
 * Returns: the signalfd(2), the caller's to read and to close.
 */
int loop_watch_signals(struct loop *l, struct watch *w,
		       void (*ready)(struct watch *w, uint32_t events), struct cj_error *err);

/* The shorter of two times to wait in ms; -1 is for ever. */
int loop_sooner(int wait_ms, int other_ms);

/* Waits at most timeout_ms (-1: for ever) and calls the callbacks of ready watches. */
int loop_turn(struct loop *l, int timeout_ms, struct cj_error *err);
