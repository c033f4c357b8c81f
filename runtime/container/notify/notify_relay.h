/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify_relay - tells the caller's service manager that the program is ready: sd_notify(3).
 *
 * A message to NOTIFY_SOCKET can name any process of the host as the main one, carry descriptors
 * and extend timeouts.  So the program does not get the caller's socket.  It gets one of ours,
 * "notify" of the state directory, at NOTIFY_RELAY_PATH.  Of what arrives there, only the first
 * READY=1 is passed on, in a message that we write.  Everything else is read and ignored, and a
 * message with descriptors or of more than NOTIFY_RELAY_TEXT_MAX bytes as a whole.
 *
 *	run in the foreground    run itself passes it on: it is the service's main process
 *	create, run --detach     a process that ends with the container; it adds MAINPID=, the
 *	                         container's init
 *
 * That process has no capability, no stream and no descriptor but three: the two sockets, and the
 * pidfd of init.  If config.json sets NOTIFY_SOCKET itself, the engine has its own relay.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/call/oci_options.h"
#include "runtime/container/config/oci_config.h"
#include "runtime/container/state/state.h"

#define NOTIFY_RELAY_PATH "/run/notify/notify.sock"

struct notify_relay {
	int manager_fd; /* connected to the caller's NOTIFY_SOCKET; -1: there is no relay */
	int program_fd; /* receives the program's messages */
	char *source;   /* the path of the socket on the host: PATH_MAX bytes */
	pid_t main_pid; /* for MAINPID=; 0: not sent */
	enum { NOTIFY_NOT_READY, NOTIFY_READY, NOTIFY_SENT } progress;
};
#define NOTIFY_RELAY_NULL ((struct notify_relay){ .manager_fd = -1, .program_fd = -1 })
void notify_relay_close(struct notify_relay *r);

/*
 * notify_relay_plan - connect to NOTIFY_SOCKET of our environment, and add the mount and the
 * variable to the configuration.
 *
 * Without the variable, or with one in config.json, it does nothing, and neither do the calls
 * below.  So it is without a service manager at the socket: then the log has a warning.
 */
int notify_relay_plan(struct notify_relay *r, const struct oci_options *o,
		      struct oci_config *config, struct arena *a, struct cj_error *err);

/* Makes the socket, which becomes the source of that mount. */
int notify_relay_bind(struct notify_relay *r, const struct state *s, struct cj_error *err);

/* Starts the process.  It owns the sockets then. */
int notify_relay_start(struct notify_relay *r, pid_t init_pid, int init_pidfd,
		       struct cj_error *err);

/*
 * notify_relay_wait - pass on READY=1 until `fd` is readable.
 *
 * It reads at most 320 messages per second, so that a program that floods the socket takes no CPU
 * time outside of its cgroup.  The sender blocks meanwhile: unix(7).
 */
void notify_relay_wait(struct notify_relay *r, int fd);

/* --- the messages of sd_notify(3), from an untrusted program and to the service manager ------- */

#define NOTIFY_RELAY_TEXT_MAX 4096 /* of a message that is read; a longer one is ignored */
#define NOTIFY_RELAY_SENT_MAX 64   /* of one that is sent, with its NUL */

/* True if one of the lines is "READY=1".  A message with a NUL byte says nothing. */
bool notify_relay_is_ready(const char *text, size_t size);

/* "READY=1", and with a pid above 0 also "MAINPID=PID".  Returns the length. */
size_t notify_relay_format(pid_t main_pid, char out[static NOTIFY_RELAY_SENT_MAX]);
