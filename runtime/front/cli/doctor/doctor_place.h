/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_place - where cejail runs: on a host, in a container, or in a system service.  The
 * remedies differ.  place_find() acts; place_classify() and the remedies are pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PLACE_UNIT_MAX 128

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

struct place {
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

void place_find(struct place *out);
void place_classify(const struct place_facts *facts, struct place *out);

bool place_is_container(const struct place *p);

/* Is AppArmor enabled? */
bool place_has_apparmor(void);

/* How to provide a missing feature there: a command if there is one. */
void place_remedy_cgroup(const struct place *p, char *out, size_t size);
const char *place_remedy_filter(const struct place *p);
const char *place_remedy_proc(const struct place *p);
const char *place_remedy_tun(const struct place *p);
const char *place_remedy_landlock(const struct place *p);
const char *place_remedy_unknown(const struct place *p); /* of a refusal without a known cause */
void place_remedy_kernel(const struct place *p, char *out, size_t size);

/* A prefix for remedies that change the kernel, which a container cannot do; "" on a host. */
const char *place_where_kernel(const struct place *p);
