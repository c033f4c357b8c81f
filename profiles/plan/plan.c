/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what was asked for to what will be done.  It looks at the host, and changes nothing.
 *
 * plan_make() is a table of parts, each of which decides one thing; what excludes what is a second
 * table, checked before any part looks at the host.
 */
#include "profiles/plan/plan.h"

#include <sys/random.h>
#include <time.h>

#include "profiles/plan/plan_parts.h"
#include "runtime/kernel/ids/idmap.h"

#define INODE_BYTES 4096 /* one file or directory for this much of --disk */
#define INODES_MIN  1024
#define INODES_MAX  (1u << 20) /* an inode costs the kernel about a kilobyte */

int plan_add(struct planner *p, struct strings *to, const char *text, struct cj_error *err)
{
	if (!text || strings_add(to, &p->c->arena, text) < 0)
		return cj_fail(err, ENOMEM, "plan the jail");
	return 0;
}

enum wish {
	CODE,
	FILE_NAME,
	FROM_STDIN,
	COMMAND,
	SHELL,
	STDIN_FILE,
	INTERACTIVE,
	TTY,
	JSON_STDOUT,
	VERBOSE,
	QUIET,
	REMOTE,
	VENV,
	PROJECT,
	DRY_RUN,
	TOOLS,
	TOOLS_FROM,
	REQUEST_TOOLS,
	CALLS_SOCKET,
	TRACE_FILE,
	SETUP,
	STRICT,
	REDUCED,
	WISH_COUNT
};

static const struct exclusion {
	enum wish one, other;
	const char *why;
} exclusions[] = {
	{ CODE, FILE_NAME, "there is one program" },
	{ CODE, COMMAND, "there is one program" },
	{ FILE_NAME, COMMAND, "there is one program" },
	{ SHELL, CODE, "use cejail run" },
	{ SHELL, FILE_NAME, "use cejail run" },
	{ SHELL, COMMAND, "use cejail run" },
	{ FROM_STDIN, INTERACTIVE, "standard input can't be the program and its input" },
	{ FROM_STDIN, TTY, "standard input can't be the program and its terminal" },
	{ STDIN_FILE, FROM_STDIN, "standard input can't be a file and the program" },
	{ STDIN_FILE, INTERACTIVE, "standard input can't be a file and the program's input" },
	{ STDIN_FILE, TTY, "standard input can't be a file and the program's terminal" },
	{ JSON_STDOUT, TTY, "the terminal shows the program; use --json=FILE" },
	{ VERBOSE, QUIET, "choose one" },
	{ REMOTE, TTY, "a service has no terminal to give" },
	{ REMOTE, DRY_RUN, "the plan is the service's" },
	{ REMOTE, VENV, "the interpreters of a service start before the environment is known" },
	{ REMOTE, PROJECT, "the files are on this host" },
	{ REMOTE, SHELL, "a service has no terminal to give" },
	{ REMOTE, TOOLS_FROM, "only a run here starts servers: use --tools and --calls-fd" },
	{ TOOLS_FROM, TOOLS, "a program has one list of tools" },
	{ TOOLS_FROM, CALLS_SOCKET, "the servers answer the calls" },
	{ TOOLS_FROM, DRY_RUN, "only servers that are started list their tools" },
	{ TOOLS, REQUEST_TOOLS, "a program has one list of tools" },
	{ REMOTE, TRACE_FILE, "the service writes its own: trace_file in cejail-serve(8)" },
	{ DRY_RUN, TRACE_FILE, "nothing runs" },
	{ SETUP, TTY, "the terminal is the program's; use a session and its network" },
	{ REDUCED, STRICT, "without namespaces a jail lacks most layers" },
	{ REDUCED, TTY, "a terminal needs a file system of the jail's own; use pipes" },
	{ REDUCED, VENV, "no other directory of the host is shown; copy it in with --file" },
	{ REDUCED, PROJECT, "no other directory of the host is shown; copy it in with --file" },
	{ REDUCED, SETUP, "run the command as a program of its own" },
	{ REDUCED, REMOTE, "set 'reduced' in a profile of the service" },
	{ SETUP, REMOTE, "at a service, use a session and its network: cejail-session(1)" },
};

int plan_check(struct config *c, const struct invocation *inv, struct cj_error *err)
{
	bool has_stdin_file = false;
	for (size_t i = 0; i < c->files.count; i++)
		has_stdin_file |= plan_is_stdin(c->files.items[i]);
	const struct {
		const char *name; /* for the message */
		bool is_given;
	} wishes[WISH_COUNT] = {
		[CODE] = { "-c CODE", c->has_code },
		[FILE_NAME] = { "FILE", inv->file },
		[FROM_STDIN] = { "-", inv->file && strcmp(inv->file, "-") == 0 },
		[COMMAND] = { "-- CMD", inv->is_command },
		[SHELL] = { "cejail shell", inv->use_shell },
		[STDIN_FILE] = { "--file -", has_stdin_file },
		[INTERACTIVE] = { "--interactive", c->interactive },
		[TTY] = { "--tty", c->tty },
		[JSON_STDOUT] = { "--json", c->json && !c->json_file },
		[VERBOSE] = { "--verbose", c->verbose },
		[QUIET] = { "--quiet", c->quiet },
		[REMOTE] = { "--remote", c->remote },
		[VENV] = { "--venv", c->venv && strcmp(c->venv, "none") != 0 },
		[PROJECT] = { "--project", c->project },
		[DRY_RUN] = { "--dry-run", c->dry_run },
		[TOOLS] = { "--tools", c->tools },
		[TOOLS_FROM] = { "--tools-from", c->tools_from },
		[REQUEST_TOOLS] = { "the request's \"tools\"", inv->tools_json },
		[CALLS_SOCKET] = { "--calls-fd", c->calls_fd >= 0 },
		[TRACE_FILE] = { "--trace-file", c->trace_file },
		[SETUP] = { "--setup", c->setup },
		[STRICT] = { "--strict", c->strict },
		[REDUCED] = { "--reduced", c->reduced },
	};

	for (size_t i = 0; i < COUNT_OF(exclusions); i++) {
		const struct exclusion *e = &exclusions[i];
		if (wishes[e->one].is_given && wishes[e->other].is_given)
			return cj_reject(err, "'%s' and '%s' exclude each other: %s",
					 wishes[e->one].name, wishes[e->other].name, e->why);
	}
	return 0;
}

/* What a jail without namespaces can't keep; each is refused, nothing is left out silently. */
static int plan_reduced(struct planner *p, struct cj_error *err)
{
	const struct config *c = p->c;
	const struct {
		bool is_given;
		const char *what, *instead;
	} refusals[] = {
		{ c->network != NETWORK_NONE, "--network public", "add --network none" },
		{ c->connects.count > 0, "--connect", "use --tools for what the program may ask" },
		{ c->upstreams.count > 0, "--upstream",
		  "use --tools for what the program may ask" },
		{ c->ro_binds.count > 0, "--ro-bind", "copy it in with --file" },
		{ c->binds.count > 0, "--bind", "copy in with --file and out with --artifacts" },
		{ c->kept.count > 0, "--cache", "copy in with --file and out with --artifacts" },
		{ c->overlays.count > 0, "--overlay", "copy it in with --file" },
		{ c->tmpfs.count > 0, "--tmpfs", "use a directory in /box" },
		{ c->writable, "--writable", "use a directory in /box" },
		{ c->noexec, "--noexec", "leave it out: the directory has no mount of its own" },
		{ strcmp(c->rootfs, "host") != 0, "--rootfs", "use --rootfs host" },
		{ strcmp(c->seccomp, "default") != 0, "--seccomp", "use --seccomp default" },
	};
	for (size_t i = 0; c->reduced && i < COUNT_OF(refusals); i++) {
		if (!refusals[i].is_given)
			continue;
		cj_refuse(err, "'--reduced' has no '%s': it needs namespaces", refusals[i].what);
		return cj_hint(err, "%s", refusals[i].instead);
	}
	return 0;
}

static int plan_root(struct planner *p, struct cj_error *err)
{
	const struct config *c = p->c;
	bool is_host = strcmp(c->rootfs, "host") == 0;
	uint64_t inodes = c->limits.disk_bytes / INODE_BYTES;

	inodes = inodes < INODES_MIN ? INODES_MIN : inodes > INODES_MAX ? INODES_MAX : inodes;

	p->plan.root = (struct rootfs_spec){
		.kind = is_host ? ROOT_HOST : ROOT_LAYERS,
		.writable = c->writable,
		.noexec_scratch = c->noexec,
		.tty = c->tty,
		.scratch_bytes = c->limits.disk_bytes,
		.scratch_inodes = inodes,
		.hostname = c->hostname,
		.uid = IDMAP_INSIDE_UID,
		.gid = IDMAP_INSIDE_GID,
	};
	return !is_host && plan_layers(p, err) < 0 ? cj_wrap(err, "--rootfs") : 0;
}

static int plan_policy(struct planner *p, struct cj_error *err)
{
	if (strcmp(p->c->seccomp, "default") != 0 &&
	    policy_load(p->c->seccomp, &p->c->arena, &p->plan.policy, err) < 0)
		return cj_wrap(err, "--seccomp");
	return 0;
}

static int plan_identity(struct planner *p, struct cj_error *err)
{
	struct config *c = p->c;
	p->plan.limits = c->limits;
	p->program.limits = c->run_limits;
	p->plan.profile_name = c->profile_name;
	p->plan.profile_sha256 = c->profile_sha256;
	p->plan.cgroup_parent = c->cgroup_parent;
	p->plan.strict = c->strict;
	p->plan.reduced = c->reduced;
	p->plan.tty = c->tty;
	p->program.interactive = c->interactive;
	p->program.collect_artifacts = c->artifacts || c->artifacts_inline_bytes > 0 ||
				       p->inv->keeps_artifacts;

	if (plan_image_workdir(p, err) < 0)
		return -err->code;
	if (!c->id)
		return plan_mint_id(p->program.id, err);
	if (strlen(c->id) >= sizeof(p->program.id))
		return cj_reject(err, "--id '%s' is too long", c->id);
	memcpy(p->program.id, c->id, strlen(c->id) + 1);
	return 0;
}

int plan_make(struct config *c, const struct invocation *inv, struct plan *out_plan,
	      struct program *out_program, struct cj_error *err)
{
	static int (*const parts[])(struct planner * p, struct cj_error * err) = {
		plan_reduced,   plan_network,   plan_root,   plan_identity,
		plan_code,      plan_args_json, plan_argv,   plan_env,
		plan_venv,      plan_tools,     plan_places, /* knows where the code lands */
		plan_artifacts, plan_value,     plan_policy, plan_python_home,
	};

	if (inv->use_shell)
		c->tty = c->interactive = true;
	if (plan_check(c, inv, err) < 0)
		return -err->code;

	struct planner p = { .c = c, .inv = inv };
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (parts[i](&p, err) < 0)
			return -err->code;
	*out_plan = p.plan;
	*out_program = p.program;
	return 0;
}

/* The ULID specification: 48 bits of milliseconds, 80 random bits, five bits a character. */
int plan_mint_id(char out_id[static PLAN_ID_MAX], struct cj_error *err)
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	enum { TIME_CHARS = 10, RANDOM_CHARS = 16 };

	uint8_t random[RANDOM_CHARS];
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return cj_fail(err, errno, "make up an id: getrandom");
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now) < 0)
		return cj_fail(err, errno, "clock_gettime");

	uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
	for (unsigned i = 0; i < TIME_CHARS; i++)
		out_id[i] = digits[(ms >> (5 * (TIME_CHARS - 1 - i))) & 31];
	for (unsigned i = 0; i < RANDOM_CHARS; i++)
		out_id[TIME_CHARS + i] = digits[random[i] & 31];
	out_id[TIME_CHARS + RANDOM_CHARS] = '\0';
	return 0;
}
