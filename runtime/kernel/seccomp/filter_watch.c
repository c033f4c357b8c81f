/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor's side of a listener: refuses notified calls, counts their names, and allows a
 * number of the bounded calls.
 *
 * The payload chooses when calls come, how many, and their arguments.  So the work is limited:
 *
 *	- answers have a rate; between them the listener isn't read, and the callers wait.  The
 *	  kernel queues calls in their order, so a flood delays another call of its jail by no more
 *	  than one call of each process and thread
 *	- names come from tables; memory behind a pointer is never read
 *	- counting ends at FILTER_NAMES_MAX names
 *
 * The listener is never closed while a process could use it: the kernel would then refuse the calls
 * that the policy allows, too.
 *
 * SECCOMP_USER_NOTIF_FLAG_CONTINUE is sent only for calls of calls_bounded[] that the policy
 * allows: the program itself says so again, from the notified registers (filter_run()).  Another
 * thread can't change registers.  All other answers are refusals.  The report is no proof: a
 * program can hide its calls behind a filter of its own, which the kernel asks first.
 */
#include "runtime/kernel/seccomp/filter.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/seccomp/filter_parts.h"

/* Names of refused calls: "mount", "socket(AF_ALG)". */

struct word {
	uint64_t value;
	const char *text;
};

/* By number; AF_UNSPEC is 0. */
static const char *const families[] = {
	"UNSPEC",   "UNIX",       "INET",    "AX25",      "IPX",     "APPLETALK", "NETROM",
	"BRIDGE",   "ATMPVC",     "X25",     "INET6",     "ROSE",    "DECnet",    "NETBEUI",
	"SECURITY", "KEY",        "NETLINK", "PACKET",    "ASH",     "ECONET",    "ATMSVC",
	"RDS",      "SNA",        "IRDA",    "PPPOX",     "WANPIPE", "LLC",       "IB",
	"MPLS",     "CAN",        "TIPC",    "BLUETOOTH", "IUCV",    "RXRPC",     "ISDN",
	"PHONET",   "IEEE802154", "CAIF",    "ALG",       "NFC",     "VSOCK",     "KCM",
	"QIPCRTR",  "SMC",        "XDP",     "MCTP"
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
	const char *type = word_of(types, COUNT_OF(types), args[1] & 0xf); /* SOCK_TYPE_MASK */
	bool is_common = family == AF_UNIX || family == AF_INET || family == AF_INET6;

	if (family >= COUNT_OF(families))
		(void)snprintf(out, FILTER_NAME_MAX, "socket(family %u)", family);
	else if (is_common && type)
		(void)snprintf(out, FILTER_NAME_MAX, "socket(AF_%s, %s, %u)", families[family],
			       type, (unsigned)args[2]);
	else
		(void)snprintf(out, FILTER_NAME_MAX, "socket(AF_%s)", families[family]);
}

static void name_with(const char *call, const char *word, char *out)
{
	if (word)
		(void)snprintf(out, FILTER_NAME_MAX, "%s(%s)", call, word);
	else
		(void)snprintf(out, FILTER_NAME_MAX, "%s", call);
}

static const char *namespace_word(uint64_t flags)
{
	for (size_t i = 0; i < COUNT_OF(namespace_flags); i++) {
		if (flags & namespace_flags[i].value)
			return namespace_flags[i].text;
	}
	return NULL;
}

static void name_call(const struct seccomp_data *data, char out[FILTER_NAME_MAX])
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

#define WATCH_BATCH 16

/*
 * An answer costs the supervisor 5 to 8 us of CPU time, so a program that repeats such calls for
 * ever costs less than a tenth of a processor.  Reading the jail's /proc costs as much as several
 * answers.
 */
#define ANSWERS_PER_MS 8
#define ANSWERS_BURST  8192
#define LOOK_PRICE     10

/*
 * So many calls wait for the network at a time; the kernel queues more.  From the moment that a
 * call is received, a signal no longer interrupts it (WAIT_KILLABLE_RECV).
 */
#define HELD_MAX 256

/* Calls that open a socket: none has come yet; they wait for the network; they go on at once. */
enum network_calls { NETWORK_CALLS_NONE, NETWORK_CALLS_WAIT, NETWORK_CALLS_GO_ON };

/* A call that was received; it may wait for the network. */
struct held {
	uint64_t id;
	pid_t pid;
	struct seccomp_data data;
};

/*
 * A netlink socket queues unread answers, up to net.core.rmem_default, in memory that no cgroup
 * counts.  So the number of sockets has a limit: FILTER_NETLINK_MAX, or less where the host has
 * raised that size.  All zero: nothing was granted yet.
 */
struct socket_count {
	unsigned max;     /* 0: not known yet */
	unsigned granted; /* at most so many exist now */
};

struct filter_watch {
	int listener_fd;
	struct seccomp_notif *request; /* of this kernel's size */
	struct seccomp_notif_resp *response;
	size_t request_size, response_size;
	struct rate rate;
	const struct sock_filter *insns; /* borrowed */
	size_t ninsns;
	enum network_calls network;
	size_t nheld;
	struct filter_groups groups; /* find NULL: all callers are one */
	unsigned
	    loads[FILTER_GROUPS_MAX + 1]; /* filters that were allowed; last: not known whose */
	struct socket_count netlink;
	int proc_fd; /* borrowed */
	bool is_complete;
	size_t ndenied;
	/* The pages from here on are only touched when such a call comes. */
	struct held held[HELD_MAX]; /* with NETWORK_CALLS_WAIT */
	struct denied_syscall denied[FILTER_NAMES_MAX];
	char names[FILTER_NAMES_MAX][FILTER_NAME_MAX];
};

#define BYTES_MAX     (16L << 20) /* of all netlink sockets of a jail */
#define LEAST         4           /* of them, however large one may be */
#define PROTOCOLS_MAX 16384       /* a line of 130 bytes for each protocol of the kernel */

void rate_init(struct rate *r, unsigned per_ms, unsigned burst, uint64_t now_ms)
{
	*r = (struct rate){ per_ms, burst, burst, now_ms };
}

void rate_take(struct rate *r, unsigned price)
{
	r->left = r->left > price ? r->left - price : 0;
}

bool rate_refill(struct rate *r, uint64_t now_ms)
{
	if (r->left > 0)
		return true;
	if (now_ms < r->since_ms + RATE_PAUSE_MS)
		return false;
	uint64_t ms = now_ms - r->since_ms;
	r->left = ms < r->burst / r->per_ms ? (unsigned)ms * r->per_ms : r->burst;
	r->since_ms = now_ms;
	return true;
}

uint64_t rate_paused_until_ms(const struct rate *r)
{
	return r->left > 0 ? 0 : r->since_ms + RATE_PAUSE_MS;
}

/* "protocol size sockets ...": the third word of the line that begins with NETLINK. */
long socket_count_parse(const char *text)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *at = text_after(line, "NETLINK ");
		char *end;
		if (!at)
			continue;
		(void)strtol(at, &end, 10);
		return strtol(end, NULL, 10);
	}
	return -1;
}

static unsigned find_max(void)
{
	char text[SYSTEM_FILE_SMALL];
	long bytes = 0;
	if (system_file_read(AT_FDCWD, "/proc/sys/net/core/rmem_default", text, sizeof(text)) > 0)
		bytes = strtol(text, NULL, 10);
	if (bytes <= BYTES_MAX / FILTER_NETLINK_MAX)
		return FILTER_NETLINK_MAX;
	return bytes < BYTES_MAX / LEAST ? (unsigned)(BYTES_MAX / bytes) : LEAST;
}

/*
 * May the jail have one more?  Reads its /proc only when the sockets granted since the last look
 * could be too many; sets *out_has_looked.  If it can't be read, all granted sockets count as open.
 */
static bool socket_count_take(struct socket_count *c, int proc_fd, bool *out_has_looked)
{
	if (c->max == 0)
		c->max = find_max();
	*out_has_looked = c->granted >= c->max;
	if (*out_has_looked) {
		char text[PROTOCOLS_MAX];
		bool is_read = proc_fd >= 0 &&
			       system_file_read(proc_fd, "1/net/protocols", text, sizeof(text)) > 0;
		long now = is_read ? socket_count_parse(text) : -1;
		if (now >= 0 && (unsigned long)now < c->granted)
			c->granted = (unsigned)now;
	}
	if (c->granted >= c->max)
		return false;
	c->granted++;
	return true;
}

/* Counts the name.  Returns it the first time, else NULL. */
static const char *count_name(struct filter_watch *w, const char *name)
{
	for (size_t i = 0; i < w->ndenied; i++) {
		if (strcmp(w->names[i], name) == 0) {
			w->denied[i].count += w->denied[i].count < UINT_MAX;
			return NULL;
		}
	}
	if (w->ndenied == FILTER_NAMES_MAX) {
		w->is_complete = false;
		return NULL;
	}
	size_t at = w->ndenied++;
	(void)snprintf(w->names[at], FILTER_NAME_MAX, "%s", name);
	w->denied[at] = (struct denied_syscall){ w->names[at], 1 };
	return w->names[at];
}

/*
 * The kernel refuses the listener, which it should not.  From here on it refuses these calls
 * itself, with ENOSYS, and they are not counted.
 */
static void give_up(struct filter_watch *w)
{
	w->is_complete = false;
	cj_close(&w->listener_fd);
}

/* Is there a notification?  Closes the listener when no process is left that could send one. */
static bool has_request(struct filter_watch *w)
{
	struct pollfd poll_fd = { .fd = filter_watch_fd(w), .events = POLLIN };
	if (poll_fd.fd < 0 || poll(&poll_fd, 1, 0) <= 0)
		return false;
	if (poll_fd.revents & POLLIN)
		return true;
	cj_close(&w->listener_fd); /* POLLHUP: the last process under the filter has ended */
	return false;
}

/* ENOENT: the caller has died in between, or was interrupted; poll(2) reports the next one. */
static bool take_request(struct filter_watch *w)
{
	rate_take(&w->rate, 1);
	memset(w->request, 0, w->request_size); /* the kernel refuses anything else */
	if (ioctl(w->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, w->request) == 0)
		return true;
	if (errno != ENOENT && errno != EINTR)
		give_up(w);
	return false;
}

/* errno_value 0: the call is allowed.  False: its caller is gone, or asks again after a signal. */
static bool send_answer(struct filter_watch *w, uint64_t id, int errno_value)
{
	if (w->listener_fd < 0) /* a held call, and no process is left */
		return false;
	memset(w->response, 0, w->response_size);
	w->response->id = id;
	w->response->error = -errno_value;
	w->response->flags = errno_value == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	if (ioctl(w->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, w->response) == 0)
		return true;
	if (errno != ENOENT)
		give_up(w);
	return false;
}

#define NO_GROUP FILTER_GROUPS_MAX

/* Only of a session. */
static unsigned find_group(struct filter_watch *w, pid_t pid)
{
	unsigned price = 0;
	int group = w->groups.find ? w->groups.find(w->groups.context, pid, &price) : -1;
	rate_take(&w->rate, price);
	return group >= 0 && group < FILTER_GROUPS_MAX ? (unsigned)group : NO_GROUP;
}

/* False: the caller is dead, so its pid may have named another process already. */
static bool is_valid(const struct filter_watch *w, uint64_t id)
{
	return w->listener_fd >= 0 && ioctl(w->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Before the call is answered, so that it is counted when the program ends. */
static void tell_group(struct filter_watch *w, const struct held *call, const char *name)
{
	if (!w->groups.refused)
		return;
	unsigned group = find_group(w, call->pid);
	if (is_valid(w, call->id))
		w->groups.refused(w->groups.context, group == NO_GROUP ? -1 : (int)group, name);
}

/* In a session, a program may change only itself; it may read the limits of others. */
static int decide_others(struct filter_watch *w, const struct held *call)
{
	const struct seccomp_data *data = &call->data;
	pid_t named = call_names_process(data->nr, (const uint64_t *)data->args);
	bool is_only_read = data->nr == SYS_prlimit64 && data->args[2] == 0;
	if (!w->groups.is_itself || named == 0 || is_only_read)
		return 0;
	rate_take(&w->rate, 1);
	return w->groups.is_itself(w->groups.context, call->pid, named) && is_valid(w, call->id)
		   ? 0
		   : EPERM;
}

/* The errno of a call; 0: it goes on, because it is bounded and there is room. */
static int decide(struct filter_watch *w, const struct held *call, uint32_t policy, unsigned group)
{
	bool may_open, has_looked = false;
	switch (filter_bound_of(policy)) {
	case CALL_BOUND_FILTERS:
		return w->loads[group] < FILTER_LOADS_MAX ? 0 : EPERM;
	case CALL_BOUND_NETLINK:
		may_open = socket_count_take(&w->netlink, w->proc_fd, &has_looked);
		rate_take(&w->rate, has_looked ? LOOK_PRICE : 0);
		return may_open ? 0 : EMFILE;
	case CALL_BOUND_NETWORK:
		return 0;
	case CALL_BOUND_OTHERS:
		return decide_others(w, call);
	case CALL_BOUND_UNCOUNTED: /* never notified: filter_settle() */
	case CALL_BOUND_COUNT:
		break;
	}
	return filter_errno_of(policy);
}

static const char *answer(struct filter_watch *w, const struct held *call)
{
	uint32_t policy = filter_run(w->insns, w->ninsns, &call->data);
	bool is_load = filter_bound_of(policy) == CALL_BOUND_FILTERS;
	unsigned group = is_load ? find_group(w, call->pid) : NO_GROUP;
	int errno_value = decide(w, call, policy, group);
	if (errno_value == 0) {
		bool is_sent = send_answer(w, call->id, 0);
		w->loads[group] += is_sent && is_load;
		return NULL;
	}
	char name[FILTER_NAME_MAX];
	name_call(&call->data, name);
	tell_group(w, call, name);
	(void)send_answer(w, call->id, errno_value); /* its caller may be gone */
	return count_name(w, name);
}

static bool must_wait(const struct filter_watch *w, const struct held *call)
{
	if (w->network == NETWORK_CALLS_GO_ON)
		return false;
	enum call_bound bound = filter_bound_of(filter_run(w->insns, w->ninsns, &call->data));
	return bound == CALL_BOUND_NETWORK || bound == CALL_BOUND_NETLINK;
}

static const char *answer_one(struct filter_watch *w)
{
	if (!take_request(w))
		return NULL;
	const struct held call = { w->request->id, (pid_t)w->request->pid, w->request->data };
	if (!must_wait(w, &call))
		return answer(w, &call);
	w->network = NETWORK_CALLS_WAIT;
	w->held[w->nheld++] = call;
	return NULL;
}

void filter_watch_answer(struct filter_watch *w, const char **out_name)
{
	*out_name = NULL;
	for (unsigned i = 0; i < WATCH_BATCH && !*out_name && has_request(w); i++)
		*out_name = answer_one(w);
}

bool filter_watch_wants_network(const struct filter_watch *w)
{
	return w->network == NETWORK_CALLS_WAIT;
}

void filter_watch_network_settled(struct filter_watch *w)
{
	w->network = NETWORK_CALLS_GO_ON;
	for (size_t i = 0; i < w->nheld; i++)
		(void)answer(w, &w->held[i]); /* a netlink socket may still be refused */
	w->nheld = 0;
}

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
	struct filter_watch *w = malloc(sizeof(*w));
	if (!w) {
		cj_close(&listener_fd);
		return cj_fail(err, ENOMEM, "watch denied system calls");
	}
	memset(w, 0, offsetof(struct filter_watch, held));
	w->listener_fd = listener_fd;
	w->proc_fd = -1;
	w->insns = f->insns;
	w->ninsns = f->ninsns;
	w->network = f->asks_network ? NETWORK_CALLS_NONE : NETWORK_CALLS_GO_ON;
	w->is_complete = true;
	rate_init(&w->rate, ANSWERS_PER_MS, ANSWERS_BURST, clock_ms());
	if (make_room(w, err) < 0) {
		filter_watch_destroy(&w);
		return -err->code;
	}
	*out = w;
	return 0;
}

int filter_watch_take_listener(struct filter_watch *w)
{
	return take_fd(&w->listener_fd);
}

void filter_watch_destroy(struct filter_watch **slot)
{
	struct filter_watch *w = *slot;
	if (!w)
		return;
	cj_close(&w->listener_fd);
	cj_free(&w->request);
	cj_free(&w->response);
	cj_free(slot);
}

void filter_watch_split(struct filter_watch *w, const struct filter_groups *groups)
{
	w->groups = *groups;
}

void filter_watch_forget(struct filter_watch *w, int group)
{
	w->loads[group] = 0;
}

void filter_watch_set_proc(struct filter_watch *w, int proc_fd)
{
	w->proc_fd = proc_fd;
}

int filter_watch_fd(struct filter_watch *w)
{
	bool may_read = w->nheld < HELD_MAX &&
			(w->rate.left > 0 || rate_refill(&w->rate, clock_ms()));
	return may_read ? w->listener_fd : -1;
}

uint64_t filter_watch_paused_until_ms(const struct filter_watch *w)
{
	bool may_pause = w->nheld < HELD_MAX && w->listener_fd >= 0;
	return may_pause ? rate_paused_until_ms(&w->rate) : 0;
}

const struct denied_syscall *filter_watch_denied(const struct filter_watch *w, size_t *out_count,
						 bool *out_complete)
{
	*out_count = w->ndenied;
	*out_complete = w->is_complete;
	return w->denied;
}
