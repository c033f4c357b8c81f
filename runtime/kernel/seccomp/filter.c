/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a filter into the calling process, init. */
#include "runtime/kernel/seccomp/filter.h"

#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/seccomp/filter_plan.h"

/*
 * Since Linux 5.19: a signal does not restart a call that waits for the supervisor's answer.  So
 * the call is counted once, and Go's preemption signals can't restart it for ever.
 */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

static bool load(struct sock_fprog *program, unsigned flags, int *out_fd)
{
	*out_fd = sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, program);
	return *out_fd >= 0;
}

static bool needs_listener(const struct filter *f)
{
	unsigned ignored = (f->asks_network ? 0 : 1u << CALL_BOUND_NETWORK) |
			   (f->is_divided ? 0 : 1u << CALL_BOUND_OTHERS);
	return f->nnotified > 0 || (f->bounds & ~ignored) != 0;
}

/* Flags from best to worst; only an errno that means "unknown flags" tries the next. */
static int load_best(struct sock_fprog *program, bool has_listener, int *out_listener_fd,
		     struct cj_error *err)
{
	const unsigned listen = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	const unsigned killable = SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
	int unused;

	*out_listener_fd = -1;
	if (has_listener) {
		if (load(program, listen | killable, out_listener_fd))
			return 0;
		if (errno == EINVAL && load(program, listen, out_listener_fd))
			return 0;
		if (errno != EBUSY)
			return cj_fail(err, errno, "seccomp(2): load a filter with a listener");
	}
	/* EBUSY: an outer sandbox has a listener; the kernel then answers ENOSYS instead of us.
	 * Inet sockets must not be refused: the network is built before the program starts. */
	filter_bound_drop(program->filter, program->len, CALL_BOUND_NETWORK);
	if (!load(program, 0, &unused))
		return cj_fail(err, errno, "seccomp(2): load a filter");
	return 0;
}

/*
 * Verifies the filter: clone3(2) with a size of 0 is EINVAL without our filter and ENOSYS with it.
 */
static int check_loaded(struct cj_error *err)
{
	if (syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS)
		return 0;
	return cj_reject(err, "the system call filter is loaded but does not refuse clone3");
}

void filter_close_uncounted(struct filter *f)
{
	f->insns = f->closed_insns;
	f->ninsns = f->nclosed;
}

int filter_load(const struct filter *f, int *out_listener_fd, struct cj_error *err)
{
	auto_fd int listener_fd = -1;
	auto_free struct sock_filter *insns = calloc(f->ninsns, sizeof(*insns));
	if (!insns)
		return cj_fail(err, ENOMEM, "load a filter");
	memcpy(insns, f->insns, f->ninsns * sizeof(*insns));
	if (!f->asks_network)
		filter_bound_drop(insns, f->ninsns, CALL_BOUND_NETWORK);
	if (!f->is_divided)
		filter_bound_drop(insns, f->ninsns, CALL_BOUND_OTHERS);

	struct sock_fprog program = { .len = f->ninsns, .filter = insns };
	if (load_best(&program, needs_listener(f), &listener_fd, err) < 0)
		return -err->code;
	if (check_loaded(err) < 0)
		return -err->code;
	*out_listener_fd = take_fd(&listener_fd);
	return 0;
}
