/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_notifications - any numbers as notifications of refused system calls.
 *
 * Asserted: each is answered once, under its own id; only a bounded call may go on, and only as
 * often as its bound says; names are short, printable and counted once each; the counts are no more
 * than the answers, and all of them as long as it says it is complete; no more are answered than
 * the rate allows.
 */
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "runtime/kernel/seccomp/filter.h"
#include "runtime/kernel/seccomp/filter_parts.h"
#include "tests/fuzz/bytes.h"
#include "tests/kernel/seccomp/bpf.h"

/* WRAP: ioctl poll sys_seccomp clock_ms */

#define WAITING_MAX 256
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
	unsigned repeats;                          /* of `next`, still to come */
	struct seccomp_notif waiting[WAITING_MAX]; /* for their answers */
	size_t nwaiting;
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

static bool has_calls(void)
{
	return kernel.repeats > 0 || kernel.left.left > 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	assert(count == 1 && timeout == 0);
	if (!has_calls() && kernel.nwaiting > 0)
		return 0;
	fds->revents = has_calls() ? POLLIN : POLLHUP;
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
	assert(memcmp(out, &zero, sizeof(zero)) == 0 && kernel.nwaiting < WAITING_MAX);
	if (kernel.repeats == 0)
		next_call();
	kernel.repeats--;
	if (kernel.next.pid == 255) { /* who asked has died */
		errno = ENOENT;
		return -1;
	}
	memcpy(out, &kernel.next, sizeof(*out));
	out->id = ++kernel.last_id;
	kernel.waiting[kernel.nwaiting++] = *out;
	return 0;
}

static enum call_bound bound_of(const struct seccomp_notif *call)
{
	return filter_bound_of(bpf_run(kernel.filter.insns, kernel.filter.ninsns, &call->data));
}

static void let_go_on(const struct seccomp_notif *call, bool is_gone)
{
	enum call_bound bound = bound_of(call);
	assert(bound < CALL_BOUND_UNCOUNTED);
	kernel.passed[bound] += !is_gone || bound == CALL_BOUND_NETLINK;
	assert(kernel.passed[CALL_BOUND_FILTERS] <= FILTER_LOADS_MAX);
	assert(kernel.passed[CALL_BOUND_NETLINK] <= FILTER_NETLINK_MAX); /* none is seen to close */
	assert((bound != CALL_BOUND_NETLINK && bound != CALL_BOUND_NETWORK) || kernel.is_settled);
}

/* The call with this id, which waits no longer. */
static struct seccomp_notif take_waiting(uint64_t id)
{
	size_t i = 0;
	while (i < kernel.nwaiting && kernel.waiting[i].id != id)
		i++;
	assert(i < kernel.nwaiting);
	struct seccomp_notif call = kernel.waiting[i];
	kernel.waiting[i] = kernel.waiting[--kernel.nwaiting];
	return call;
}

static int answer(const struct seccomp_notif_resp *response)
{
	const struct seccomp_notif call = take_waiting(response->id);
	bool is_gone = call.pid == 254;
	assert(response->val == 0);
	if (response->flags == SECCOMP_USER_NOTIF_FLAG_CONTINUE) {
		let_go_on(&call, is_gone);
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

/* Only calls that ask for the network wait, and only until it is settled. */
static void check_waiting(const struct filter_watch *w)
{
	assert(kernel.nwaiting == 0 || filter_watch_wants_network(w));
	assert(kernel.nwaiting == 0 || !kernel.is_settled);
	for (size_t i = 0; i < kernel.nwaiting; i++) {
		enum call_bound bound = bound_of(&kernel.waiting[i]);
		assert(bound == CALL_BOUND_NETWORK || bound == CALL_BOUND_NETLINK);
	}
}

static void settle(struct filter_watch *w)
{
	kernel.is_settled = true;
	filter_watch_network_settled(w);
	assert(!filter_watch_wants_network(w));
}

/* While it pauses nothing is read, and time goes on.  False: it never reads again. */
static bool wait_for_pause(struct filter_watch *w)
{
	uint64_t until_ms = filter_watch_paused_until_ms(w);
	assert(until_ms == 0 || (until_ms > kernel.now_ms && until_ms < kernel.now_ms + 1000));
	kernel.now_ms = until_ms > 0 ? until_ms : kernel.now_ms;
	return until_ms > 0;
}

static void serve_once(struct filter_watch *w)
{
	const char *name;
	filter_watch_answer(w, &name);
	if (name)
		check_name(name);
	assert(kernel.last_id <= BURST_MAX + PER_MS_MAX * kernel.now_ms);
}

static void serve(struct filter_watch *w)
{
	const unsigned settled_in = kernel.response_size % 64;
	for (unsigned round = 0;; round++) {
		assert(round < 100000);
		bool is_readable = filter_watch_fd(w) >= 0;
		if (is_readable && has_calls())
			serve_once(w);
		else if (filter_watch_wants_network(w))
			settle(w);
		else if (is_readable)
			serve_once(w); /* sees that no process is left */
		else if (!wait_for_pause(w))
			return;
		if (round == settled_in && filter_watch_wants_network(w))
			settle(w);
		check_waiting(w);
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
