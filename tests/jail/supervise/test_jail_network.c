/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a whole jail: built when the program opens its first socket, or before; and when
 * a part fails, or does not end, while a call of the program waits for it.
 */
/* WRAP: gateway_start uplink_proceed sys_seccomp libexec_find */
#include "runtime/jail/jail.h"

#include <linux/seccomp.h>

#include "netns/network_parts.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "tests/jail/built_libexec.h"
#include "tests/jail/whole_jail.h"

static enum { NOTHING, GATEWAY_FAILS, UPLINK_FAILS, UPLINK_HANGS, OUTER_LISTENER } wrong;
static unsigned gateways; /* how many were opened */

int __real_gateway_start(const struct gateway_wants *wants, int jail_fd, struct gateway *out,
			 struct loader *out_loader, struct cj_error *err);
int __wrap_gateway_start(const struct gateway_wants *wants, int jail_fd, struct gateway *out,
			 struct loader *out_loader, struct cj_error *err);
int __wrap_gateway_start(const struct gateway_wants *wants, int jail_fd, struct gateway *out,
			 struct loader *out_loader, struct cj_error *err)
{
	gateways++;
	return wrong == GATEWAY_FAILS ? cj_fail(err, EIO, "make a trial")
				      : __real_gateway_start(wants, jail_fd, out, out_loader, err);
}

int __real_uplink_proceed(struct uplink *u, bool *out_decided, struct cj_error *err);
int __wrap_uplink_proceed(struct uplink *u, bool *out_decided, struct cj_error *err);
int __wrap_uplink_proceed(struct uplink *u, bool *out_decided, struct cj_error *err)
{
	if (wrong == UPLINK_FAILS)
		return cj_fail(err, ENOMEM, "make a trial");
	return wrong == UPLINK_HANGS ? 0 : __real_uplink_proceed(u, out_decided, err);
}

int __real_sys_seccomp(unsigned operation, unsigned flags, void *args);
int __wrap_sys_seccomp(unsigned operation, unsigned flags, void *args);
int __wrap_sys_seccomp(unsigned operation, unsigned flags, void *args)
{
	if (wrong == OUTER_LISTENER && operation == SECCOMP_SET_MODE_FILTER &&
	    (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER)) {
		errno = EBUSY;
		return -1;
	}
	return __real_sys_seccomp(operation, flags, args);
}

/* The program opens a socket of its loopback, then tells which interface it has. */
#define TELLS                                                                                      \
	"case $(</proc/net/dev) in *eth0*) echo eth0;; *) echo lo;; esac; "                        \
	"(exec 3<>/dev/udp/127.0.0.1/9) || echo no socket; "                                       \
	"case $(</proc/net/dev) in *eth0*) echo eth0;; *) echo lo;; esac"
static const char *const uses[] = { "/usr/bin/bash", "-c", TELLS, NULL };
static const char *const idles[] = { "/usr/bin/true", NULL };

static struct plan public_plan(void)
{
	struct plan plan = simple_plan();
	plan.network.mode = NETWORK_PUBLIC;
	plan.network.uplink = UPLINK_NONE;
	return plan;
}

static void run_for(const struct plan *plan, const char *const *argv, uint64_t wall_ms,
		    struct outcome *out)
{
	struct program program = simple_program(argv);
	struct cj_error err = { 0 };
	program.limits.wall_ms = wall_ms;
	gateways = 0;
	outcome_init(out, unique_id(), 4096);
	if (run_program(plan, &program, out, &err) < 0)
		fail_msg("%s", err.msg);
}

static void run_it(const struct plan *plan, const char *const *argv, struct outcome *out)
{
	run_for(plan, argv, simple_limits().wall_ms, out);
}

static void assert_printed(const struct outcome *out, const char *expected)
{
	size_t size, kept;
	auto_free char *text = capture_text(&out->output[0], &size, &kept);
	assert_string_equal(text, expected);
}

static size_t network_warnings(const struct outcome *out)
{
	size_t count = 0;
	for (size_t i = 0; i < out->warnings.count; i++)
		count += degraded_of(out->warnings.items[i]) == DEGRADED_NETWORK;
	return count;
}

static void assert_built(const struct outcome *out)
{
	assert_int_equal(out->network.state, NETWORK_READY);
	assert_null(out->network.why);
	assert_int_equal(out->network.uplink, UPLINK_NONE);
	assert_int_equal(out->layers[LAYER_NETWORK_FILTER], LAYER_ON);
	assert_int_equal(network_warnings(out), 0);
	assert_int_equal(gateways, 1);
}

static void a_program_without_a_socket_leaves_the_network_unused(void **state)
{
	(void)state;
	const struct plan plan = public_plan();
	unsigned long before = open_descriptors();
	struct outcome out;
	run_it(&plan, idles, &out);
	assert_int_equal(out.network.state, NETWORK_UNUSED);
	assert_int_equal(out.network.uplink, UPLINK_AUTO); /* none was chosen */
	assert_int_equal(out.layers[LAYER_NETWORK_FILTER], LAYER_OFF);
	assert_int_equal(gateways, 0);
	outcome_fini(&out);
	assert_nothing_held(before);
}

static void the_first_socket_builds_the_network(void **state)
{
	(void)state;
	const struct plan plan = public_plan();
	unsigned long before = open_descriptors();
	struct outcome out;
	run_it(&plan, uses, &out);
	assert_printed(&out, "lo\neth0\n");
	assert_built(&out);
	outcome_fini(&out);
	assert_nothing_held(before);
}

static void an_early_network_is_there_before_the_program(void **state)
{
	(void)state;
	struct plan plan = public_plan();
	plan.network.starts_early = true;
	struct outcome out;
	run_it(&plan, uses, &out);
	assert_printed(&out, "eth0\neth0\n");
	assert_built(&out);
	outcome_fini(&out);
}

static void without_a_listener_the_network_is_there_before_the_program(void **state)
{
	(void)state;
	const struct plan plan = public_plan();
	struct outcome out;
	wrong = OUTER_LISTENER;
	run_it(&plan, uses, &out);
	wrong = NOTHING;
	assert_int_equal(out.layers[LAYER_SYSCALL_REPORT], LAYER_ABSENT);
	assert_printed(&out, "eth0\neth0\n");
	assert_built(&out);
	outcome_fini(&out);
}

static void when_a_part_fails_the_call_goes_on_in_a_jail_with_its_loopback(void **state)
{
	(void)state;
	const struct plan plan = public_plan();
	static const struct {
		int wrong;
		const char *why;
	} cases[] = {
		{ GATEWAY_FAILS, "make the gateway: make a trial: Input/output error" },
		{ UPLINK_FAILS, "wait for the uplink: make a trial: Cannot allocate memory" },
	};
	for (size_t i = 0; i < 2; i++) {
		unsigned long before = open_descriptors();
		struct outcome out;
		wrong = cases[i].wrong;
		run_it(&plan, uses, &out);
		wrong = NOTHING;
		assert_int_equal(out.status, STATUS_EXITED);
		assert_int_equal(out.network.state, NETWORK_FAILED);
		assert_string_equal(out.network.why, cases[i].why);
		assert_int_equal(out.layers[LAYER_NETWORK_FILTER], LAYER_ABSENT);
		assert_int_equal(network_warnings(&out), 1);
		assert_int_equal(gateways, 1); /* not tried again */
		outcome_fini(&out);
		assert_nothing_held(before);
	}
}

/* The loop goes on: a limit, and what the program said before, arrive. */
static void a_limit_ends_a_run_whose_uplink_is_not_ready(void **state)
{
	(void)state;
	const struct plan plan = public_plan();
	unsigned long before = open_descriptors();
	struct outcome out;
	wrong = UPLINK_HANGS;
	/* Again with more time, if the program could not begin or no link was made. */
	for (int wall_ms = 3000;; wall_ms *= 2) {
		run_for(&plan, uses, (uint64_t)wall_ms, &out);
		if ((out.output[0].total > 0 && gateways > 0) || wall_ms > patience_ms(20000))
			break;
		outcome_fini(&out);
	}
	wrong = NOTHING;
	assert_int_equal(out.status, STATUS_TIMEOUT);
	assert_printed(&out, "lo\n");
	assert_int_equal(out.network.state, NETWORK_FAILED);
	assert_string_equal(out.network.why, "the run ended before the uplink was ready");
	assert_int_equal(network_warnings(&out), 0);
	outcome_fini(&out);
	assert_nothing_held(before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_without_a_socket_leaves_the_network_unused),
		cmocka_unit_test(the_first_socket_builds_the_network),
		cmocka_unit_test(an_early_network_is_there_before_the_program),
		cmocka_unit_test(without_a_listener_the_network_is_there_before_the_program),
		cmocka_unit_test(when_a_part_fails_the_call_goes_on_in_a_jail_with_its_loopback),
		cmocka_unit_test(a_limit_ends_a_run_whose_uplink_is_not_ready),
	};
	return RUN_TESTS_OF_JAILS(tests);
}
