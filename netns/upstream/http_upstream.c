/* SPDX-License-Identifier: Apache-2.0 */
/* The helper of --upstream: its start, its end and its counters. */
#include "netns/upstream/http_upstream.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/files/libexec.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"

#define COUNTERS_SIZE (UPSTREAMS_MAX * sizeof(struct upstream_counters))
#define FIXED_FDS     (UPSTREAM_LISTEN_FD - UPSTREAM_CONFIG_FD)

struct http_upstream {
	pid_t pid;
	int pidfd, counters_fd, epoll_fd;
	int fds[FIXED_FDS + UPSTREAMS_MAX];       /* the helper's; ours are the listeners */
	const struct upstream_counters *counters; /* the helper writes them */
	const struct http_upstream_spec *specs;   /* borrowed */
	size_t count;
};

static void put_upstream(struct json_writer *w, const struct http_upstream_spec *spec)
{
	json_open_object(w);
	json_member_text(w, "name", spec->name);
	json_member_text(w, "url", spec->url);
	json_member_text(w, "path", spec->path);
	json_member_u64(w, "requests_max", spec->requests_max);
	json_member_u64(w, "bytes_max", spec->bytes_max);
	json_member_array(w, "headers");
	for (size_t i = 0; i < spec->nheaders; i++) {
		json_open_object(w);
		json_member_text(w, "name", spec->headers[i].name);
		json_member_text(w, "prefix", spec->headers[i].prefix);
		json_member_text(w, "file", spec->headers[i].file);
		json_close_object(w);
	}
	json_close_array(w);
	json_close_object(w);
}

static int make_config(const struct http_upstream_spec *specs, size_t n, struct cj_error *err)
{
	struct blob text;
	auto_json_writer struct json_writer *w = json_writer_create(false);
	if (!w)
		return cj_fail(err, ENOMEM, "write the configuration of --upstream");
	json_open_object(w);
	json_member_array(w, "upstreams");
	for (size_t i = 0; i < n; i++)
		put_upstream(w, &specs[i]);
	json_close_array(w);
	json_close_object(w);
	return json_writer_take(w, &text, err) < 0
		   ? -err->code
		   : fd_memfd_sealed("upstreams", text.bytes, text.size, err);
}

/* Sealed: who changed its size could end the supervisor, which reads it. */
static int make_counters(const struct upstream_counters **out, struct cj_error *err)
{
	auto_fd int fd = memfd_create("upstream-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, COUNTERS_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return cj_fail(err, errno, "make the counters of --upstream");
	const void *counters = mmap(NULL, COUNTERS_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	if (counters == MAP_FAILED)
		return cj_fail(err, errno, "map the counters of --upstream");
	*out = counters;
	return take_fd(&fd);
}

/* Of the caller's environment the helper gets where the certificates are. */
static int start_helper(struct http_upstream *u, struct cj_error *err)
{
	static const char *const no_args[] = { NULL };
	char *environment[3] = { NULL };
	for (char **at = environ, **to = environment; *at; at++)
		if (to < environment + 2 && (strncmp(*at, "SSL_CERT_FILE=", 14) == 0 ||
					     strncmp(*at, "SSL_CERT_DIR=", 13) == 0))
			*to++ = *at;
	const struct libexec_program program = {
		.name = "upstream",
		.args = no_args,
		.environment = environment,
		.fds = u->fds,
		.count = FIXED_FDS + u->count,
	};
	u->pid = libexec_start(&program, &u->pidfd, err);
	return u->pid < 0 ? -err->code : 0;
}

static int watch_fd(const struct http_upstream *u, int fd, struct cj_error *err)
{
	struct epoll_event event = { .events = EPOLLIN };
	if (epoll_ctl(u->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return cj_fail(err, errno, "watch the servers of --upstream");
	return 0;
}

static int set_up(struct http_upstream *u, const int *listen_fds, struct cj_error *err)
{
	u->counters_fd = make_counters(&u->counters, err);
	if (u->counters_fd < 0)
		return -err->code;
	u->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (u->epoll_fd < 0)
		return cj_fail(err, errno, "create an epoll for --upstream");
	for (size_t i = 0; i < u->count; i++)
		if (watch_fd(u, listen_fds[i], err) < 0)
			return -err->code;
	return 0;
}

int http_upstream_create(const struct http_upstream_spec *specs, size_t n, int *listen_fds,
			 struct http_upstream **out, struct cj_error *err)
{
	struct http_upstream *u = calloc(1, sizeof(*u));
	if (!u)
		return cj_fail(err, ENOMEM, "make the counters of --upstream");
	*u = (struct http_upstream){ .pidfd = -1, .epoll_fd = -1, .specs = specs, .count = n };
	int rc = set_up(u, listen_fds, err);
	if (rc < 0) {
		u->count = 0; /* the listeners stay the caller's */
		http_upstream_destroy(&u);
		return rc;
	}
	for (size_t i = 0; i < n; i++)
		u->fds[FIXED_FDS + i] = take_fd(&listen_fds[i]);
	*out = u;
	return 0;
}

size_t http_upstream_count(const struct http_upstream *u)
{
	return u->count;
}

int http_upstream_fd(const struct http_upstream *u)
{
	return u->epoll_fd;
}

/* The helper has copies of the listeners, so closing them does not end their events: epoll(7). */
static void close_listeners(struct http_upstream *u)
{
	for (size_t i = 0; i < u->count; i++) {
		(void)epoll_ctl(u->epoll_fd, EPOLL_CTL_DEL, u->fds[FIXED_FDS + i], NULL);
		cj_close(&u->fds[FIXED_FDS + i]);
	}
}

/* Ends the helper, if there is one. */
static void stop_helper(struct http_upstream *u)
{
	if (u->pidfd < 0)
		return;
	(void)epoll_ctl(u->epoll_fd, EPOLL_CTL_DEL, u->pidfd, NULL);
	(void)sys_pidfd_send_signal(u->pidfd, SIGKILL);
	(void)sys_waitpid(u->pid, NULL, 0);
	cj_close(&u->pidfd);
}

bool http_upstream_is_ending(const struct http_upstream *u)
{
	return u->pidfd >= 0 && fd_await(u->pidfd, POLLIN, 0);
}

int http_upstream_serve(struct http_upstream *u, struct cj_error *err)
{
	if (http_upstream_is_ending(u)) {
		stop_helper(u);
		return cj_reject_as(err, EPIPE,
				    "the helper of --upstream has ended, so its "
				    "servers can't be reached any more");
	}
	if (u->fds[FIXED_FDS] < 0) /* the helper was started before */
		return 0;
	auto_fd int config_fd = make_config(u->specs, u->count, err);
	u->fds[0] = config_fd;
	u->fds[1] = u->counters_fd;
	int rc = config_fd < 0 ? -err->code : start_helper(u, err);
	close_listeners(u);
	if (rc == 0)
		rc = watch_fd(u, u->pidfd, err);
	return rc < 0 ? cj_wrap(err, "--upstream") : 0;
}

static struct http_upstream_use load(const struct http_upstream *u, size_t i)
{
	const struct upstream_counters *c = &u->counters[i];
	struct http_upstream_use use = {
		.name = u->specs[i].name,
		.requests = c->requests,
		.failed = c->failed,
		.refused = c->refused,
		.sent_bytes = c->sent_bytes,
		.received_bytes = c->received_bytes,
	};
	for (size_t k = 0; k < UPSTREAM_CLASSES; k++)
		use.status[k] = c->status[k];
	return use;
}

static void subtract(struct http_upstream_use *use, const struct http_upstream_use *before)
{
	use->requests -= before->requests;
	use->failed -= before->failed;
	use->refused -= before->refused;
	use->sent_bytes -= before->sent_bytes;
	use->received_bytes -= before->received_bytes;
	for (size_t k = 0; k < UPSTREAM_CLASSES; k++)
		use->status[k] -= before->status[k];
}

struct http_upstream_use *http_upstream_read(const struct http_upstream *u,
					     struct http_upstream_use *before, struct arena *a)
{
	struct http_upstream_use *uses = arena_array(a, u->count, sizeof(*uses));
	for (size_t i = 0; uses && i < u->count; i++) {
		const struct http_upstream_use now = load(u, i);
		uses[i] = now;
		if (!before)
			continue;
		subtract(&uses[i], &before[i]);
		before[i] = now;
	}
	return uses;
}

void http_upstream_destroy(struct http_upstream **slot)
{
	struct http_upstream *u = *slot;
	if (!u)
		return;
	stop_helper(u);
	if (u->counters)
		(void)munmap((void *)u->counters, COUNTERS_SIZE);
	close_listeners(u);
	cj_close(&u->counters_fd);
	cj_close(&u->epoll_fd);
	cj_free(slot);
}
