/* SPDX-License-Identifier: Apache-2.0 */
/* host_table: one holder, as many users as come, and nothing left behind the last. */
#include "netns/uplink/host_table.h"

#include <netinet/in.h>

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "netns/firewall/firewall.h"
#include "netns/nftables/nft.h"
#include "runtime/base/clock.h"
#include "runtime/base/scope.h"
#include "tests/forked.h"
#include "tests/netns/tables.h"
#include "tests/patience.h"

/* Of this test: its only child. */
static pid_t holder(void)
{
	int pid = 0;
	FILE *children = fopen("/proc/thread-self/children", "re");
	MUST(children && fscanf(children, "%d", &pid) == 1);
	fclose(children);
	return pid;
}

static void kill_holder(void)
{
	pid_t pid = holder();
	MUST(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void hold_for(bool has_ipv6, unsigned idle_ms)
{
	struct cj_error err = { 0 };
	MUST_DO(host_table_hold(has_ipv6, idle_ms, &err), err);
}

/* Until it is killed, or a test of any speed is over. */
static void hold(bool has_ipv6)
{
	hold_for(has_ipv6, patience_s(60) * 1000);
}

static void ask(bool has_ipv6, struct host_table *out)
{
	struct cj_error err = { 0 };
	MUST_DO(host_table_ask(has_ipv6, out, &err), err);
}

static bool is_held(bool has_ipv6)
{
	struct cj_error err = { 0 };
	struct host_table t;
	bool is_there = host_table_ask(has_ipv6, &t, &err) == 0;
	if (is_there)
		close(t.rules_fd);
	else
		MUST(err.code == ECONNREFUSED && t.rules_fd == -1);
	return is_there;
}

static void nap(void)
{
	const struct timespec wait = { .tv_nsec = 10 * 1000000 };
	(void)nanosleep(&wait, NULL);
}

static void await_no_table(void)
{
	for (int i = 0; i < patience_ms(6000) && count_tables() > 0; i++)
		nap();
	MUST(count_tables() == 0);
}

static bool ask_thrice(void)
{
	struct cj_error err = { 0 };
	struct host_table t[3];
	bool is_held = true;
	for (int i = 0; i < 3; i++)
		is_held &= host_table_ask(true, &t[i], &err) == 0 && t[i].number == 1;
	for (int i = 0; i < 3; i++)
		cj_close(&t[i].rules_fd);
	return is_held;
}

/* False: this machine took so long that the holder may have ended meanwhile. */
static bool holds_while_asked(unsigned idle_ms)
{
	const uint64_t end_ms = clock_ms() + idle_ms;
	hold_for(true, idle_ms);
	bool is_one = count_tables() == 1;
	hold_for(true, idle_ms);
	is_one &= count_tables() == 1; /* the second holder has ended */
	is_one &= ask_thrice();
	is_one &= count_tables() == 1;
	MUST(is_one || clock_ms() >= end_ms);
	return is_one;
}

static void body_idle(void)
{
	MUST(!is_held(true));
	for (int idle_ms = 4000; !holds_while_asked((unsigned)idle_ms); idle_ms *= 2) {
		MUST(idle_ms < patience_ms(60000));
		await_no_table();
	}
	await_no_table();
	MUST(!is_held(true));
}

static void a_holder_nobody_asks_ends_and_its_table_goes(void **state)
{
	(void)state;
	in_own_namespace(body_idle);
}

static void body_killed(void)
{
	struct host_table t;
	hold(true);
	ask(true, &t);
	kill_holder();
	MUST(!is_held(true) && count_tables() == 1);
	hold(true); /* the name of the old table is still taken */
	MUST(count_tables() == 2);
	struct host_table second;
	ask(true, &second);
	MUST(second.number == 2);
	close(t.rules_fd);
	MUST(count_tables() == 1);
	kill_holder();
	close(second.rules_fd);
	await_no_table();
}

static void a_run_keeps_the_table_of_a_killed_holder(void **state)
{
	(void)state;
	in_own_namespace(body_killed);
}

static void body_killed_early(void)
{
	adopt_holders();
	for (int i = 0; i < 40; i++) {
		const struct timespec wait = { .tv_nsec = i * 50000 };
		pid_t pid = test_fork();
		MUST(pid >= 0);
		if (pid == 0) {
			hold(true);
			_exit(0);
		}
		(void)nanosleep(&wait, NULL); /* to hit it in between */
		kill_children();
		MUST(!is_held(true));
	}
	await_no_table();
	hold(true);
	MUST(is_held(true));
	kill_children();
	await_no_table();
}

static void a_holder_killed_at_any_moment_of_its_start_leaves_nothing(void **state)
{
	(void)state;
	in_own_namespace(body_killed_early);
}

static void body_families(void)
{
	hold(false);
	MUST(!is_held(true) && is_held(false));
	hold(true);
	MUST(is_held(true) && is_held(false));
	MUST(count_tables() == 2);
	kill_holder();
	kill_holder();
	await_no_table();
}

static void with_and_without_ipv6_are_two_tables(void **state)
{
	(void)state;
	in_own_namespace(body_families);
}

/* It would otherwise survive its parent with the caller's files, terminal and power. */
static void body_bare(void)
{
	char path[64], text[4096] = "";
	hold(true);
	pid_t pid = holder();
	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	int fd = open(path, O_RDONLY);
	for (int i = 0; i < patience_ms(6000) && !strstr(text, "NoNewPrivs:\t1"); i++) {
		MUST(pread(fd, text, sizeof(text) - 1, 0) > 0);
		nap();
	}
	MUST(strstr(text, "CapEff:\t0000000000000000") &&
	     strstr(text, "CapPrm:\t0000000000000000"));
	MUST(getsid(pid) == pid);
	MUST(kill(pid, SIGKILL) == 0);
}

static void the_holder_has_a_session_and_no_capability(void **state)
{
	(void)state;
	in_own_namespace(body_bare);
}

/* A reader of the helper's standard output sees its end while the holder lives. */
static void body_streams(void)
{
	int ends[2];
	char byte;
	adopt_holders();
	MUST(pipe2(ends, O_CLOEXEC) == 0);
	pid_t pid = test_fork();
	if (pid == 0) {
		MUST(dup2(ends[1], STDOUT_FILENO) >= 0);
		hold(true);
		_exit(0);
	}
	close(ends[1]);
	MUST(read(ends[0], &byte, 1) == 0);
	MUST(waitpid(pid, NULL, 0) == pid && is_held(true));
	kill_children();
	await_no_table();
}

static void the_holder_keeps_no_stream_of_its_caller(void **state)
{
	(void)state;
	in_own_namespace(body_streams);
}

static void body_mark(void)
{
	struct cj_error err;
	int first = host_table_mark(&err);
	MUST(first >= 0);
	MUST(host_table_mark(&err) == -EADDRINUSE);
	close(first);
	first = host_table_mark(&err);
	MUST(first >= 0);
	MUST(unshare(CLONE_NEWNET) == 0); /* another host */
	MUST(host_table_mark(&err) >= 0);
}

static void the_mark_is_one_per_network_namespace(void **state)
{
	(void)state;
	in_own_namespace(body_mark);
}

/* --- false holders ------------------------------------------------------------------- */

static int listen_as_holder(void)
{
	struct sockaddr_un address;
	socklen_t size = host_table_address(true, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	MUST(fd >= 0 && bind(fd, (void *)&address, size) == 0 && listen(fd, 8) == 0);
	return fd;
}

static int load_table(const char *name, uint32_t flags)
{
	struct cj_error err = { 0 };
	int fd = open_netlink(NETLINK_NETFILTER);
	auto_nft_batch struct nft_batch b = { 0 };
	nft_batch_begin(&b, name);
	nft_add_table(&b, flags);
	nft_batch_end(&b);
	MUST_DO(firewall_load(fd, &b, &err), err);
	return fd;
}

/* One client gets this answer. */
static pid_t answer(int listen_fd, const void *bytes, size_t size, int sent_fd)
{
	pid_t pid = test_fork();
	MUST(pid >= 0);
	if (pid > 0)
		return pid;
	int fd = accept(listen_fd, NULL, NULL);
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)bytes, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	if (sent_fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.header), &sent_fd, sizeof(int));
	}
	MUST(fd >= 0 && sendmsg(fd, &message, 0) > 0);
	_exit(0);
}

static int ask_false(int listen_fd, const void *bytes, size_t size, int sent_fd)
{
	struct cj_error err = { 0 };
	struct host_table t;
	pid_t pid = answer(listen_fd, bytes, size, sent_fd);
	int rc = host_table_ask(true, &t, &err);
	MUST(t.rules_fd == -1 || rc == 0);
	if (rc == 0)
		close(t.rules_fd);
	MUST(waitpid(pid, NULL, 0) == pid);
	return rc;
}

static const uint32_t one[] = { HOST_TABLE_GIVEN, sizeof(uint32_t), 1 };

static void body_false(void)
{
	int listen_fd = listen_as_holder();
	int plain = open_netlink(NETLINK_NETFILTER), route = open_netlink(NETLINK_ROUTE);
	struct place here = place_here(), other = place_new();
	int elsewhere = load_table("cejail-s1", NFT_TABLE_F_OWNER);
	go_to(&here);
	(void)other;

	MUST(ask_false(listen_fd, one, sizeof(one), plain) == -ENOENT);
	MUST(ask_false(listen_fd, one, sizeof(one), route) == -EPERM);
	MUST(ask_false(listen_fd, one, sizeof(one), elsewhere) == -EPERM);
	MUST(ask_false(listen_fd, one, sizeof(one), listen_fd) == -EPERM);
	MUST(ask_false(listen_fd, one, sizeof(one), -1) == -EPROTO);
	MUST(ask_false(listen_fd, one, 4, plain) == -EPROTO);
	MUST(ask_false(listen_fd, "x", 1, -1) == -EPROTO);

	int unowned = load_table("cejail-s1", 0);
	MUST(ask_false(listen_fd, one, sizeof(one), unowned) == -EPERM);
	MUST(ask_false(listen_fd, one, sizeof(one), plain) == -EPERM);

	int owner = load_table("cejail-s2", NFT_TABLE_F_OWNER);
	const uint32_t two[] = { HOST_TABLE_GIVEN, sizeof(uint32_t), 2 };
	MUST(ask_false(listen_fd, two, sizeof(two), plain) == -EPERM);
	MUST(ask_false(listen_fd, two, sizeof(two), owner) == 0);
}

static void a_socket_that_does_not_own_the_table_is_refused(void **state)
{
	(void)state;
	in_own_namespace(body_false);
}

static void body_silent(void)
{
	struct cj_error err = { 0 };
	struct host_table t;
	(void)listen_as_holder();
	MUST(host_table_ask(true, &t, &err) == -ETIMEDOUT && t.rules_fd == -1);
}

static void a_holder_that_never_answers_is_given_up(void **state)
{
	(void)state;
	in_own_namespace(body_silent);
}

static void body_taken(void)
{
	struct host_table t;
	(void)load_table("cejail-s1", 0);                        /* the administrator's */
	int second = load_table("cejail-s2", NFT_TABLE_F_OWNER); /* another user's */
	hold(true);
	ask(true, &t);
	MUST(t.number == 3);
	close(second);
	close(t.rules_fd);
	kill_holder();
	for (int i = 0; i < patience_ms(6000) && count_tables() > 1; i++)
		nap();
	MUST(count_tables() == 1);
}

static void tables_of_others_keep_their_names(void **state)
{
	(void)state;
	in_own_namespace(body_taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_holder_nobody_asks_ends_and_its_table_goes),
		cmocka_unit_test(a_run_keeps_the_table_of_a_killed_holder),
		cmocka_unit_test(a_holder_killed_at_any_moment_of_its_start_leaves_nothing),
		cmocka_unit_test(with_and_without_ipv6_are_two_tables),
		cmocka_unit_test(the_holder_has_a_session_and_no_capability),
		cmocka_unit_test(the_holder_keeps_no_stream_of_its_caller),
		cmocka_unit_test(the_mark_is_one_per_network_namespace),
		cmocka_unit_test(a_socket_that_does_not_own_the_table_is_refused),
		cmocka_unit_test(a_holder_that_never_answers_is_given_up),
		cmocka_unit_test(tables_of_others_keep_their_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
