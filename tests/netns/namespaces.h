/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network namespaces of a test's own: a child runs the test's body with every capability over new,
 * empty ones; nothing it does is seen outside, and all of it ends with the child.
 */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/forked.h"

#define BODY_SKIPS 77 /* the body's exit status when this host can't do it */

/* In a body: cmocka's own assertions would return into the parent's test list. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s (errno: %s)\n", __FILE__, __LINE__, #condition, \
				strerror(errno));                                                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* As MUST, for a call that fills `err`. */
#define MUST_DO(call, err)                                                                         \
	do {                                                                                       \
		if ((call) < 0) {                                                                  \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, (err).msg);  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static inline bool put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return is_done;
}

/* Root of a new user namespace, in a new network namespace. */
static inline bool enter_own_namespace(void)
{
	char uids[64], gids[64];
	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
	       put_file("/proc/self/setgroups", "deny") && put_file("/proc/self/uid_map", uids) &&
	       put_file("/proc/self/gid_map", gids);
}

static inline void in_own_namespace(void (*body)(void))
{
	pid_t pid = test_fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (!enter_own_namespace())
			_exit(BODY_SKIPS);
		body();
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == BODY_SKIPS) {
		print_message("skipped: this host refuses user and network namespaces\n");
		skip();
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with wait status 0x%x", status);
}

/* One network namespace and a socket for its links. */
struct place {
	int ns_fd, route_fd;
};

static inline int open_netlink(int protocol)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	MUST(fd >= 0);
	return fd;
}

static inline struct place place_here(void)
{
	struct place p = { open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC),
			   open_netlink(NETLINK_ROUTE) };
	MUST(p.ns_fd >= 0);
	return p;
}

/* A new one; the caller stays in it. */
static inline struct place place_new(void)
{
	MUST(unshare(CLONE_NEWNET) == 0);
	return place_here();
}

static inline void go_to(const struct place *p)
{
	MUST(setns(p->ns_fd, CLONE_NEWNET) == 0);
}

static inline void place_end(struct place *p)
{
	close(p->ns_fd);
	close(p->route_fd);
}
