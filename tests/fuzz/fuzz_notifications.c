/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_notifications - any numbers as notifications of refused system calls.
 *
 * Asserted: each is answered once, under its own id; only a bounded call may go on, and only as
 * often as its bound says; names are short, printable and counted once each; the counts are no more
 * than the answers, and all of them as long as it says it is complete; no more are answered than
 * the rate allows.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/jail/seccomp/filter.h"
#include "runtime/jail/seccomp/filter_bound.h"
#include "tests/fuzz/bytes.h"
#include "tests/jail/seccomp/bpf.h"

/* WRAP: ioctl poll sys_seccomp clock_ms */

#define REPEATS_MAX 300
#define BURST_MAX   8192
#define PER_MS_MAX  10

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int __wrap_sys_seccomp(unsigned operation, unsigned flags, void *args);
int __wrap_ioctl(int fd, unsigned long request, void *argument);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
uint64_t __wrap_clock_ms(void);

/* The kernel's side. */
static struct {
	struct bytes left;
	struct seccomp_notif next;
	unsigned repeats; /* of `next`, still to come */
	uint64_t asked;   /* the id that waits for its answer; 0: none */
	uint64_t last_id;
	unsigned answered;
	struct filter filter;
	unsigned passed[CALL_BOUND_COUNT];
	bool is_settled; /* the network */
	uint64_t now_ms;
	uint16_t request_size, response_size;
} kernel;

int __wrap_sys_seccomp(unsigned operation, unsigned flags, void *args)
{
	struct seccomp_notif_sizes *sizes = args;
	assert(operation == SECCOMP_GET_NOTIF_SIZES && flags == 0);
	*sizes = (struct seccomp_notif_sizes){ kernel.request_size, kernel.response_size,
					       sizeof(struct seccomp_data) };
	return 0;
}

uint64_t __wrap_clock_ms(void)
{
	return kernel.now_ms;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	assert(count == 1 && timeout == 0);
	fds->revents = kernel.repeats > 0 || kernel.left.left > 0 ? POLLIN : POLLHUP;
	return 1;
}

static void next_call(void)
{
	struct bytes call = bytes_take(&kernel.left, sizeof(kernel.next.data));
	memset(&kernel.next, 0, sizeof(kernel.next));
	if (call.left > 0)
		memcpy(&kernel.next.data, call.at, call.left);
	kernel.next.data.arch = BPF_NATIVE; /* another one is killed, not notified */
	kernel.next.pid = bytes_u8(&kernel.left);
	kernel.repeats = 1 + bytes_u8(&kernel.left) % REPEATS_MAX;
}

static int receive(struct seccomp_notif *out)
{
	static const struct seccomp_notif zero;
	assert(memcmp(out, &zero, sizeof(zero)) == 0 && kernel.asked == 0);
	if (kernel.repeats == 0)
		next_call();
	kernel.repeats--;
	if (kernel.next.pid == 255) { /* who asked has died */
		errno = ENOENT;
		return -1;
	}
	memcpy(out, &kernel.next, sizeof(*out));
	out->id = kernel.asked = ++kernel.last_id;
	return 0;
}

static void let_go_on(bool is_gone)
{
	enum call_bound bound =
	    filter_bound_of(bpf_run(kernel.filter.insns, kernel.filter.ninsns, &kernel.next.data));
	assert(bound < CALL_BOUND_COUNT);
	kernel.passed[bound] += !is_gone || bound == CALL_BOUND_NETLINK;
	assert(kernel.passed[CALL_BOUND_FILTERS] <= FILTER_LOADS_MAX);
	assert(kernel.passed[CALL_BOUND_NETLINK] <= FILTER_NETLINK_MAX); /* none is seen to close */
	assert(bound == CALL_BOUND_FILTERS || kernel.is_settled);
}

static int answer(const struct seccomp_notif_resp *response)
{
	bool is_gone = kernel.next.pid == 254;
	assert(response->id == kernel.asked && response->val == 0);
	kernel.asked = 0;
	if (response->flags == SECCOMP_USER_NOTIF_FLAG_CONTINUE) {
		let_go_on(is_gone);
	} else {
		assert(response->flags == 0);
		assert(response->error < 0 && response->error > -4096);
		kernel.answered++;
	}
	if (is_gone) {
		errno = ENOENT;
		return -1;
	}
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *argument)
{
	(void)fd;
	if (request == SECCOMP_IOCTL_NOTIF_RECV)
		return receive(argument);
	assert(request == SECCOMP_IOCTL_NOTIF_SEND);
	return answer(argument);
}

static void check_name(const char *name)
{
	size_t size = strlen(name);
	assert(size > 0 && size < 48);
	for (size_t i = 0; i < size; i++)
		assert(name[i] >= ' ' && name[i] <= '~');
}

static void check_denied(const struct filter_watch *w)
{
	size_t count;
	bool is_complete;
	unsigned sum = 0;
	const struct denied_syscall *denied = filter_watch_denied(w, &count, &is_complete);
	for (size_t i = 0; i < count; i++) {
		check_name(denied[i].name);
		assert(denied[i].count > 0);
		sum += denied[i].count;
		for (size_t k = 0; k < i; k++)
			assert(strcmp(denied[i].name, denied[k].name) != 0);
	}
	assert(is_complete ? sum == kernel.answered : sum <= kernel.answered);
}

/* The first call that asks for the network waits, and no other call is answered. */
static void settle(struct filter_watch *w)
{
	const char *name;
	uint64_t asked = kernel.asked, last_id = kernel.last_id;
	filter_watch_answer(w, &name);
	assert(!name && asked != 0 && kernel.asked == asked && kernel.last_id == last_id);
	assert(filter_watch_fd(w) == -1 && !kernel.is_settled);
	kernel.is_settled = true;
	filter_watch_network_settled(w);
	assert(!filter_watch_wants_network(w) && kernel.asked == 0);
}

/* While it pauses nothing is read, and time goes on. */
static bool is_at_its_end(struct filter_watch *w)
{
	if (filter_watch_fd(w) >= 0)
		return false;
	uint64_t until_ms = filter_watch_paused_until_ms(w);
	assert(until_ms == 0 || (until_ms > kernel.now_ms && until_ms < kernel.now_ms + 1000));
	kernel.now_ms = until_ms;
	return until_ms == 0;
}

static void serve(struct filter_watch *w)
{
	unsigned round = 0;
	for (; !is_at_its_end(w); round++) {
		const char *name;
		filter_watch_answer(w, &name);
		if (name)
			check_name(name);
		if (filter_watch_wants_network(w))
			settle(w);
		assert(kernel.asked == 0);
		assert(round < 100000);
		assert(kernel.last_id <= BURST_MAX + PER_MS_MAX * kernel.now_ms);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct bytes b = { bytes, size < 4096 ? size : 4096 };
	struct cj_error err = { 0 };
	struct filter_watch *w;

	memset(&kernel, 0, sizeof(kernel));
	kernel.request_size = bytes_u8(&b); /* more or less than our headers know */
	kernel.response_size = bytes_u8(&b);
	kernel.left = b;
	filter_builtin(&kernel.filter);
	kernel.filter.asks_network = kernel.request_size % 2 == 1;
	kernel.is_settled = !kernel.filter.asks_network;
	int rc = filter_watch_create(dup(STDIN_FILENO), &kernel.filter, &w, &err);
	assert(rc == 0);
	serve(w);
	check_denied(w);
	filter_watch_destroy(&w);
	return 0;
}
