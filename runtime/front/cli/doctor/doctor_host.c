/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of cgroups, directories and interpreters, and of a complete jail.
 */
#include "runtime/front/cli/doctor/doctor.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/kernel/cgroup/cgroup_parent.h"
#include "runtime/jail/jail.h"
#include "runtime/jail/record.h"

#define PARENTS_MAX 8
#define SEE_ABOVE   "fix what is missing above"

/* Every way to find a parent cgroup, and why it cannot be used.  The checks of the controllers use
 * the same reports. */
void check_cgroup_parent(struct finding *f)
{
	struct cgroup_parent_report ways[PARENTS_MAX] = { 0 };
	size_t count = cgroup_parent_reports(ways, PARENTS_MAX);
	char list[sizeof(f->text)] = "";

	for (size_t i = 0; i < count; i++) {
		bool has_all = ways[i].serves;
		for (size_t k = 0; k < CGROUP_CONTROLLER_COUNT; k++)
			has_all = has_all && ways[i].controllers[k];
		if (has_all) {
			finding_set(f, FINDING_OK, "%s: %s", ways[i].name, ways[i].detail);
			return;
		}
		text_append(list, sizeof(list), "%s%s: %s", list[0] ? "; " : "", ways[i].name,
			    ways[i].detail);
	}
	finding_set(f, FINDING_NOTE, "%s", list);
}

void check_controller(struct finding *f, const void *what)
{
	static const char *const otherwise[CGROUP_CONTROLLER_COUNT] = {
		[CGROUP_MEMORY] = "the supervisor samples the memory instead",
		[CGROUP_CPU] = "--cpus is not enforced",
		[CGROUP_PIDS] = "an rlimit is used instead",
	};
	const enum cgroup_controller which = *(const enum cgroup_controller *)what;
	struct cgroup_parent_report ways[PARENTS_MAX] = { 0 };
	size_t count = cgroup_parent_reports(ways, PARENTS_MAX);
	struct doctor_place place;

	for (size_t i = 0; i < count; i++) {
		if (ways[i].serves && ways[i].controllers[which]) {
			finding_set(f, FINDING_OK, "enforced by cgroup v2 (%s)", ways[i].name);
			return;
		}
	}
	finding_set(f, FINDING_WEAKER, "not enforced by cgroup v2: %s", otherwise[which]);
	place_find(&place);
	place_remedy_cgroup(&place, f);
}

void check_dev_null(struct finding *f)
{
	struct stat st;

	if (stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3)) {
		finding_set(f, FINDING_OK, "is the null device");
		return;
	}
	finding_set(f, FINDING_MISSING, "is not the null device");
	finding_remedy(f, "sudo rm -f /dev/null && sudo mknod -m 666 /dev/null c 1 3");
}

void check_runtime_dir(struct finding *f)
{
	struct cj_error err = { 0 };
	auto_fd int fd = record_open_dir(&err);

	if (fd >= 0) {
		finding_set(f, FINDING_OK, "can be written");
		return;
	}
	finding_set(f, geteuid() == 0 ? FINDING_MISSING : FINDING_WEAKER,
		    "no directory for the records of runs (cejail ps, kill): %s", err.msg);
	finding_remedy(f, "%s",
		       err.hint[0] ? err.hint : "export XDG_RUNTIME_DIR=/run/user/$(id -u)");
}

void check_interpreter(struct finding *f, const void *what)
{
	static const char *const places[] = { "/usr/local/bin", "/usr/bin" };
	const char *const *names = what;
	char path[64];

	for (size_t i = 0; i < COUNT_OF(places); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", places[i], names[0]);
		if (access(path, X_OK) == 0) {
			finding_set(f, FINDING_OK, "%s", path);
			return;
		}
	}
	finding_set(f, FINDING_NOTE, "not found under /usr: profiles that run it fail");
	finding_remedy_package(f, names[1]);
}

int doctor_try_jail(struct config *c, struct outcome *out, struct cj_error *err)
{
	static const char *const args[] = { "true", NULL }, *const no_environment[] = { NULL };
	const struct invocation inv = {
		.args = args,
		.is_command = true,
		.environ = no_environment,
	};
	const struct jail_io io = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .tty_fd = -1, .hangup_fd = -1
	};
	struct plan plan;
	struct program program;
	struct jail *jail = NULL;

	c->profile_name = "doctor";
	if (plan_make(c, &inv, &plan, &program, err) < 0)
		return -err->code;
	plan.network.starts_early = true; /* "true" opens no socket */
	if (jail_prepare(&plan, program.id, &jail, err) < 0)
		return -err->code;
	int rc = jail_start(jail, &program, &io, err);
	if (rc == 0)
		rc = jail_wait(jail, out, err);
	jail_destroy(&jail);
	return rc;
}

/* For a host that keeps refusing namespaces.  What it lacks makes no other jail weaker. */
void check_reduced_jail(struct finding *f)
{
	__attribute__((cleanup(config_fini))) struct config c;
	__attribute__((cleanup(outcome_fini))) struct outcome out;
	struct cj_error err = { 0 };

	config_init(&c);
	outcome_init(&out, "", 0);
	c.reduced = true;
	if (doctor_try_jail(&c, &out, &err) < 0) {
		finding_set(f, FINDING_NOTE, "is not possible: %s", err.msg);
		return;
	}
	finding_set(f, FINDING_OK,
		    "without namespaces, --reduced ran a program: far weaker, cejail(1), REDUCED "
		    "JAILS");
}

void check_whole_jail(struct finding *f)
{
	__attribute__((cleanup(config_fini))) struct config c;
	__attribute__((cleanup(outcome_fini))) struct outcome out;
	struct cj_error err = { 0 };

	config_init(&c);
	outcome_init(&out, "", 0);
	if (doctor_try_jail(&c, &out, &err) < 0) {
		finding_set(f, FINDING_MISSING, "cannot be built: %s", err.msg);
		finding_remedy(f, "%s", strstr(err.hint, "cejail doctor") ? SEE_ABOVE : err.hint);
	} else if (out.warnings.count > 0) {
		finding_set(f, FINDING_WEAKER, "was built and ran a program, but: %s",
			    out.warnings.items[0]);
	} else {
		finding_set(f, FINDING_OK, "was built and ran a program");
	}
}
