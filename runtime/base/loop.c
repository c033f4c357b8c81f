/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/loop.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "runtime/base/scope.h"

int loop_open(struct loop *l, struct cj_error *err)
{
	*l = LOOP_NULL;
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return l->epoll_fd < 0 ? cj_fail(err, errno, "create an epoll") : 0;
}

void loop_close(struct loop *l)
{
	cj_close(&l->epoll_fd);
}

int loop_watch(struct loop *l, struct watch *w, int fd,
	       void (*ready)(struct watch *w, uint32_t events), struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = w };

	*w = WATCH_NULL;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch a descriptor");
	w->fd = fd;
	w->events = event.events;
	w->ready = ready;
	return 0;
}

void loop_rewatch(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = w };

	if (w->fd < 0 || w->events == events)
		return;
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, w->fd, &event) == 0) /* it is in there */
		w->events = events;
}

void loop_unwatch(struct loop *l, struct watch *w)
{
	if (w->fd < 0)
		return;
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL); /* it is in there */
	w->fd = -1;
	for (int i = 0; i < l->count; i++)
		if (l->batch[i].data.ptr == w)
			l->batch[i].data.ptr = NULL;
}

int loop_watch_signals(struct loop *l, struct watch *w,
		       void (*ready)(struct watch *w, uint32_t events), struct cj_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return cj_fail(err, errno, "block signals");
	auto_fd int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return cj_fail(err, errno, "open a descriptor for signals");
	return loop_watch(l, w, fd, ready, err) < 0 ? -err->code : take_fd(&fd);
}

int loop_sooner(int wait_ms, int other_ms)
{
	if (other_ms < 0)
		return wait_ms;
	return wait_ms < 0 || other_ms < wait_ms ? other_ms : wait_ms;
}

int loop_turn(struct loop *l, int timeout_ms, struct cj_error *err)
{
	l->count = epoll_wait(l->epoll_fd, l->batch, LOOP_BATCH, timeout_ms);
	if (l->count < 0) {
		l->count = 0;
		return errno == EINTR ? 0 : cj_fail(err, errno, "wait for events");
	}
	for (int i = 0; i < l->count; i++) {
		struct watch *w = l->batch[i].data.ptr;
		if (w)
			w->ready(w, l->batch[i].events);
	}
	l->count = 0;
	return 0;
}
