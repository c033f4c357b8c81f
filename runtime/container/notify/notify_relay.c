/* SPDX-License-Identifier: Apache-2.0 */
/* Passes READY=1 on. */
#include "runtime/container/notify/notify_relay.h"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/unix.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/text.h"
#include "runtime/container/call/oci_log.h"
#include "runtime/kernel/process/privileges.h"

#define VARIABLE "NOTIFY_SOCKET="
#define START_MS 30000 /* as create waits for init */
#define BATCH    16    /* messages without a pause */
#define PAUSE_MS 50

void notify_relay_close(struct notify_relay *r)
{
	cj_close(&r->manager_fd);
	cj_close(&r->program_fd);
}

/* -1: none.  Without one the program runs, and the service manager waits: the log says why. */
static int connect_manager(const struct oci_options *o, const struct oci_config *config)
{
	const struct strings *env = &config->process.env;
	const char *where = getenv("NOTIFY_SOCKET");
	struct cj_error failed = { 0 };

	if (!where || where[0] == '\0' || !config->has_process ||
	    strings_find_variable(env, VARIABLE))
		return -1;
	int fd = unix_connect_datagram(where, &failed);
	if (fd < 0) {
		(void)!cj_wrap(&failed, "the container has no NOTIFY_SOCKET");
		oci_log_warning(o, &failed);
	}
	return fd < 0 ? -1 : fd;
}

int notify_relay_plan(struct notify_relay *r, const struct oci_options *o,
		      struct oci_config *config, struct arena *a, struct cj_error *err)
{
	static const char *options[] = { "bind", "ro", "nosuid", "nodev", "noexec" };

	r->manager_fd = connect_manager(o, config);
	if (r->manager_fd < 0)
		return 0;
	struct oci_mount *mounts = arena_array(a, config->nmounts + 1, sizeof(*mounts));
	r->source = arena_alloc(a, PATH_MAX);
	if (!mounts || !r->source ||
	    strings_add(&config->process.env, a, VARIABLE NOTIFY_RELAY_PATH) < 0)
		return cj_fail(err, ENOMEM, "plan the socket for the service manager");
	(void)snprintf(r->source, PATH_MAX, "%s", STATE_NOTIFY); /* until notify_relay_bind() */
	if (config->nmounts > 0)
		memcpy(mounts, config->mounts, config->nmounts * sizeof(*mounts));
	mounts[config->nmounts++] = (struct oci_mount){
		.destination = NOTIFY_RELAY_PATH,
		.type = "bind",
		.source = r->source,
		.options = { options, COUNT_OF(options) },
	};
	config->mounts = mounts;
	return 0;
}

int notify_relay_bind(struct notify_relay *r, const struct state *s, struct cj_error *err)
{
	char dir[PATH_MAX];

	if (r->manager_fd < 0)
		return 0;
	r->program_fd = state_socket_notify(s, err);
	if (r->program_fd < 0)
		return r->program_fd;
	/* Init clones it in a mount namespace of its own, where our descriptors lead nowhere. */
	if (!fd_real_path(s->dir_fd, dir) ||
	    snprintf(r->source, PATH_MAX, "%s/" STATE_NOTIFY, dir) >= PATH_MAX)
		return cj_fail(err, ENAMETOOLONG, "find the socket '" STATE_NOTIFY "'");
	return 0;
}

/* False: there is no message.  Without room for them the kernel closes descriptors of a message,
 * and sets MSG_CTRUNC. */
static bool receive_one(struct notify_relay *r)
{
	char text[NOTIFY_RELAY_TEXT_MAX];
	struct iovec room = { .iov_base = text, .iov_len = sizeof(text) };
	struct msghdr message = { .msg_iov = &room, .msg_iovlen = 1 };
	ssize_t size = recvmsg(r->program_fd, &message, MSG_DONTWAIT);

	if (size < 0)
		return false;
	if (r->progress == NOTIFY_NOT_READY && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    notify_relay_is_ready(text, (size_t)size))
		r->progress = NOTIFY_READY;
	return true;
}

/* A manager whose queue is full gets it later.  One that has closed its socket never does. */
static void send_ready(struct notify_relay *r)
{
	char text[NOTIFY_RELAY_SENT_MAX];
	size_t size = notify_relay_format(r->main_pid, text);

	if (send(r->manager_fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 || errno != EAGAIN)
		r->progress = NOTIFY_SENT;
}

void notify_relay_wait(struct notify_relay *r, int fd)
{
	bool pauses = false;

	for (;;) {
		struct pollfd polled[] = { { .fd = fd, .events = POLLIN },
					   { .fd = pauses ? -1 : r->program_fd,
					     .events = POLLIN } };
		bool has_limit = pauses || r->progress == NOTIFY_READY;
		int count = poll(polled, 2, has_limit ? PAUSE_MS : -1);
		if (count < 0 && errno != EINTR)
			return;
		if (count < 0)
			continue;
		pauses = polled[1].revents != 0;
		/* also what came before the end of the program */
		bool receives = r->program_fd >= 0 && count > 0;
		for (int i = 0; receives && i < BATCH && receive_one(r); i++)
			;
		if (r->progress == NOTIFY_READY)
			send_ready(r);
		if (polled[0].revents != 0)
			return;
	}
}

enum relay_step { RELAY_READY, RELAY_STEP_COUNT };
static const char *const step_names[] = { [RELAY_READY] = "ready" };
static_assert(COUNT_OF(step_names) == RELAY_STEP_COUNT, "each has a name");

enum notify_held { HELD_MANAGER, HELD_PROGRAM, HELD_PID, HELD_LINK, HELD_COUNT };
static_assert(HELD_COUNT <= CHILD_FDS_MAX, "child_keep_only() keeps all");

static _Noreturn void relay_main(struct notify_relay *r, int fds[static HELD_COUNT])
{
	struct cj_error err = { 0 };
	int rc = privileges_stay_behind("cejail-oci-ntfy", fds, HELD_COUNT, 0, &err);

	const struct step_link link = { fds[HELD_LINK], "cejail-oci create", step_names };
	if (rc < 0) {
		step_abort(&link, &err);
		_exit(1);
	}
	r->manager_fd = fds[HELD_MANAGER];
	r->program_fd = fds[HELD_PROGRAM];
	rc = step_say(&link, RELAY_READY, &err);
	cj_close(&fds[HELD_LINK]);
	if (rc == 0)
		notify_relay_wait(r, fds[HELD_PID]);
	_exit(rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}

int notify_relay_start(struct notify_relay *r, pid_t init_pid, int init_pidfd, struct cj_error *err)
{
	int socks[2];

	if (r->manager_fd < 0)
		return 0;
	if (step_pair(socks, START_MS, err) < 0)
		return -err->code;
	auto_fd int own_fd = socks[0], its_fd = socks[1];
	r->main_pid = init_pid;
	pid_t pid = fork();
	if (pid == 0) {
		int fds[] = { [HELD_MANAGER] = r->manager_fd,
			      [HELD_PROGRAM] = r->program_fd,
			      [HELD_PID] = init_pidfd,
			      [HELD_LINK] = its_fd };
		relay_main(r, fds);
	}
	if (pid < 0)
		return cj_fail(err, errno, "start the notify process");
	cj_close(&its_fd);
	notify_relay_close(r);
	const struct step_link link = { own_fd, "the notify process", step_names };
	return step_await(&link, RELAY_READY, NULL, err) < 0 ? cj_wrap(err, "start it") : 0;
}

static const char ready[] = "READY=1";

bool notify_relay_is_ready(const char *text, size_t size)
{
	char lines[NOTIFY_RELAY_TEXT_MAX + 1];

	if (size == 0 || size > NOTIFY_RELAY_TEXT_MAX || memchr(text, '\0', size))
		return false;
	memcpy(lines, text, size);
	lines[size] = '\0';
	return text_has_line(lines, ready);
}

size_t notify_relay_format(pid_t main_pid, char out[static NOTIFY_RELAY_SENT_MAX])
{
	int size = main_pid > 0 ? snprintf(out, NOTIFY_RELAY_SENT_MAX, "%s\nMAINPID=%d", ready,
					   (int)main_pid)
				: snprintf(out, NOTIFY_RELAY_SENT_MAX, "%s", ready);

	return (size_t)size;
}
