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
#include "runtime/kernel/ids/refusal.h"
#include "runtime/kernel/process/landlock.h"

/* --- remedies ----------------------------------------------------------------------- */

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

static void remedy_refusal(struct finding *f, enum refusal why, const struct place *place)
{
	static const char *const commands[REFUSAL_COUNT] = {
		[REFUSAL_OFF] = ("echo user.max_user_namespaces=15000 | sudo tee "
				 "/etc/sysctl.d/60-cejail.conf && sudo sysctl --system"),
		[REFUSAL_FOR_USERS] = ("echo kernel.unprivileged_userns_clone=1 | sudo tee "
				       "/etc/sysctl.d/60-cejail.conf && sudo sysctl --system"),
		[REFUSAL_TOO_MANY] = "sudo sysctl user.max_user_namespaces=15000",
	};

	if (commands[why])
		finding_remedy(f, "%s%s", place_where_kernel(place), commands[why]);
	else if (why == REFUSAL_APPARMOR)
		remedy_apparmor(f, place);
	else if (why == REFUSAL_SANDBOX)
		finding_remedy(f, "run cejail outside of that sandbox");
	else if (why == REFUSAL_CHROOT)
		finding_remedy(f, "run cejail outside of the chroot, or in a container instead");
	else if (why == REFUSAL_FILTER)
		finding_remedy(f, "%s", place_remedy_filter(place));
	else if (why == REFUSAL_KERNEL)
		place_remedy_kernel(place, f->remedy, sizeof(f->remedy));
	else
		finding_remedy(f, "%s", place_remedy_unknown(place));
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
	const char *name;
	bool (*is_there)(void);
} features[] = {
	{ "clone3(2)", has_clone3 },
	{ "openat2(2)", has_openat2 },
	{ "mount_setattr(2)", has_mount_setattr },
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

/* Has all the calls, and is too old for the rest: a program's processes count with all of the
 * user's. */
static bool is_too_old(const char *release)
{
	unsigned major = 0, minor = 0, least_major = 0, least_minor = 0;

	(void)sscanf(KERNEL_MINIMUM, "%u.%u", &least_major, &least_minor);
	return sscanf(release, "%u.%u", &major, &minor) == 2 &&
	       (major < least_major || (major == least_major && minor < least_minor));
}

static void report_kernel(struct finding *f, const struct utsname *name, const struct place *place)
{
	if (!is_too_old(name->release)) {
		report_fixes(f, name);
		return;
	}
	finding_set(f, FINDING_WEAKER, "Linux %s is older than the minimum, " KERNEL_MINIMUM,
		    name->release);
	place_remedy_kernel(place, f->remedy, sizeof(f->remedy));
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
		finding_set(
		    f, FINDING_MISSING, "Linux %s: %s is %s", name.release, features[i].name,
		    refusal_is_filtered() ? "blocked by an outer seccomp filter" : "missing");
		remedy_refusal(f, refusal_is_filtered() ? REFUSAL_FILTER : REFUSAL_KERNEL, &place);
		return;
	}
	report_kernel(f, &name, &place);
}

/* --- user namespaces ---------------------------------------------------------------- */

static int try_nothing(void)
{
	return 0;
}

/* Fills *f with the cause, if it is known.  False: it is not. */
static bool name_cause(struct finding *f, const char *what, int code)
{
	enum refusal why = refusal_find(code);
	struct place place;

	if (why == REFUSAL_UNKNOWN)
		return false;
	place_find(&place);
	finding_set(f, FINDING_MISSING, "%s: %s: %s", what, strerror(code), refusal_texts[why]);
	remedy_refusal(f, why, &place);
	return true;
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
	if (name_cause(f, what, r.code))
		return;
	place_find(&place);
	finding_set(f, FINDING_MISSING, "%s: %s", what, r.msg[0] ? r.msg : strerror(r.code));
	remedy_refusal(f, REFUSAL_UNKNOWN, &place);
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
	struct place place;

	if (r.stage == PROBE_DONE)
		finding_set(f, FINDING_OK, "can be created in a user namespace");
	else if (!probe_could_not_run(f, &r) && !name_cause(f, "cannot be created", r.code)) {
		place_find(&place);
		finding_set(f, FINDING_MISSING, "cannot be created in a user namespace: %s",
			    strerror(r.code));
		remedy_refusal(f, REFUSAL_UNKNOWN, &place);
	}
}

/* Container engines mask parts of /proc by mounts.  The kernel then forbids a new /proc mount. */
void check_proc(struct finding *f)
{
	struct place place;

	if (access("/proc/self/status", F_OK) < 0) {
		finding_set(f, FINDING_MISSING, "is not mounted");
		finding_remedy(f, "sudo mount -t proc proc /proc");
		return;
	}
	struct probe_result r = probe_inside(CLONE_NEWNS | CLONE_NEWPID, try_proc);
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
	struct place place;

	if (abi > 0) {
		finding_set(f, FINDING_OK, "ABI %d", abi);
		return;
	}
	place_find(&place);
	finding_set(f, FINDING_WEAKER, "missing: only the mounts restrict access to files");
	finding_remedy(f, "%s", place_remedy_landlock(&place));
}

static int try_hostname(void)
{
	return sethostname("cejail", strlen("cejail")) < 0 ? errno : 0;
}

void check_hostname(struct finding *f)
{
	struct probe_result r = probe_inside(CLONE_NEWUTS, try_hostname);
	struct place place;

	if (r.stage == PROBE_DONE) {
		finding_set(f, FINDING_OK, "a jail can have its own");
		return;
	}
	if (probe_could_not_run(f, &r))
		return;
	place_find(&place);
	finding_set(f, FINDING_WEAKER, "cannot be set: %s: programs see that of the caller",
		    strerror(r.code));
	finding_remedy(f, "%s", place_remedy_filter(&place));
}

void check_no_new_privs(struct finding *f)
{
	long set = probe_status_number("NoNewPrivs");
	finding_set(f, FINDING_OK, "%s", set == 1 ? "set already" : "can be set");
}
