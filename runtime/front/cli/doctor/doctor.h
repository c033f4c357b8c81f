/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor - the checks of this host.  A finding has a level, one sentence, and the command that
 * fixes the problem.
 *
 * A check is a row of checks[] in doctor.c.  It tries the feature itself, in a child process if
 * that changes anything.  It uses a version number only for what cannot be tried.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum finding_level {
	FINDING_OK,
	FINDING_NOTE,    /* information: every jail has its full isolation */
	FINDING_WEAKER,  /* a jail is possible, but lacks something */
	FINDING_MISSING, /* no jail is possible */
	FINDING_LEVEL_COUNT
};

struct finding {
	enum finding_level level;
	char text[512];
	char remedy[768]; /* a command, or a sentence if no command helps; "" if none */
};

void finding_set(struct finding *f, enum finding_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void finding_remedy(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The remedy is the installation of this package, in the words of the distribution. */
void finding_remedy_package(struct finding *f, const char *package);

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
void check_hostname(struct finding *f);

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

/* doctor_probe.c: tries something in a child process with its own namespaces. */
enum probe_stage { PROBE_DONE, PROBE_CLONE, PROBE_MAP, PROBE_CALL, PROBE_BROKEN };
struct probe_result {
	enum probe_stage stage; /* where the child ended */
	int code;               /* errno there; 0 with PROBE_DONE */
	char msg[512];          /* of PROBE_MAP and PROBE_BROKEN */
};
/* Creates CLONE_NEWUSER and `namespaces`, and calls `run` there, as the user of a jail with all
 * capabilities.  `run` returns 0 or an errno. */
struct probe_result probe_inside(unsigned namespaces, int (*run)(void));

/* True: there was no user namespace, so the probe did not run.  check_user_namespaces() has the
 * reason; *f points there. */
bool probe_could_not_run(struct finding *f, const struct probe_result *r);

/* The number in a line of /proc/self/status; -1: there is no such line. */
long probe_status_number(const char *field);
