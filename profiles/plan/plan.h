/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan - the jail's shape and this run's program, resolved and checked.
 *
 * plan_make() is where everything that can be decided beforehand is decided; the
 * engine only carries it out.  A plan can be used for many jails (a warm pool); a
 * program is one run's.  Both point into the arena of the config they came from.
 */
#pragma once

#include "profiles/config.h"
#include "runtime/kernel/seccomp/policy.h"
#include "rootfs/files/own_file.h"
#include "rootfs/image/image_store.h"
#include "rootfs/rootfs.h"
#include "runtime/base/json/json.h"

#define PLAN_ID_MAX 33 /* a ULID is 26 characters; --id may be a name of 32 */

/* What the program may call: cejail-tools(7). */
#define TOOL_NAME_MAX 128
struct tool_list {
	struct strings names;   /* in the caller's order */
	struct strings exports; /* of tools.mjs: names of servers and of tools without one */
	const char *catalogue;  /* tools.json, as the program gets it */
	size_t catalogue_size;
};

/* --setup: a command that runs before the program, in the same jail. */
struct setup_spec {
	const char *command; /* for the shell; NULL: there is none */
	uint64_t wall_ms;
	/* The network of the plan is the command's own; then the program gets these. */
	bool has_network;
	struct network_lists lists;
};

struct plan {
	const char *profile_name;
	const char *profile_sha256;
	struct rootfs_spec root;
	const struct image_record *image; /* whose layers the root has; NULL: it is no image */
	struct limits_spec limits;
	struct network_spec network;
	struct setup_spec setup;
	const struct policy *policy; /* the seccomp file, parsed; NULL: the built-in filter */
	struct strings warnings;     /* what the binds hand the program, a sentence each */
	const char *cgroup_parent;   /* NULL: found */
	bool strict;
	bool reduced; /* no namespaces: cejail(1), REDUCED JAILS */
	bool tty;
	bool is_ahead;    /* of a pool: built before there is a program for it */
	bool is_divided;  /* init has a child of the jail's cgroup: plan_divide() */
	bool uses_zygote; /* for jail_warm(): init keeps descriptors of its namespaces */
};

/* The jail may become a session, whose execs have cgroups of their own and whose network may
 * change. */
static inline void plan_divide(struct plan *p)
{
	p->is_divided = true;
	p->network.is_live = true;
}

enum code_source { CODE_NONE, CODE_FILE, CODE_STRING, CODE_STDIN };

/* A copy into the jail: SRC on the host, or bytes that came with the request; DST inside. */
struct copy_spec {
	const char *source; /* NULL: the bytes */
	bool is_stdin;      /* standard input to its end; `source` is "-" */
	const char *target;
	enum own_file own; /* its bytes come first */
	const void *bytes; /* borrowed */
	size_t size;
	bool is_executable; /* the bytes; a file of the host has its own mode */
};

#define TOOL_FILES 3 /* tools.json, tools.py, tools.mjs */

struct program {
	char id[PLAN_ID_MAX];
	struct strings argv;       /* {file} and {args} already in place */
	struct strings env;        /* the whole environment, sorted as given, one per name */
	struct strings env_copied; /* names whose value is the caller's: --env NAME */
	struct run_limits limits;
	const char *workdir;
	enum code_source code_source;
	const char *code_name; /* the caller's name of it: the file's path, "-c", "-" */
	const char *code_text; /* CODE_STRING: its bytes, whatever they are */
	size_t code_size;
	const char *code_path; /* where it lands: "/box/main.py" */
	bool own_interpreter;  /* a "#!" line of the code replaces what argv has before it */
	bool strips_types;     /* Node.js is asked to run TypeScript */
	const char *args_json; /* JSON text, or "@FILE"; lands as /box/args.json */
	const struct copy_spec *files;
	size_t nfiles;
	const struct tool_list *tools;           /* NULL: it can call none */
	struct copy_spec tool_files[TOOL_FILES]; /* what it needs for that, in /box */
	const char *script;            /* a launcher's; it reads it from descriptor 3; or NULL */
	bool interactive;              /* payload's stdin is the caller's, else /dev/null */
	struct strings artifact_paths; /* absolute, in the jail; copied out, too */
	bool collects_changed;         /* of /box/out only what changed since its start */
	const char *value_path;        /* of the return value: absolute, in the jail; NULL: none */
	bool collect_artifacts;        /* copy /box/out out at the end */
};

/* What the command line (or a request) adds to the settings. */
struct invocation {
	const char *file;           /* FILE operand, "-" for stdin, or NULL */
	const char *const *args;    /* what follows it; NULL-terminated */
	bool is_command;            /* "--": args is CMD and its arguments, file is NULL */
	bool is_image_command;      /* nothing is named: the image of --rootfs has a command */
	bool use_shell;             /* cejail shell: the profile's "shell" */
	const char *const *environ; /* the caller's, for --env NAME */
	bool has_stdin;             /* standard input is the caller's, for --file - */
	/* A request's, beside --file and --artifacts; targets as there. */
	const struct copy_spec *copies;
	size_t ncopies;
	bool keeps_artifacts;
	const char *tools_json; /* a request's "tools", or those of --tools-from; NULL: none */
};

/*
 * plan_make - decide everything; look at the host only to resolve paths.
 *
 * Fails: a message that names the setting and the remedy, for all that excludes or requires
 * something else (one table in plan.c), for sources that do not exist or are symbolic links,
 * targets that are not absolute or lie under /proc, /dev, /sys, sizes that cannot work.
 */
int plan_make(struct config *c, const struct invocation *inv, struct plan *out_plan,
	      struct program *out_program, struct cj_error *err);

/* The network alone, as plan_make() makes it, for a front that makes the rest itself. */
int plan_network_alone(struct config *c, struct network_spec *out, struct cj_error *err);

/*
 * plan_launcher - the profile's own interpreter with a launcher of ours, for jail_warm().
 * Where it has none, or its command is for something else, *out has no arguments (argv.count 0).
 * Its script is not among its arguments, where every list of processes would show it.
 */
int plan_launcher(struct config *c, const struct plan *plan, struct program *out,
		  struct cj_error *err);

/* Does the profile ask for a zygote, and has it a launcher that can be one? */
bool plan_wants_zygote(const struct config *c);

/*
 * plan_zygote - the same for a fork of a zygote, which has the script already.
 * Fails: where plan_wants_zygote() is false; for a variable in the environment that would make the
 * interpreter load code from somewhere else outside of the jail than inside.
 */
int plan_zygote(struct config *c, const struct plan *plan, struct program *out,
		struct cj_error *err);
/* Adds what the zygote itself, which is outside of the jail, has besides: the script, and in its
 * environment. */
int plan_zygote_outside(struct config *c, struct program *zygote, struct cj_error *err);

/* Has the profile an interpreter that can run the cells of a session? */
bool plan_has_repl(const struct config *c);

/*
 * plan_repl - the profile's own interpreter with our REPL, for a session with "context": "repl".
 *
 * It is started like a program, with a socket as descriptor 3; the caller sends out->script on it
 * before the start.  Fails (EINVAL, with a remedy): where plan_has_repl() is false.
 */
int plan_repl(struct config *c, const struct plan *plan, struct program *out, struct cj_error *err);

/* What {file} is called inside, for this file of the caller's (NULL: none).  NULL: no memory. */
const char *plan_code_name(const struct config *c, const char *file, struct arena *a);

/* Is this --file standard input: "-" or "-:DST"? */
bool plan_is_stdin(const char *file);

/*
 * tool_list_read - the tools that an array, or an object with the array "tools", describes.
 *
 * `file`: its name for messages.  *out points into `a`.
 * Fails: EINVAL with the place for a tool without a name, a name twice, a name that is none.
 */
int tool_list_read(const char *file, const struct json_node *root, struct arena *a,
		   struct tool_list *out, struct cj_error *err);
/* The same for the file of --tools, or without it for `text`, the "tools" of a request.  *out
 * points into c->arena. */
int plan_read_tools(struct config *c, const char *text, struct tool_list *out,
		    struct cj_error *err);
/* The index of the name, or names.count. */
size_t tool_list_find(const struct tool_list *tools, const char *name);

/* --file-text: the target, normalised, and the bytes. */
int plan_file_text(const char *text, struct arena *a, struct copy_spec *out, struct cj_error *err);

/*
 * plan_read_args - read and check --args-json, which may be a file.
 *
 * *out_text becomes NULL if there is none; else *out_root is its value.  Both live in c->arena.
 */
int plan_read_args(struct config *c, const char **out_text, const struct json_node **out_root,
		   struct cj_error *err);

/* --file -:DST: the target, normalised. */
int plan_stdin_target(const char *text, struct arena *a, const char **out, struct cj_error *err);

/* Is this --rootfs the name of an image, not "host" and not directories? */
bool plan_names_image(const char *rootfs);

/* Only what excludes what; for a run that takes place elsewhere. */
int plan_check(struct config *c, const struct invocation *inv, struct cj_error *err);

/* The whole plan as JSON (--dry-run). */
void plan_write(struct json_writer *w, const struct plan *plan, const struct program *program);

/* A new run id: a ULID, 26 characters of Crockford's base 32, time first. */
int plan_mint_id(char out_id[static PLAN_ID_MAX], struct cj_error *err);
