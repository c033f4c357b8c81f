/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cejail doctor`: the table of checks, and the output of their findings.
 *
 * Exit status: 0 if every isolation layer and every limit is available, 1 if one or the public
 * network is missing, 125 if no jail is possible.
 */
#include "runtime/front/cli/doctor/doctor.h"

#include <assert.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "netns/network.h"
#include "runtime/base/files/os_release.h"
#include "runtime/base/json/json.h"
#include "runtime/base/text.h"
#include "runtime/front/cli/cli.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"

#define DOCTOR_SCHEMA "cejail.doctor/1"

static const enum cgroup_controller memory = CGROUP_MEMORY, cpu = CGROUP_CPU, pids = CGROUP_PIDS;
static const enum uplink_kind helper_pasta = UPLINK_PASTA, helper_slirp4netns = UPLINK_SLIRP4NETNS;
static const char *const python[] = { "python3", "python3" }, *const node[] = { "node", "nodejs" };

#define TRIAL(...)                                                                                 \
	&(const struct trial)                                                                      \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* clang-format off */
static const struct check {
	const char *name;
	doctor_check *look; /* or: */
	doctor_check_of *look_at;
	const void *what;
} checks[] = {
	{ "kernel",             check_kernel },
	{ "user namespaces",    check_user_namespaces },
	{ "mounts",             NULL, check_trial, TRIAL(CLONE_NEWNS, try_tmpfs,
	  "can be created in a user namespace",
	  FINDING_MISSING, "cannot be created in a user namespace: ",
	  .refused = "cannot be created", .remedy = REMEDY_UNKNOWN) },
	{ "/proc",              check_proc },
	{ "overlay",            NULL, check_trial, TRIAL(CLONE_NEWNS, try_overlay,
	  "can be mounted in a user namespace",
	  FINDING_WEAKER, "cannot be mounted in a user namespace (",
	  .rest = "): --rootfs and --writable do not work", .remedy = REMEDY_OVERLAY) },
	{ "no new privileges",  check_no_new_privs },
	{ "seccomp",            NULL, check_trial, TRIAL(0, try_filter, "a filter can be loaded",
	  FINDING_MISSING, "a filter cannot be loaded: ", .remedy = REMEDY_SECCOMP) },
	{ "system call report", NULL, check_trial, TRIAL(0, try_listener,
	  "denied system calls can be reported",
	  FINDING_WEAKER, "denied system calls cannot be reported: ",
	  .if_busy = "an outer sandbox already has a seccomp listener",
	  .remedy = REMEDY_LISTENER) },
	{ "Landlock",           check_landlock },
	{ "host name",          NULL, check_trial, TRIAL(CLONE_NEWUTS, try_hostname,
	  "a jail can have its own", FINDING_WEAKER, "cannot be set: ",
	  .rest = ": programs see that of the caller", .remedy = REMEDY_FILTER) },
	{ "cgroup",             check_cgroup_parent },
	{ "memory limit",       NULL, check_controller, &memory },
	{ "CPU limit",          NULL, check_controller, &cpu },
	{ "process limit",      NULL, check_controller, &pids },
	{ "/dev/null",          check_dev_null },
	{ "runtime directory",  check_runtime_dir },
	{ "python3",            NULL, check_interpreter, python },
	{ "node",               NULL, check_interpreter, node },
	{ "nf_tables",          NULL, check_by_loader, TRIAL(CLONE_NEWNET, try_rules,
	  "the rules of a jail and a gateway can be loaded",
	  FINDING_WEAKER, "the rules of a jail cannot be loaded (",
	  .rest = "): no --network public", .remedy = REMEDY_RULES) },
	{ "veth",               NULL, check_by_loader, TRIAL(CLONE_NEWNET, try_links,
	  "a jail and a gateway can be connected",
	  FINDING_WEAKER, "a jail and a gateway cannot be connected (",
	  .rest = "): no --network public", .remedy = REMEDY_VETH) },
	{ "IP forwarding",      check_forwarding },
	{ "host firewall",      check_host_firewall },
	{ "tun device",         check_tun },
	{ "pasta",              NULL, check_helper, &helper_pasta },
	{ "slirp4netns",        NULL, check_helper, &helper_slirp4netns },
	{ "AppArmor",           check_apparmor },
	{ "a reduced jail",     check_reduced_jail },
	{ "a whole jail",       check_whole_jail }, /* last: the other checks explain a failure */
	{ "a public network",   check_public_network },
};
/* clang-format on */

#define CHECK_COUNT COUNT_OF(checks)

static const struct {
	const char *name;
	int status;
	const char *colour; /* ECMA-48: green, cyan, yellow, red */
} levels[] = {
	[FINDING_OK] = { "ok", 0, "\033[32m" },
	[FINDING_NOTE] = { "note", 0, "\033[36m" },
	[FINDING_WEAKER] = { "weaker", 1, "\033[33m" },
	[FINDING_MISSING] = { "missing", CLI_FAILED, "\033[1;31m" },
};
static_assert(COUNT_OF(levels) == FINDING_LEVEL_COUNT, "every level has a name");

void finding_set(struct finding *f, enum finding_level level, const char *fmt, ...)
{
	f->level = level;
	f->remedy[0] = '\0';
	(void)text_format(f->text, fmt); /* a longer text is cut */
}

void finding_remedy(struct finding *f, const char *fmt, ...)
{
	(void)text_format(f->remedy, fmt); /* likewise */
}

void finding_remedy_package(struct finding *f, const char *package)
{
	char remedy[INSTALL_MAX];

	os_install(package, remedy);
	finding_remedy(f, "%s", remedy);
}

#define NAME_WIDTH  18
#define LEVEL_WIDTH 7
#define INDENT      (NAME_WIDTH + 2 + LEVEL_WIDTH + 2)

struct paper {
	size_t width; /* of a line, in characters */
	bool has_colours;
};

/* no-color.org: NO_COLOR with any value but the empty one. */
static struct paper paper_of_stdout(void)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	bool is_plain = !term || strcmp(term, "dumb") == 0 || (no_color && no_color[0]);
	struct winsize size = { 0 };
	struct paper p = { .width = 100 };

	if (!isatty(STDOUT_FILENO))
		return p;
	p.has_colours = !is_plain;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= INDENT + 20)
		p.width = size.ws_col;
	return p;
}

/* Breaks lines between words.  A word that is longer than a line stays whole. */
static void print_wrapped(const char *text, const struct paper *p)
{
	size_t column = INDENT;

	for (const char *at = text; *at;) {
		size_t blanks = strspn(at, " "), size = strcspn(at + blanks, " ");
		bool is_full = column + blanks + size > p->width && column > INDENT;
		if (is_full)
			column = (size_t)printf("\n%*s", INDENT, "") - 1;
		else
			column += (size_t)printf("%.*s", (int)blanks, at);
		column += (size_t)printf("%.*s", (int)size, at + blanks);
		at += blanks + size;
	}
	(void)printf("\n");
}

/* The first check with this remedy. */
static size_t find_remedy(const struct finding *findings, const char *remedy)
{
	size_t i = 0;

	while (strcmp(findings[i].remedy, remedy) != 0)
		i++;
	return i;
}

/* A remedy is a command to paste: it stays one line, and is printed once. */
static void print_findings(const struct finding *findings, const struct paper *p)
{
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		const struct finding *f = &findings[i];
		(void)printf("%-*s  %s%-*s%s  ", NAME_WIDTH, checks[i].name,
			     p->has_colours ? levels[f->level].colour : "", LEVEL_WIDTH,
			     levels[f->level].name, p->has_colours ? "\033[0m" : "");
		print_wrapped(f->text, p);
		size_t first = f->remedy[0] ? find_remedy(findings, f->remedy) : i;
		if (first < i)
			(void)printf("%*s-> as for '%s'\n", INDENT, "", checks[first].name);
		else if (f->remedy[0])
			(void)printf("%*s-> %s\n", INDENT, "", f->remedy);
	}
}

static int print_json(const struct finding *findings, enum finding_level worst,
		      struct cj_error *err)
{
	auto_json_writer struct json_writer *w = json_writer_create(false);

	json_open_object(w);
	json_member_filled(w, "schema", DOCTOR_SCHEMA);
	json_member_filled(w, "worst", levels[worst].name);
	json_member_array(w, "checks");
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		json_open_object(w);
		json_member_filled(w, "name", checks[i].name);
		json_member_filled(w, "level", levels[findings[i].level].name);
		json_member_filled(w, "text", findings[i].text);
		json_member_filled(w, "remedy", findings[i].remedy);
		json_close_object(w);
	}
	json_close_array(w);
	json_close_object(w);
	return json_print(w, err);
}

static void look(const struct check *check, struct finding *f)
{
	if (check->look)
		check->look(f);
	else
		check->look_at(f, check->what);
}

int doctor_verb(const struct cli *cli)
{
	static const char *const verdicts[] = {
		[FINDING_OK] = "Every isolation layer and every limit is available.",
		[FINDING_NOTE] = "Every isolation layer and every limit is available.",
		[FINDING_WEAKER] =
		    "A jail is possible, but a layer, a limit or the public network is missing.",
		[FINDING_MISSING] = "No jail is possible here.",
	};
	struct finding findings[CHECK_COUNT] = { 0 };
	enum finding_level worst = FINDING_OK;
	struct cj_error err = { 0 };
	bool as_json = false;

	if (cli_take_only(cli, "--json", &as_json, &err) < 0 || cli_need_stdout(cli, &err) < 0)
		return cli_fail(&err);
	for (size_t i = 0; i < CHECK_COUNT; i++) {
		look(&checks[i], &findings[i]);
		if (findings[i].level > worst)
			worst = findings[i].level;
	}
	if (as_json && print_json(findings, worst, &err) < 0)
		return cli_fail(&err);
	if (!as_json) {
		const struct paper paper = paper_of_stdout();
		print_findings(findings, &paper);
		(void)printf("\n%s\n", verdicts[worst]);
	}
	return cli_finish(levels[worst].status);
}
