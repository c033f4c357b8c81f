/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of kernel features, and of settings and sandboxes that forbid them.  Each check tries
 * the feature itself.  Versions and settings only explain a failure.
 */
#include "runtime/front/cli/doctor/doctor.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "runtime/base/files/libexec.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/kernel/ids/refusal.h"
#include "runtime/kernel/process/landlock.h"

#define APPARMOR_SHIPPED  "/share/cejail/apparmor/cejail"
#define APPARMOR_FROM_BIN "/.." APPARMOR_SHIPPED

/* A profile permits whatever lies at its path: neither the file nor a directory above it may be
 * changed by anybody but root. */
static bool is_roots_alone(const char *file)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%s", file) >= (int)sizeof(path))
		return false;
	for (;;) {
		if (lstat(path[0] ? path : "/", &st) < 0 || st.st_uid != 0 ||
		    (st.st_mode & (S_IWGRP | S_IWOTH)))
			return false;
		char *slash = strrchr(path, '/');
		if (!slash)
			return true;
		*slash = '\0';
	}
}

/* `self` is PREFIX/bin/cejail, and the profile of that path is below PREFIX, too. */
static void remedy_profile(struct finding *f, const struct doctor_place *place, const char *self,
			   bool is_installed)
{
	int prefix = (int)strlen(self);

	for (int parts = 0; parts < 2 && prefix > 0; parts += self[prefix] == '/')
		prefix--;
	if (is_installed)
		finding_remedy(f,
			       "%ssudo install -m 644 %.*s" APPARMOR_SHIPPED
			       " /etc/apparmor.d/cejail && sudo apparmor_parser -r "
			       "/etc/apparmor.d/cejail",
			       place_where_kernel(place), prefix, self);
	else
		finding_remedy(f,
			       "install cejail with its profile where only root can change it: "
			       "sudo make install APPARMOR=yes; '%s' can have none",
			       self);
}

void finding_remedy_apparmor(struct finding *f, const struct doctor_place *place)
{
	char self[PATH_MAX] = "", profile[PATH_MAX + sizeof(APPARMOR_FROM_BIN)];
	struct cj_error ignored = { 0 };

	(void)libexec_self(self, &ignored); /* fails only without /proc */
	const char *slash = strrchr(self, '/');
	(void)snprintf(profile, sizeof(profile), "%.*s" APPARMOR_FROM_BIN,
		       slash ? (int)(slash - self) : 0, self);
	remedy_profile(f, place, self, is_roots_alone(self) && access(profile, R_OK) == 0);
}

static void remedy_refusal(struct finding *f, enum refusal why, const struct doctor_place *place)
{
	static const enum remedy remedies_of[REFUSAL_COUNT] = {
		[REFUSAL_UNKNOWN] = REMEDY_UNKNOWN,
		[REFUSAL_OFF] = REMEDY_USERNS_OFF,
		[REFUSAL_FOR_USERS] = REMEDY_USERNS_USERS,
		[REFUSAL_TOO_MANY] = REMEDY_USERNS_MANY,
		[REFUSAL_SANDBOX] = REMEDY_SANDBOX,
		[REFUSAL_CHROOT] = REMEDY_CHROOT,
		[REFUSAL_IDS] = REMEDY_IDS,
		[REFUSAL_FILTER] = REMEDY_FILTER,
		[REFUSAL_KERNEL] = REMEDY_KERNEL,
	};

	if (why == REFUSAL_APPARMOR)
		finding_remedy_apparmor(f, place);
	else
		place_remedy(place, remedies_of[why], f);
}

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
 * Vulnerabilities that the program in a jail, or any user who may create a user namespace, can
 * exploit, and the releases of kernel.org that fixed them.  The check works only for version
 * numbers that count these releases: "6.1.20", or Debian's "Debian 6.1.140-1".  A number such as
 * "5.15.0-91-generic" does not tell which fixes the distribution added.
 */
enum fixes_verdict {
	FIXES_ALL,     /* this kernel has all fixes of the table */
	FIXES_LACKING, /* `out` has the missing ones, and the releases with the fix */
	FIXES_UNKNOWN  /* the version number is the distribution's */
};

struct linux_number {
	unsigned major, minor, patch;
};

#define SERIES_MAX 5

/* From the change logs of kernel.org.  A series that is not listed ended before the fix. */
static const struct fix {
	const char *name;
	struct linux_number since; /* the first vulnerable release */
	struct linux_number closed[SERIES_MAX];
	struct linux_number mainline; /* and all from here on */
} fixes[] = {
	/* clang-format off */
	{ "CVE-2022-0185", { 5, 1, 0 }, { { 5, 4, 173 }, { 5, 10, 93 }, { 5, 15, 16 }, { 5, 16, 2 } }, { 5, 17, 0 } },
	{ "CVE-2022-0847", { 5, 8, 0 }, { { 5, 10, 102 }, { 5, 15, 25 }, { 5, 16, 11 } }, { 5, 17, 0 } },
	{ "CVE-2023-32233", { 3, 13, 0 }, { { 5, 10, 180 }, { 5, 15, 111 }, { 6, 1, 28 }, { 6, 2, 15 }, { 6, 3, 2 } }, { 6, 4, 0 } },
	{ "CVE-2024-1086", { 3, 15, 0 }, { { 5, 10, 210 }, { 5, 15, 149 }, { 6, 1, 76 }, { 6, 6, 15 }, { 6, 7, 3 } }, { 6, 8, 0 } },
	/* clang-format on */
};

static bool is_before(const struct linux_number *a, const struct linux_number *b)
{
	if (a->major != b->major)
		return a->major < b->major;
	if (a->minor != b->minor)
		return a->minor < b->minor;
	return a->patch < b->patch;
}

/* The release that fixes it for this kernel; NULL: this kernel is not vulnerable. */
static const struct linux_number *closing(const struct fix *fix, const struct linux_number *n)
{
	if (is_before(n, &fix->since) || !is_before(n, &fix->mainline))
		return NULL;
	for (size_t i = 0; i < SERIES_MAX && fix->closed[i].major; i++) {
		const struct linux_number *c = &fix->closed[i];
		if (c->major == n->major && c->minor == n->minor)
			return is_before(n, c) ? c : NULL;
	}
	return &fix->mainline;
}

/* "5.15.0-91-generic" has patch level 0 and then a number of the distribution. */
static bool read_number(const char *release, const char *version, struct linux_number *out)
{
	const char *debian = strstr(version, "Debian ");
	char next = '\0';

	if (debian &&
	    sscanf(debian, "Debian %3u.%3u.%4u", &out->major, &out->minor, &out->patch) == 3)
		return true;
	int got = sscanf(release, "%3u.%3u.%4u%c", &out->major, &out->minor, &out->patch, &next);
	return got == 3 || (got == 4 && out->patch > 0);
}

static enum fixes_verdict fixes_check(const char *release, const char *version, char *out,
				      size_t size)
{
	struct linux_number n = { 0 };

	out[0] = '\0';
	if (!read_number(release, version, &n))
		return FIXES_UNKNOWN;
	for (size_t i = 0; i < COUNT_OF(fixes); i++) {
		const struct linux_number *c = closing(&fixes[i], &n);
		if (c)
			text_append(out, size, "%s%s (fixed in %u.%u.%u)", out[0] ? ", " : "",
				    fixes[i].name, c->major, c->minor, c->patch);
	}
	return out[0] ? FIXES_LACKING : FIXES_ALL;
}

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
	struct linux_number n = { 0 }, least = { 0 };

	(void)sscanf(KERNEL_MINIMUM, "%u.%u", &least.major, &least.minor);
	return sscanf(release, "%u.%u", &n.major, &n.minor) == 2 && is_before(&n, &least);
}

static void report_kernel(struct finding *f, const struct utsname *name,
			  const struct doctor_place *place)
{
	if (!is_too_old(name->release)) {
		report_fixes(f, name);
		return;
	}
	finding_set(f, FINDING_WEAKER, "Linux %s is older than the minimum, " KERNEL_MINIMUM,
		    name->release);
	place_remedy(place, REMEDY_KERNEL, f);
}

void check_kernel(struct finding *f)
{
	struct utsname name;
	struct doctor_place place;

	place_find(&place);
	if (uname(&name) < 0)
		memset(&name, 0, sizeof(name)); /* uname(2) fails only for a bad pointer */
	for (size_t i = 0; i < COUNT_OF(features); i++) {
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

static int try_nothing(void)
{
	return 0;
}

bool check_refusal(struct finding *f, const char *what, int code)
{
	enum refusal why = refusal_find(code);
	struct doctor_place place;

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
	const char *what = r.stage == PROBE_CLONE ? "cannot be created" : "cannot be used";

	if (r.stage == PROBE_DONE) {
		finding_set(f, FINDING_OK, "can be created and mapped");
	} else if (!check_refusal(f, what, r.code)) {
		finding_set(f, FINDING_MISSING, "%s: %s", what,
			    r.msg[0] ? r.msg : strerror(r.code));
		finding_remedy_here(f, REMEDY_UNKNOWN);
	}
}

/* The mount point of the probes.  It is covered only in the mount namespace of the child. */
#define PROBE_PLACE "/tmp"

int try_tmpfs(void)
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

int try_overlay(void)
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

/* Container engines mask parts of /proc by mounts.  The kernel then forbids a new /proc mount. */
void check_proc(struct finding *f)
{
	static const struct trial trial = {
		CLONE_NEWNS | CLONE_NEWPID,
		try_proc,
		.good = "a private /proc can be mounted",
		.level = FINDING_MISSING,
		.bad = "a private /proc cannot be mounted: ",
		.rest = "; parts of this /proc are masked",
		.remedy = REMEDY_PROC,
	};

	if (access("/proc/self/status", F_OK) == 0) {
		check_trial(f, &trial);
		return;
	}
	finding_set(f, FINDING_MISSING, "is not mounted");
	finding_remedy(f, "sudo mount -t proc proc /proc");
}

static int load_filter(unsigned flags)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &allow };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	return sys_seccomp(SECCOMP_SET_MODE_FILTER, flags, &program) < 0 ? errno : 0;
}

int try_filter(void)
{
	return load_filter(0);
}

int try_listener(void)
{
	return load_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

void check_landlock(struct finding *f)
{
	int abi = landlock_abi();

	if (abi > 0) {
		finding_set(f, FINDING_OK, "ABI %d", abi);
		return;
	}
	finding_set(f, FINDING_WEAKER, "missing: only the mounts restrict access to files");
	finding_remedy_here(f, REMEDY_LANDLOCK);
}

int try_hostname(void)
{
	return sethostname("cejail", strlen("cejail")) < 0 ? errno : 0;
}

void check_no_new_privs(struct finding *f)
{
	finding_set(f, FINDING_OK, "%s",
		    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? "set already" : "can be set");
}
