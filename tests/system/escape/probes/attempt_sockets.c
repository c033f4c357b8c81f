/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_sockets - socket families and protocols that a program in the jail does not need.  Acts;
 * see attempt.h. */
#include "attempt.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static bool can_socket(int family, int type, int protocol)
{
	return worked(socket(family, type, protocol));
}

static bool try_alg(void)
{
	return can_socket(38, SOCK_SEQPACKET, 0);
}
static bool try_vsock(void)
{
	return can_socket(40, SOCK_STREAM, 0);
}
static bool try_packet(void)
{
	return can_socket(AF_PACKET, SOCK_RAW, 0);
}
static bool try_key(void)
{
	return can_socket(15, SOCK_RAW, 2);
}
static bool try_rxrpc(void)
{
	return can_socket(33, SOCK_DGRAM, AF_INET);
}
static bool try_xdp(void)
{
	return can_socket(44, SOCK_RAW, 0);
}
static bool try_tipc(void)
{
	return can_socket(30, SOCK_SEQPACKET, 0);
}
static bool try_can(void)
{
	return can_socket(29, SOCK_RAW, 1);
}
static bool try_bluetooth(void)
{
	return can_socket(31, SOCK_RAW, 1);
}
static bool try_netfilter(void)
{
	return can_socket(AF_NETLINK, SOCK_RAW, 12);
}
static bool try_xfrm(void)
{
	return can_socket(AF_NETLINK, SOCK_RAW, 6);
}
static bool try_uevent(void)
{
	return can_socket(AF_NETLINK, SOCK_DGRAM, 15);
}
static bool try_raw(void)
{
	return can_socket(AF_INET, SOCK_RAW, 1);
}
static bool try_ping(void)
{
	return can_socket(AF_INET, SOCK_DGRAM, 1);
}
static bool try_sctp(void)
{
	return can_socket(AF_INET, SOCK_STREAM, 132);
}
static bool try_mptcp(void)
{
	return can_socket(AF_INET, SOCK_STREAM, 262);
}
static bool try_family_high_bits(void)
{
	return worked(syscall(SYS_socket, 1ull << 32 | AF_NETLINK, SOCK_DGRAM, 15));
}

static bool try_protocol_high_bits(void)
{
	return worked(syscall(SYS_socket, AF_NETLINK, SOCK_DGRAM, 1ull << 32 | 15));
}
static bool try_dccp(void)
{
	return can_socket(AF_INET, 6 /* DCCP */, 33);
}
static bool try_udplite(void)
{
	return can_socket(AF_INET, SOCK_DGRAM, 136);
}
static bool try_raw6(void)
{
	return can_socket(AF_INET6, SOCK_RAW, 58);
}
static bool try_audit(void)
{
	return can_socket(AF_NETLINK, SOCK_RAW, 9);
}
static bool try_sock_diag(void)
{
	return can_socket(AF_NETLINK, SOCK_RAW, 4);
}
static bool try_generic(void)
{
	return can_socket(AF_NETLINK, SOCK_RAW, 16);
}
static bool try_connector(void)
{
	return can_socket(AF_NETLINK, SOCK_RAW, 11);
}
static bool try_rds(void)
{
	return can_socket(21, SOCK_SEQPACKET, 0);
}
static bool try_smc(void)
{
	return can_socket(43, SOCK_STREAM, 0);
}
static bool try_pppox(void)
{
	return can_socket(24, SOCK_STREAM, 0);
}
static bool try_qrtr(void)
{
	return can_socket(42, SOCK_DGRAM, 0);
}

/* Outside, asking for a family may load a module into the host's kernel: there, one that is built
 * in. */
static bool try_any_family(void)
{
	int first = here == INSIDE ? 0 : AF_NETLINK, last = here == INSIDE ? 255 : AF_NETLINK;
	for (int family = first; family <= last; family++) {
		bool is_meant = family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
				(here == INSIDE && family == AF_NETLINK);
		for (int type = 1; type <= 10 && !is_meant; type++) {
			if (can_socket(family, type, 0))
				return true;
		}
	}
	return false;
}
static bool try_any_netlink(void)
{
	int last = here == INSIDE ? 255 : 15 /* KOBJECT_UEVENT, always built in */;
	for (int protocol = here == INSIDE ? 1 : 15; protocol <= last; protocol++) {
		if (can_socket(AF_NETLINK, SOCK_RAW, protocol))
			return true;
	}
	return false;
}

/* It got as far as the kernel, which looks for the module of each pair that it does not know. */
static bool can_ask_inet(int family, int type, int protocol)
{
	return can_socket(family, type, protocol) || errno == EPROTONOSUPPORT ||
	       errno == ESOCKTNOSUPPORT || errno == EACCES;
}
static bool is_meant_inet(int family, int type, int protocol)
{
	int echo = family == AF_INET ? 1 : 58;
	return (type == SOCK_STREAM && (protocol == 0 || protocol == 6)) ||
	       (type == SOCK_DGRAM && (protocol == 0 || protocol == 17 || protocol == echo));
}
static bool try_any_inet(void)
{
	static const int families[] = { AF_INET, AF_INET6 };
	if (here != INSIDE)
		return can_ask_inet(AF_INET, SOCK_STREAM, 17); /* no module has this one */
	for (size_t i = 0; i < 2; i++) {
		for (int type = 1; type <= 10; type++) {
			for (int protocol = 0; protocol <= 263; protocol++) {
				if (!is_meant_inet(families[i], type, protocol) &&
				    can_ask_inet(families[i], type, protocol))
					return true;
			}
		}
	}
	return false;
}

/* Without an argument: past the search for the module, or it was searched for in vain. */
static bool can_load(unsigned long first, unsigned long last)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return got_past(ioctl(fd, first, NULL), EFAULT) || errno == ENOPKG ||
	       got_past(ioctl(fd, last, NULL), EFAULT) || errno == ENOPKG;
}
static bool try_bridge(void)
{
	return can_load(SIOCGIFBR, SIOCSIFBR) || can_load(SIOCBRADDBR, SIOCBRDELBR) ||
	       can_load(SIOCBRADDIF, SIOCBRDELIF);
}
static bool try_vlan(void)
{
	return can_load(SIOCGIFVLAN, SIOCSIFVLAN);
}
static const struct attempt attempts[] = {
	ROW(alg),
	ROW(vsock),
	ROW(packet),
	ROW(key),
	ROW(rxrpc),
	ROW(xdp),
	ROW(tipc),
	ROW(can),
	ROW(bluetooth),
	ROW(netfilter),
	ROW(xfrm),
	ROW(uevent),
	ROW(raw),
	ROW(ping),
	ROW(sctp),
	ROW(mptcp),
	ROW(family_high_bits),
	ROW(protocol_high_bits),
	ROW(dccp),
	ROW(udplite),
	ROW(raw6),
	ROW(audit),
	ROW(sock_diag),
	ROW(generic),
	ROW(connector),
	ROW(rds),
	ROW(smc),
	ROW(pppox),
	ROW(qrtr),
	ROW(any_family),
	ROW(any_netlink),
	ROW(any_inet),
	ROW(bridge),
	ROW(vlan),
};

ATTEMPTS_MAIN(attempts)
