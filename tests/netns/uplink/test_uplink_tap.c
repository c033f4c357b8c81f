/* SPDX-License-Identifier: Apache-2.0 */
/* uplink_tap: what a helper finds in the gateway, who may attach, and how the device ends. */
#include "netns/uplink/uplink_parts.h"

#include <grp.h>
#include <sys/capability.h>

#include "tests/forked.h"
#include "tests/netns/uplink/uplink_lab.h"

#define STRANGER 4001

/* In a child, because it can't leave the gateway. */
static int in_gateway(int gateway_fd, int (*what)(int netns_fd))
{
	int status = 0;
	pid_t pid = test_fork();
	if (pid == 0) {
		auto_fd int netns_fd = ioctl(gateway_fd, SIOCGSKNS);
		_exit(what(netns_fd));
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "a child");
	return WEXITSTATUS(status);
}

static int make(int netns_fd)
{
	struct cj_error err = { 0 };
	return uplink_make_tap(netns_fd, &err) < 0 ? err.code : 0;
}

/* The process is in the gateway from then on.  Only that needs a capability. */
static int open_tun(int netns_fd)
{
	CHECK(setns(netns_fd, CLONE_NEWNET) == 0, "%s", strerror(errno));
	int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0, "%s", strerror(errno));
	return fd;
}

/* As a helper does. */
static int attach(int tun_fd)
{
	struct ifreq r = { .ifr_name = LINK_UPLINK };
	r.ifr_flags = IFF_TAP | IFF_NO_PI;
	return ioctl(tun_fd, TUNSETIFF, &r) == 0 ? 0 : errno;
}

static void drop_capabilities(void)
{
	cap_t none = cap_init();
	CHECK(none && cap_set_proc(none) == 0, "%s", strerror(errno));
	(void)cap_free(none);
}

static int attach_and_look(int netns_fd)
{
	struct ifreq seen = { 0 };
	unsigned gateway = if_nametoindex(LINK_UPLINK);
	int fd = open_tun(netns_fd), code = attach(fd);
	CHECK(code == 0 && gateway == 0, "%s", strerror(code));
	CHECK(ioctl(fd, TUNGETIFF, &seen) == 0, "%s", strerror(errno));
	CHECK(strcmp(seen.ifr_name, LINK_UPLINK) == 0, "%s", seen.ifr_name);
	/* one queue, no header before a frame */
	CHECK((unsigned short)seen.ifr_flags == (IFF_TAP | IFF_NO_PI | IFF_PERSIST), "%x",
	      (unsigned)seen.ifr_flags);
	return 0;
}

static int attach_without_capability(int netns_fd)
{
	auto_fd int fd = open_tun(netns_fd);
	drop_capabilities();
	return attach(fd);
}

static int attach_as_a_stranger(int netns_fd)
{
	auto_fd int fd = open_tun(netns_fd);
	CHECK(setgroups(0, NULL) == 0 && setresuid(STRANGER, STRANGER, STRANGER) == 0, "%s",
	      strerror(errno));
	return attach(fd);
}

static int make_while_attached(int netns_fd)
{
	int code = attach(open_tun(netns_fd));
	CHECK(code == 0, "%s", strerror(code));
	return make(netns_fd);
}

static short flags_of(int gateway_fd)
{
	struct ifreq r = { .ifr_name = LINK_UPLINK };
	CHECK(ioctl(gateway_fd, SIOCGIFFLAGS, &r) == 0, "%s", strerror(errno));
	return r.ifr_flags;
}

static int index_of(int gateway_fd)
{
	struct ifreq r = { .ifr_name = LINK_UPLINK };
	CHECK(ioctl(gateway_fd, SIOCGIFINDEX, &r) == 0, "%s", strerror(errno));
	return r.ifr_ifindex;
}

static int gateway_with_tap(void)
{
	if (!may_use_tun())
		skip_lab("no /dev/net/tun for everybody");
	int gateway_fd = make_gateway();
	CHECK(in_gateway(gateway_fd, make) == 0, "no tap device");
	return gateway_fd;
}

static void find_it_in_the_gateway(void)
{
	auto_fd int gateway_fd = gateway_with_tap();
	CHECK(if_nametoindex(LINK_UPLINK) == 0, "it is the caller's");
	CHECK((flags_of(gateway_fd) & IFF_UP) == 0, "it is up");
	CHECK(!is_attached(gateway_fd), "it has a carrier");
	CHECK(in_gateway(gateway_fd, attach_and_look) == 0, "attach");
	CHECK(!is_attached(gateway_fd), "it has a carrier");
}

static void take_the_one_that_is_there(void)
{
	auto_fd int gateway_fd = gateway_with_tap();
	int index = index_of(gateway_fd);
	CHECK(in_gateway(gateway_fd, make) == 0, "once more");
	CHECK(index_of(gateway_fd) == index && !is_attached(gateway_fd), "another one");
}

static void refuse_one_in_use(void)
{
	auto_fd int gateway_fd = gateway_with_tap();
	CHECK(in_gateway(gateway_fd, make_while_attached) == EBUSY, "in use");
}

static void belong_to_its_maker(void)
{
	auto_fd int gateway_fd = gateway_with_tap();
	int code = in_gateway(gateway_fd, attach_without_capability);
	CHECK(code == 0, "its owner: %s", strerror(code));
	if (!has_ids_to_give())
		skip_lab("no second user");
	code = in_gateway(gateway_fd, attach_as_a_stranger);
	CHECK(code == EPERM, "another user: %s", strerror(code));
}

static void end_with_its_namespace(void)
{
	int gateway_fd = gateway_with_tap();
	add_witness(gateway_fd);
	(void)close(gateway_fd);
	CHECK(witness_ends(), "the tap device keeps the namespace");
}

LAB_TEST(the_device_is_in_the_gateway_alone_down_and_without_carrier, find_it_in_the_gateway)
LAB_TEST(a_device_that_is_there_is_taken, take_the_one_that_is_there)
LAB_TEST(a_device_in_use_is_refused, refuse_one_in_use)
LAB_TEST(its_owner_attaches_without_a_capability_and_others_do_not, belong_to_its_maker)
LAB_TEST(the_device_ends_with_its_namespace, end_with_its_namespace)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_is_in_the_gateway_alone_down_and_without_carrier),
		cmocka_unit_test(a_device_that_is_there_is_taken),
		cmocka_unit_test(a_device_in_use_is_refused),
		cmocka_unit_test(its_owner_attaches_without_a_capability_and_others_do_not),
		cmocka_unit_test(the_device_ends_with_its_namespace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
