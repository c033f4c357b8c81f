/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: libexec_run loader_apply_host */
/* WRAP: loader_plug_host loader_configure_tap loader_look loader_unplug */
/* uplink_host: plugged, refused with a reason, or gone, on a "host" of the test's own. */
#include "netns/uplink/uplink_parts.h"

#include <netinet/in.h>

#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

#include "netns/firewall/firewall.h"
#include "netns/firewall/host_firewall.h"
#include "netns/nftables/nfnl.h"
#include "netns/nftables/nft.h"
#include "netns/rtnetlink/links.h"
#include "netns/rtnetlink/rtmsg.h"
#include "netns/uplink/host_table.h"
#include "runtime/base/files/libexec.h"
#include "tests/forked.h"
#include "tests/netns/namespaces.h"
#include "tests/netns/uplink/loader_here.h"
#include "tests/netns/tables.h"
#include "tests/netns/texts.h"
#include "tests/patience.h"

#define CHILDREN  4
#define PER_CHILD 50 /* together the two hundred jails one host must take */

/* The helper is played in a child, or is not installed. */
static bool has_helper;
static unsigned idle_ms = 3000; /* after which a holder ends that nobody asks */

ssize_t __wrap_libexec_run(const struct libexec_call *call, struct cj_error *err);
ssize_t __wrap_libexec_run(const struct libexec_call *call, struct cj_error *err)
{
	if (!has_helper)
		return cj_fail(err, ENOENT, "start '%s'", call->name);
	MUST(strcmp(call->name, "table-helper") == 0 && call->answer_max == 0);
	pid_t pid = test_fork();
	MUST(pid >= 0);
	if (pid == 0)
		_exit(host_table_hold(strcmp(call->args[0], "46") == 0, idle_ms, err) == 0 ? 0 : 1);
	int status = 0;
	MUST(waitpid(pid, &status, 0) == pid);
	return status == 0 ? 0 : cj_fail(err, EIO, "load");
}

static void set_forwarding(const char *value)
{
	MUST(put_file("/proc/sys/net/ipv4/ip_forward", value));
	MUST(put_file("/proc/sys/net/ipv6/conf/all/forwarding", value));
}

static struct uplink_spec spec_of(const struct place *gateway, unsigned number)
{
	return (struct uplink_spec){ .kind = UPLINK_HOST,
				     .number = number,
				     .gateway_fd = gateway->route_fd,
				     .loader = loader_here(gateway->route_fd),
				     .has_ipv6 = true };
}

int __wrap_loader_apply_host(struct loader *l, int nft_fd, const struct firewall_host_spec *spec,
			     struct cj_error *err);
int __wrap_loader_apply_host(struct loader *l, int nft_fd, const struct firewall_host_spec *spec,
			     struct cj_error *err)
{
	(void)l;
	return firewall_apply_host(nft_fd, spec, err);
}

/* Lines of a file that have this word; the files of the place the caller is in. */
static int count_lines(const char *path, const char *word)
{
	char line[512];
	int count = 0;
	FILE *file = fopen(path, "re");
	MUST(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, word) != NULL;
	fclose(file);
	return count;
}

static int count_links(void)
{
	return count_lines("/proc/thread-self/net/dev", "cj");
}

static int start(const struct place *gateway, unsigned number, struct uplink_host *out,
		 struct cj_error *err)
{
	struct uplink_spec spec = spec_of(gateway, number);
	int rc = uplink_host_start(&spec, out, err);
	if (rc < 0)
		fprintf(stderr, "%s\n", err->msg);
	return rc;
}

static int probe(struct cj_error *err)
{
	char warning[UPLINK_WHY_MAX];
	return uplink_host_check(warning, err);
}

/* The body's namespace becomes the host, and the caller stays in it. */
static struct place host_with_gateway(struct place *gateway)
{
	struct place host = place_here();
	*gateway = place_new();
	go_to(&host);
	set_forwarding("1");
	return host;
}

/* The kernel's workers remove the table behind its socket and the link with the gateway. */
static void await_nothing(void)
{
	const struct timespec wait = { .tv_nsec = 10 * 1000000 };
	for (int i = 0; i < patience_ms(6000) && (count_links() > 0 || count_tables() > 0); i++)
		(void)nanosleep(&wait, NULL);
	MUST(count_links() == 0 && count_tables() == 0);
}

/* For a gateway that is used again. */
static void unplug(const struct place *host, struct uplink_host *u)
{
	links_remove(host->route_fd, u->name);
	uplink_host_stop(u);
}

static void body_off(void)
{
	struct uplink_host u;
	struct place g;
	struct cj_error err = { 0 };
	(void)host_with_gateway(&g);
	set_forwarding("0");
	MUST(start(&g, 1, &u, &err) < 0);
	MUST(strcmp(err.msg, "IP forwarding is off; turn it on: sysctl -w net.ipv4.ip_forward=1") ==
	     0);
	MUST(u.rules_fd == -1 && u.name[0] == '\0');
	MUST(count_links() == 0 && count_tables() == 0);
	MUST(probe(&err) < 0 && strstr(err.msg, "sysctl"));
	MUST(count_lines("/proc/sys/net/ipv4/ip_forward", "0") == 1);
	uplink_host_stop(&u);

	set_forwarding("1");
	MUST(put_file("/proc/sys/net/ipv4/conf/default/forwarding", "0"));
	MUST(start(&g, 1, &u, &err) < 0);
	MUST(strstr(err.msg, "sysctl -w net.ipv4.conf.default.forwarding=1"));
}

static void without_ip_forwarding_it_names_the_sysctl_and_does_not_set_it(void **state)
{
	(void)state;
	in_own_namespace(body_off);
}

static void body_no_capability(void)
{
	struct uplink_host u;
	struct place g;
	struct cj_error err = { 0 };
	(void)host_with_gateway(&g);
	MUST(unshare(CLONE_NEWUSER) == 0); /* every capability, over nothing that is here */
	MUST(start(&g, 1, &u, &err) < 0);
	MUST(strstr(err.msg, "CAP_NET_ADMIN over the caller's network namespace is missing"));
	MUST(probe(&err) < 0);
}

static void capabilities_over_another_user_namespace_do_not_count(void **state)
{
	(void)state;
	in_own_namespace(body_no_capability);
}

static void body_plugged(void)
{
	struct uplink_host u;
	struct place g;
	struct cj_error err = { 0 };
	struct place h = host_with_gateway(&g);
	MUST(uplink_host_check(u.warning, &err) == 0 && u.warning[0] == '\0');
	MUST(count_links() == 0 && count_tables() == 0);

	MUST(start(&g, 299, &u, &err) == 0 && u.warning[0] == '\0');
	MUST(strcmp(u.name, "cj300") == 0 && if_nametoindex("cj300") > 0);
	MUST(count_lines("/proc/thread-self/net/route", "cj300\t2C0113C6") == 1);
	MUST(count_lines("/proc/thread-self/net/ipv6_route",
			 "fdce6a1200000000000000000000012c 80") >= 1);
	MUST(count_tables() == 1);
	go_to(&g);
	MUST(count_lines("/proc/thread-self/net/if_inet6", "fdce6a1200000000000000000000012c") ==
	     1);

	go_to(&h);
	uplink_host_stop(&u);
	MUST(u.rules_fd == -1 && u.name[0] == '\0');
	place_end(&g);
	await_nothing();
	MUST(count_lines("/proc/thread-self/net/route", "cj") == 0);
	MUST(count_lines("/proc/thread-self/net/ipv6_route", "cj") == 0);
	uplink_host_stop(&u);
}

static void link_address_and_table_follow_the_number_and_are_removed(void **state)
{
	(void)state;
	in_own_namespace(body_plugged);
}

static void body_no_ipv6(void)
{
	struct uplink_host u;
	struct place g;
	struct cj_error err = { 0 };
	(void)host_with_gateway(&g);
	MUST(put_file("/proc/sys/net/ipv6/conf/all/forwarding", "0"));
	MUST(start(&g, 1, &u, &err) == 0 && u.warning[0] == '\0');
	MUST(count_lines("/proc/thread-self/net/ipv6_route", "fdce6a12") == 0);
	go_to(&g);
	MUST(count_lines("/proc/thread-self/net/if_inet6", LINK_UPLINK) == 0);
}

static void a_host_that_forwards_no_ipv6_gives_only_ipv4(void **state)
{
	(void)state;
	in_own_namespace(body_no_ipv6);
}

/* A process that dies closes its sockets: the kernel takes the table, the gateway's end the link.
 */
static void body_killed(void)
{
	struct place h = place_here();
	set_forwarding("1");
	pid_t pid = test_fork();
	MUST(pid >= 0);
	if (pid == 0) {
		struct uplink_host u;
		struct cj_error err = { 0 };
		struct place g = place_new();
		go_to(&h);
		MUST(start(&g, 1, &u, &err) == 0);
		kill(getpid(), SIGKILL);
	}
	int status = 0;
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	await_nothing();
}

static void a_killed_supervisor_leaves_neither_link_nor_table(void **state)
{
	(void)state;
	in_own_namespace(body_killed);
}

static void start_many(const struct place *h, int done_fd, int end_fd)
{
	struct cj_error err = { 0 };
	char byte = 'x';
	for (int i = 0; i < PER_CHILD; i++) {
		struct uplink_host u;
		struct place g = place_new();
		go_to(h);
		if (start(&g, 0, &u, &err) != 0) {
			fprintf(stderr, "%d: %s\n", i, err.msg);
			_exit(1);
		}
		close(g.ns_fd); /* its sockets keep it */
	}
	MUST(write(done_fd, &byte, 1) == 1);
	(void)!read(end_fd, &byte, 1);
	_exit(0);
}

static void body_many(void)
{
	int done[2], end[2];
	struct place h = place_here();
	set_forwarding("1");
	MUST(pipe2(done, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC) == 0);
	for (int i = 0; i < CHILDREN; i++) {
		pid_t pid = test_fork();
		MUST(pid >= 0);
		if (pid == 0) {
			close(end[1]);
			close(done[0]);
			start_many(&h, done[1], end[0]);
		}
	}
	close(done[1]);
	char byte;
	for (int i = 0; i < CHILDREN; i++)
		MUST(read(done[0], &byte, 1) == 1);
	MUST(count_links() == CHILDREN * PER_CHILD);
	MUST(count_tables() == CHILDREN * PER_CHILD);
	MUST(count_lines("/proc/thread-self/net/route", "cj") == CHILDREN * PER_CHILD);
	close(end[1]);
	for (int i = 0; i < CHILDREN; i++) {
		int status = 1;
		MUST(wait(&status) > 0 && status == 0);
	}
	await_nothing();
}

static void two_hundred_starts_with_the_same_number_all_find_a_free_one(void **state)
{
	(void)state;
	in_own_namespace(body_many);
}

static void body_shared(void)
{
	struct uplink_host u[4];
	struct place g[4];
	struct cj_error err = { 0 };
	struct place h = place_here();
	has_helper = true;
	idle_ms = (unsigned)patience_ms(60000); /* longer than this takes */
	adopt_holders();
	set_forwarding("1");
	for (int i = 0; i < 4; i++) {
		g[i] = place_new();
		go_to(&h);
		MUST(start(&g[i], 7, &u[i], &err) == 0 && u[i].warning[0] == '\0');
		MUST(if_nametoindex(u[i].name) > 0);
		MUST(count_tables() == (i == 0 ? 1 : 2));
	}
	/* the first is alone on the host and leaves no process; the others share */
	MUST(strcmp(u[0].name, "cj8") == 0 && strcmp(u[0].table, "cejail-8") == 0);
	for (int i = 1; i < 4; i++)
		MUST(strncmp(u[i].name, "cjs1-", 5) == 0 && u[i].table[0] == '\0');
	MUST(count_lines("/proc/thread-self/net/route", "cj") == 4); /* no address twice */
	for (int i = 0; i < 4; i++) {
		uplink_host_stop(&u[i]);
		MUST(u[i].rules_fd == -1 && u[i].mark_fd == -1 && u[i].ring_fd == -1);
		place_end(&g[i]);
	}
	kill_children();
	await_nothing();
}

static void jails_at_the_same_time_share_one_table(void **state)
{
	(void)state;
	in_own_namespace(body_shared);
}

static void body_without_helper(void)
{
	struct uplink_host u[2];
	struct place g[2];
	struct cj_error err = { 0 };
	struct place h = place_here();
	set_forwarding("1");
	for (int i = 0; i < 2; i++) {
		g[i] = place_new();
		go_to(&h);
		MUST(start(&g[i], 7, &u[i], &err) == 0 && u[i].warning[0] == '\0');
		MUST(u[i].table[0] != '\0' && count_tables() == i + 1);
	}
	MUST(u[0].ring_fd < 0 || u[0].mark_fd < 0);
	for (int i = 0; i < 2; i++)
		uplink_host_stop(&u[i]);
	MUST(count_tables() == 0); /* at once, though the kernel has not closed the sockets yet */
	/* but not before the links are down */
	MUST(count_links() == 2 && count_lines("/proc/thread-self/net/route", "cj") == 0);
}

static void without_the_helper_each_jail_has_a_table_of_its_own(void **state)
{
	(void)state;
	in_own_namespace(body_without_helper);
}

static void body_allowed(void)
{
	const struct endpoint open = { ip_of("10.1.2.3"), ip_of("10.1.2.3"), 80, 80 };
	struct uplink_host u[2];
	struct cj_error err = { 0 };
	struct place h = place_here(), g[2];
	has_helper = true;
	set_forwarding("1");
	for (int i = 0; i < 2; i++) {
		g[i] = place_new();
		go_to(&h);
		struct uplink_spec spec = spec_of(&g[i], 7);
		spec.allowed = &open;
		spec.nallowed = 1;
		MUST_DO(uplink_host_start(&spec, &u[i], &err), err);
		MUST(u[i].table[0] != '\0' && count_tables() == i + 1);
	}
}

static void a_jail_with_opened_ranges_shares_no_table(void **state)
{
	(void)state;
	in_own_namespace(body_allowed);
}

/* The holder is started by a run; both are killed. */
static void body_shared_killed(void)
{
	struct place h = place_here();
	has_helper = true;
	set_forwarding("1");
	pid_t pid = test_fork();
	MUST(pid >= 0);
	if (pid == 0) {
		struct uplink_host u[3];
		struct cj_error err = { 0 };
		for (int i = 0; i < 3; i++) {
			struct place g = place_new();
			go_to(&h);
			MUST(start(&g, 1, &u[i], &err) == 0);
		}
		kill(getpid(), SIGKILL);
	}
	int status = 0;
	MUST(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	await_nothing();
}

static void killed_supervisors_that_share_a_table_leave_nothing(void **state)
{
	(void)state;
	in_own_namespace(body_shared_killed);
}

static void load(int fd, struct nft_batch *b)
{
	struct cj_error err = { 0 };
	nft_batch_end(b);
	MUST_DO(firewall_load(fd, b, &err), err);
}

static void body_foreign(void)
{
	static const struct nft_hook hook = { "FORWARD", "filter", NF_INET_FORWARD, 0, NF_DROP };
	struct uplink_host u;
	struct place g;
	struct cj_error err = { 0 };
	struct place h = host_with_gateway(&g);
	int fd = open_netlink(NETLINK_NETFILTER);
	auto_nft_batch struct nft_batch batch = { 0 };
	struct nft_batch *b = &batch;
	nft_batch_begin(b, "docker");
	nft_add_table(b, 0);
	nft_add_base_chain(b, &hook);
	load(fd, b);

	MUST(start(&g, 1, &u, &err) == 0);
	MUST(strstr(u.warning, "the table 'inet docker' drops forwarded packets by its policy"));
	MUST(strstr(u.warning, "allow interface 'cj*' in it"));
	unplug(&h, &u);
	MUST(uplink_host_check(u.warning, &err) == 0 && u.warning[0] != '\0');

	nft_batch_begin(b, "docker");
	nft_rule_begin(b, "FORWARD");
	nft_match_meta(b, NFT_META_IIFNAME, NFT_CMP_EQ, "cj", 2);
	nft_verdict(b, NF_ACCEPT, NULL);
	nft_rule_end(b);
	load(fd, b);
	MUST(start(&g, 1, &u, &err) == 0 && u.warning[0] == '\0');
	unplug(&h, &u);
}

static void a_host_firewall_that_drops_is_a_warning_unless_it_names_our_links(void **state)
{
	(void)state;
	in_own_namespace(body_foreign);
}

/* 0, or the errno of a TCP connection; EINPROGRESS: there was no answer for so long. */
static int connect_to(const char *text, uint16_t port, int wait_ms)
{
	struct ip ip = ip_of(text);
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	memcpy(&in4.sin_addr, ip.bytes, 4);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int code = connect(fd, (void *)&in4, sizeof(in4)) == 0 ? 0 : errno;
	struct pollfd wait = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(code);
	if (code == EINPROGRESS && poll(&wait, 1, wait_ms) == 1)
		MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size) == 0);
	close(fd);
	return code;
}

static int listen_at(const char *text, uint16_t port)
{
	struct ip ip = ip_of(text);
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	memcpy(&in4.sin_addr, ip.bytes, 4);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(fd >= 0 && bind(fd, (void *)&in4, sizeof(in4)) == 0 && listen(fd, 8) == 0);
	return fd;
}

/* The world behind the host: 8.0.0.2, a public address in a namespace that leads nowhere. */
static void add_world(const struct place *h, const struct place *world)
{
	static const struct rtmsg_link near = { "wan", 77, { 2, 0, 0, 0, 1, 1 } };
	static const struct rtmsg_link far = { "host", 78, { 2, 0, 0, 0, 1, 2 } };
	struct cj_error err = { 0 };
	struct ip ip1 = ip_of("8.0.0.1"), ip2 = ip_of("8.0.0.2");
	struct rtbatch b = { 0 };
	rtmsg_veth(&b, &near, &far, world->ns_fd, 1500);
	rtmsg_up(&b, &near, 0);
	rtmsg_address(&b, &near, &ip1, 24);
	rtmsg_neighbour(&b, &near, &ip2, far.address);
	MUST_DO(rtbatch_send(h->route_fd, &b, NULL, &err), err);
	b = (struct rtbatch){ 0 };
	rtmsg_up(&b, &far, 0);
	rtmsg_address(&b, &far, &ip2, 24);
	rtmsg_neighbour(&b, &far, &ip1, near.address);
	MUST_DO(rtbatch_send(world->route_fd, &b, NULL, &err), err);
}

static void body_packets(void)
{
	struct uplink_host u;
	struct place g;
	struct cj_error err = { 0 };
	struct place h = host_with_gateway(&g), world = place_new();
	go_to(&h);
	add_world(&h, &world);
	listen_at("8.0.0.1", 80);
	MUST(start(&g, 1, &u, &err) == 0);
	go_to(&world); /* knows no way to 198.19.0.0/16: the host's address must be put in */
	listen_at("8.0.0.2", 80);

	go_to(&g);
	MUST(connect_to("8.0.0.2", 80, patience_ms(20000)) == 0);
	int code = connect_to("8.0.0.1", 80, patience_ms(20000)); /* the host itself */
	MUST(code != 0 && code != EINPROGRESS);
	go_to(&h);
	/* Into the gateway, which drops it: it would be there at once, or after one more SYN. */
	code = connect_to("198.19.0.2", 80, 3000);
	MUST(code != 0);
}

static void the_internet_is_reached_and_the_host_is_not(void **state)
{
	(void)state;
	in_own_namespace(body_packets);
}

/* --- what nf_tables says, without a kernel --- */

static void malformed_answers_give_no_chain(void **state)
{
	_Alignas(4) char bytes[64] = { 0 };
	struct host_firewall_chains chains = { .count = 0 };
	struct nlmsghdr *header = (void *)bytes;
	(void)state;

	assert_int_equal(host_firewall_read_chains(&chains, bytes, 0), HOST_FIREWALL_MORE);
	assert_int_equal(host_firewall_read_chains(&chains, bytes, sizeof(bytes)),
			 HOST_FIREWALL_BROKEN);
	*header = (struct nlmsghdr){ .nlmsg_len = 16,
				     .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWCHAIN };
	assert_int_equal(host_firewall_read_chains(&chains, bytes, 16), HOST_FIREWALL_MORE);
	header->nlmsg_type = NLMSG_DONE;
	assert_int_equal(host_firewall_read_chains(&chains, bytes, 16), HOST_FIREWALL_END);
	header->nlmsg_type = NLMSG_ERROR;
	assert_int_equal(host_firewall_read_chains(&chains, bytes, 16), HOST_FIREWALL_BROKEN);
	assert_int_equal(chains.count, 0);
}

static int compare_ns(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

static long ns_since(const struct timespec *from)
{
	struct timespec to;
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (to.tv_sec - from->tv_sec) * 1000000000L + to.tv_nsec - from->tv_nsec;
}

/* Prints what it costs; asserts no time. */
static void body_times(void)
{
	enum { ROUNDS = 50 };
	long starts[ROUNDS], stops[ROUNDS], probes[ROUNDS];
	struct cj_error err = { 0 };
	struct place g;
	struct place h = host_with_gateway(&g);
	for (int i = 0; i < ROUNDS; i++) {
		struct uplink_host u;
		struct timespec from;
		struct place fresh = place_new();
		go_to(&h);
		clock_gettime(CLOCK_MONOTONIC, &from);
		MUST(probe(&err) == 0);
		probes[i] = ns_since(&from);
		clock_gettime(CLOCK_MONOTONIC, &from);
		MUST(start(&fresh, (unsigned)i, &u, &err) == 0);
		starts[i] = ns_since(&from);
		clock_gettime(CLOCK_MONOTONIC, &from);
		uplink_host_stop(&u);
		stops[i] = ns_since(&from);
	}
	qsort(starts, ROUNDS, sizeof(long), compare_ns);
	qsort(stops, ROUNDS, sizeof(long), compare_ns);
	qsort(probes, ROUNDS, sizeof(long), compare_ns);
	fprintf(stderr, "uplink_host, medians: probe %ld us, start %ld us, stop %ld us\n",
		probes[ROUNDS / 2] / 1000, starts[ROUNDS / 2] / 1000, stops[ROUNDS / 2] / 1000);
}

static void fifty_starts_and_stops_succeed(void **state)
{
	(void)state;
	in_own_namespace(body_times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_ip_forwarding_it_names_the_sysctl_and_does_not_set_it),
		cmocka_unit_test(capabilities_over_another_user_namespace_do_not_count),
		cmocka_unit_test(link_address_and_table_follow_the_number_and_are_removed),
		cmocka_unit_test(a_host_that_forwards_no_ipv6_gives_only_ipv4),
		cmocka_unit_test(a_killed_supervisor_leaves_neither_link_nor_table),
		cmocka_unit_test(jails_at_the_same_time_share_one_table),
		cmocka_unit_test(without_the_helper_each_jail_has_a_table_of_its_own),
		cmocka_unit_test(a_jail_with_opened_ranges_shares_no_table),
		cmocka_unit_test(killed_supervisors_that_share_a_table_leave_nothing),
		cmocka_unit_test(two_hundred_starts_with_the_same_number_all_find_a_free_one),
		cmocka_unit_test(a_host_firewall_that_drops_is_a_warning_unless_it_names_our_links),
		cmocka_unit_test(the_internet_is_reached_and_the_host_is_not),
		cmocka_unit_test(malformed_answers_give_no_chain),
		cmocka_unit_test(fifty_starts_and_stops_succeed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
