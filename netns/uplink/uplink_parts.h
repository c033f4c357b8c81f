/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uplink_parts - the parts of an uplink; for netns/uplink/ only.
 *
 * All capabilities of a keeper and its helper are over the gateway's user namespace; over the host
 * they have none.
 */
#pragma once

#include "netns/uplink/uplink.h"
#include "runtime/base/error.h"

/* --- uplink_host.c: a routed link and source NAT in the caller's network namespace -------- */

/*
 * Each jail has a number on this host: its link is "cjNUMBER", its addresses 198.19.x.y and
 * fdce:6a12::NUMBER, its table "cejail-NUMBER".  Jails that follow one another share a table
 * (host_table.h), and their links are "cjsTABLE-NUMBER".  A jail with closed ranges that the caller
 * opened always has a table of its own.
 *
 * A socket owns the table, and the gateway owns the link: the kernel removes both when those that
 * hold them have ended, however they ended.  Settings of the administrator, such as IP forwarding,
 * are read and never changed.
 */
struct uplink_host {
	bool has_ipv6;
	char name[16];                /* of the link; null: "" */
	char table[16];               /* the jail's own; "": it is shared */
	char warning[UPLINK_WHY_MAX]; /* another table of this host drops forwarded packets */
	/* Descriptors; null: -1 */
	int rules_fd;      /* keeps the table loaded */
	int mark_fd;       /* host_table_mark(); the ring may have it instead */
	int ring_fd;       /* releases both in a kernel worker */
	uint64_t given_ms; /* when the holder gave a shared table */
};
#define UPLINK_HOST_NONE ((struct uplink_host){ .rules_fd = -1, .mark_fd = -1, .ring_fd = -1 })

/*
 * uplink_host_start - load the rules, then plug the link.  Fills *out in any case.
 *
 * Fails: ENOMEM, EMFILE, ENFILE, ENOBUFS end the run.  After any other error this host does not
 *        allow the uplink, and the error has the reason and the remedy.
 */
int uplink_host_start(const struct uplink_spec *spec, struct uplink_host *out,
		      struct cj_error *err);

/*
 * Takes the link down, then removes a table of the jail's own; a kernel worker closes its socket.
 * The kernel removes the link when the gateway ends.  Accepts the null value, leaves it behind.
 */
void uplink_host_stop(struct uplink_host *u);

/* Whether this host allows uplink_host_start().  Changes nothing. */
int uplink_host_check(char out_warning[static UPLINK_WHY_MAX], struct cj_error *err);

/* --- uplink_keeper.c: the process that runs a helper, and whose end also ends the helper --- */

struct uplink_keeper {
	int pidfd;   /* -1: none; readable when helper and keeper have ended */
	int link_fd; /* to the keeper; its end of file ends the keeper */
};
#define UPLINK_KEEPER_NONE ((struct uplink_keeper){ .pidfd = -1, .link_fd = -1 })

struct uplink_keeper_spec {
	const char *path; /* of the helper */
	const char *const *argv;
	bool is_net_admin; /* the helper gets CAP_NET_ADMIN, too */
	int gateway_fd;    /* any socket of the gateway */
};

/*
 * uplink_keeper_start - make the tap device in the gateway, then run the helper below the user
 * namespace that owns the gateway.
 *
 * The helper finds the gateway's network namespace as /proc/self/fd/0; it has no other descriptor,
 * an empty environment, and CAP_SYS_ADMIN over that user namespace.
 * Must not: be called before the id maps are written.
 * Fails:    EPERM when the caller is not the owner of the user namespace.  A later failure, also of
 *           execve(2), is reported by uplink_keeper_describe_exit().
 * Follows:  netdevice(7) SIOCGSKNS, ioctl_ns(2), setns(2), capabilities(7) "Ambient".
 */
int uplink_keeper_start(const struct uplink_keeper_spec *spec, struct uplink_keeper *out,
			struct cj_error *err);

/* Once pidfd is readable: "exit status 1: 'its last output'"; one line, printable. */
void uplink_keeper_describe_exit(struct uplink_keeper *k, char *out, size_t size);

/* Kills and reaps the keeper: afterwards none of its processes is left. */
void uplink_keeper_stop(struct uplink_keeper *k);

/* How a helper ended.  It reads packets of the jail, so its output is untrusted. */
#define UPLINK_EXIT_TAIL_MAX 512

struct uplink_exit {
	int code, status; /* as in siginfo_t: CLD_EXITED and the exit status, CLD_KILLED and ... */
	size_t size;
	char tail[UPLINK_EXIT_TAIL_MAX]; /* the end of its standard error */
};

/* Appends output; drops the oldest when `tail` is full. */
void uplink_exit_add_output(struct uplink_exit *w, const char *bytes, size_t size);

/* "exit status 1: 'the last useful line'"; printable. */
void uplink_exit_format(const struct uplink_exit *w, char *out, size_t size);

/* --- uplink_confine.c: each acts on the calling process and can't be undone ---------------- */

/*
 * uplink_join_owner - join the user namespace that owns the network namespace of this socket.
 *
 * Runs in: a child, which has every capability there afterwards.  A request to die
 * with the parent does not survive it.  Returns the network namespace.
 */
int uplink_join_owner(int sock_fd, struct cj_error *err);

/* Become the only user and group that the user namespace just joined maps.  Root has no id in
 * there, and the helper must not stay root outside. */
int uplink_become_mapped(struct cj_error *err);

/*
 * uplink_keep_capabilities - across the execve(2) of a helper: CAP_SYS_ADMIN (setns(2), and the
 * mounts pasta withdraws with), and CAP_NET_ADMIN if it is wanted (rtnetlink); no new ones.
 *
 * Attaching to the tap device needs no capability: the helper's user owns it.
 * Follows: capabilities(7) "Ambient": our id is not 0 in there.
 */
int uplink_keep_capabilities(bool is_net_admin, struct cj_error *err);

/*
 * uplink_enter_root - make the file system that a helper sees, and move into it: programs and
 * libraries, read-only, and three devices.
 *
 * A helper parses packets of the jail, and keeps CAP_SYS_ADMIN over the gateway's user namespace
 * while it does.  A compromised helper must not reach the caller's account: it sees no home
 * directory, no socket of a daemon and no process of the host.
 * Runs in:  the keeper, in a mount namespace of its own, with CAP_SYS_ADMIN over it.
 * `path` is the helper's executable; its directory is visible, too.
 * Follows:  mount_namespaces(7), pivot_root(2), mount_setattr(2).
 */
int uplink_enter_root(const char *path, struct cj_error *err);

/*
 * uplink_make_tap - join the network namespace and make the tap device LINK_UPLINK there: down,
 * without carrier, for this user alone.  A device that an earlier helper left is taken as it is.
 *
 * If a helper made the device, its end would remove the device, and wait 25 to 40 ms for that.
 * This one is persistent: the helper's end only takes away its carrier.  The kernel removes it with
 * the gateway's network namespace, in a worker.
 * Runs in:  a process that ends soon, because it can't leave that namespace again.
 * Fails:    EBUSY while a helper is attached.  EACCES, EPERM or ENOENT: this user can't open
 *           /dev/net/tun, so the helper could not either.
 * Follows:  tun(4): Documentation/networking/tuntap.rst of the kernel; TUNSETIFF, TUNSETPERSIST.
 */
int uplink_make_tap(int netns_fd, struct cj_error *err);
