/* SPDX-License-Identifier: Apache-2.0 */
/* Names of refused calls, from tables. */
#include "runtime/kernel/seccomp/filter_parts.h"

#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct word {
	uint64_t value;
	const char *text;
};

/* By number; AF_UNSPEC is 0. */
static const char *const families[] = {
	"UNSPEC",   "UNIX",       "INET",    "AX25",      "IPX",     "APPLETALK", "NETROM",
	"BRIDGE",   "ATMPVC",     "X25",     "INET6",     "ROSE",    "DECnet",    "NETBEUI",
	"SECURITY", "KEY",        "NETLINK", "PACKET",    "ASH",     "ECONET",    "ATMSVC",
	"RDS",      "SNA",        "IRDA",    "PPPOX",     "WANPIPE", "LLC",       "IB",
	"MPLS",     "CAN",        "TIPC",    "BLUETOOTH", "IUCV",    "RXRPC",     "ISDN",
	"PHONET",   "IEEE802154", "CAIF",    "ALG",       "NFC",     "VSOCK",     "KCM",
	"QIPCRTR",  "SMC",        "XDP",     "MCTP"
};

static const struct word types[] = {
	{ 1, "SOCK_STREAM" },    { 2, "SOCK_DGRAM" }, { 3, "SOCK_RAW" },     { 4, "SOCK_RDM" },
	{ 5, "SOCK_SEQPACKET" }, { 6, "SOCK_DCCP" },  { 10, "SOCK_PACKET" },
};

static const struct word requests[] = {
	{ 0x5412, "TIOCSTI" },    { 0x541c, "TIOCLINUX" },    { 0x541d, "TIOCCONS" },
	{ 0x5423, "TIOCSETD" },   { 0xc0045877, "FIFREEZE" }, { 0xc0045878, "FITHAW" },
	{ 0xc0185879, "FITRIM" },
};

/* The first flag that is set names the call. */
static const struct word namespace_flags[] = {
	{ CLONE_NEWUSER, "CLONE_NEWUSER" },     { CLONE_NEWNS, "CLONE_NEWNS" },
	{ CLONE_NEWNET, "CLONE_NEWNET" },       { CLONE_NEWPID, "CLONE_NEWPID" },
	{ CLONE_NEWIPC, "CLONE_NEWIPC" },       { CLONE_NEWUTS, "CLONE_NEWUTS" },
	{ CLONE_NEWCGROUP, "CLONE_NEWCGROUP" },
};

static const char *word_of(const struct word *words, size_t n, uint64_t value)
{
	for (size_t i = 0; i < n; i++) {
		if (words[i].value == value)
			return words[i].text;
	}
	return NULL;
}

/* "socket(AF_ALG)"; for a common family the refused part is its type. */
static void name_socket(const uint64_t *args, char *out)
{
	unsigned family = (unsigned)args[0];
	const char *type = word_of(types, COUNT_OF(types), args[1] & 0xf); /* SOCK_TYPE_MASK */
	bool is_common = family == AF_UNIX || family == AF_INET || family == AF_INET6;

	if (family >= COUNT_OF(families))
		(void)snprintf(out, FILTER_NAME_MAX, "socket(family %u)", family);
	else if (is_common && type)
		(void)snprintf(out, FILTER_NAME_MAX, "socket(AF_%s, %s, %u)", families[family],
			       type, (unsigned)args[2]);
	else
		(void)snprintf(out, FILTER_NAME_MAX, "socket(AF_%s)", families[family]);
}

static void name_with(const char *call, const char *word, char *out)
{
	if (word)
		(void)snprintf(out, FILTER_NAME_MAX, "%s(%s)", call, word);
	else
		(void)snprintf(out, FILTER_NAME_MAX, "%s", call);
}

static const char *namespace_word(uint64_t flags)
{
	for (size_t i = 0; i < COUNT_OF(namespace_flags); i++) {
		if (flags & namespace_flags[i].value)
			return namespace_flags[i].text;
	}
	return NULL;
}

void filter_name_call(const struct seccomp_data *data, char out[FILTER_NAME_MAX])
{
	const uint64_t *args = (const uint64_t *)data->args;
	const char *call = call_notified_name(data->nr);

	switch (data->nr) {
	case SYS_socket:
		name_socket(args, out);
		return;
	case SYS_ioctl:
		name_with(call, word_of(requests, COUNT_OF(requests), (uint32_t)args[1]), out);
		return;
	case SYS_clone:
	case SYS_unshare:
		name_with(call, namespace_word(args[0]), out);
		return;
	case SYS_seccomp:
		name_with("seccomp", "SECCOMP_SET_MODE_FILTER", out);
		return;
	case SYS_prctl:
		name_with("prctl", "PR_SET_SECCOMP", out);
		return;
	default:
		name_with(call ? call : "other", NULL, out);
	}
}
