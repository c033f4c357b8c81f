/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_sockets - socket families and protocols that a program in the jail does not need.  Acts;
 * see attempt.h. */
#include "attempt.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>

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
	return worked(syscall(SYS_socket, 1ull << 32 | 38, SOCK_SEQPACKET, 0));
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
};

int main(int argc, char **argv)
{
	(void)argc;
	make_attempts(attempts, sizeof(attempts) / sizeof(attempts[0]), argv + 1);
	return 0;
}
