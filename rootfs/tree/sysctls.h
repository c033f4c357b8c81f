/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sysctls - kernel parameters of the namespaces that this process is in.
 *
 * They are written through a procfs of our own that is attached nowhere, so that no mount below
 * a container's /proc can redirect a write.  proc(5)
 */
#pragma once

#include "runtime/base/error.h"

/* The namespace that a parameter belongs to. */
enum sysctl_namespace { SYSCTL_IPC, SYSCTL_NET, SYSCTL_USER, SYSCTL_UTS, SYSCTL_NAMESPACES };

struct sysctl {
	const char *name; /* with dots: "net.ipv4.ip_forward" */
	const char *path; /* below /proc/sys: "net/ipv4/ip_forward" */
	const char *value;
	enum sysctl_namespace space;
};

/* The host's namespaces, whose parameters a container must not change. */
struct sysctl_host {
	ino_t spaces[SYSCTL_NAMESPACES];
};

/* Runs in: the runtime, before clone3(2) and setns(2). */
int sysctls_look_at_host(struct sysctl_host *out, struct cj_error *err);

/*
 * sysctls_write - write all, in order.
 *
 * Runs in:  the container's init, in the namespaces that the parameters belong to, with
 *           capabilities over them, before pivot_root(2).
 * Fails:    EINVAL when a parameter's namespace is the host's; then nothing is written.
 */
int sysctls_write(const struct sysctl *items, size_t count, const struct sysctl_host *host,
		  struct cj_error *err);
