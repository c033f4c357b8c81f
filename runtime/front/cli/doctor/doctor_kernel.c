/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of kernel features, and of settings and sandboxes that forbid them.  Each check tries
 * the feature itself.  Versions and settings only explain a failure.
 */
#include "runtime/front/cli/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/front/cli/doctor/doctor_fixes.h"
#include "runtime/front/cli/doctor/doctor_place.h"
#include "runtime/jail/init/landlock.h"

static bool is_filtered(void)
{
	return probe_status_number("Seccomp") == 2;
}

/* --- system calls that may be missing ----------------------------------------------- */

/* Invalid arguments: a kernel that has the call fails with another error than ENOSYS. */
static bool has_clone3(void)
{
	const struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_FS };
	return sys_clone3(&args) >= 0 || errno != ENOSYS;
}

static bool has_mount_setattr(void)
{
	return sys_mount_setattr(-1, "", 0, NULL) == 0 || errno != ENOSYS;
}

static bool has_openat2(void)
{
	return sys_openat2(-1, "", O_RDONLY, 0, UINT64_MAX) >= 0 || errno != ENOSYS;
}

static const struct feature {
	const char *name, *since;
	bool (*is_there)(void);
} features[] = {
	{ "clone3(2)", "5.7", has_clone3 },
	{ "openat2(2)", "5.6", has_openat2 },
	{ "mount_setattr(2)", "5.12", has_mount_setattr },
};

/*
 * The month in which the distributions fixed CVE-2026-31431 and CVE-2026-43284, which allow writing
 * to the page cache.  Their version numbers differ, so the check uses the build date.
 */
#define FIXED_YEAR  2026
#define FIXED_MONTH 5

static bool read_build_date(const char *version, unsigned *year, unsigned *month)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	char name[4];

	/* "... 6.1.140-1 (2026-05-22)" or "#183-Ubuntu SMP Fri Mar 6 13:29:34 UTC 2026" */
	const char *paren = strchr(version, '(');
	if (paren && sscanf(paren, "(%4u-%2u-", year, month) == 2)
		return true;
	for (const char *at = version; (at = strchr(at, ' ')); at++) {
		const char *found = NULL;
		if (sscanf(at, " %3[A-Za-z] %*u %*u:%*u:%*u %*s %4u", name, year) == 2 &&
		    (found = strstr(months, name)) != NULL) {
			*month = (unsigned)(found - months) / 3 + 1;
			return true;
		}
	}
	return false;
}

/* Known vulnerabilities of this kernel, by its release and its build date. */
static void report_fixes(struct finding *f, const struct utsname *name)
{
	char lacking[256];
	unsigned year = 0, month = 0;
	enum fixes_verdict verdict =
	    fixes_check(name->release, name->version, lacking, sizeof(lacking));

	if (verdict == FIXES_LACKING) {
		finding_set(f, FINDING_NOTE, "Linux %s lacks the fixes for %s", name->release,
			    lacking);
	} else if (read_build_date(name->version, &year, &month) &&
		   (year < FIXED_YEAR || (year == FIXED_YEAR && month < FIXED_MONTH))) {
		finding_set(f, FINDING_NOTE,
			    "Linux %s was built in %04u-%02u, before the fixes for CVE-2026-31431 "
			    "and CVE-2026-43284",
			    name->release, year, month);
	} else {
		finding_set(f, FINDING_OK, "Linux %s%s", name->release,
			    verdict == FIXES_UNKNOWN
				? " (ask your distribution which fixes this version has)"
				: "");
		return;
	}
	finding_remedy(f,
		       "install and boot the current kernel of your distribution; a distribution "
		       "may have added the fix to an older version");
}

void check_kernel(struct finding *f)
{
	struct utsname name;
	struct place place;

	place_find(&place);
	if (uname(&name) < 0)
		memset(&name, 0, sizeof(name)); /* uname(2) fails only for a bad pointer */
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
		if (features[i].is_there())
			continue;
		finding_set(f, FINDING_MISSING, "Linux %s: %s is %s", name.release,
			    features[i].name,
			    is_filtered() ? "blocked by an outer seccomp filter" : "missing");
		if (is_filtered())
			finding_remedy(f, "%s", place_remedy_filter(&place));
		else
			finding_remedy(f, "%sboot Linux %s or later", place_where_kernel(&place),
				       features[i].since);
		return;
	}
	report_fixes(f, &name);
}

/* --- user namespaces ---------------------------------------------------------------- */

static int try_nothing(void)
{
	return 0;
}

static bool setting_is(const char *path, char value)
{
	char text[16] = "";
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && sys_read(fd, text, sizeof(text) - 1) > 0 && text[0] == value &&
	       (text[1] == '\n' || text[1] == '\0');
}

static bool is_off_for_users(void)
{
	return geteuid() != 0 && setting_is("/proc/sys/kernel/unprivileged_userns_clone", '0');
}

static bool is_off_for_all(void)
{
	return setting_is("/proc/sys/user/max_user_namespaces", '0');
}

static bool is_apparmor_restricting(void)
{
	return geteuid() != 0 && place_has_apparmor() &&
	       setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", '1');
}

/* In a chroot whose root is not a mount point, mountinfo has no line for "/": chroot(2). */
static bool is_in_chroot(void)
{
	char line[4096], place[4096];
	auto_file FILE *file = fopen("/proc/self/mountinfo", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*s %*s %*s %4095s", place) == 1 && strcmp(place, "/") == 0)
			return false;
	}
	return file != NULL;
}

static void remedy_apparmor(struct finding *f, const struct place *place)
{
	char self[256];
	ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[size > 0 ? size : 0] = '\0';
	finding_remedy(f,
		       "%sprintf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile cejail %s "
		       "flags=(unconfined) {\\n  userns,\\n}\\n' | sudo tee /etc/apparmor.d/cejail "
		       "&& sudo apparmor_parser -r /etc/apparmor.d/cejail",
		       place_where_kernel(place), self);
}

/* Causes that forbid user namespaces, the most specific one first. */
static const struct cause {
	bool (*holds)(void);
	const char *text, *remedy;
} causes[] = {
	{ is_off_for_all, "sysctl user.max_user_namespaces is 0",
	  "echo user.max_user_namespaces=15000 | sudo tee /etc/sysctl.d/60-cejail.conf && sudo "
	  "sysctl --system" },
	{ is_off_for_users, "sysctl kernel.unprivileged_userns_clone is 0",
	  "echo kernel.unprivileged_userns_clone=1 | sudo tee /etc/sysctl.d/60-cejail.conf && sudo "
	  "sysctl --system" },
	{ is_apparmor_restricting, "AppArmor forbids them to programs without a profile", NULL },
	{ is_in_chroot, "this is a chroot, in which they cannot be created",
	  "run cejail outside of the chroot, or in a container instead" },
	{ is_filtered, "an outer seccomp filter forbids them", NULL },
};

/* Fills *f with the first cause that applies.  False: the cause is not known. */
static bool name_cause(struct finding *f, const char *what, int code)
{
	struct place place;

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		if (!causes[i].holds())
			continue;
		finding_set(f, FINDING_MISSING, "%s: %s: %s", what, strerror(code), causes[i].text);
		place_find(&place);
		if (causes[i].remedy)
			finding_remedy(f, "%s%s", place_where_kernel(&place), causes[i].remedy);
		else if (causes[i].holds == is_filtered)
			finding_remedy(f, "%s", place_remedy_filter(&place));
		else
			remedy_apparmor(f, &place);
		return true;
	}
	return false;
}

void check_user_namespaces(struct finding *f)
{
	struct probe_result r = probe_inside(0, try_nothing);

	if (r.stage == PROBE_DONE) {
		finding_set(f, FINDING_OK, "can be created and mapped");
		return;
	}
	const char *what = r.stage == PROBE_CLONE ? "cannot be created" : "cannot be used";
	struct place place;
	place_find(&place);
	if (name_cause(f, what, r.code))
		return;
	finding_set(f, FINDING_MISSING, "%s: %s", what, r.msg[0] ? r.msg : strerror(r.code));
	if (r.code == ENOSPC || r.code == EUSERS)
		finding_remedy(f, "sudo sysctl user.max_user_namespaces=15000");
	else
		finding_remedy(f, "ask the administrator of this %s to allow them",
			       place_is_container(&place) ? "container's host" : "host");
}

/* --- mounts ------------------------------------------------------------------------- */

/* The mount point of the probes.  It is covered only in the mount namespace of the child. */
#define PROBE_PLACE "/tmp"

static int try_tmpfs(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errno;
	return mount("tmpfs", PROBE_PLACE, "tmpfs", MS_NOSUID | MS_NODEV, NULL) < 0 ? errno : 0;
}

static int try_proc(void)
{
	int code = try_tmpfs();
	if (code != 0)
		return code;
	return mount("proc", PROBE_PLACE, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0
		   ? errno
		   : 0;
}

static int try_overlay(void)
{
	int code = try_tmpfs();
	if (code != 0)
		return code;
	if (mkdir(PROBE_PLACE "/a", 0755) < 0 || mkdir(PROBE_PLACE "/b", 0755) < 0 ||
	    mkdir(PROBE_PLACE "/m", 0755) < 0)
		return errno;
	return mount("overlay", PROBE_PLACE "/m", "overlay", 0,
		     "lowerdir=" PROBE_PLACE "/a:" PROBE_PLACE "/b") < 0
		   ? errno
		   : 0;
}

bool probe_could_not_run(struct finding *f, const struct probe_result *r)
{
	if (r->stage != PROBE_CLONE && r->stage != PROBE_MAP && r->stage != PROBE_BROKEN)
		return false;
	finding_set(f, FINDING_MISSING, "not tried: it needs a user namespace");
	return true;
}

void check_mounts(struct finding *f)
{
	struct probe_result r = probe_inside(CLONE_NEWNS, try_tmpfs);

	if (r.stage == PROBE_DONE)
		finding_set(f, FINDING_OK, "can be created in a user namespace");
	else if (!probe_could_not_run(f, &r) && !name_cause(f, "cannot be created", r.code))
		finding_set(f, FINDING_MISSING, "cannot be created in a user namespace: %s",
			    strerror(r.code));
}

/* Container engines mask parts of /proc by mounts.  The kernel then forbids a new /proc mount. */
void check_proc(struct finding *f)
{
	struct probe_result r = probe_inside(CLONE_NEWNS | CLONE_NEWPID, try_proc);
	struct place place;

	if (r.stage == PROBE_DONE) {
		finding_set(f, FINDING_OK, "a private /proc can be mounted");
		return;
	}
	if (probe_could_not_run(f, &r))
		return;
	finding_set(f, FINDING_MISSING,
		    "a private /proc cannot be mounted: %s; parts of this /proc are masked",
		    strerror(r.code));
	place_find(&place);
	finding_remedy(f, "%s", place_remedy_proc(&place));
}

void check_overlay(struct finding *f)
{
	struct probe_result r = probe_inside(CLONE_NEWNS, try_overlay);
	struct place place;

	if (r.stage == PROBE_DONE) {
		finding_set(f, FINDING_OK, "can be mounted in a user namespace");
		return;
	}
	if (probe_could_not_run(f, &r))
		return;
	finding_set(f, FINDING_WEAKER,
		    "cannot be mounted in a user namespace (%s): --rootfs and --writable do "
		    "not work",
		    strerror(r.code));
	place_find(&place);
	finding_remedy(f, "%ssudo modprobe overlay", place_where_kernel(&place));
}

/* --- filters ------------------------------------------------------------------------ */

static int load_filter(unsigned flags)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, &program) < 0 ? errno : 0;
}

static int try_filter(void)
{
	return load_filter(0);
}

static int try_listener(void)
{
	return load_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

void check_seccomp(struct finding *f)
{
	struct probe_result r = probe_inside(0, try_filter);

	if (r.stage == PROBE_DONE) {
		finding_set(f, FINDING_OK, "a filter can be loaded");
		return;
	}
	if (probe_could_not_run(f, &r))
		return;
	finding_set(f, FINDING_MISSING, "a filter cannot be loaded: %s", strerror(r.code));
	finding_remedy(f, "boot a kernel with CONFIG_SECCOMP_FILTER");
}

void check_syscall_report(struct finding *f)
{
	struct probe_result r = probe_inside(0, try_listener);

	if (r.stage == PROBE_DONE) {
		finding_set(f, FINDING_OK, "denied system calls can be reported");
		return;
	}
	if (probe_could_not_run(f, &r))
		return;
	finding_set(f, FINDING_WEAKER, "denied system calls cannot be reported: %s",
		    r.code == EBUSY ? "an outer sandbox already has a seccomp listener"
				    : strerror(r.code));
	finding_remedy(f, "run cejail outside of the outer sandbox");
}

void check_landlock(struct finding *f)
{
	int abi = landlock_abi();

	if (abi > 0) {
		finding_set(f, FINDING_OK, "ABI %d", abi);
		return;
	}
	finding_set(f, FINDING_WEAKER, "missing: only the mounts restrict access to files");
	finding_remedy(f, "boot a kernel with CONFIG_SECURITY_LANDLOCK and add landlock to its "
			  "lsm= list");
}

void check_no_new_privs(struct finding *f)
{
	long set = probe_status_number("NoNewPrivs");
	finding_set(f, FINDING_OK, "%s", set == 1 ? "set already" : "can be set");
}
