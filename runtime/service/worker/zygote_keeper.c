/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a zygote, reports how it is, waits for its end. */
#include "runtime/service/worker/zygote_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/wait.h>

#include "profiles/profile.h"
#include "runtime/base/arena.h"
#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/jail/zygote/zygote.h"
#include "runtime/run/request/request.h"

#define LINE_MAX_SHOWN 200

#define NEVER UINT64_MAX

struct zygote_keeper {
	struct worker_order order;
	struct config config;
	struct plan plan;
	struct program launcher;
	struct zygote zygote;
	int files_fd;                  /* zygote_files_watch(); -1: not yet, or no more */
	uint64_t changed_ms, stale_ms; /* the first change, and when to report it; NEVER */
	int log_fd;                    /* what it writes to its standard error */
	char line[LINE_MAX_SHOWN + 1]; /* the last one of it */
	size_t size;
	bool is_line_over;
};

static void read_log(struct zygote_keeper *k)
{
	char bytes[4096];
	ssize_t got = 0;

	while (k->log_fd >= 0 && (got = sys_read(k->log_fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < got; i++) {
			if (k->is_line_over && bytes[i] != '\n')
				k->size = 0;
			k->is_line_over = bytes[i] == '\n';
			if (!k->is_line_over && k->size < LINE_MAX_SHOWN)
				k->line[k->size++] = bytes[i];
		}
	k->line[k->size] = '\0';
	if (k->log_fd >= 0 && (got == 0 || errno != EAGAIN))
		cj_close(&k->log_fd); /* nobody writes any more */
}

/* The files that a zygote has loaded: one inotify(7) watch for each. */

/* IN_ATTRIB: also when another file takes its name, because the old one has a link less then. */
#define CHANGES (IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)

int zygote_files_watch(int scratch_fd, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	char *list = NULL;
	size_t size = 0;
	if (fd_read_file(scratch_fd, ZYGOTE_FILES_LIST, ZYGOTE_FILES_LIST_MAX, &a, &list, &size,
			 err) < 0) {
		if (err->code != ENOENT)
			return cj_wrap(err, "which files the zygote has loaded");
		*err = (struct cj_error){ 0 };
	}
	auto_fd int watch_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch_fd < 0) {
		int code = errno; /* EMFILE: not only for lack of descriptors */
		cj_refuse_as(err, code, "watch the files that the zygote has loaded: %s",
			     code == EMFILE ? "too many inotify instances" : strerror(code));
		return cj_hint(err, "raise the sysctl fs.inotify.max_user_instances");
	}
	for (char *path; (path = strsep(&list, "\n")) != NULL;) {
		if (path[0] != '/' || inotify_add_watch(watch_fd, path, CHANGES) >= 0 ||
		    errno == ENOENT || errno == ENOTDIR)
			continue;
		(void)!cj_fail(err, errno, "watch '%s'", path);
		if (err->code == ENOSPC)
			cj_hint(err, "raise the sysctl fs.inotify.max_user_watches");
		return -err->code;
	}
	return take_fd(&watch_fd);
}

void zygote_files_drain(int watch_fd)
{
	_Alignas(struct inotify_event) char events[4096];
	while (sys_read(watch_fd, events, sizeof(events)) > 0)
		;
}

/* *err says why. */
static int refuse(const struct zygote_keeper *k, struct cj_error *err)
{
	(void)!cj_wrap(err, "profile '%s' can't use a zygote", k->order.profile);
	cj_hint(err, "change the profile, or set \"warm\": {\"zygote\": false} in it: "
		     "cejail-serve(8)");
	return cj_stage(err, ZYGOTE_STAGE_UNSUITABLE);
}

static int make_plan(struct zygote_keeper *k, struct cj_error *err)
{
	if (profile_load(&k->config, k->order.profile, err) < 0)
		return -err->code;
	if (request_plan_jail(&k->config, &k->plan, err) < 0)
		return -err->code;
	const char *why = zygote_refusal(&k->plan);
	if (why) {
		cj_refuse(err, "%s", why);
		return refuse(k, err);
	}
	if (plan_zygote(&k->config, &k->plan, &k->launcher, err) == 0 &&
	    plan_zygote_outside(&k->config, &k->launcher, err) == 0)
		return 0;
	return err->code == EINVAL ? cj_stage(err, ZYGOTE_STAGE_UNSUITABLE) : -err->code;
}

static int start(struct zygote_keeper *k, struct cj_error *err)
{
	int log[2];

	if (make_plan(k, err) < 0)
		return -err->code;
	if (pipe2(log, O_CLOEXEC) < 0)
		return cj_fail(err, errno, "create a pipe");
	fd_set_nonblocking(log[0]);
	k->log_fd = log[0];
	auto_fd int far_fd = log[1];
	return zygote_spawn(&k->launcher, far_fd, &k->zygote, err);
}

enum zygote_source {
	SOURCE_SERVER,
	SOURCE_END,
	SOURCE_LOG,
	SOURCE_FILES,
	SOURCE_READY,
	SOURCE_COUNT
};

/* Waits until one of the first `count` sources has something; false: the time is over. */
static bool wait_for(struct zygote_keeper *k, struct pollfd sources[SOURCE_COUNT], size_t count,
		     uint64_t until_ms)
{
	const int fds[SOURCE_COUNT] = { k->order.sock_fd, k->zygote.pidfd, k->log_fd, k->files_fd,
					k->zygote.sock_fd };

	for (size_t i = 0; i < SOURCE_COUNT; i++)
		sources[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	uint64_t now_ms = clock_ms();
	int wait_ms = until_ms == NEVER ? -1 : (int)(until_ms > now_ms ? until_ms - now_ms : 0);
	int rc = poll(sources, (nfds_t)count, wait_ms);
	if (rc > 0 && sources[SOURCE_LOG].revents)
		read_log(k);
	return rc != 0;
}

static int await_ready(struct zygote_keeper *k, struct cj_error *err)
{
	struct pollfd sources[SOURCE_COUNT];
	uint64_t until_ms = clock_ms() + ZYGOTE_START_MS;

	do {
		if (!wait_for(k, sources, SOURCE_COUNT, until_ms))
			return cj_fail(err, ETIMEDOUT, "wait for the zygote");
		if (sources[SOURCE_SERVER].revents)
			_exit(EXIT_SUCCESS); /* the zygote dies with us */
	} while (!sources[SOURCE_READY].revents && !sources[SOURCE_END].revents);
	if (zygote_await_ready(&k->zygote, 1000, err) == 0)
		return 0;
	if (err->code == EBUSY)
		return refuse(k, err);
	read_log(k);
	return k->size > 0 ? cj_wrap(err, "the zygote wrote '%s'", k->line) : -err->code;
}

/* How a zygote ended by itself; the server may start another. */
static int describe_end(struct zygote_keeper *k, struct cj_error *err)
{
	siginfo_t info = { 0 };

	read_log(k);
	if (waitid(P_PIDFD, (id_t)k->zygote.pidfd, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return cj_fail(err, errno, "look at the zygote");
	if (info.si_code == CLD_EXITED)
		cj_refuse(err, "the zygote exited with status %d", info.si_status);
	else
		cj_refuse(err, "signal %d killed the zygote", info.si_status);
	if (k->size > 0)
		cj_hint(err, "it wrote '%s'", k->line);
	return -err->code;
}

/* An upgrade changes many files: it is over when none has changed for a while. */
static void note_change(struct zygote_keeper *k)
{
	uint64_t now_ms = clock_ms();

	zygote_files_drain(k->files_fd);
	if (k->stale_ms == NEVER)
		k->changed_ms = now_ms;
	k->stale_ms = k->changed_ms + ZYGOTE_CHANGES_MS;
	if (now_ms + ZYGOTE_QUIET_MS < k->stale_ms)
		k->stale_ms = now_ms + ZYGOTE_QUIET_MS;
}

/* Returns when it has ended, or the server wants it no more. */
static int watch(struct zygote_keeper *k, struct cj_error *err)
{
	struct pollfd sources[SOURCE_COUNT];
	uint64_t end_ms = NEVER;

	for (;;) {
		uint64_t until_ms = end_ms < k->stale_ms ? end_ms : k->stale_ms;
		bool is_over = !wait_for(k, sources, SOURCE_READY, until_ms);
		if (is_over && clock_ms() >= end_ms)
			return 0;
		if (is_over) {
			stale_tell(k->order.sock_fd);
			cj_close(&k->files_fd);
			k->stale_ms = NEVER;
		}
		if (sources[SOURCE_FILES].revents)
			note_change(k);
		if (sources[SOURCE_END].revents)
			return end_ms == NEVER ? describe_end(k, err) : 0;
		if (!sources[SOURCE_SERVER].revents || end_ms != NEVER)
			continue;
		end_ms = clock_ms() + ZYGOTE_LINGER_MS;
		k->stale_ms = NEVER;
		cj_close(&k->files_fd);
		k->order.sock_fd = -1; /* poll(2) ignores it */
	}
}

static int hand_over(struct zygote_keeper *k, struct cj_error *err)
{
	k->files_fd = zygote_files_watch(k->zygote.scratch_fd, err);
	if (k->files_fd < 0)
		return k->files_fd;
	cj_close(&k->zygote.scratch_fd);
	int rc = job_send(k->order.control_fd, k->zygote.sock_fd, 0, err);
	cj_close(&k->zygote.sock_fd); /* it ends when nobody has its socket */
	return rc < 0 ? rc : ready_tell(k->order.sock_fd, false, NULL, err);
}

int zygote_keeper_check(const char *profile, struct cj_error *err)
{
	const struct worker_order order = { .profile = profile };
	struct zygote_keeper k = { .order = order };

	config_init(&k.config);
	int rc = profile_load(&k.config, profile, err);
	if (rc == 0 && plan_wants_zygote(&k.config)) {
		config_fini(&k.config);
		rc = make_plan(&k, err);
	}
	config_fini(&k.config);
	return rc;
}

_Noreturn void zygote_keeper_main(const struct worker_order *order)
{
	struct zygote_keeper k = {
		.order = *order,
		.zygote = ZYGOTE_NULL,
		.files_fd = -1,
		.stale_ms = NEVER,
		.log_fd = -1,
	};
	struct cj_error err = { 0 };

	config_init(&k.config);
	int rc = start(&k, &err);
	if (rc == 0)
		rc = await_ready(&k, &err);
	if (rc == 0)
		rc = hand_over(&k, &err);
	if (rc == 0)
		rc = watch(&k, &err);
	if (rc < 0)
		unready_tell(order->sock_fd, &err);
	zygote_end(&k.zygote);
	_exit(rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
}
