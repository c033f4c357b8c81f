/* SPDX-License-Identifier: Apache-2.0 */
/* links: jail, gateway and host joined in namespaces of the test's own, packets between them. */
#include "netns/rtnetlink/links.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>

#include "netns/rtnetlink/rtmsg.h"
#include "tests/netns/namespaces.h"
#include "tests/netns/texts.h"
#include "tests/patience.h"

#define ROUNDS 50

static struct links_spec usual_spec(void)
{
	return (struct links_spec){ .addresses = { .jail4 = ip_of("198.18.0.2"),
						   .gateway4 = ip_of("198.18.0.3"),
						   .jail6 = ip_of("fdce:6a11::2"),
						   .gateway6 = ip_of("fdce:6a11::3") },
				    .mtu = 1500 };
}

/* In the place the caller is in; "" is the null address. */
static bool has_line(const char *path, const char *word)
{
	char line[512];
	bool found = false;
	FILE *file = fopen(path, "re");
	MUST(file);
	while (!found && fgets(line, sizeof(line), file))
		found = strstr(line, word);
	fclose(file);
	return found;
}

static int setting(const char *link, const char *name)
{
	char path[128], text[16] = "";
	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/%s", link, name);
	FILE *file = fopen(path, "re");
	MUST(file && fgets(text, sizeof(text), file));
	fclose(file);
	return (int)strtol(text, NULL, 10);
}

static socklen_t to_sockaddr(const struct ip *ip, uint16_t port, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (ip->family == 4) {
		struct sockaddr_in *in4 = (void *)out;
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		memcpy(&in4->sin_addr, ip->bytes, 4);
		return sizeof(*in4);
	}
	struct sockaddr_in6 *in6 = (void *)out;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	memcpy(&in6->sin6_addr, ip->bytes, 16);
	return sizeof(*in6);
}

static int listen_at(const struct ip *ip, uint16_t port)
{
	struct sockaddr_storage address;
	socklen_t size = to_sockaddr(ip, port, &address);
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(fd >= 0 && bind(fd, (void *)&address, size) == 0 && listen(fd, 8) == 0);
	return fd;
}

/* Whether a packet had to be sent again: the first one was lost. */
static bool has_lost(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t size = sizeof(info);
	MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0);
	return info.tcpi_total_retrans > 0;
}

/* 0: connected by the first packet; else an errno. */
static int connect_to(const struct ip *ip, uint16_t port)
{
	struct sockaddr_storage address;
	socklen_t size = to_sockaddr(ip, port, &address);
	int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	MUST(fd >= 0);
	int code = connect(fd, (void *)&address, size) == 0 ? 0 : errno;
	if (code == EINPROGRESS) {
		struct pollfd wait = { .fd = fd, .events = POLLOUT };
		socklen_t length = sizeof(code);
		MUST(poll(&wait, 1, patience_ms(60000)) == 1);
		MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) == 0);
	}
	if (code == 0 && has_lost(fd))
		code = EAGAIN;
	close(fd);
	return code;
}

static int plug_host(int host_fd, int gateway_fd, const char *name, const struct ip *ip4,
		     const struct ip *ip6, struct cj_error *err)
{
	struct links_host_spec spec = { .ip4 = *ip4, .mtu = 1500 };
	(void)snprintf(spec.name, sizeof(spec.name), "%s", name);
	if (ip6)
		spec.ip6 = *ip6;
	return links_plug_host(host_fd, gateway_fd, &spec, err);
}

static void join_rounds(bool is6)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct cj_error err = { 0 };
		struct links_spec spec = usual_spec();
		const struct ip *gateway = is6 ? &spec.addresses.gateway6
					       : &spec.addresses.gateway4;
		struct place g = place_new(), j = place_new();

		MUST_DO(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err), err);
		go_to(&g);
		int listen_fd = listen_at(gateway, 80);
		go_to(&j);
		MUST(connect_to(gateway, 80) == 0);
		close(listen_fd);
		place_end(&g);
		place_end(&j);
	}
}

static void body_first_connect4(void)
{
	join_rounds(false);
}
static void body_first_connect6(void)
{
	join_rounds(true);
}

static void the_first_connect_after_the_join_loses_no_packet(void **state)
{
	(void)state;
	in_own_namespace(body_first_connect4);
}

static void the_first_connect_over_ipv6_loses_no_packet(void **state)
{
	(void)state;
	in_own_namespace(body_first_connect6);
}

static void body_as_designed(void)
{
	struct cj_error err = { 0 };
	struct links_spec spec = usual_spec();
	struct place g = place_new(), j = place_new();
	MUST_DO(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err), err);

	go_to(&j);
	MUST(has_line("/proc/thread-self/net/route", LINK_JAIL "\t00000000\t030012C6"));
	MUST(has_line("/proc/thread-self/net/arp", "198.18.0.3       0x1         0x6         "
						   "02:00:00:00:00:02"));
	MUST(has_line("/proc/thread-self/net/if_inet6", "fdce6a11000000000000000000000002"));
	MUST(!has_line("/proc/thread-self/net/if_inet6", "fe80"));

	go_to(&g);
	MUST(has_line("/proc/thread-self/net/arp", "198.18.0.2       0x1         0x6         "
						   "02:00:00:00:00:01"));
	MUST(has_line("/proc/thread-self/net/if_inet6", "fdce6a11000000000000000000000003"));
	MUST(!has_line("/proc/thread-self/net/if_inet6", "fe80"));
	MUST(has_line("/proc/thread-self/net/if_inet6", " lo"));
	/* no entry of its own is tentative (flag 0x40) */
	MUST(!has_line("/proc/thread-self/net/if_inet6", " 40 "));
}

static void the_join_adds_only_addresses_neighbours_and_routes(void **state)
{
	(void)state;
	in_own_namespace(body_as_designed);
}

static void body_settings(void)
{
	struct cj_error err = { 0 };
	struct links_spec spec = usual_spec();
	struct place g = place_new(), j = place_new();
	MUST_DO(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err), err);

	MUST(setting(LINK_JAIL, "rp_filter") == 1);
	MUST(setting(LINK_JAIL, "forwarding") == 0);
	MUST(setting(LINK_JAIL, "accept_redirects") == 0);
	MUST(setting(LINK_JAIL, "accept_source_route") == 0);
	go_to(&g);
	MUST(setting(LINK_GATEWAY, "rp_filter") == 1);
	MUST(setting(LINK_GATEWAY, "forwarding") == 1);
	MUST(setting(LINK_GATEWAY, "send_redirects") == 0);
	MUST(setting(LINK_GATEWAY, "proxy_arp") == 0);
	MUST(setting(LINK_GATEWAY, "arp_ignore") == 8);
}

static void the_settings_of_both_ends_are_strict(void **state)
{
	(void)state;
	in_own_namespace(body_settings);
}

static void body_without_ipv6(void)
{
	struct cj_error err = { 0 };
	struct links_spec spec = usual_spec();
	struct place g = place_new(), j = place_new();
	spec.addresses.jail6 = spec.addresses.gateway6 = (struct ip){ 0 };
	MUST_DO(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err), err);
	MUST(!has_line("/proc/thread-self/net/if_inet6", LINK_JAIL));
	go_to(&g);
	MUST(!has_line("/proc/thread-self/net/if_inet6", LINK_GATEWAY));
}

static void without_ipv6_no_link_has_an_ipv6_address(void **state)
{
	(void)state;
	in_own_namespace(body_without_ipv6);
}

static void body_join_twice(void)
{
	struct cj_error err = { 0 };
	struct links_spec spec = usual_spec();
	struct place g = place_new(), j = place_new();
	MUST_DO(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err), err);
	MUST(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err) == -EEXIST);
	MUST(strcmp(err.msg, "create the veth pair 'jail' - 'eth0': File exists") == 0);
	/* the sockets are in step all the same */
	struct rtbatch b = { 0 };
	struct rtbatch_link seen = { 0 };
	rtmsg_get_link(&b, &(struct rtmsg_link){ .name = LINK_JAIL });
	MUST_DO(rtbatch_send(j.route_fd, &b, &seen, &err), err);
	MUST(seen.index == (int)if_nametoindex(LINK_JAIL));
}

static void a_failing_join_names_the_pair(void **state)
{
	(void)state;
	in_own_namespace(body_join_twice);
}

/* The last of `count` uplinks is there when the jail's link comes. */
static void join_after_uplinks(const struct place *h, int count)
{
	struct cj_error err = { 0 };
	struct links_spec spec = usual_spec();
	struct ip ip4 = ip_of("198.19.0.7");
	struct place g = place_new(), j = place_new();
	for (int i = 0; i < count; i++) {
		links_remove(h->route_fd, "cj7");
		MUST_DO(plug_host(h->route_fd, g.route_fd, "cj7", &ip4, NULL, &err), err);
	}
	MUST_DO(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err), err);
}

static void body_after_uplinks(void)
{
	struct place h = place_here();
	for (int count = 1; count < 5; count++)
		join_after_uplinks(&h, count);
}

static void the_join_works_after_earlier_uplinks_were_removed(void **state)
{
	(void)state;
	in_own_namespace(body_after_uplinks);
}

static void body_no_capability(void)
{
	struct cj_error err = { 0 };
	struct links_spec spec = usual_spec();
	struct place g = place_new(), j = place_new();
	MUST(unshare(CLONE_NEWUSER) == 0); /* what the payload is: one user namespace below */
	MUST(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err) == -EPERM);
	MUST(err.code == EPERM && err.msg[0] != '\0');
}

static void below_the_gateways_user_namespace_nothing_can_be_joined(void **state)
{
	(void)state;
	in_own_namespace(body_no_capability);
}

/* jail - gateway - host; the caller is in the jail. */
struct three {
	struct place host, gateway, jail;
	struct ip ip4, ip6, server4, server6;
};

static void give_server_addresses(struct three *t)
{
	struct cj_error err = { 0 };
	struct rtbatch b = { 0 };
	static const struct rtmsg_link lo = { .name = "lo", .index = 1 };
	rtmsg_up(&b, &lo, 0);
	rtmsg_address(&b, &lo, &t->server4, 32);
	rtmsg_address(&b, &lo, &t->server6, 128);
	MUST_DO(rtbatch_send(t->host.route_fd, &b, NULL, &err), err);
}

/* No rules here, so no NAT: the host of the test knows the way back to the jail. */
static void teach_way_back(struct three *t, const char *name, const struct links_spec *spec)
{
	static const uint8_t uplink_address[] = { 2, 0, 0, 0, 0, 3 };
	struct cj_error err = { 0 };
	struct rtbatch b = { 0 };
	go_to(&t->host);
	struct rtmsg_link end = { .name = name, .index = (int)if_nametoindex(name) };
	MUST(end.index > 0);
	rtmsg_neighbour(&b, &end, &spec->addresses.jail4, uplink_address);
	rtmsg_neighbour(&b, &end, &spec->addresses.jail6, uplink_address);
	rtmsg_route_to(&b, &end, &spec->addresses.jail4);
	rtmsg_route_to(&b, &end, &spec->addresses.jail6);
	MUST_DO(rtbatch_send(t->host.route_fd, &b, NULL, &err), err);
}

static void forward_ipv6(const struct place *p)
{
	go_to(p);
	MUST(put_file("/proc/sys/net/ipv6/conf/all/forwarding", "1"));
}

static struct three build_three(void)
{
	struct cj_error err = { 0 };
	struct links_spec spec = usual_spec();
	struct three t = { .ip4 = ip_of("198.19.0.7"),
			   .ip6 = ip_of("fdce:6a12::7"),
			   .server4 = ip_of("192.0.2.1"),
			   .server6 = ip_of("2001:db8::1") };
	t.host = place_here();
	t.gateway = place_new();
	t.jail = place_new();
	forward_ipv6(&t.gateway);
	give_server_addresses(&t);
	MUST_DO(links_join(t.gateway.route_fd, t.jail.route_fd, t.jail.ns_fd, &spec, &err), err);
	MUST_DO(plug_host(t.host.route_fd, t.gateway.route_fd, "cj7", &t.ip4, &t.ip6, &err), err);
	teach_way_back(&t, "cj7", &spec);
	return t;
}

static void body_three(void)
{
	struct three t = build_three();
	go_to(&t.host);
	listen_at(&t.server4, 80);
	listen_at(&t.server6, 80);
	go_to(&t.jail);
	MUST(connect_to(&t.server4, 80) == 0);
	MUST(connect_to(&t.server6, 80) == 0);
	/* and the gateway itself, whose address the host knows */
	go_to(&t.gateway);
	MUST(connect_to(&t.server4, 80) == 0);
	MUST(connect_to(&t.server6, 80) == 0);
}

static void packets_pass_from_the_jail_through_the_gateway_to_the_host(void **state)
{
	(void)state;
	in_own_namespace(body_three);
}

static void body_host_end(void)
{
	struct three t = build_three();
	go_to(&t.host);
	MUST(!has_line("/proc/thread-self/net/if_inet6", "cj7"));
	MUST(has_line("/proc/thread-self/net/route", "cj7\t070013C6\t00000000"));
	MUST(setting("cj7", "rp_filter") == 1);
	MUST(setting("cj7", "forwarding") == setting("default", "forwarding"));
	MUST(setting("cj7", "route_localnet") == 0);
	MUST(setting("cj7", "accept_redirects") == 0);
	struct ifreq request = { .ifr_name = "cj7" };
	int inet_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	MUST(ioctl(inet_fd, SIOCGIFADDR, &request) < 0 && errno == EADDRNOTAVAIL);
	MUST(ioctl(t.host.route_fd, SIOCGIFFLAGS, &request) == 0);
	MUST(request.ifr_flags & IFF_NOARP);

	links_remove(t.host.route_fd, "cj7");
	MUST(if_nametoindex("cj7") == 0);
	MUST(!has_line("/proc/thread-self/net/route", "cj7"));
	go_to(&t.gateway);
	MUST(if_nametoindex(LINK_UPLINK) == 0);
}

static void the_hosts_end_has_a_route_and_no_address_and_is_removed_at_once(void **state)
{
	(void)state;
	in_own_namespace(body_host_end);
}

static void body_collisions(void)
{
	struct three t = build_three();
	struct place other = place_new();
	struct ip free4 = ip_of("198.19.0.8"), free6 = ip_of("fdce:6a12::8");
	struct cj_error err = { 0 };
	int h = t.host.route_fd, g = other.route_fd;

	MUST(plug_host(h, g, "cj7", &free4, &free6, &err) == -EEXIST); /* name */
	MUST(strcmp(err.msg, "create the veth pair 'cj7' - 'uplink': File exists") == 0);
	MUST(plug_host(h, g, "cj8", &t.ip4, &free6, &err) == -EEXIST); /* ip4 */
	MUST(strstr(err.msg, "add the route to 198.19.0.7 over 'cj8'"));
	MUST(if_nametoindex(LINK_UPLINK) == 0);
	MUST(plug_host(h, g, "cj8", &free4, &t.ip6, &err) == -EEXIST); /* ip6 */
	MUST(strstr(err.msg, "add the route to fdce:6a12::7 over 'cj8'"));
	MUST(if_nametoindex(LINK_UPLINK) == 0);

	go_to(&t.host);
	MUST(if_nametoindex("cj7") > 0 && if_nametoindex("cj8") == 0);
	MUST(!has_line("/proc/thread-self/net/route", "cj8"));
	MUST(!has_line("/proc/thread-self/net/ipv6_route", "cj8"));
	MUST_DO(plug_host(h, g, "cj8", &free4, &free6, &err), err);
}

static void a_name_or_address_in_use_is_eexist_and_leaves_nothing(void **state)
{
	(void)state;
	in_own_namespace(body_collisions);
}

/* A veth's end stands for the helper's tap. */
static void body_tap(void)
{
	struct cj_error err = { 0 };
	struct place outside = place_here(), g = place_new();
	struct rtbatch b = { 0 };
	static const struct rtmsg_link far = { "far", 0, { 2, 0, 0, 0, 0, 9 } };
	static const struct rtmsg_link tap = { LINK_UPLINK, 0, { 2, 0, 0, 0, 0, 8 } };
	rtmsg_veth(&b, &tap, &far, outside.ns_fd, 1500);
	MUST_DO(rtbatch_send(g.route_fd, &b, NULL, &err), err);

	struct links_tap_spec spec = { .ip4 = ip_of("10.0.2.100"),
				       .bits4 = 24,
				       .router4 = ip_of("10.0.2.2"),
				       .ip6 = ip_of("fd00::100"),
				       .bits6 = 64,
				       .router6 = ip_of("fe80::2"),
				       .mtu = 9000 };
	MUST_DO(links_configure_tap(g.route_fd, &spec, &err), err);
	MUST(has_line("/proc/thread-self/net/route", LINK_UPLINK "\t00000000\t0202000A"));
	MUST(has_line("/proc/thread-self/net/if_inet6", "fd000000000000000000000000000100"));
	MUST(!has_line("/proc/thread-self/net/if_inet6", "fe80"));
	MUST(has_line("/proc/thread-self/net/ipv6_route", "fe800000000000000000000000000002"));
	MUST(setting(LINK_UPLINK, "forwarding") == 1);
	MUST(setting(LINK_UPLINK, "arp_notify") == 1); /* slirp4netns needs it */
	struct ifreq request = { .ifr_name = LINK_UPLINK };
	MUST(ioctl(g.route_fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu == 9000);
}

static void a_tap_gets_its_addresses_and_default_routes(void **state)
{
	(void)state;
	in_own_namespace(body_tap);
}

static void body_no_tap(void)
{
	struct cj_error err = { 0 };
	struct place g = place_new();
	struct links_tap_spec spec = { .ip4 = ip_of("10.0.2.100"), .bits4 = 24 };
	MUST(links_configure_tap(g.route_fd, &spec, &err) == -ENODEV);
	MUST(strcmp(err.msg, "look at 'uplink': No such device") == 0);
}

static void a_missing_tap_is_named(void **state)
{
	(void)state;
	in_own_namespace(body_no_tap);
}

static void body_carrier(void)
{
	struct cj_error err = { 0 };
	struct place outside = place_here(), g = place_new();
	struct rtbatch b = { 0 }, up = { 0 }, far_up = { 0 };
	static const struct rtmsg_link far = { "far", 7, { 2, 0, 0, 0, 0, 9 } };
	static const struct rtmsg_link near = { "near", 8, { 2, 0, 0, 0, 0, 8 } };
	MUST(!links_look(g.route_fd, "near").has_carrier); /* there is none */
	rtmsg_veth(&b, &near, &far, outside.ns_fd, 1500);
	MUST_DO(rtbatch_send(g.route_fd, &b, NULL, &err), err);
	rtmsg_up(&up, &near, 0);
	MUST_DO(rtbatch_send(g.route_fd, &up, NULL, &err), err);
	MUST(!links_look(g.route_fd, "near").has_carrier); /* the other end is down */
	rtmsg_up(&far_up, &far, 0);
	MUST_DO(rtbatch_send(outside.route_fd, &far_up, NULL, &err), err);
	MUST(links_look(g.route_fd, "near").has_carrier);
}

static void a_link_has_a_carrier_when_it_is_connected_at_its_other_end(void **state)
{
	(void)state;
	in_own_namespace(body_carrier);
}

static int compare_ns(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;
	return (x > y) - (x < y);
}

/* Prints what a join costs; no test asserts it. */
static void body_times(void)
{
	long ns[200];
	for (size_t i = 0; i < 200; i++) {
		struct cj_error err = { 0 };
		struct links_spec spec = usual_spec();
		struct place g = place_new(), j = place_new();
		struct timespec from, to;
		clock_gettime(CLOCK_MONOTONIC, &from);
		MUST_DO(links_join(g.route_fd, j.route_fd, j.ns_fd, &spec, &err), err);
		clock_gettime(CLOCK_MONOTONIC, &to);
		ns[i] = (to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec;
		place_end(&g);
		place_end(&j);
	}
	qsort(ns, 200, sizeof(ns[0]), compare_ns);
	fprintf(stderr, "links_join: median %ld us, 90 %% %ld us\n", ns[100] / 1000,
		ns[180] / 1000);
}

static void two_hundred_joins_one_after_the_other_succeed(void **state)
{
	(void)state;
	in_own_namespace(body_times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_connect_after_the_join_loses_no_packet),
		cmocka_unit_test(the_first_connect_over_ipv6_loses_no_packet),
		cmocka_unit_test(the_join_adds_only_addresses_neighbours_and_routes),
		cmocka_unit_test(the_settings_of_both_ends_are_strict),
		cmocka_unit_test(without_ipv6_no_link_has_an_ipv6_address),
		cmocka_unit_test(a_failing_join_names_the_pair),
		cmocka_unit_test(the_join_works_after_earlier_uplinks_were_removed),
		cmocka_unit_test(below_the_gateways_user_namespace_nothing_can_be_joined),
		cmocka_unit_test(packets_pass_from_the_jail_through_the_gateway_to_the_host),
		cmocka_unit_test(the_hosts_end_has_a_route_and_no_address_and_is_removed_at_once),
		cmocka_unit_test(a_name_or_address_in_use_is_eexist_and_leaves_nothing),
		cmocka_unit_test(a_tap_gets_its_addresses_and_default_routes),
		cmocka_unit_test(a_missing_tap_is_named),
		cmocka_unit_test(a_link_has_a_carrier_when_it_is_connected_at_its_other_end),
		cmocka_unit_test(two_hundred_joins_one_after_the_other_succeed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
