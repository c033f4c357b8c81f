/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_parts - the parts of plan_make(); only its files include this.
 */
#pragma once

#include "profiles/plan/plan.h"

/* What plan_make() works on: the request, and the answer as far as it has come. */
struct planner {
	struct config *c;
	const struct invocation *inv;
	struct plan plan;
	struct program program;
};

/* plan.c: appends the text to a list.  Fails: ENOMEM, also if the text is NULL for this reason. */
int plan_add(struct planner *p, struct strings *to, const char *text, struct cj_error *err);

/* plan_image.c: the root of --rootfs, and what an image adds to the program. */
int plan_layers(struct planner *p, struct cj_error *err);
int plan_image_env(struct planner *p, struct cj_error *err);
int plan_image_workdir(struct planner *p, struct cj_error *err);
int plan_image_command(struct planner *p, struct cj_error *err);

/* plan_program.c: code, command line, environment, arguments as data. */
int plan_code(struct planner *p, struct cj_error *err);
int plan_argv(struct planner *p, struct cj_error *err);
int plan_env(struct planner *p, struct cj_error *err);
int plan_args_json(struct planner *p, struct cj_error *err);

/* plan_tools.c: what the program may call. */
int plan_tools(struct planner *p, struct cj_error *err);

/* plan_interpreter.c: the variables that pass the jail's limits to the profile's interpreter. */
int plan_interpreter_env(struct planner *p, struct cj_error *err);
/* Where pip installs, and "python": after plan_env. */
int plan_python_home(struct planner *p, struct cj_error *err);
/* The text with the jail's limits in the place of {heap_mb} and {cpus}; NULL: no memory. */
const char *plan_put_limits(struct config *c, const char *text);

/* plan_venv.c: --venv and --project; after plan_env, before plan_places. */
int plan_venv(struct planner *p, struct cj_error *err);

/* plan_places.c: everything that lands somewhere in the jail; after plan_code. */
int plan_places(struct planner *p, struct cj_error *err);

/* plan_places.c: what is copied out besides /box/out; after plan_places. */
int plan_artifacts(struct planner *p, struct cj_error *err);
int plan_value(struct planner *p, struct cj_error *err);

/* plan_network.c: the network, and the end points that are ports. */
int plan_network(struct planner *p, struct cj_error *err);
bool plan_is_tcp(const char *connect); /* a --connect of this kind, not a socket's path */

/*
 * exposure.c: what a host path that is shown in a jail hands to the program: sockets that control
 * the host, agents with keys, home directories.  A warning, no isolation: the list has common
 * paths only.
 */
struct exposure_caller {
	const char *home;      /* HOME in the caller's environment; NULL: unknown */
	const char *ssh_agent; /* SSH_AUTH_SOCK */
};

/*
 * exposure_check - say what `source` (absolute, without links, there) hands the program.
 *
 * Adds at most one sentence to *warnings, which begins with `option`.  A path matches by its text,
 * by being the same file as a listed path, and by a listed socket below it.
 * Fails: with `strict`, where a socket that controls the host is handed out.
 */
int exposure_check(const char *option, const char *source, const struct exposure_caller *caller,
		   bool strict, struct arena *a, struct strings *warnings, struct cj_error *err);

/* The jail's own places. */
#define PLACE_BOX       "/box"
#define PLACE_TMP       "/tmp"
#define PLACE_OUT       "/box/out"
#define PLACE_ARGS_JSON "/box/args.json"
