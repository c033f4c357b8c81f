/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdt - linux.intelRdt: a container's class of service in the resctrl file system.
 *
 * A class is a directory with the files "schemata" (shares of cache and memory bandwidth) and
 * "tasks" (pids).  A child of a task is in its parent's class, so each process that enters the
 * container from outside is written there.  Follows: Documentation/filesystems/resctrl.rst.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/config/oci_linux.h"

#define RDT_NAME_MAX 256

/* In the container's record, written before anything is made.  Empty: there is none. */
struct rdt_record {
	char class_name[RDT_NAME_MAX];       /* a directory of the file system */
	char monitor[2 * RDT_NAME_MAX + 16]; /* a monitoring group below it */
	bool is_made;                        /* the class, by us */
	bool is_shared;                      /* by closID: others may have joined it */
};

/* The mounted resctrl file system.  ENOENT without one, with the remedy. */
int rdt_open(struct cj_error *err);

/*
 * rdt_plan - which class the container will have.  Changes nothing.
 *
 * Without closID it is the container's id, and new.  Fails: ENOENT for a closID without schemata
 * that does not exist; EEXIST for an id that does.
 */
int rdt_plan(int root_fd, const struct oci_rdt *config, const char *id, struct rdt_record *out,
	     struct cj_error *err);

/*
 * rdt_make - make the directories and write the schemata.
 *
 * Another container may have made the class of a closID since rdt_plan(): then r->is_made becomes
 * false.
 * Fails: EINVAL when a class that exists has other schemata, or the kernel takes none of these.  A
 *        part may stay, for rdt_remove().
 */
int rdt_make(int root_fd, const struct oci_rdt *config, struct rdt_record *r, struct cj_error *err);

/* Puts a process into the class and its monitoring group. */
int rdt_join(int root_fd, const struct rdt_record *r, pid_t pid, struct cj_error *err);

/* The same for the record's container; without a class it does nothing. */
int rdt_join_recorded(const struct rdt_record *r, pid_t pid, struct cj_error *err);

/*
 * rdt_remove - remove what rdt_make() made; that it is gone is success.
 *
 * A shared class with a process stays.  Without a class it does nothing.
 */
int rdt_remove(int root_fd, const struct rdt_record *r, struct cj_error *err);
int rdt_remove_recorded(const struct rdt_record *r, struct cj_error *err);
