/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of a listener: refuses notified calls, counts their names, and allows a
 * number of the bounded calls.  Acts.
 *
 * The payload chooses when calls come, how many, and their arguments.  So the work is limited:
 *
 *	- one notification is read for each poll(2) that reports one
 *	- names come from tables here; memory behind a pointer is never read
 *	- counting ends at FILTER_ANSWERS_MAX notifications and at WATCH_NAMES_MAX names
 *
 * SECCOMP_USER_NOTIF_FLAG_CONTINUE is sent only for calls of calls_bounded[] that the policy
 * allows: the program itself says so again, from the notified registers (filter_run()).  Another
 * thread can't change registers.  All other answers are refusals.  The report is no proof: a
 * program can hide its calls behind a filter of its own, which the kernel asks first.
 */
#include "runtime/jail/seccomp/filter.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/seccomp/filter_bound.h"
#include "runtime/jail/seccomp/filter_calls.h"
#include "runtime/jail/seccomp/filter_run.h"
#include "runtime/jail/seccomp/socket_count.h"

#define WATCH_NAMES_MAX 256
#define WATCH_NAME_MAX  48
#define WATCH_BATCH     16

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* HELD: the call in `request` waits for the network. */
enum network_state { NETWORK_UNUSED, NETWORK_HELD, NETWORK_SETTLED };

struct filter_watch {
	int listener_fd;
	struct filter_notified notified[FILTER_NOTIFIED_MAX];
	size_t nnotified;
	struct seccomp_notif *request; /* of this kernel's size */
	struct seccomp_notif_resp *response;
	size_t request_size, response_size;
	unsigned answers;
	const struct sock_filter *insns; /* borrowed */
	size_t ninsns;
	enum network_state network;
	unsigned loads; /* filters that were allowed */
	struct socket_count netlink;
	int proc_fd; /* borrowed */
	bool is_complete;
	struct denied_syscall denied[WATCH_NAMES_MAX];
	char names[WATCH_NAMES_MAX][WATCH_NAME_MAX];
	size_t ndenied;
};

/* --- names ------------------------------------------------------------------------ */

struct word {
	uint64_t value;
	const char *text;
};

static const struct word families[] = {
	{ 0, "AF_UNSPEC" },      { 1, "AF_UNIX" },       { 2, "AF_INET" },
	{ 3, "AF_AX25" },        { 4, "AF_IPX" },        { 5, "AF_APPLETALK" },
	{ 6, "AF_NETROM" },      { 7, "AF_BRIDGE" },     { 8, "AF_ATMPVC" },
	{ 9, "AF_X25" },         { 10, "AF_INET6" },     { 11, "AF_ROSE" },
	{ 12, "AF_DECnet" },     { 13, "AF_NETBEUI" },   { 14, "AF_SECURITY" },
	{ 15, "AF_KEY" },        { 16, "AF_NETLINK" },   { 17, "AF_PACKET" },
	{ 18, "AF_ASH" },        { 19, "AF_ECONET" },    { 20, "AF_ATMSVC" },
	{ 21, "AF_RDS" },        { 22, "AF_SNA" },       { 23, "AF_IRDA" },
	{ 24, "AF_PPPOX" },      { 25, "AF_WANPIPE" },   { 26, "AF_LLC" },
	{ 27, "AF_IB" },         { 28, "AF_MPLS" },      { 29, "AF_CAN" },
	{ 30, "AF_TIPC" },       { 31, "AF_BLUETOOTH" }, { 32, "AF_IUCV" },
	{ 33, "AF_RXRPC" },      { 34, "AF_ISDN" },      { 35, "AF_PHONET" },
	{ 36, "AF_IEEE802154" }, { 37, "AF_CAIF" },      { 38, "AF_ALG" },
	{ 39, "AF_NFC" },        { 40, "AF_VSOCK" },     { 41, "AF_KCM" },
	{ 42, "AF_QIPCRTR" },    { 43, "AF_SMC" },       { 44, "AF_XDP" },
	{ 45, "AF_MCTP" },
};

static const struct word types[] = {
	{ 1, "SOCK_STREAM" },    { 2, "SOCK_DGRAM" }, { 3, "SOCK_RAW" },     { 4, "SOCK_RDM" },
	{ 5, "SOCK_SEQPACKET" }, { 6, "SOCK_DCCP" },  { 10, "SOCK_PACKET" },
};

static const struct word requests[] = {
	{ 0x5412, "TIOCSTI" },    { 0x541c, "TIOCLINUX" },    { 0x541d, "TIOCCONS" },
	{ 0x5423, "TIOCSETD" },   { 0xc0045877, "FIFREEZE" }, { 0xc0045878, "FITHAW" },
	{ 0xc0185879, "FITRIM" },
};

/* The first flag that is set names the call. */
static const struct word namespace_flags[] = {
	{ CLONE_NEWUSER, "CLONE_NEWUSER" },     { CLONE_NEWNS, "CLONE_NEWNS" },
	{ CLONE_NEWNET, "CLONE_NEWNET" },       { CLONE_NEWPID, "CLONE_NEWPID" },
	{ CLONE_NEWIPC, "CLONE_NEWIPC" },       { CLONE_NEWUTS, "CLONE_NEWUTS" },
	{ CLONE_NEWCGROUP, "CLONE_NEWCGROUP" },
};

static const char *word_of(const struct word *words, size_t n, uint64_t value)
{
	for (size_t i = 0; i < n; i++) {
		if (words[i].value == value)
			return words[i].text;
	}
	return NULL;
}

/* "socket(AF_ALG)"; for a common family the refused part is its type. */
static void name_socket(const uint64_t *args, char *out)
{
	unsigned family = (unsigned)args[0];
	const char *word = word_of(families, COUNT_OF(families), family);
	const char *type = word_of(types, COUNT_OF(types), args[1] & 0xf); /* SOCK_TYPE_MASK */
	bool is_common = family == AF_UNIX || family == AF_INET || family == AF_INET6;

	if (!word)
		(void)snprintf(out, WATCH_NAME_MAX, "socket(family %u)", family);
	else if (is_common && type)
		(void)snprintf(out, WATCH_NAME_MAX, "socket(%s, %s, %u)", word, type,
			       (unsigned)args[2]);
	else
		(void)snprintf(out, WATCH_NAME_MAX, "socket(%s)", word);
}

static void name_with(const char *call, const char *word, char *out)
{
	if (word)
		(void)snprintf(out, WATCH_NAME_MAX, "%s(%s)", call, word);
	else
		(void)snprintf(out, WATCH_NAME_MAX, "%s", call);
}

static const char *namespace_word(uint64_t flags)
{
	for (size_t i = 0; i < COUNT_OF(namespace_flags); i++) {
		if (flags & namespace_flags[i].value)
			return namespace_flags[i].text;
	}
	return NULL;
}

static void name_call(const struct seccomp_data *data, char *out)
{
	const uint64_t *args = (const uint64_t *)data->args;
	const char *call = call_notified_name(data->nr);

	switch (data->nr) {
	case SYS_socket:
		name_socket(args, out);
		return;
	case SYS_ioctl:
		name_with(call, word_of(requests, COUNT_OF(requests), (uint32_t)args[1]), out);
		return;
	case SYS_clone:
	case SYS_unshare:
		name_with(call, namespace_word(args[0]), out);
		return;
	case SYS_seccomp:
		name_with("seccomp", "SECCOMP_SET_MODE_FILTER", out);
		return;
	case SYS_prctl:
		name_with("prctl", "PR_SET_SECCOMP", out);
		return;
	default:
		name_with(call ? call : "other", NULL, out);
	}
}

/* --- counting ----------------------------------------------------------------------- */

/* Counts the name.  Returns it the first time, else NULL. */
static const char *count_name(struct filter_watch *w, const char *name)
{
	for (size_t i = 0; i < w->ndenied; i++) {
		if (strcmp(w->names[i], name) == 0) {
			w->denied[i].count++;
			return NULL;
		}
	}
	if (w->ndenied == WATCH_NAMES_MAX) {
		w->is_complete = false;
		return NULL;
	}
	size_t at = w->ndenied++;
	(void)snprintf(w->names[at], WATCH_NAME_MAX, "%s", name);
	w->denied[at] = (struct denied_syscall){ w->names[at], 1 };
	return w->names[at];
}

static int errno_for(const struct filter_watch *w, int nr)
{
	for (size_t i = 0; i < w->nnotified; i++) {
		if (w->notified[i].nr == nr)
			return w->notified[i].errno_value;
	}
	return ENOSYS;
}

/* --- answering ------------------------------------------------------------------------ */

static void stop(struct filter_watch *w)
{
	cj_close(&w->listener_fd);
}

/* From here on the kernel refuses these calls itself, with ENOSYS, and they are not counted. */
static void give_up(struct filter_watch *w)
{
	w->is_complete = false;
	stop(w);
}

/* Is there a notification?  Closes the listener when no process is left that could send one. */
static bool has_request(struct filter_watch *w)
{
	struct pollfd poll_fd = { .fd = filter_watch_fd(w), .events = POLLIN };
	if (poll_fd.fd < 0 || poll(&poll_fd, 1, 0) <= 0)
		return false;
	if (poll_fd.revents & POLLIN)
		return true;
	stop(w); /* POLLHUP: the last process under the filter has ended */
	return false;
}

/* ENOENT: the caller has died in between, or was interrupted; poll(2) reports the next one. */
static bool take_request(struct filter_watch *w)
{
	memset(w->request, 0, w->request_size); /* the kernel refuses anything else */
	if (ioctl(w->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, w->request) == 0)
		return true;
	if (errno != ENOENT && errno != EINTR)
		give_up(w);
	return false;
}

/* errno_value 0: the call is allowed. */
static void send_answer(struct filter_watch *w, int errno_value)
{
	memset(w->response, 0, w->response_size);
	w->response->id = w->request->id;
	w->response->error = -errno_value;
	w->response->flags = errno_value == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	if (ioctl(w->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, w->response) < 0 && errno != ENOENT)
		give_up(w);
}

/* The errno of a bounded call, 0 while there is room. */
static int decide_bounded(struct filter_watch *w, enum call_bound bound)
{
	switch (bound) {
	case CALL_BOUND_FILTERS:
		return w->loads++ < FILTER_LOADS_MAX ? 0 : EPERM;
	case CALL_BOUND_NETLINK:
		return socket_count_take(&w->netlink, w->proc_fd) ? 0 : EMFILE;
	case CALL_BOUND_NETWORK:
		return 0;
	case CALL_BOUND_COUNT:
		break;
	}
	return errno_for(w, w->request->data.nr); /* the policy refuses it */
}

static enum call_bound requested_bound(const struct filter_watch *w)
{
	return filter_bound_of(filter_run(w->insns, w->ninsns, &w->request->data));
}

static const char *answer_request(struct filter_watch *w, enum call_bound bound)
{
	int errno_value = decide_bounded(w, bound);
	send_answer(w, errno_value);
	if (errno_value == 0)
		return NULL;

	char name[WATCH_NAME_MAX];
	name_call(&w->request->data, name);
	const char *first = count_name(w, name);
	if (++w->answers >= FILTER_ANSWERS_MAX)
		give_up(w);
	return first;
}

static const char *answer_one(struct filter_watch *w)
{
	if (!take_request(w))
		return NULL;
	enum call_bound bound = requested_bound(w);
	bool asks_network = bound == CALL_BOUND_NETWORK || bound == CALL_BOUND_NETLINK;
	if (asks_network && w->network == NETWORK_UNUSED) {
		w->network = NETWORK_HELD;
		return NULL;
	}
	return answer_request(w, bound);
}

void filter_watch_answer(struct filter_watch *w, const char **out_name)
{
	*out_name = NULL;
	for (unsigned i = 0; i < WATCH_BATCH && !*out_name && has_request(w); i++)
		*out_name = answer_one(w);
}

bool filter_watch_wants_network(const struct filter_watch *w)
{
	return w->network == NETWORK_HELD;
}

void filter_watch_network_settled(struct filter_watch *w)
{
	bool is_held = w->network == NETWORK_HELD;
	w->network = NETWORK_SETTLED;
	if (is_held)
		(void)answer_request(w, requested_bound(w)); /* a netlink socket may be refused */
}

/* --- life ------------------------------------------------------------------------------- */

/* The kernel may know larger structs than our headers: seccomp_unotify(2). */
static int make_room(struct filter_watch *w, struct cj_error *err)
{
	struct seccomp_notif_sizes sizes = { 0 };
	if (sys_seccomp(SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return cj_fail(err, errno, "seccomp(2): ask for the sizes of notifications");

	w->request_size = sizes.seccomp_notif;
	if (w->request_size < sizeof(*w->request))
		w->request_size = sizeof(*w->request);
	w->response_size = sizes.seccomp_notif_resp;
	if (w->response_size < sizeof(*w->response))
		w->response_size = sizeof(*w->response);

	w->request = calloc(1, w->request_size);
	w->response = calloc(1, w->response_size);
	if (!w->request || !w->response)
		return cj_fail(err, ENOMEM, "watch denied system calls");
	return 0;
}

int filter_watch_create(int listener_fd, const struct filter *f, struct filter_watch **out,
			struct cj_error *err)
{
	struct filter_watch *w = calloc(1, sizeof(*w));
	if (!w) {
		cj_close(&listener_fd);
		return cj_fail(err, ENOMEM, "watch denied system calls");
	}
	w->listener_fd = listener_fd;
	w->proc_fd = -1;
	w->insns = f->insns;
	w->ninsns = f->ninsns;
	w->network = f->asks_network ? NETWORK_UNUSED : NETWORK_SETTLED;
	w->is_complete = true;
	w->nnotified = f->nnotified < FILTER_NOTIFIED_MAX ? f->nnotified : FILTER_NOTIFIED_MAX;
	if (w->nnotified > 0) /* none: a caller's filter that refuses no notified call */
		memcpy(w->notified, f->notified, w->nnotified * sizeof(*w->notified));
	if (make_room(w, err) < 0) {
		filter_watch_destroy(&w);
		return -err->code;
	}
	*out = w;
	return 0;
}

void filter_watch_destroy(struct filter_watch **slot)
{
	struct filter_watch *w = *slot;
	if (!w)
		return;
	stop(w);
	cj_free(&w->request);
	cj_free(&w->response);
	cj_free(slot);
}

void filter_watch_set_proc(struct filter_watch *w, int proc_fd)
{
	w->proc_fd = proc_fd;
}

int filter_watch_fd(const struct filter_watch *w)
{
	return w->network == NETWORK_HELD ? -1 : w->listener_fd;
}

const struct denied_syscall *filter_watch_denied(const struct filter_watch *w, size_t *out_count,
						 bool *out_complete)
{
	*out_count = w->ndenied;
	*out_complete = w->is_complete;
	return w->denied;
}
