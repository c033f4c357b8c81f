/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor - what a check of the host finds: how bad, one sentence, the command that
 * mends it.  A check is a row of checks[] in doctor.c; it looks by doing, in a child
 * where it changes anything, and never guesses from a version what it can try.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum finding_level {
	FINDING_OK,
	FINDING_NOTE,    /* worth knowing; no jail is weaker for it */
	FINDING_WEAKER,  /* a jail is possible, something is not at its best */
	FINDING_MISSING, /* no jail is possible */
	FINDING_LEVEL_COUNT
};

struct finding {
	enum finding_level level;
	char text[512];
	char remedy[768]; /* a command, or a sentence where no command can help; "" if none */
};

void finding_set(struct finding *f, enum finding_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void finding_remedy(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* doctor_kernel.c */
void check_kernel(struct finding *f);
void check_user_namespaces(struct finding *f);
void check_mounts(struct finding *f);
void check_proc(struct finding *f);
void check_overlay(struct finding *f);
void check_seccomp(struct finding *f);
void check_syscall_report(struct finding *f);
void check_landlock(struct finding *f);
void check_no_new_privs(struct finding *f);

/* doctor_host.c */
void check_cgroup_parent(struct finding *f);
void check_cgroup_memory(struct finding *f);
void check_cgroup_cpu(struct finding *f);
void check_cgroup_pids(struct finding *f);
void check_dev_null(struct finding *f);
void check_runtime_dir(struct finding *f);
void check_python(struct finding *f);
void check_node(struct finding *f);
void check_whole_jail(struct finding *f);

/* Makes a jail of this config and runs `true` in it. */
struct config;
struct outcome;
struct cj_error;
int doctor_try_jail(struct config *c, struct outcome *out, struct cj_error *err);

/* doctor_network.c */
void check_nf_tables(struct finding *f);
void check_veth(struct finding *f);
void check_forwarding(struct finding *f);
void check_host_firewall(struct finding *f);
void check_tun(struct finding *f);
void check_pasta(struct finding *f);
void check_slirp4netns(struct finding *f);
void check_apparmor(struct finding *f);
void check_public_network(struct finding *f);

/* doctor_probe.c: what a child in namespaces of its own can do. */
enum probe_stage { PROBE_DONE, PROBE_CLONE, PROBE_MAP, PROBE_CALL, PROBE_BROKEN };
struct probe_result {
	enum probe_stage stage; /* where it ended */
	int code;               /* errno there; 0 with PROBE_DONE */
	char msg[512];          /* of PROBE_MAP and PROBE_BROKEN */
};
/* CLONE_NEWUSER and `namespaces`; `run` returns 0 or an errno, as the jail's user with every
 * capability there. */
struct probe_result probe_inside(unsigned namespaces, int (*run)(void));

/* A probe that did not come to its call was told by check_user_namespaces. */
bool probe_could_not_run(struct finding *f, const struct probe_result *r);

/* A line of /proc/self/status, as a number; -1: there is none. */
long probe_status_number(const char *field);
