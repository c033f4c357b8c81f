/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_side - what init does for a network, in namespaces below the test's own: the test then has
 * the supervisor's part and rights.
 */
#pragma once

#include <dirent.h>

#include "netns/network.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "tests/forked.h"
#include "tests/netns/namespaces.h"
#include "tests/patience.h"

static inline int count_fds(void)
{
	int n = 0;
	DIR *dir = opendir("/proc/self/fd");
	MUST(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static const char *const init_side_steps[] = { "opened" };

/* Init's part, in namespaces below ours. */
static inline void init_side_main(const struct network_spec *spec, int sock_fd)
{
	const struct step_link link = { sock_fd, "the test", init_side_steps };
	struct network_handles handles;
	struct cj_error err = { 0 };
	int fds[SLOT_COUNT];
	size_t count;
	MUST(unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0);
	MUST(put_file("/proc/self/setgroups", "deny") && put_file("/proc/self/uid_map", "0 0 1") &&
	     put_file("/proc/self/gid_map", "0 0 1"));
	MUST_DO(network_open(spec, &handles, &err), err);
	const uint32_t slots = network_handles_pack(&handles, fds, &count);
	MUST_DO(step_tell(&link, 0, &slots, sizeof(slots), fds, count, &err), err);
	_exit(0);
}

static inline void open_init_side(const struct network_spec *spec, struct network_handles *out)
{
	auto_step_msg struct step_msg msg = { 0 };
	struct cj_error err = { 0 };
	int ends[2], status;
	uint32_t slots;
	MUST_DO(step_pair(ends, (unsigned)patience_ms(60000), &err), err);
	pid_t pid = test_fork();
	if (pid == 0)
		init_side_main(spec, ends[1]);
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	const struct step_link link = { ends[0], "init", init_side_steps };
	MUST_DO(step_await(&link, 0, &msg, &err), err);
	memcpy(&slots, msg.data, sizeof(slots));
	network_handles_init(out);
	network_handles_unpack(out, slots, msg.fds, msg.nfds);
	close(ends[0]);
	close(ends[1]);
}
