/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor - the checks of this host.  A finding has a level, one sentence, and the command that
 * fixes the problem.
 *
 * A check is a row of checks[] in doctor.c.  It tries the feature itself, in a child process if
 * that changes anything.  It uses a version number only for what cannot be tried.
 */
#pragma once

#include "runtime/base/error.h"

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

/* The functions of checks[]; the second kind receives the `what` of its row. */
typedef void doctor_check(struct finding *f);
typedef void doctor_check_of(struct finding *f, const void *what);

/* --- doctor_place.c: where cejail runs, on which the remedies depend ------------------- */

enum place_kind {
	PLACE_HOST,
	PLACE_SERVICE, /* of the system's service manager */
	PLACE_WSL,     /* version 2 */
	PLACE_DOCKER,  /* from here on: containers */
	PLACE_PODMAN,
	PLACE_KUBERNETES,
	PLACE_LXC,
	PLACE_CONTAINER, /* of another kind */
	PLACE_COUNT
};

#define PLACE_UNIT_MAX 128

struct doctor_place {
	enum place_kind kind;
	char unit[PLACE_UNIT_MAX]; /* with PLACE_SERVICE: its name */
	bool is_root, has_cgroup2, has_user_manager;
};

/* The facts that tell the kinds of places apart. */
struct place_facts {
	bool has_dockerenv, has_containerenv, has_kubernetes, has_lxc;
	const char *container; /* the variable `container`, or what systemd made of it, or NULL */
	const char *release;   /* of the kernel, or NULL */
	const char *cgroup;    /* text of /proc/self/cgroup, or NULL */
};

void place_find(struct doctor_place *out);
/* No system calls. */
void place_classify(const struct place_facts *facts, struct doctor_place *out);

/* A prefix for remedies that change the kernel, which a container cannot do; "" on a host. */
const char *place_where_kernel(const struct doctor_place *p);

/* What may be missing: a row of remedies[]. */
enum remedy {
	REMEDY_NONE,
	REMEDY_USERNS_OFF,
	REMEDY_USERNS_USERS,
	REMEDY_USERNS_MANY,
	REMEDY_SANDBOX,
	REMEDY_IDS,
	REMEDY_CHROOT,
	REMEDY_FILTER,
	REMEDY_KERNEL,
	REMEDY_UNKNOWN, /* a refusal without a known cause */
	REMEDY_PROC,
	REMEDY_OVERLAY,
	REMEDY_SECCOMP,
	REMEDY_LISTENER,
	REMEDY_LANDLOCK,
	REMEDY_RULES,
	REMEDY_VETH,
	REMEDY_TUN,
	REMEDY_COUNT
};

/* Sets the command or the sentence that provides it in this place. */
void place_remedy(const struct doctor_place *p, enum remedy which, struct finding *f);
void place_remedy_cgroup(const struct doctor_place *p, struct finding *f);
/* The same for the place where this process runs. */
void finding_remedy_here(struct finding *f, enum remedy which);

/* --- doctor_probe.c: tries something in a child process with its own namespaces -------- */

enum probe_stage { PROBE_DONE, PROBE_CLONE, PROBE_MAP, PROBE_CALL, PROBE_BROKEN };
struct probe_result {
	enum probe_stage stage; /* where the child ended */
	int code;               /* errno there; 0 with PROBE_DONE */
	char msg[512];          /* of PROBE_MAP and PROBE_BROKEN */
};
/* Creates CLONE_NEWUSER and `namespaces`, and calls `run` there, as the user of a jail with all
 * capabilities.  `run` returns 0 or an errno. */
struct probe_result probe_inside(unsigned namespaces, int (*run)(void));

/* A check that is one probe: the `what` of check_trial(). */
struct trial {
	unsigned namespaces;
	int (*run)(void);
	const char *good;
	enum finding_level level; /* if it fails */
	const char *bad, *rest;   /* the text is bad, the error, rest */
	const char *if_busy;      /* in the place of the error EBUSY; NULL: none */
	const char *refused;      /* bad, if refusal.h knows the cause; NULL: do not ask it */
	enum remedy remedy;
};
doctor_check_of check_trial;
doctor_check_of check_by_loader; /* the same, with a process that loads rules and makes links */

/* What is tried: doctor_kernel.c, doctor_network.c. */
int try_tmpfs(void);
int try_overlay(void);
int try_filter(void);
int try_listener(void);
int try_hostname(void);
int try_rules(void);
int try_links(void);

/* --- the other checks --------------------------------------------------------------------- */

/* doctor_kernel.c */
doctor_check check_kernel, check_user_namespaces, check_proc, check_landlock, check_no_new_privs;

/* Sets the finding if refusal.h knows the cause of this error.  False: it does not. */
bool check_refusal(struct finding *f, const char *what, int code);

/* The remedy is the AppArmor profile of this program: the command that loads it, or where to
 * install the program. */
void finding_remedy_apparmor(struct finding *f, const struct doctor_place *place);

/* doctor_host.c */
doctor_check check_cgroup_parent, check_dev_null, check_runtime_dir, check_whole_jail,
    check_reduced_jail;
doctor_check_of check_controller;  /* what: enum cgroup_controller */
doctor_check_of check_interpreter; /* what: const char *const [2]: its name, its package */

/* Makes a jail of this config and runs `true` in it. */
struct config;
struct outcome;
int doctor_try_jail(struct config *c, struct outcome *out, struct cj_error *err);

/* doctor_network.c */
doctor_check check_forwarding, check_host_firewall, check_tun, check_apparmor, check_public_network;
doctor_check_of check_helper; /* what: enum uplink_kind */
