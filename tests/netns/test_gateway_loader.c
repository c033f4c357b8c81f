/* SPDX-License-Identifier: Apache-2.0 */
/* loader: orders and their lists arrive as they were given, and what it has after it has joined. */
#include "netns/loader/loader.h"

#include <linux/capability.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>

#include "runtime/base/sys.h"
#include "tests/jail/built_libexec.h"
#include "tests/netns/confined.h"
#include "tests/netns/gateway_here.h"
#include "tests/netns/init_side.h"
#include "tests/netns/namespaces.h"
#include "netns/rtnetlink/rtmsg.h"

/* WRAP: firewall_apply_gateway firewall_unreachable libexec_start libexec_find */

/* More than a message has room for. */
#define MANY 3000

static struct endpoint endpoint_at(size_t i, uint8_t list)
{
	const struct ip ip = { 4, { list, (uint8_t)(i >> 8), (uint8_t)i, 1 } };
	return (struct endpoint){ ip, ip, (uint16_t)i, (uint16_t)(i + list) };
}

static bool is_endpoint_at(const struct endpoint *e, size_t i, uint8_t list)
{
	const struct endpoint expected = endpoint_at(i, list);
	return ip_equal(&e->first, &expected.first) && ip_equal(&e->last, &expected.last) &&
	       e->first_port == expected.first_port && e->last_port == expected.last_port;
}

/* In the loader: each list has what fill() gave it. */
int __wrap_firewall_apply_gateway(int nft_fd, const struct firewall_spec *spec,
				  struct cj_error *err);
int __wrap_firewall_apply_gateway(int nft_fd, const struct firewall_spec *spec,
				  struct cj_error *err)
{
	bool is_same = spec->is_list && spec->has_names && spec->nallowed == MANY &&
		       spec->ndenied == 1 && spec->nnamed == MANY && spec->nhost == 3;
	(void)nft_fd;
	for (size_t i = 0; i < MANY && is_same; i++)
		is_same = is_endpoint_at(&spec->allowed[i], i, 1) &&
			  is_endpoint_at(&spec->named[i], i, 3);
	is_same = is_same && is_endpoint_at(&spec->denied[0], 0, 2);
	for (size_t i = 0; i < 3 && is_same; i++)
		is_same = spec->host[i].family == 6 && spec->host[i].bytes[15] == i;
	return is_same ? 0 : cj_fail(err, EBADMSG, "compare the lists");
}

/* What the process tries that somebody has taken over; else it does what is asked. */
static bool is_taken_over;

int __real_firewall_unreachable(int nft_fd, int family, struct cj_error *err);
int __wrap_firewall_unreachable(int nft_fd, int family, struct cj_error *err);
int __wrap_firewall_unreachable(int nft_fd, int family, struct cj_error *err)
{
	return is_taken_over ? try_all(false, err)
			     : __real_firewall_unreachable(nft_fd, family, err);
}

/* It has this socket. */
static struct loader start_with(int nft_fd)
{
	struct loader l;
	struct cj_error err = { 0 };
	const int all[LOADER_KEPT] = { nft_fd, nft_fd, nft_fd, nft_fd };
	MUST_DO(gateway_start_loader(&l, &err), err);
	MUST_DO(loader_give_sockets(&l, all, LOADER_KEPT, &err), err);
	return l;
}

static struct loader start(void)
{
	struct loader l;
	struct cj_error err = { 0 };
	MUST_DO(gateway_start_loader(&l, &err), err);
	return l;
}

static int open_here(void)
{
	return open_netlink(NETLINK_NETFILTER);
}

static struct firewall_spec spec_of(const struct endpoint *allowed, size_t count)
{
	return (struct firewall_spec){ .addresses = { .jail4 = { 4, { 198, 18, 0, 2 } },
						      .gateway4 = { 4, { 198, 18, 0, 3 } } },
				       .is_list = true,
				       .allowed = allowed,
				       .nallowed = count };
}

static void body_lists(void)
{
	static struct endpoint allowed[MANY], named[MANY];
	const struct endpoint denied = endpoint_at(0, 2);
	const struct ip host[] = { { 6, { 0 } }, { 6, { [15] = 1 } }, { 6, { [15] = 2 } } };
	struct cj_error err = { 0 };
	auto_fd int nft_fd = open_here();
	struct loader l = start_with(nft_fd);
	for (size_t i = 0; i < MANY; i++) {
		allowed[i] = endpoint_at(i, 1);
		named[i] = endpoint_at(i, 3);
	}
	struct firewall_spec spec = spec_of(allowed, MANY);
	spec.has_names = true;
	spec.denied = &denied;
	spec.ndenied = 1;
	spec.named = named;
	spec.nnamed = MANY;
	spec.host = host;
	spec.nhost = 3;
	MUST_DO(loader_apply_gateway(&l, &spec, &err), err);
	spec.nhost = 2;
	MUST(loader_apply_gateway(&l, &spec, &err) == -EBADMSG);
	loader_stop(&l);
}

static void lists_arrive_whole(void **state)
{
	(void)state;
	in_own_namespace(body_lists);
}

static void body_orders(void)
{
	const struct endpoint open = endpoint_at(1, 9);
	const struct firewall_spec from = spec_of(&open, 1), to = spec_of(NULL, 0);
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	struct cj_error err = { 0 };
	has_program = true;
	auto_fd int nft_fd = open_here();
	struct loader l = start_with(nft_fd);
	MUST(loader_read_counters(&l, FIREWALL_TABLE, counts, &err) == -ENOENT);
	MUST(strstr(err.msg, "read the counters"));
	MUST_DO(loader_apply_jail(&l, &from, &err), err);
	MUST(loader_apply_jail(&l, &from, &err) == -EEXIST && strstr(err.msg, "cejail"));
	MUST_DO(loader_replace(&l, LOADER_OF_JAIL, &from, &to, &err), err);
	MUST_DO(loader_unreachable(&l, 4, &err), err);
	MUST_DO(loader_read_counters(&l, FIREWALL_TABLE, counts, &err), err);
	for (size_t i = 0; i < NET_CLASS_COUNT; i++)
		MUST(counts[i] == 0);
	loader_stop(&l);
}

static void an_order_that_fails_says_why_and_the_next_one_is_obeyed(void **state)
{
	(void)state;
	in_own_namespace(body_orders);
	has_program = false;
}

static void expect_refused(const struct loader *l, unsigned step, const struct loader_order *o,
			   size_t size, const int *fds, size_t nfds)
{
	struct loader_answer answer;
	struct cj_error err = { 0 };
	auto_step_msg struct step_msg msg = { 0 };
	MUST_DO(step_tell(&l->link, step, o, size, fds, nfds, &err), err);
	MUST_DO(step_await(&l->link, LOADER_DONE, &msg, &err), err);
	MUST(msg.size == sizeof(answer));
	memcpy(&answer, msg.data, sizeof(answer));
	MUST(answer.why.code == EPROTO);
}

static void expect_lists_refused(const struct loader *l, size_t bytes, const struct loader_order *o)
{
	static const char lists[1024];
	struct cj_error err = { 0 };
	MUST_DO(step_tell(&l->link, LOADER_LIST, lists, bytes, NULL, 0, &err), err);
	expect_refused(l, LOADER_JAIL, o, sizeof(*o), NULL, 0);
}

static void body_malformed(void)
{
	struct cj_error err = { 0 };
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	auto_fd int nft_fd = open_here();
	const int fds[] = { nft_fd, nft_fd, nft_fd };
	struct loader l = start();
	struct loader_order o = { 0 };
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o), NULL, 0); /* it has no socket */
	expect_refused(&l, LOADER_COUNT, &o, sizeof(o), NULL, 0);
	expect_refused(&l, LOADER_SOCKETS, &o, sizeof(o), fds, 3);
	MUST_DO(loader_give_sockets(&l, fds, 1, &err), err);
	expect_refused(&l, LOADER_SOCKETS, &o, sizeof(o), fds, 1); /* again */
	expect_refused(&l, LOADER_LINKS, &o, sizeof(o), fds, 1);   /* it has no socket for links */
	expect_refused(&l, LOADER_PLUG, &o, sizeof(o), fds, 1);
	expect_refused(&l, LOADER_TAP, &o, sizeof(o), NULL, 0);
	expect_refused(&l, LOADER_LOOK, &o, sizeof(o), NULL, 0);
	expect_refused(&l, LOADER_UNPLUG, &o, sizeof(o), NULL, 0);
	expect_refused(&l, LOADER_GATEWAY, &o, sizeof(o), NULL, 0);
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o) - 1, NULL, 0);
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o), fds, 1);
	expect_refused(&l, LOADER_HOST, &o, sizeof(o), NULL, 0);
	expect_refused(&l, LOADER_DONE, &o, sizeof(o), NULL, 0);
	o.spec.nallowed = 2;
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o), NULL, 0); /* a list that is not there */
	expect_lists_refused(&l, 2 * sizeof(struct endpoint) - 1, &o);
	expect_lists_refused(&l, 2 * sizeof(struct endpoint) + 1, &o);
	o.spec.nallowed = SIZE_MAX / sizeof(struct endpoint) + 2;
	expect_lists_refused(&l, 2 * sizeof(struct endpoint), &o);
	o = (struct loader_order){ .container.nname_servers = FIREWALL_NAME_SERVERS_MAX + 1 };
	expect_lists_refused(&l, o.container.nname_servers * sizeof(struct ip), &o);
	o = (struct loader_order){ 0 };
	memset(o.plug.name, 'a', sizeof(o.plug.name));
	expect_refused(&l, LOADER_PLUG, &o, sizeof(o), fds, 1);
	o = (struct loader_order){ 0 };
	memset(o.table, 'a', sizeof(o.table));
	expect_refused(&l, LOADER_COUNT, &o, sizeof(o), NULL, 0);
	MUST(loader_read_counters(&l, FIREWALL_TABLE, counts, &err) == -ENOENT);
	loader_stop(&l);
}

static void an_order_with_wrong_lengths_is_refused(void **state)
{
	(void)state;
	in_own_namespace(body_malformed);
}

static bool is_below; /* the rules are of a namespace below ours */

static void body_joined(void)
{
	const struct firewall_spec spec = spec_of(NULL, 0);
	const struct firewall_host_spec host = { .table = "mine", .link = "x", .every_link = "x" };
	const uint64_t kept = UINT64_C(1) << CAP_NET_ADMIN;
	struct cj_error err = { 0 };
	auto_fd int own_fd = open_here();
	auto_fd int rules_fd = open_rules(is_below);
	struct loader l = start_with(rules_fd);
	MUST(status_of(l.pidfd, "\nSeccomp:", 10) != 2);
	MUST_DO(loader_apply_host(&l, own_fd, &host, &err), err);
	MUST_DO(loader_join(&l, &err), err);
	MUST(status_of(l.pidfd, "\nCapEff:", 16) == kept &&
	     status_of(l.pidfd, "\nCapPrm:", 16) == kept);
	MUST(status_of(l.pidfd, "\nCapInh:", 16) == 0 &&
	     status_of(l.pidfd, "\nNoNewPrivs:", 10) == 1);
	MUST(status_of(l.pidfd, "\nSeccomp:", 10) == 2);
	MUST((user_namespace_of(pid_of(l.pidfd)) != user_namespace_of(getpid())) == is_below);
	MUST_DO(loader_apply_jail(&l, &spec, &err), err);
	MUST_DO(loader_unreachable(&l, 6, &err), err);
	MUST(loader_apply_host(&l, own_fd, &host, &err) == (is_below ? -EPERM : -EEXIST));
	loader_stop(&l);
}

static void one_that_has_joined_has_a_single_capability_over_a_single_namespace(void **state)
{
	(void)state;
	has_program = true;
	in_own_namespace(body_joined);
	is_below = true;
	in_own_namespace(body_joined);
	has_program = false;
}

static const char *const below_steps[] = { "opened" };

/* A gateway and a jail below our user namespace: the loader's sockets, and the jail's namespace. */
static void open_below(int fds[static LOADER_KEPT + 1])
{
	struct cj_error err = { 0 };
	int ends[2], status;
	MUST_DO(step_pair(ends, (unsigned)patience_ms(60000), &err), err);
	pid_t pid = test_fork();
	if (pid == 0) {
		const struct step_link link = { ends[1], "the test", below_steps };
		MUST(enter_own_namespace());
		struct place gateway = place_here();
		const int gateway_rules_fd = open_netlink(NETLINK_NETFILTER);
		struct place jail = place_new();
		const int opened[LOADER_KEPT + 1] = { open_netlink(NETLINK_NETFILTER),
						      gateway_rules_fd, jail.route_fd,
						      gateway.route_fd, jail.ns_fd };
		MUST_DO(step_tell(&link, 0, NULL, 0, opened, LOADER_KEPT + 1, &err), err);
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) == pid && status == 0);
	auto_step_msg struct step_msg msg = { 0 };
	const struct step_link link = { ends[0], "the child", below_steps };
	MUST_DO(step_await(&link, 0, &msg, &err), err);
	for (size_t i = 0; i < LOADER_KEPT + 1; i++)
		fds[i] = take_fd(&msg.fds[i]);
	close(ends[0]);
	close(ends[1]);
}

static bool has_link(int route_fd, const char *name)
{
	struct ifreq request = { 0 };
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	return ioctl(route_fd, SIOCGIFINDEX, &request) == 0;
}

/* In place of a tap device. */
static void make_uplink(int gateway_fd, int far_netns_fd)
{
	struct cj_error err = { 0 };
	struct rtbatch b = { 0 };
	rtmsg_veth(&b, &(struct rtmsg_link){ LINK_UPLINK, 0, { 2, 0, 0, 0, 0, 7 } },
		   &(struct rtmsg_link){ "far", 0, { 2, 0, 0, 0, 0, 8 } }, far_netns_fd, 1500);
	MUST_DO(rtbatch_send(gateway_fd, &b, NULL, &err), err);
}

static void body_links(void)
{
	const struct links_spec spec = { addresses_make(true), LINK_MTU_MAX };
	const struct links_tap_spec tap = { .ip4 = { 4, { 10, 0, 2, 15 } }, .bits4 = 24 };
	struct links_host_spec plug = { .name = "cj1",
					.ip4 = { 4, { 198, 19, 0, 1 } },
					.mtu = 1500 };
	struct links_state seen = { 0 };
	struct cj_error err = { 0 };
	struct place host = place_here();
	int fds[LOADER_KEPT + 1];
	open_below(fds);
	struct loader l = start();
	MUST_DO(loader_give_sockets(&l, fds, LOADER_KEPT, &err), err);
	MUST_DO(loader_plug_host(&l, host.route_fd, &plug, &err), err);
	MUST(has_link(host.route_fd, "cj1"));
	MUST_DO(loader_unplug(&l, &err), err);
	MUST(!has_link(host.route_fd, "cj1"));
	MUST(loader_configure_tap(&l, &tap, &err) == -ENODEV && strstr(err.msg, LINK_UPLINK));
	MUST_DO(loader_join(&l, &err), err);
	MUST(loader_plug_host(&l, host.route_fd, &plug, &err) == -EPERM);
	MUST(!has_link(host.route_fd, "cj1"));
	MUST_DO(loader_join_links(&l, fds[LOADER_KEPT], &spec, &err), err);
	MUST(has_link(fds[LOADER_JAIL_ROUTE], LINK_JAIL));
	MUST(has_link(fds[LOADER_GATEWAY_ROUTE], LINK_GATEWAY));
	MUST_DO(loader_look(&l, &seen, &err), err);
	MUST(!seen.has_carrier && !seen.is_served); /* it has no uplink */
	MUST(loader_join_links(&l, fds[LOADER_KEPT], &spec, &err) == -EEXIST);
	make_uplink(fds[LOADER_GATEWAY_ROUTE], fds[LOADER_KEPT]);
	MUST_DO(loader_configure_tap(&l, &tap, &err), err);
	MUST_DO(loader_look(&l, &seen, &err), err);
	MUST(!seen.has_carrier); /* its other end is down */
	MUST_DO(loader_unplug(&l, &err), err);
	MUST(!has_link(fds[LOADER_GATEWAY_ROUTE], LINK_UPLINK));
	loader_stop(&l);
}

static void one_that_has_joined_makes_the_links_of_the_jail_and_none_of_the_host(void **state)
{
	(void)state;
	has_program = true;
	in_own_namespace(body_links);
	has_program = false;
}

static void body_taken_over(void)
{
	struct cj_error err = { 0 };
	is_taken_over = true;
	auto_fd int rules_fd = open_rules(true);
	struct loader l = start_with(rules_fd);
	MUST_DO(loader_join(&l, &err), err);
	MUST_DO(loader_unreachable(&l, 4, &err), err);
	loader_stop(&l);
}

static void one_that_is_taken_over_has_no_call_that_reaches_out(void **state)
{
	(void)state;
	in_own_namespace(body_taken_over);
}

static void body_ends(void)
{
	siginfo_t info = { 0 };
	struct cj_error err = { 0 };
	int before = count_fds();
	struct loader l = start();
	cj_close(&l.link.sock_fd);
	MUST(waitid(P_PIDFD, (id_t)l.pidfd, &info, WEXITED | WNOWAIT) == 0);
	MUST(info.si_code == CLD_EXITED);
	MUST(loader_unreachable(&l, 4, &err) == -EPIPE);
	loader_stop(&l);
	loader_stop(&l); /* of nothing: no harm */
	MUST(waitpid(-1, NULL, 0) == -1 && errno == ECHILD && count_fds() == before);

	l = start();
	MUST(sys_pidfd_send_signal(l.pidfd, SIGKILL) == 0);
	MUST(loader_unreachable(&l, 4, &err) == -EPIPE && loader_has_ended(&l));
	MUST(loader_unreachable(&l, 4, &err) == -EPIPE);
	MUST(strstr(err.msg, "the loader"));
	MUST(waitpid(-1, NULL, 0) == -1 && errno == ECHILD && count_fds() == before);
}

/* A look waits for no answer; the next order has its own. */
static void body_looks(void)
{
	struct cj_error err = { 0 };
	struct links_state seen;
	int fds[LOADER_KEPT + 1], rc;
	open_below(fds);
	struct loader l = start();
	MUST_DO(loader_give_sockets(&l, fds, LOADER_KEPT, &err), err);
	MUST(sys_pidfd_send_signal(l.pidfd, SIGSTOP) == 0);
	for (int i = 0; i < 3; i++)
		MUST(loader_look(&l, &seen, &err) == -EAGAIN && err.code == 0);
	MUST(sys_pidfd_send_signal(l.pidfd, SIGCONT) == 0);
	MUST(loader_unreachable(&l, 4, &err) == -ENOENT); /* there is no table */
	while ((rc = loader_look(&l, &seen, &err)) == -EAGAIN)
		;
	MUST(rc == 0 && !seen.has_carrier);
	loader_stop(&l);
}

static void a_look_waits_for_no_answer(void **state)
{
	(void)state;
	in_own_namespace(body_looks);
}

/* An answer that comes late is none to a later order: there is no later one. */
static void body_late(void)
{
	struct cj_error err = { 0 };
	struct loader l = start();
	step_limit_wait(l.link.sock_fd, 50);
	MUST(sys_pidfd_send_signal(l.pidfd, SIGSTOP) == 0);
	MUST(loader_unreachable(&l, 4, &err) == -ETIMEDOUT && loader_has_ended(&l));
	MUST(loader_unreachable(&l, 4, &err) == -EPIPE);
	MUST(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
}

static void it_ends_with_its_link_and_an_order_to_one_that_has_ended_fails(void **state)
{
	(void)state;
	in_own_namespace(body_ends);
	in_own_namespace(body_late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_arrive_whole),
		cmocka_unit_test(an_order_that_fails_says_why_and_the_next_one_is_obeyed),
		cmocka_unit_test(an_order_with_wrong_lengths_is_refused),
		cmocka_unit_test(
		    one_that_has_joined_has_a_single_capability_over_a_single_namespace),
		cmocka_unit_test(
		    one_that_has_joined_makes_the_links_of_the_jail_and_none_of_the_host),
		cmocka_unit_test(a_look_waits_for_no_answer),
		cmocka_unit_test(one_that_is_taken_over_has_no_call_that_reaches_out),
		cmocka_unit_test(it_ends_with_its_link_and_an_order_to_one_that_has_ended_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
