/* SPDX-License-Identifier: Apache-2.0 */
/* gateway: the opener makes one more namespace, hands out sockets of both, and always ends. */
#include "netns/network_parts.h"

#include <errno.h>
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "tests/netns/init_side.h"
#include "tests/netns/namespaces.h"

/* WRAP: unshare */

static const struct network_spec spec = { .mode = NETWORK_PUBLIC };

/* What the opener does where it makes the gateway. */
static enum { GOES_ON, FAILS, DIES, LOOKS } how;

/* The standard streams, the jail's socket, the link and the jail's namespace; and the directory
 * that is being read. */
#define OPENERS_FDS 7

static bool holds_only_its_own(void)
{
	sigset_t blocked;
	struct sigaction now;
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	sigaction(SIGUSR1, NULL, &now);
	int fds = count_fds() - 2; /* "." and ".." */
	return fds == OPENERS_FDS && sigisemptyset(&blocked) && now.sa_handler == SIG_DFL;
}

int __real_unshare(int flags);
int __wrap_unshare(int flags);
int __wrap_unshare(int flags)
{
	if (flags == CLONE_NEWNET && how == FAILS) {
		errno = ENOSPC;
		return -1;
	}
	if (flags == CLONE_NEWNET && how == DIES)
		raise(SIGKILL);
	if (flags == CLONE_NEWNET && how == LOOKS && !holds_only_its_own()) {
		errno = EBADF;
		return -1;
	}
	return __real_unshare(flags);
}

static bool has_child(void)
{
	return waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

static ino_t inode_of(int fd)
{
	struct stat st;
	MUST(fstat(fd, &st) == 0);
	return st.st_ino;
}

/* Of a socket's network namespace, and of the user namespace that owns it. */
static ino_t namespace_of(int sock_fd, ino_t *out_owner)
{
	auto_fd int netns_fd = ioctl(sock_fd, SIOCGSKNS);
	MUST(netns_fd >= 0);
	auto_fd int user_fd = ioctl(netns_fd, NS_GET_USERNS);
	MUST(user_fd >= 0);
	*out_owner = inode_of(user_fd);
	return inode_of(netns_fd);
}

static void expect_opened(bool has_dns)
{
	struct network_handles h;
	struct cj_error err = { 0 };
	ino_t owners[3];
	int before = count_fds();
	open_init_side(&spec, &h);
	ino_t jail = namespace_of(h.fds[SLOT_JAIL], &owners[0]);
	MUST_DO(gateway_open(has_dns, &h, &err), err);
	MUST(!has_child() && h.fds[SLOT_JAIL] == -1);
	MUST(namespace_of(h.fds[SLOT_JAIL_RULES], &owners[1]) == jail);
	MUST(namespace_of(h.fds[SLOT_GATEWAY_RULES], &owners[2]) != jail);
	MUST(owners[0] == owners[1] && owners[0] == owners[2]);
	MUST((h.fds[SLOT_DNS_UDP] >= 0) == has_dns && (h.fds[SLOT_DNS_TCP] >= 0) == has_dns);
	for (size_t i = 0; i < SLOT_COUNT; i++)
		MUST(h.fds[i] < 0 || fcntl(h.fds[i], F_GETFD) == FD_CLOEXEC);
	network_handles_fini(&h);
	MUST(count_fds() == before);
}

static void body_both(void)
{
	expect_opened(true);
	expect_opened(false);
}

static void sockets_of_the_jail_and_of_a_new_namespace_with_the_same_owner(void **state)
{
	(void)state;
	how = GOES_ON;
	in_own_namespace(body_both);
}

static void expect_failure(int code, const char *text)
{
	struct network_handles h;
	struct cj_error err = { 0 };
	open_init_side(&spec, &h);
	int before = count_fds();
	MUST(gateway_open(true, &h, &err) == -code);
	MUST(strstr(err.msg, text) && !has_child() && count_fds() == before);
	MUST(h.fds[SLOT_JAIL] >= 0 && h.fds[SLOT_GATEWAY_ROUTE] == -1);
	network_handles_fini(&h);
}

static void body_failing(void)
{
	expect_failure(ENOSPC, "create a network namespace");
}

static void an_opener_that_fails_says_why_and_leaves_nothing(void **state)
{
	(void)state;
	how = FAILS;
	in_own_namespace(body_failing);
}

static void body_dying(void)
{
	expect_failure(EPIPE, "the gateway's opener ended before 'gateway is open'");
}

static void an_opener_that_is_killed_is_reaped(void **state)
{
	(void)state;
	how = DIES;
	in_own_namespace(body_dying);
}

static void ignore_signal(int signal)
{
	(void)signal;
}

static void body_looking(void)
{
	sigset_t some;
	sigemptyset(&some);
	sigaddset(&some, SIGTERM);
	MUST(sigprocmask(SIG_BLOCK, &some, NULL) == 0);
	MUST(signal(SIGUSR1, ignore_signal) != SIG_ERR);
	MUST(dup2(STDERR_FILENO, 100) == 100); /* it survives execve(2), even */
	expect_opened(true);
}

static void the_opener_holds_no_descriptor_handler_or_mask_of_its_parent(void **state)
{
	(void)state;
	how = LOOKS;
	in_own_namespace(body_looking);
}

static void body_here(void)
{
	struct network_handles h;
	struct cj_error err = { 0 };
	ino_t owner;
	MUST_DO(network_open(&spec, &h, &err), err);
	ino_t jail = namespace_of(h.fds[SLOT_JAIL], &owner);
	MUST_DO(gateway_open_here(true, &h, &err), err);
	MUST(namespace_of(h.fds[SLOT_JAIL_RULES], &owner) == jail);
	MUST(namespace_of(h.fds[SLOT_GATEWAY_RULES], &owner) != jail);
	auto_fd int here_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	MUST(namespace_of(here_fd, &owner) == jail && h.fds[SLOT_DNS_UDP] >= 0);
}

static void a_process_with_capabilities_can_do_it_itself(void **state)
{
	(void)state;
	how = GOES_ON;
	in_own_namespace(body_here);
}

/* Its owner is our own user namespace, which nobody can join from inside. */
static void body_foreign(void)
{
	struct network_handles h;
	struct cj_error err = { 0 };
	network_handles_init(&h);
	h.fds[SLOT_JAIL] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	MUST(gateway_open(true, &h, &err) == -EINVAL);
	MUST(strstr(err.msg, "join the user namespace") && !has_child());
	network_handles_fini(&h);
}

static void a_socket_of_our_own_namespace_is_refused(void **state)
{
	(void)state;
	how = GOES_ON;
	in_own_namespace(body_foreign);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sockets_of_the_jail_and_of_a_new_namespace_with_the_same_owner),
		cmocka_unit_test(an_opener_that_fails_says_why_and_leaves_nothing),
		cmocka_unit_test(an_opener_that_is_killed_is_reaped),
		cmocka_unit_test(the_opener_holds_no_descriptor_handler_or_mask_of_its_parent),
		cmocka_unit_test(a_process_with_capabilities_can_do_it_itself),
		cmocka_unit_test(a_socket_of_our_own_namespace_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
