/* SPDX-License-Identifier: Apache-2.0 */
/* loader: orders and their lists arrive as they were given, and what it has after it has joined. */
#include "netns/firewall/loader.h"

#include <linux/capability.h>

#include "runtime/base/sys.h"
#include "tests/jail/built_libexec.h"
#include "tests/netns/confined.h"
#include "tests/netns/gateway_here.h"
#include "tests/netns/init_side.h"
#include "tests/netns/namespaces.h"

/* WRAP: firewall_apply_gateway firewall_unreachable libexec_become libexec_find */

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
	struct loader l = start();
	auto_fd int nft_fd = open_here();
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
	MUST_DO(loader_apply_gateway(&l, nft_fd, &spec, &err), err);
	spec.nhost = 2;
	MUST(loader_apply_gateway(&l, nft_fd, &spec, &err) == -EBADMSG);
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
	struct loader l = start();
	auto_fd int nft_fd = open_here();
	MUST(loader_read_table(&l, nft_fd, FIREWALL_TABLE, counts, &err) == -ENOENT);
	MUST(strstr(err.msg, "read the counters"));
	MUST_DO(loader_apply_jail(&l, nft_fd, &from, &err), err);
	MUST(loader_apply_jail(&l, nft_fd, &from, &err) == -EEXIST && strstr(err.msg, "cejail"));
	MUST_DO(loader_replace(&l, nft_fd, &from, &to, &err), err);
	MUST_DO(loader_unreachable(&l, nft_fd, 4, &err), err);
	MUST_DO(loader_read_table(&l, nft_fd, FIREWALL_TABLE, counts, &err), err);
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
	struct cj_error err = { 0 };
	MUST_DO(step_tell(&l->link, step, o, size, fds, nfds, &err), err);
	MUST(step_await(&l->link, LOADER_DONE, NULL, &err) == -EPROTO);
}

static void body_malformed(void)
{
	struct cj_error err = { 0 };
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	struct loader l = start();
	auto_fd int nft_fd = open_here();
	auto_fd int lists_fd = memfd_create("lists", MFD_CLOEXEC);
	struct loader_order o = { .spec = { .nallowed = 2 } };
	MUST(ftruncate(lists_fd, 2 * sizeof(struct endpoint)) == 0);
	const int fds[] = { nft_fd, lists_fd };
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o) - 1, fds, 1);
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o), fds, 1); /* a list that is not there */
	o.list_bytes = 2 * sizeof(struct endpoint) - 1;
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o), fds, 2);
	o.list_bytes++;
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o), fds, 1); /* no socket */
	o.spec.nallowed = SIZE_MAX / sizeof(struct endpoint) + 2;
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o), fds, 2);
	o = (struct loader_order){ 0 };
	expect_refused(&l, LOADER_DONE, &o, sizeof(o), fds, 1);
	expect_refused(&l, LOADER_JAIL, &o, sizeof(o), fds, 0);
	MUST(loader_read_table(&l, nft_fd, FIREWALL_TABLE, counts, &err) == -ENOENT);
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
	const uint64_t kept = UINT64_C(1) << CAP_NET_ADMIN;
	struct cj_error err = { 0 };
	struct loader l = start();
	auto_fd int own_fd = open_here();
	auto_fd int rules_fd = open_rules(is_below);
	MUST(status_of(l.pidfd, "\nSeccomp:", 10) != 2);
	MUST_DO(loader_apply_jail(&l, own_fd, &spec, &err), err);
	MUST_DO(loader_join(&l, rules_fd, &err), err);
	MUST(status_of(l.pidfd, "\nCapEff:", 16) == kept &&
	     status_of(l.pidfd, "\nCapPrm:", 16) == kept);
	MUST(status_of(l.pidfd, "\nCapInh:", 16) == 0 &&
	     status_of(l.pidfd, "\nNoNewPrivs:", 10) == 1);
	MUST(status_of(l.pidfd, "\nSeccomp:", 10) == 2);
	MUST((user_namespace_of(pid_of(l.pidfd)) != user_namespace_of(getpid())) == is_below);
	if (is_below) {
		MUST_DO(loader_apply_jail(&l, rules_fd, &spec, &err), err);
		MUST(loader_unreachable(&l, own_fd, 4, &err) == -EPERM);
	}
	MUST_DO(loader_unreachable(&l, rules_fd, 6, &err), err);
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

static void body_taken_over(void)
{
	struct cj_error err = { 0 };
	is_taken_over = true;
	struct loader l = start();
	auto_fd int rules_fd = open_rules(true);
	MUST_DO(loader_join(&l, rules_fd, &err), err);
	MUST_DO(loader_unreachable(&l, rules_fd, 4, &err), err);
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
	struct loader l = start();
	auto_fd int nft_fd = open_here();
	int before = count_fds();
	cj_close(&l.link.sock_fd);
	MUST(waitid(P_PIDFD, (id_t)l.pidfd, &info, WEXITED | WNOWAIT) == 0);
	MUST(info.si_code == CLD_EXITED);
	MUST(loader_unreachable(&l, nft_fd, 4, &err) == -EBADF);
	loader_stop(&l);
	loader_stop(&l); /* of nothing: no harm */
	MUST(waitpid(-1, NULL, 0) == -1 && errno == ECHILD);
	MUST(count_fds() == before - 2);

	l = start();
	MUST(sys_pidfd_send_signal(l.pidfd, SIGKILL) == 0);
	MUST(loader_unreachable(&l, nft_fd, 4, &err) == -EPIPE);
	MUST(strstr(err.msg, "the loader of rules"));
	loader_stop(&l);
}

static void it_ends_with_its_link_and_an_order_to_one_that_has_ended_fails(void **state)
{
	(void)state;
	in_own_namespace(body_ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_arrive_whole),
		cmocka_unit_test(an_order_that_fails_says_why_and_the_next_one_is_obeyed),
		cmocka_unit_test(an_order_with_wrong_lengths_is_refused),
		cmocka_unit_test(
		    one_that_has_joined_has_a_single_capability_over_a_single_namespace),
		cmocka_unit_test(one_that_is_taken_over_has_no_call_that_reaches_out),
		cmocka_unit_test(it_ends_with_its_link_and_an_order_to_one_that_has_ended_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
