/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gateway: its process makes one more namespace, gives up all that it does not need, and always
 * ends; and what somebody who takes it over can do.
 */
#include "netns/gateway.h"

#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "netns/firewall/denials.h"
#include "netns/nftables/nfnl.h"
#include "tests/jail/built_libexec.h"
#include "tests/netns/confined.h"
#include "tests/netns/gateway_here.h"
#include "tests/netns/init_side.h"
#include "tests/netns/namespaces.h"
#include "tests/netns/taken_over.h"
#include "tests/patience.h"

/* WRAP: unshare denials_receive libexec_start libexec_find */

static const struct network_spec spec = { .mode = NETWORK_PUBLIC };

/* What the process does where it makes the gateway. */
static enum { GOES_ON, FAILS, DIES } how;

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

static bool has_proxy; /* and so a dialer */
static struct loader loader;

static void stop(struct gateway *g)
{
	gateway_stop(g);
	loader_stop(&loader);
}

/* The jail's socket stays the caller's. */
static int start(const struct network_handles *h, struct gateway *g, struct step_msg *out,
		 struct cj_error *err)
{
	const struct gateway_wants wants = { true, has_proxy };
	MUST_DO(gateway_start(&wants, h->fds[SLOT_JAIL], g, &loader, err), *err);
	int rc = step_await(&g->link, GATEWAY_OPENED, out, err);
	if (rc == 0)
		rc = step_await(&g->link, GATEWAY_READY, NULL, err);
	if (rc == 0)
		rc = loader_take(&loader, err);
	if (rc < 0)
		stop(g);
	return rc;
}

static void expect_opened(void)
{
	struct network_handles h;
	struct gateway g;
	struct gateway_opened opened;
	struct step_msg msg = { 0 };
	struct cj_error err = { 0 };
	ino_t owners[3];
	int before = count_fds();
	open_init_side(&spec, &h);
	ino_t jail = namespace_of(h.fds[SLOT_JAIL], &owners[0]);
	MUST_DO(start(&h, &g, &msg, &err), err);
	memcpy(&opened, msg.data, sizeof(opened));
	network_handles_unpack(&h, opened.slots, msg.fds, msg.nfds);
	step_msg_fini(&msg);
	g.dialer_pidfd = take_fd(&h.fds[SLOT_DIALER]);
	MUST((g.dialer_pidfd >= 0) == has_proxy);
	MUST(namespace_of(h.fds[SLOT_JAIL_RULES], &owners[1]) == jail);
	MUST(namespace_of(h.fds[SLOT_GATEWAY_RULES], &owners[2]) != jail);
	MUST(owners[0] == owners[1] && owners[0] == owners[2]);
	MUST(h.fds[SLOT_JAIL_ROUTE] >= 0 && h.fds[SLOT_GATEWAY_ROUTE] >= 0);
	MUST(h.fds[SLOT_JAIL_LOG] == -1 && h.fds[SLOT_DNS_UDP] == -1); /* these it keeps */
	for (size_t i = 0; i < SLOT_COUNT; i++)
		MUST(h.fds[i] < 0 || fcntl(h.fds[i], F_GETFD) == FD_CLOEXEC);
	stop(&g);
	stop(&g); /* of nothing: no harm */
	MUST(!has_child());
	network_handles_fini(&h);
	MUST(count_fds() == before);
}

static void sockets_of_the_jail_and_of_a_new_namespace_with_the_same_owner(void **state)
{
	(void)state;
	how = GOES_ON;
	in_own_namespace(expect_opened);
}

static void with_a_proxy_there_is_one_more_process_that_ends_with_it(void **state)
{
	(void)state;
	how = GOES_ON;
	has_proxy = true;
	in_own_namespace(expect_opened);
	has_proxy = false;
}

static void expect_failure(int code, const char *text)
{
	struct network_handles h;
	struct gateway g;
	struct step_msg msg = { 0 };
	struct cj_error err = { 0 };
	open_init_side(&spec, &h);
	int before = count_fds();
	MUST(start(&h, &g, &msg, &err) == -code);
	MUST(strstr(err.msg, text) && !has_child() && count_fds() == before);
	network_handles_fini(&h);
}

static void body_failing(void)
{
	expect_failure(ENOSPC, "create a network namespace");
}

static void a_process_that_fails_says_why_and_leaves_nothing(void **state)
{
	(void)state;
	how = FAILS;
	in_own_namespace(body_failing);
}

static void body_dying(void)
{
	expect_failure(EPIPE, "the gateway ended before 'gateway is open'");
}

static void a_process_that_is_killed_is_reaped(void **state)
{
	(void)state;
	how = DIES;
	in_own_namespace(body_dying);
}

/* --- what the program has of the process that starts it ------------------------------------ */

static unsigned long long mask_of(const char *status, const char *field)
{
	const char *at = strstr(status, field);
	MUST(at != NULL);
	return strtoull(at + strlen(field), NULL, 16);
}

/* The standard streams, the two links, the socket of port 53 for UDP; that for TCP, the two logs
 * and what waits for all of them. */
#define OWN_FDS 10

static bool is_test_file(const char *path)
{
	return strncmp(path, "/dev/null", 9) != 0 && strncmp(path, "socket:", 7) != 0 &&
	       strncmp(path, "anon_inode:[eventpoll]", 22) != 0;
}

static void holds_only_its_own(pid_t pid)
{
	char path[64], target[256];
	int count = 0;
	path_in_proc(pid, "fd", path);
	auto_dir DIR *dir = opendir(path);
	MUST(dir != NULL);
	for (const struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.')
			continue;
		ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		MUST(size > 0);
		target[size] = '\0';
		if (is_test_file(target)) {
			fprintf(stderr, "descriptor %s is %s\n", entry->d_name, target);
			_exit(1);
		}
		count++;
	}
	MUST(count == OWN_FDS);
}

static void has_nothing_of_its_parent(pid_t pid)
{
	char text[16384], path[64];
	MUST(read_proc(pid, "status", text, sizeof(text)) > 0);
	MUST(mask_of(text, "\nSigBlk:") >> (SIGTERM - 1) & 1);
	MUST(!(mask_of(text, "\nSigCgt:") >> (SIGUSR1 - 1) & 1));
	MUST(!(mask_of(text, "\nSigIgn:") >> (SIGUSR2 - 1) & 1));
	MUST(read_proc(pid, "environ", text, sizeof(text)) == 0);
	path_in_proc(pid, "cwd", path);
	MUST(readlink(path, text, sizeof(text)) == 1 && text[0] == '/');
	MUST(read_proc(pid, "maps", text, sizeof(text)) > 0);
	MUST(strstr(text, "/libexec/cejail/gateway") && !strstr(text, " rw-s "));
	holds_only_its_own(pid);
}

static void ignore_signal(int signal)
{
	(void)signal;
}

static void body_looking(void)
{
	struct network_handles h;
	struct gateway g;
	struct step_msg msg = { 0 };
	struct cj_error err = { 0 };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(page != MAP_FAILED);
	MUST(signal(SIGUSR1, ignore_signal) != SIG_ERR && signal(SIGUSR2, SIG_IGN) != SIG_ERR);
	MUST(setenv("SECRET", "of the caller", 1) == 0);
	MUST(dup2(STDERR_FILENO, 100) == 100); /* it survives execve(2), even */
	open_init_side(&spec, &h);
	has_program = true;
	MUST_DO(start(&h, &g, &msg, &err), err);
	step_msg_fini(&msg);
	has_nothing_of_its_parent(pid_of(g.pidfd));
	stop(&g);
	network_handles_fini(&h);
}

static void it_holds_no_descriptor_or_handler_of_its_parent_and_no_signal_ends_it(void **state)
{
	(void)state;
	how = GOES_ON;
	in_own_namespace(body_looking);
}

/* --- taken over ---------------------------------------------------------------------------- */

static void report_attempts(const struct step_link *to_supervisor)
{
	struct cj_error err = { 0 };
	if (try_all(true, &err) < 0)
		step_abort(to_supervisor, &err);
}

static void owns_nothing(int pidfd)
{
	MUST(status_of(pidfd, "\nCapEff:", 16) == 0);
	MUST(status_of(pidfd, "\nCapPrm:", 16) == 0);
	MUST(status_of(pidfd, "\nCapInh:", 16) == 0);
	MUST(status_of(pidfd, "\nNoNewPrivs:", 10) == 1);
	MUST(status_of(pidfd, "\nSeccomp:", 10) == 2);
}

/* It gives up its rights while the gateway does. */
static void await_dialer(int pidfd)
{
	for (int ms = patience_ms(20000); ms > 0 && status_of(pidfd, "\nSeccomp:", 10) != 2; ms--)
		usleep(1000);
	owns_nothing(pidfd);
}

static void body_taken_over(void)
{
	struct gateway_opened opened;
	struct network_handles h;
	struct gateway g;
	struct step_msg msg = { 0 };
	struct cj_error err = { 0 };
	open_init_side(&spec, &h);
	taken_over = report_attempts;
	MUST_DO(start(&h, &g, &msg, &err), err);
	memcpy(&opened, msg.data, sizeof(opened));
	network_handles_unpack(&h, opened.slots, msg.fds, msg.nfds);
	step_msg_fini(&msg);
	g.dialer_pidfd = take_fd(&h.fds[SLOT_DIALER]);
	owns_nothing(g.pidfd);
	if (has_proxy)
		await_dialer(g.dialer_pidfd);
	MUST_DO(step_tell(&g.link, GATEWAY_DRAIN, NULL, 0, NULL, 0, &err), err);
	MUST_DO(step_await(&g.link, GATEWAY_DRAINED, NULL, &err), err);
	stop(&g);
	network_handles_fini(&h);
}

static void a_process_that_is_taken_over_has_no_call_that_reaches_out(void **state)
{
	(void)state;
	how = GOES_ON;
	in_own_namespace(body_taken_over);
	has_proxy = true;
	in_own_namespace(body_taken_over);
	has_proxy = false;
}

/* --- the log of a namespace that another program made ---------------------------------------- */

/* Whoever owns the namespace may change its rules by the socket of its log. */
static void report_sends(const struct step_link *to_supervisor)
{
	const struct iovec part = { (void *)(uintptr_t) "rules", 5 };
	struct cj_error err = { 0 };
	if (write(4, "rules", 5) != -1 || errno != EPERM || writev(4, &part, 1) != -1 ||
	    errno != EPERM || sendto(4, "rules", 5, 0, NULL, 0) != -1 || errno != EPERM ||
	    sendto(3, "x", 1, 0, (const void *)(uintptr_t) "address", 7) != -1 || errno != EPERM)
		(void)!cj_fail(&err, errno, "it could send to the log's socket");
	if (err.code != 0 || try_all(true, &err) < 0)
		step_abort(to_supervisor, &err);
}

static void drain_log(struct gateway *g)
{
	struct cj_error err = { 0 };
	MUST_DO(step_tell(&g->link, GATEWAY_DRAIN, NULL, 0, NULL, 0, &err), err);
	MUST_DO(step_await(&g->link, GATEWAY_DRAINED, NULL, &err), err);
}

static bool is_below; /* the log is of a namespace below ours */

static void body_log(void)
{
	struct gateway first, second;
	struct cj_error err = { 0 };
	auto_fd int log_fd = open_rules(is_below);
	has_program = true;
	MUST_DO(gateway_start_log(log_fd, &first, &err), err);
	owns_nothing(first.pidfd);
	MUST((user_namespace_of(pid_of(first.pidfd)) != user_namespace_of(getpid())) == is_below);
	drain_log(&first);
	auto_fd int other_fd = is_below ? -1 : open_rules(false);
	MUST(is_below || (gateway_start_log(other_fd, &second, &err) == -EPERM &&
			  strstr(err.msg, "bind the log of denied packets") && second.pidfd == -1 &&
			  second.link.sock_fd == -1));
	gateway_stop(&first);
	cj_close(&log_fd); /* it has the group */
	log_fd = open_rules(is_below);
	has_program = false;
	taken_over = report_sends;
	MUST_DO(gateway_start_log(log_fd, &first, &err), err);
	drain_log(&first);
	gateway_stop(&first);
	MUST(!has_child());
}

static void a_log_has_one_reader_that_owns_nothing(void **state)
{
	(void)state;
	in_own_namespace(body_log);
	is_below = true;
	in_own_namespace(body_log);
	is_below = false;
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
	struct gateway g;
	struct step_msg msg = { 0 };
	struct cj_error err = { 0 };
	network_handles_init(&h);
	h.fds[SLOT_JAIL] = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	MUST(start(&h, &g, &msg, &err) == -EINVAL);
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
		cmocka_unit_test(with_a_proxy_there_is_one_more_process_that_ends_with_it),
		cmocka_unit_test(a_process_that_fails_says_why_and_leaves_nothing),
		cmocka_unit_test(a_process_that_is_killed_is_reaped),
		cmocka_unit_test(
		    it_holds_no_descriptor_or_handler_of_its_parent_and_no_signal_ends_it),
		cmocka_unit_test(a_process_that_is_taken_over_has_no_call_that_reaches_out),
		cmocka_unit_test(a_log_has_one_reader_that_owns_nothing),
		cmocka_unit_test(a_process_with_capabilities_can_do_it_itself),
		cmocka_unit_test(a_socket_of_our_own_namespace_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
