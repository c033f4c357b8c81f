/* SPDX-License-Identifier: Apache-2.0 */
#include "netns/uplink/uplink_helper.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#if __has_include(<sys/platform/x86.h>)
#include <sys/platform/x86.h>
#endif

#include "netns/address/addresses.h"
#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/os_release.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"

#define TUN             "/dev/net/tun"
#define VERSION_WAIT_MS 2000

/* The gateway's network namespace.  Standard input, because newer pastas close all descriptors
 * above the standard streams before they look. */
#define NETNS "/proc/self/fd/0"

/* Private to one gateway, so the same in each.  They lie in ranges that are closed to every
 * jail. */
#define TAP4    "198.18.1.100"
#define ROUTER4 "198.18.1.2" /* slirp4netns: always the second address; the host is the first */
#define TAP6    "fdce:6a11:1::100"
#define ROUTER6 "fdce:6a11:1::2"
const struct links_tap_spec uplink_helper_tap = {
	.ip4 = { 4, { 198, 18, 1, 100 } },
	.router4 = { 4, { 198, 18, 1, 2 } },
	.bits4 = 24,
	.ip6 = { 6, { 0xfd, 0xce, 0x6a, 0x11, 0, 1, [14] = 0x01, [15] = 0x00 } },
	.router6 = { 6, { 0xfd, 0xce, 0x6a, 0x11, 0, 1, [15] = 0x02 } },
	.bits6 = 64,
	.mtu = LINK_MTU_MAX,
};

/*
 * pasta(1).  No forwarded port in either direction, no way to the host's loopback, no server for
 * addresses or routes.  NDP stays: it answers for the router's address, as ARP does.  It wants an
 * interface with a default route in the caller's namespace, and ends if there is none.
 */
/* clang-format off */
#define PASTA \
	"pasta", "--foreground", "--quiet", "--netns-only", "--netns", NETNS, "--no-netns-quit", \
	"--ns-ifname", LINK_UPLINK, "--mtu", "65520", \
	"--address", TAP4, "--netmask", "24", "--gateway", ROUTER4, \
	"--dns", "none", "--search", "none", "--no-dhcp", "--no-dhcpv6", "--no-ra", "--no-map-gw", \
	"--tcp-ports", "none", "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none"
static const char *const pasta4[] = { PASTA, "--ipv4-only", NULL };
static const char *const pasta46[] = { PASTA, "--address", TAP6, "--gateway", ROUTER6, NULL };

/*
 * slirp4netns(1).  Not --enable-sandbox: it wants to be uid 0 in the gateway's user namespace,
 * which has none; uplink_enter_root() stands in for it.  No IPv6: it is experimental there.
 */
static const char *const slirp4[] = {
	"slirp4netns", "--netns-type=path", "--mtu=65520", "--cidr=198.18.1.0/24",
	"--disable-host-loopback", "--disable-dns", "--enable-seccomp", NETNS, LINK_UPLINK, NULL
};
/* clang-format on */

static const struct uplink_helper helpers[UPLINK_COUNT] = {
	[UPLINK_PASTA] = {
		.name = "pasta",
		.package = "passt",
		.avx2_suffix = ".avx2",
		.argv4 = pasta4,
		.argv46 = pasta46,
		/* Since 2024 it ends if it can't bring up "lo".  It drops the capability before it
		 * reads a packet; slirp4netns would keep it. */
		.needs_net_admin = true,
	},
	[UPLINK_SLIRP4NETNS] = {
		.name = "slirp4netns",
		.package = "slirp4netns",
		.argv4 = slirp4,
	},
};

const struct uplink_helper *uplink_helper_of(enum uplink_kind kind)
{
	return helpers[kind].name ? &helpers[kind] : NULL;
}

static bool is_file(const char *path, struct stat *out)
{
	return stat(path, out) == 0 && S_ISREG(out->st_mode);
}

static bool may_run(const char *path, const struct stat *st)
{
	return !(st->st_mode & (S_IWGRP | S_IWOTH)) && fd_has_trusted_owner(st) &&
	       access(path, X_OK) == 0;
}

int uplink_helper_find(const struct uplink_helper *h, const char *path,
		       char out_path[static UPLINK_PATH_MAX], struct cj_error *err)
{
	struct stat st;
	for (const char *at = path ? path : UPLINK_HELPER_PATH; *at != '\0';) {
		size_t length = strcspn(at, ":");
		int size = snprintf(out_path, UPLINK_PATH_MAX, "%.*s/%s", (int)length, at, h->name);
		at += length + (at[length] == ':');
		if (out_path[0] != '/' || size >= UPLINK_PATH_MAX || !is_file(out_path, &st))
			continue;
		if (may_run(out_path, &st))
			return 0;
		cj_refuse_as(err, EPERM,
			     "'%.200s' is not used: others may change it, or it can't be "
			     "executed",
			     out_path);
		return cj_hint(err, "chmod 755, chown root");
	}
	char remedy[INSTALL_MAX];
	os_install(h->package, remedy);
	cj_refuse_as(err, ENOENT, "%s is not installed", h->name);
	return cj_hint(err, "%s", remedy);
}

static bool has_avx2(void)
{
#ifdef CPU_FEATURE_ACTIVE
	return CPU_FEATURE_ACTIVE(AVX2); /* libc has asked: CPUID is slow in virtual machines */
#else
	return false;
#endif
}

void uplink_helper_choose_build(const struct uplink_helper *h, char path[static UPLINK_PATH_MAX])
{
	char build[UPLINK_PATH_MAX];
	struct stat st;
	if (!h->avx2_suffix || !has_avx2())
		return;
	int size = snprintf(build, sizeof(build), "%s%s", path, h->avx2_suffix);
	if (size < UPLINK_PATH_MAX && is_file(build, &st) && may_run(build, &st))
		memcpy(path, build, sizeof(build));
}

/* Tests with the rights of the helper: the caller's, or, of a root caller, those of "others". */
int uplink_helper_try_tun(struct cj_error *err)
{
	struct stat st;
	const bool is_root = geteuid() == 0;
	const mode_t others = S_IROTH | S_IWOTH;
	auto_fd int fd = open(TUN, O_RDWR | O_CLOEXEC);
	int code = fd < 0 ? errno : 0;
	if (fd >= 0 && is_root && fstat(fd, &st) == 0 && (st.st_mode & others) != others)
		code = EACCES;
	if (code == 0)
		return 0;
	(void)!cj_fail(err, code, "'" TUN "' can't be opened%s",
		       is_root ? " by a helper, who is not root" : "");
	return cj_hint(err, code == EACCES || code == EPERM
				? "chmod 666 " TUN ", or the udev rule your distribution ships"
				: "modprobe tun");
}

bool uplink_helper_has_ipv6(void)
{
	/* connect(2) of a datagram socket only looks up the route: udp(7) */
	struct sockaddr_in6 world = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	world.sin6_addr.s6_addr[0] = 0x20; /* 2000:: */
	auto_fd int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd >= 0 && connect(fd, (struct sockaddr *)&world, sizeof(world)) == 0;
}

/* The first line `path` --version writes, printable. */
static bool read_version(const char *path, char *out, size_t size)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	auto_fd int in_fd = ends[0];
	auto_child int child_fd = -1;
	pid_t pid = child_fork(&child_fd);
	if (pid == 0) {
		char *const none[] = { NULL };
		const char *const argv[] = { path, "--version", NULL };
		(void)signal(SIGPIPE, SIG_DFL); /* pasta takes an inherited SIG_IGN for an error */
		if (dup2(ends[1], STDOUT_FILENO) >= 0 && dup2(ends[1], STDERR_FILENO) >= 0)
			(void)execve(path, (char *const *)argv, none);
		_exit(127);
	}
	cj_close(&ends[1]);
	char text[512];
	if (pid < 0 || !fd_await(in_fd, POLLIN, VERSION_WAIT_MS))
		return false;
	ssize_t got = sys_read(in_fd, text, sizeof(text) - 1);
	if (got <= 0)
		return false;
	text[got] = '\0';
	(void)text_escape(text, strcspn(text, "\n"), false, out, size);
	return true;
}

int uplink_helper_version(enum uplink_kind kind, char *out, size_t size, struct cj_error *err)
{
	const struct uplink_helper *h = uplink_helper_of(kind);
	char path[UPLINK_PATH_MAX], line[128];

	if (!h)
		return cj_reject(err, "no helper");
	if (uplink_helper_find(h, NULL, path, err) < 0)
		return -err->code;
	if (!read_version(path, line, sizeof(line)))
		(void)snprintf(line, sizeof(line), "its version is unknown");
	(void)snprintf(out, size, "%s (%s)", path, line);
	return 0;
}
