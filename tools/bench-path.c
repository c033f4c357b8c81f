/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-path - a jail's way to the world without the jail, for tools/bench-network.  Acts.
 *
 *	jail (eth0) --- (jail) gateway (uplink) --- (cj1) host (wire) --- (wire) world
 *
 *	bench-path list DIR          build once, in process; write the rules of jail, gateway and
 *	                             host as nft(8) lists them to DIR/{jail,gateway,host}.nft
 *	bench-path build ROUNDS DIR  the same rules and links by our code and by spawning `nft -f`
 *	                             and `ip -batch` with DIR's files, in turns; medians
 *	bench-path stream PAIRS MS DIR
 *	                             megabytes a second from jail to world, with rules and
 *	                             without, in turns, and the ratio; medians
 *
 * All namespaces are its own and end with it; only root may make them.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "netns/addresses.h"
#include "netns/firewall/firewall.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/scope.h"

#define ROUNDS_MAX 10000
#define PORT       7001
#define WARM_UP_MS 150
#define CHUNK      (128 * 1024)
#define MTU        1500 /* as netns/ has it with the host uplink */
#define LINK       "cj1"
#define WORLD      "20.30.40.50"
#define FILE_BYTES 512

/* Where DIR's files for ip(8) find the other ends, below /proc/self/fd. */
#define JAIL_NS_FD    10
#define GATEWAY_NS_FD 11
#define WORLD_NS_FD   12

static const struct ip uplink4 = { 4, { 198, 19, 0, 1 } };
static const struct ip uplink6 = { 6, { 0xfd, 0xce, 0x6a, 0x12, [15] = 1 } };

struct place {
	int ns_fd, route_fd, rules_fd;
};

struct path {
	struct place world, host, gateway, jail;
};

_Noreturn static void die(const char *what, const char *why)
{
	(void)fprintf(stderr, "bench-path: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

static void must(int rc, const struct cj_error *err)
{
	if (rc < 0)
		die(err->msg, err->hint);
}

static int must_open(int fd, const char *what)
{
	if (fd < 0)
		die(what, strerror(errno));
	return fd;
}

static uint64_t now_us(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail for this clock */
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* --- namespaces ------------------------------------------------------------------------- */

static void go_to(const struct place *p)
{
	if (setns(p->ns_fd, CLONE_NEWNET) < 0)
		die("setns", strerror(errno));
}

/* A kernel without IPv6 has no second file. */
static void forward_packets(void)
{
	static const char *const switches[] = { "/proc/sys/net/ipv4/ip_forward",
						"/proc/sys/net/ipv6/conf/all/forwarding" };
	for (size_t i = 0; i < 2; i++) {
		auto_fd int fd = open(switches[i], O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "1", 1) != 1)
			die(switches[i], strerror(errno));
	}
}

static struct place place_new(void)
{
	if (unshare(CLONE_NEWNET) < 0)
		die("a network namespace", strerror(errno));
	forward_packets();
	return (struct place){
		.ns_fd = must_open(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "ns/net"),
		.route_fd =
		    must_open(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), "route"),
		.rules_fd = must_open(
		    socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER), "rules"),
	};
}

static void place_end(struct place *p)
{
	cj_close(&p->ns_fd);
	cj_close(&p->route_fd);
	cj_close(&p->rules_fd);
}

static struct path path_new(void)
{
	return (struct path){ place_new(), place_new(), place_new(), place_new() };
}

static void path_end(struct path *p)
{
	place_end(&p->world);
	place_end(&p->host);
	place_end(&p->gateway);
	place_end(&p->jail);
}

/* --- by our own code -------------------------------------------------------------------- */

static void add_rules(const struct path *p)
{
	const struct firewall_spec spec = { .addresses = addresses_make(true), .has_dns = true };
	const struct firewall_host_spec host = {
		.table = FIREWALL_TABLE "-1", .link = LINK, .ip4 = uplink4, .ip6 = uplink6
	};
	struct cj_error err = { 0 };
	must(firewall_apply_jail(p->jail.rules_fd, &spec, &err), &err);
	must(firewall_apply_gateway(p->gateway.rules_fd, &spec, &err), &err);
	must(firewall_apply_host(p->host.rules_fd, &host, &err), &err);
}

static void add_links(const struct path *p)
{
	const struct links_spec spec = { .addresses = addresses_make(true), .mtu = MTU };
	struct cj_error err = { 0 };
	must(links_join(p->gateway.route_fd, p->jail.route_fd, &spec, &err), &err);
	const struct links_host_spec host = { LINK, uplink4, uplink6, MTU };
	must(links_plug_host(p->host.route_fd, p->gateway.route_fd, &host, &err), &err);
}

/* --- by programs ------------------------------------------------------------------------ */

/* Runs it in a namespace; what it prints goes to the file `out`. */
static void run(const struct path *p, const struct place *in, const char *const argv[],
		const char *out)
{
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = -1;
	if (posix_spawn_file_actions_init(&actions) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, p->jail.ns_fd, JAIL_NS_FD) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, p->gateway.ns_fd, GATEWAY_NS_FD) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, p->world.ns_fd, WORLD_NS_FD) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out,
					     O_WRONLY | O_CREAT | O_TRUNC, 0644) != 0)
		die("posix_spawn", strerror(ENOMEM));
	go_to(in);
	int code = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions); /* cannot fail */
	if (code != 0)
		die(argv[0], strerror(code));
	if (waitpid(pid, &status, 0) != pid || status != 0)
		die(argv[0], "failed");
}

static void run_file(const struct path *p, const struct place *in, const char *program,
		     const char *option, const char *dir, const char *name)
{
	char file[FILE_BYTES];
	const char *const argv[] = { program, option, file, NULL };
	(void)snprintf(file, sizeof(file), "%s/%s", dir, name);
	run(p, in, argv, "/dev/null");
}

static void add_rules_by_nft(const struct path *p, const char *dir)
{
	run_file(p, &p->jail, "nft", "-f", dir, "jail.nft");
	run_file(p, &p->gateway, "nft", "-f", dir, "gateway.nft");
	run_file(p, &p->host, "nft", "-f", dir, "host.nft");
}

static void add_links_by_ip(const struct path *p, const char *dir)
{
	run_file(p, &p->host, "ip", "-batch", dir, "host.ip");
	run_file(p, &p->gateway, "ip", "-batch", dir, "gateway.ip");
	run_file(p, &p->jail, "ip", "-batch", dir, "jail.ip");
}

static void list(const char *dir)
{
	static const char *const argv[] = { "nft", "list", "ruleset", NULL };
	char file[FILE_BYTES];
	struct path p = path_new();
	add_rules(&p);
	const struct place *places[] = { &p.jail, &p.gateway, &p.host };
	const char *const names[] = { "jail", "gateway", "host" };
	for (size_t i = 0; i < 3; i++) {
		(void)snprintf(file, sizeof(file), "%s/%s.nft", dir, names[i]);
		run(&p, places[i], argv, file);
	}
	path_end(&p);
}

/* --- medians ---------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return values[count / 2];
}

/* --- build ------------------------------------------------------------------------------ */

static void build(size_t rounds, const char *dir)
{
	static double rules[ROUNDS_MAX], links[ROUNDS_MAX], nft[ROUNDS_MAX], ip[ROUNDS_MAX];
	for (size_t i = 0; i < rounds; i++) {
		struct path ours = path_new(), theirs = path_new();
		uint64_t began = now_us();
		add_rules(&ours);
		uint64_t half = now_us();
		add_links(&ours);
		rules[i] = (double)(half - began);
		links[i] = (double)(now_us() - half);

		began = now_us();
		add_rules_by_nft(&theirs, dir);
		half = now_us();
		add_links_by_ip(&theirs, dir);
		nft[i] = (double)(half - began);
		ip[i] = (double)(now_us() - half);
		path_end(&ours);
		path_end(&theirs);
	}
	(void)printf("rules %.0f %.0f\nlinks %.0f %.0f\n", median(rules, rounds),
		     median(nft, rounds), median(links, rounds), median(ip, rounds));
}

/* --- stream ----------------------------------------------------------------------------- */

static void add_world(const struct path *p, const char *dir)
{
	run_file(p, &p->host, "ip", "-batch", dir, "wire.ip");
	run_file(p, &p->world, "ip", "-batch", dir, "world.ip");
	run_file(p, &p->host, "ip", "-batch", dir, "unruled.ip");
}

static struct path path_to_world(bool has_rules, const char *dir)
{
	struct path p = path_new();
	if (has_rules)
		add_rules(&p);
	add_links(&p);
	add_world(&p, dir);
	return p;
}

static int tcp_socket(const struct place *in)
{
	go_to(in);
	return must_open(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "a TCP socket");
}

static int listen_in_world(const struct path *p, const struct sockaddr_in *at)
{
	const int on = 1;
	int fd = tcp_socket(&p->world);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 || listen(fd, 1) < 0)
		die("listen in the world", strerror(errno));
	return fd;
}

/* The jail's side, in a process of its own: sends until nobody receives. */
static pid_t start_sender(int fd, int other_fd)
{
	static const char chunk[CHUNK];
	pid_t pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
			_exit(1);
		(void)close(other_fd); /* cannot fail: it is ours */
		while (send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
			;
		_exit(0);
	}
	return must_open(pid, "fork");
}

/* Bytes received in that time. */
static uint64_t receive(int fd, uint64_t span_us)
{
	static char chunk[CHUNK];
	uint64_t bytes = 0, end = now_us() + span_us;
	while (now_us() < end) {
		ssize_t got = recv(fd, chunk, sizeof(chunk), 0);
		if (got <= 0)
			die("receive", got < 0 ? strerror(errno) : "the sender is gone");
		bytes += (uint64_t)got;
	}
	return bytes;
}

/* Bytes a microsecond: MB/s. */
static double stream_once(const struct path *p, uint64_t span_us)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	(void)inet_pton(AF_INET, WORLD, &at.sin_addr); /* a constant */
	auto_fd int listen_fd = listen_in_world(p, &at);
	auto_fd int from_fd = tcp_socket(&p->jail);
	if (connect(from_fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		die("connect from the jail", strerror(errno));
	auto_fd int to_fd = must_open(accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC), "accept");

	pid_t sender = start_sender(from_fd, to_fd);
	(void)receive(to_fd, WARM_UP_MS * 1000);
	uint64_t began = now_us();
	uint64_t bytes = receive(to_fd, span_us);
	double rate = (double)bytes / (double)(now_us() - began);
	(void)kill(sender, SIGKILL); /* it may have ended; nobody else reaps it */
	(void)waitpid(sender, NULL, 0);
	return rate;
}

static void stream(size_t pairs, uint64_t span_us, const char *dir)
{
	static double with[ROUNDS_MAX], without[ROUNDS_MAX], ratio[ROUNDS_MAX];
	struct path ruled = path_to_world(true, dir), plain = path_to_world(false, dir);
	for (size_t i = 0; i < pairs; i++) {
		/* neither is always the first */
		if (i % 2)
			without[i] = stream_once(&plain, span_us);
		with[i] = stream_once(&ruled, span_us);
		if (i % 2 == 0)
			without[i] = stream_once(&plain, span_us);
		ratio[i] = with[i] / without[i];
	}
	(void)printf("%.0f %.0f %.3f\n", median(with, pairs), median(without, pairs),
		     median(ratio, pairs));
	path_end(&ruled);
	path_end(&plain);
}

static size_t number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	if (*end != '\0' || value == 0 || value > ROUNDS_MAX)
		die(text, "is no number in range");
	return value;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	if (argc == 3 && strcmp(verb, "list") == 0)
		list(argv[2]);
	else if (argc == 4 && strcmp(verb, "build") == 0)
		build(number(argv[2]), argv[3]);
	else if (argc == 5 && strcmp(verb, "stream") == 0)
		stream(number(argv[2]), number(argv[3]) * 1000, argv[4]);
	else
		die("usage", "bench-path list DIR | build ROUNDS DIR | stream PAIRS MS DIR");
	return EXIT_SUCCESS;
}
