/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup_text - what /proc/self/mountinfo, /proc/self/cgroup and the files of a
 * cgroup say.  No system calls.  Malformed lines are skipped, so a
 * malformed file means that the host has no cgroup to use.
 */
#pragma once

enum cgroup_controller { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_CONTROLLER_COUNT };

extern const char *const cgroup_controller_names[CGROUP_CONTROLLER_COUNT];

#define CGROUP_PATH_MAX 448 /* so that "/cejail-ID" still fits in struct cgroup */

/* A leaf is called "cejail-ID". */
#define CGROUP_LEAF_PREFIX "cejail-"

/*
 * What may follow the prefix: 1 to 32 of [A-Za-z0-9_-], nothing that leads elsewhere in a path; and
 * not "supervisor": that leaf is our own (cgroup_tree.h).
 */
bool cgroup_text_is_leaf_id(const char *id);

/* The id in the last component of a path or name; NULL: it is not a leaf's. */
const char *cgroup_text_leaf_id(const char *path);

/* The child to which the processes of a leaf's parent move (cgroup_tree.h). */
#define CGROUP_SUPERVISOR_LEAF "cejail-supervisor"

/* The children of a session's leaf: init's, and "eN" for each exec (session/session_cgroup.c). */
#define CGROUP_INIT_LEAF   "init"
#define CGROUP_EXEC_PREFIX "e"
bool cgroup_text_is_child(const char *name);

/* Cuts the last component of `path` if it is that child's name. */
void cgroup_text_leave_supervisor(char *path);

struct cgroup_mount {
	char point[CGROUP_PATH_MAX]; /* "": no cgroup v2 is mounted */
	char
	    root[CGROUP_PATH_MAX]; /* the cgroup that is mounted there, as our namespace names it */
};

/* The cgroup2 mount: on /sys/fs/cgroup, else on /sys/fs/cgroup/unified, else the first. */
void cgroup_text_mount(const char *mountinfo, struct cgroup_mount *out);

/* Of /proc/self/cgroup. */
struct cgroup_self {
	char path[CGROUP_PATH_MAX];          /* in the unified hierarchy; "": not in one */
	bool on_v1[CGROUP_CONTROLLER_COUNT]; /* a v1 hierarchy has the controller */
};
void cgroup_text_self(const char *text, struct cgroup_self *out);

/* The directory of cgroup `path` in the mount; false: it is outside, deleted, or too long. */
bool cgroup_text_locate(const struct cgroup_mount *mount, const char *path,
			char out[static CGROUP_PATH_MAX]);

/* The number behind "key " at the beginning of a line (memory.events, cpu.stat, ...). */
bool cgroup_text_value(const char *text, const char *key, uint64_t *out);

/* Digits up to one of `ends` or to the end: where they end, or NULL. */
const char *cgroup_text_digits(const char *at, const char *ends, uint64_t *out);

/* A file that is one number ("max" and anything else: false). */
bool cgroup_text_number(const char *text, uint64_t *out);

/* Is `word` in a list of words divided by blanks (cgroup.controllers)? */
bool cgroup_text_has_word(const char *text, const char *word);

/* The whole lines of cgroup.procs that are numbers; how many were stored. */
size_t cgroup_text_pids(const char *text, pid_t *out, size_t max);
