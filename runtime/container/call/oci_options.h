/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oci_options - the command line of cejail-oci: global options, a verb, its options, operands.
 *
 * "--name=value", "--name value", "-n value"; names cannot be abbreviated.  Global options stand
 * before the verb.  Options and operands of a verb may be mixed, as crun accepts them, except for
 * exec: there the first operand, the id, ends the options.  "--" ends them everywhere.
 */
#pragma once

#include "runtime/base/arena.h"
#include "runtime/base/error.h"
#include "runtime/container/config/oci_resources.h"

enum oci_verb_id {
	OCI_CREATE,
	OCI_START,
	OCI_STATE,
	OCI_KILL,
	OCI_DELETE,
	OCI_RUN,
	OCI_EXEC,
	OCI_LIST,
	OCI_PS,
	OCI_PAUSE,
	OCI_RESUME,
	OCI_UPDATE,
	OCI_EVENTS,
	OCI_FEATURES,
	OCI_SPEC,
	OCI_VERB_COUNT
};

#define OCI_OPERANDS_MAX  4096 /* a command line of exec */
#define PRESERVED_FDS_MAX 1024 /* more descriptors than RLIMIT_NOFILE usually allows */

/* Texts are borrowed from the arguments; NULL or an empty list: not given. */
struct oci_options {
	/* global */
	const char *root; /* the directory of the states; NULL: state.h's default */
	const char *log;  /* a file for messages; NULL: standard error alone */
	const char
	    *result_dir;    /* of the annotation io.cejail.result; NULL: oci_result.h's default */
	bool is_log_json;   /* --log-format=json */
	bool uses_systemd;  /* --systemd-cgroup, or --cgroup-manager=systemd */
	bool has_no_cgroup; /* --cgroup-manager=disabled */
	bool is_debug;      /* --debug: a line for each step, oci_log_debug() */
	bool wants_help, wants_version;

	enum oci_verb_id verb;
	const char *id;          /* the first operand, of verbs that take one */
	struct strings operands; /* those behind the id: a signal, a command */

	/* create, run */
	const char *bundle;         /* NULL: the working directory */
	const char *config;         /* a file in the bundle; NULL: config.json */
	const char *pid_file;       /* also exec; relative to the caller's directory */
	const char *console_socket; /* also exec */
	bool no_new_keyring;
	bool is_detached;      /* also exec */
	bool keep;             /* run: do not delete at the end */
	uint64_t preserve_fds; /* also exec */

	bool all;   /* kill */
	bool force; /* delete */

	/* exec: what replaces parts of the container's process */
	const char *process; /* a process.json */
	const char *user, *cwd, *apparmor, *process_label;
	bool wants_tty, no_new_privs, ignore_paused;
	struct strings env, caps, additional_gids;
	const char *cgroup; /* a subcgroup */

	/* list, ps: "table" or "json" */
	bool is_json, is_quiet;

	/* update */
	const char *resources;       /* a file; "-": standard input */
	struct oci_resources limits; /* those that are given by option */
	bool has_limits;

	/* events */
	bool stats_once;
	const char *interval;

	bool rootless; /* spec */
};

/*
 * oci_options_parse - the arguments behind the program's name, NULL-terminated.
 *
 * On failure *out has what was read before the error, so that the global --log applies to it.
 * Lists and nothing else live in `a`.
 */
int oci_options_parse(const char *const *args, struct arena *a, struct oci_options *out,
		      struct cj_error *err);

/* "create" */
const char *oci_options_verb(enum oci_verb_id verb);

/* The text of --help: of the verb, or with OCI_VERB_COUNT of the program. */
void oci_options_print_help(enum oci_verb_id verb);
