/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spawner: orders in, workers out.
 *
 * Theory of operation
 *
 *	server                     spawner                        worker
 *	spawner_start  -- fork --> a session of its own,
 *	                           nothing open but the orders
 *	spawner_ask --- order ---> fork ------------------------> a session of its own, nothing open
 *	                                                          but its socket and control pipe
 *	worker_send_job ----------------------------------------> worker_main
 *
 * An order is a profile, a tier and two descriptors, or three with that of a zygote.  The spawner
 * keeps neither them nor a list.  The keeper of a zygote is ordered and ends as a worker.
 * What the server and the worker have to say goes over the worker's own socket.
 *
 * Before its first order, an ordinary user's spawner gets a scope from the user's manager, so that
 * workers, zygotes and jails are in one delegated cgroup.
 *
 * How it ends.  When the server ends in any way, the kernel closes every control pipe and socket:
 * the workers cancel their runs, clean up and exit.  The spawner reads end of file from its own
 * socket, waits for the workers for a limited time, and exits.  Workers that are left then die with
 * it (PR_SET_PDEATHSIG), as they do when the spawner is killed, and their jails with them.  The
 * spawner itself asks for no such signal: end of file is as reliable, because no other process has
 * the server's end, and it leaves the workers time to clean up.
 */
#include "runtime/service/worker/spawner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "runtime/base/child.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/cgroup/cgroup.h"

#define PROFILE_NAME_MAX 256

enum { STEP_ORDER };
enum order_fd { ORDER_SOCK, ORDER_CONTROL, ORDER_ZYGOTE, ORDER_FD_COUNT };
#define ORDER_FD_MIN ORDER_ZYGOTE /* without one */
static const char *const order_names[] = { [STEP_ORDER] = "worker order" };

struct order {
	uint32_t tier;
	bool has_job;
	bool is_zygote; /* the keeper of one */
	char profile[PROFILE_NAME_MAX];
};

static void set_signals(const int *signals, size_t count, void (*handler)(int))
{
	const struct sigaction action = { .sa_handler = handler };
	for (size_t i = 0; i < count; i++)
		(void)sigaction(signals[i], &action, NULL); /* cannot fail for these */
}

/* From here: a worker. */
static _Noreturn void become_worker(const struct order *order, struct step_msg *msg,
				    pid_t spawner_pid, uint64_t changed_signals,
				    const struct worker_life *life)
{
	struct cj_error err = { 0 };

	child_reset_signals(changed_signals); /* whatever the spawner made of them */
	/* Nothing links us to the spawner: its pid shows that it is still there. */
	if (child_unblock_signals(&err) < 0 || child_die_with_parent(-1, &err) < 0 ||
	    getppid() != spawner_pid)
		_exit(EXIT_FAILURE);
	(void)prctl(PR_SET_NAME, order->is_zygote ? "cejail-zygote" : "cejail-worker", 0, 0,
		    0);                   /* only what ps(1) shows */
	(void)!child_start_session(&err); /* just forked, so it leads no group: cannot fail */
	if (child_keep_only(msg->fds, msg->nfds, &err) < 0) {
		unready_tell(msg->fds[ORDER_SOCK], &err);
		_exit(EXIT_FAILURE);
	}
	const struct worker_order told = {
		.profile = order->profile,
		.tier = (enum tier)order->tier,
		.sock_fd = msg->fds[ORDER_SOCK],
		.control_fd = msg->fds[ORDER_CONTROL],
		.zygote_fd = msg->nfds > ORDER_ZYGOTE ? msg->fds[ORDER_ZYGOTE] : -1,
		.has_job = order->has_job,
	};
	if (!order->is_zygote)
		life->main(life, &told);
	else if (life->keep_zygote)
		life->keep_zygote(&told);
	_exit(EXIT_FAILURE);
}

static void carry_out(struct step_msg *msg, uint64_t changed_signals,
		      const struct worker_life *life)
{
	struct order order;
	struct cj_error err = { 0 };
	pid_t self = getpid();

	if (msg->step != STEP_ORDER || msg->size != sizeof(order) || msg->nfds < ORDER_FD_MIN ||
	    msg->nfds > ORDER_FD_COUNT)
		return; /* closing the descriptors notifies the server */
	memcpy(&order, msg->data, sizeof(order));
	order.profile[sizeof(order.profile) - 1] = '\0';
	pid_t pid = fork();
	if (pid == 0)
		become_worker(&order, msg, self, changed_signals, life);
	if (pid < 0) {
		(void)!cj_fail(&err, errno, "fork a worker");
		if (err.code == EAGAIN)
			cj_hint(&err, "too many processes for this user or cgroup: TasksMax=, "
				      "RLIMIT_NPROC");
		cj_stage(&err, "worker");
		unready_tell(msg->fds[ORDER_SOCK], &err);
	}
}

/* Signals that a terminal or systemd sends to all processes: only the server acts on them. */
static const int ignored_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM };

static _Noreturn void spawner_main(int sock_fd, const struct worker_life *life)
{
	struct cj_error err = { 0 };
	struct step_link link = { sock_fd, "the server", order_names };

	child_default_signals();
	set_signals(ignored_signals, COUNT_OF(ignored_signals), SIG_IGN);
	(void)prctl(PR_SET_NAME, "cejail-spawner", 0, 0, 0); /* only what ps(1) shows */
	(void)!child_start_session(&err); /* just forked, so it leads no group: cannot fail */
	if (child_unblock_signals(&err) < 0 || child_keep_only(&link.sock_fd, 1, &err) < 0)
		_exit(EXIT_FAILURE);
	if (life->keep_zygote) {
		/* one scope of the user's manager for all jails and zygotes */
		char id[64];
		(void)snprintf(id, sizeof(id), "serve-%d-%llu", (int)getpid(),
			       (unsigned long long)clock_us());
		cgroup_enter_scope(id);
	}
	const int child_signal = SIGCHLD;
	set_signals(&child_signal, 1, SIG_IGN); /* so that children leave no zombies */
	const uint64_t changed_signals = child_changed_signals(); /* those of each worker */
	/* Not in the loop: after each fork(2) the kernel would copy its pages to zero them. */
	struct step_msg msg = { 0 };
	for (;;) {
		int rc = step_next(&link, &msg, &err);
		if (rc == 0)
			carry_out(&msg, changed_signals, life);
		step_msg_fini(&msg);
		/* EPROTO: an incomplete order; the server takes its worker for dead */
		if (rc < 0 && rc != -EPROTO)
			break;
	}
	/* The server has ended: workers whose control pipe is closed clean up. */
	const int alarm_signal = SIGALRM;
	set_signals(&alarm_signal, 1, SIG_DFL);
	(void)alarm(SPAWNER_LINGER_S);
	while (wait(NULL) >= 0 || errno == EINTR) /* ignored children: until the last one */
		;
	_exit(EXIT_SUCCESS);
}

int spawner_start(struct spawner *s, const struct worker_life *life, struct cj_error *err)
{
	int ends[2];
	if (step_pair(ends, 0, err) < 0)
		return -err->code;

	pid_t pid = fork();
	if (pid == 0)
		spawner_main(ends[1], life); /* closes the other end with all the rest */
	int code = errno;
	auto_fd int far_fd = ends[1];
	auto_fd int near_fd = ends[0];
	(void)far_fd;
	if (pid < 0)
		return cj_fail(err, code, "fork the spawner");
	auto_child int pidfd = sys_pidfd_open(pid);
	if (pidfd < 0)
		return cj_fail(err, errno, "watch the spawner"); /* it ends with its socket */
	fd_set_nonblocking(near_fd);
	s->pidfd = take_fd(&pidfd);
	s->sock_fd = take_fd(&near_fd);
	return 0;
}

void spawner_end(struct spawner *s)
{
	cj_close(&s->sock_fd);
	if (s->pidfd >= 0)
		(void)fd_await(s->pidfd, POLLIN, SPAWNER_END_MS); /* afterwards it is killed */
	cj_end_child(&s->pidfd);
}

int worker_open_ends(struct worker *near, int *out_sock_fd, int *out_control_fd,
		     bool sends_descriptors, struct cj_error *err)
{
	int sock[2], control[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		return cj_fail(err, errno, "create a worker's socket");
	near->sock_fd = sock[0];
	*out_sock_fd = sock[1];
	fd_set_nonblocking(near->sock_fd);
	if (sends_descriptors ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) < 0
			      : pipe2(control, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a worker's control pipe");
	near->control_fd = control[1];
	*out_control_fd = control[0];
	fd_set_nonblocking(near->control_fd);
	return 0;
}

int spawner_ask(struct spawner *s, const struct worker_order *wanted, struct worker *out,
		struct cj_error *err)
{
	const struct step_link link = { s->sock_fd, "the spawner", order_names };
	struct order order = { .tier = wanted->tier,
			       .has_job = wanted->has_job,
			       .is_zygote = wanted->is_zygote };
	struct worker near = WORKER_NULL;
	int far[ORDER_FD_COUNT] = { -1, -1, wanted->zygote_fd };

	if (strlen(wanted->profile) >= sizeof(order.profile))
		return cj_reject(err, "the name of profile '%.32s...' is too long",
				 wanted->profile);
	memcpy(order.profile, wanted->profile, strlen(wanted->profile) + 1);
	/* the keeper of a zygote sends the zygote's socket */
	int rc =
	    worker_open_ends(&near, &far[ORDER_SOCK], &far[ORDER_CONTROL], order.is_zygote, err);
	if (rc == 0)
		rc = step_tell(&link, STEP_ORDER, &order, sizeof(order), far,
			       wanted->zygote_fd >= 0 ? ORDER_FD_COUNT : ORDER_FD_MIN, err);
	cj_close(&far[ORDER_SOCK]);
	cj_close(&far[ORDER_CONTROL]);
	if (rc < 0)
		worker_close(&near);
	else
		*out = near;
	return rc;
}

int worker_send_job(struct worker *w, const struct job *job, struct cj_error *err)
{
	struct job stamped = *job;

	stamped.sent_us = clock_us();
	auto_fd int memfd = job_write(&stamped, err);
	if (memfd < 0)
		return memfd;
	return job_send(w->sock_fd, memfd, job->calls_fd, err);
}

void worker_close(struct worker *w)
{
	cj_close(&w->control_fd);
	cj_close(&w->sock_fd);
}
