/* SPDX-License-Identifier: Apache-2.0 */
/* The causes of a refusal: user_namespaces(7), unshare(2), chroot(2), seccomp(2). */
#include "runtime/kernel/ids/refusal.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/ids/idmap.h"
#include "runtime/kernel/process/capabilities.h"

const char *const refusal_texts[] = {
	[REFUSAL_UNKNOWN] = "a security module, missing capabilities or a chroot may be the cause",
	[REFUSAL_OFF] = "sysctl user.max_user_namespaces is 0",
	[REFUSAL_FOR_USERS] = "sysctl kernel.unprivileged_userns_clone is 0",
	[REFUSAL_APPARMOR] = "AppArmor forbids user namespaces to programs without a profile",
	[REFUSAL_TOO_MANY] = "too many user namespaces exist for sysctl user.max_user_namespaces",
	[REFUSAL_SANDBOX] = ("a sandbox around cejail allows no more user namespaces, as bwrap "
			     "--disable-userns does"),
	[REFUSAL_CHROOT] = "this is a chroot, in which user namespaces cannot be created",
	[REFUSAL_IDS] = "root lacks the capability SETUID or SETGID, which chooses the jail's user",
	[REFUSAL_FILTER] = "an outer seccomp filter forbids it, as those of container engines do",
	[REFUSAL_KERNEL] = "this kernel lacks the call",
};
static_assert(COUNT_OF(refusal_texts) == REFUSAL_COUNT, "every refusal has a text");

enum refusal refusal_classify(const struct refusal_facts *f)
{
	bool is_count = f->code == ENOSPC || f->code == EUSERS;

	if (f->code == ENOSYS)
		return f->is_filtered ? REFUSAL_FILTER : REFUSAL_KERNEL;
	if (is_count && f->is_off)
		return REFUSAL_OFF;
	if (is_count)
		return f->is_nested ? REFUSAL_SANDBOX : REFUSAL_TOO_MANY;
	if (f->code != EPERM && f->code != EACCES)
		return REFUSAL_UNKNOWN;
	if (f->is_off_for_users && !f->is_root)
		return REFUSAL_FOR_USERS;
	if (f->has_apparmor_restriction && !f->is_root)
		return REFUSAL_APPARMOR;
	if (f->is_chroot)
		return REFUSAL_CHROOT;
	if (f->lacks_ids && f->is_root)
		return REFUSAL_IDS;
	return f->is_filtered ? REFUSAL_FILTER : REFUSAL_UNKNOWN;
}

static bool setting_is(const char *path, const char *value)
{
	char text[64];

	if (system_file_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, value) == 0;
}

bool refusal_is_filtered(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == SECCOMP_MODE_FILTER;
}

/* In a chroot whose root is not a mount point, mountinfo has no line for "/". */
static bool is_root_without_mount(void)
{
	char line[4096], place[4096];
	auto_file FILE *file = fopen("/proc/self/mountinfo", "re");

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*s %*s %*s %*s %4095s", place) == 1 && strcmp(place, "/") == 0)
			return false;
	}
	return file != NULL;
}

static bool is_one_place(const struct statx *a, const struct statx *b)
{
	return a->stx_mnt_id == b->stx_mnt_id && a->stx_ino == b->stx_ino;
}

static bool look_here(struct statx *out)
{
	return statx(AT_FDCWD, ".", 0, STATX_INO | STATX_MNT_ID, out) == 0;
}

/* From here: a child of its own.  Its working directory is outside of its new root, so that ".."
 * leads above the old one, if there is something above: chroot(2). */
_Noreturn static void look_above_root(void)
{
	static const char *const places[] = { "/usr", "/etc", "/dev", "/bin" };
	struct statx root, above, at;
	size_t i = 0;

	if (chdir("/") < 0 || !look_here(&root))
		_exit(0);
	while (i < COUNT_OF(places) && chroot(places[i]) < 0)
		i++;
	if (i == COUNT_OF(places)) /* also without CAP_SYS_CHROOT */
		_exit(0);
	above = root;
	do {
		at = above;
		if (chdir("..") < 0 || !look_here(&above))
			_exit(0);
	} while (!is_one_place(&at, &above));
	_exit(is_one_place(&root, &above) ? 0 : 1);
}

static bool is_root_below_another(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		look_above_root();
	if (pid < 0)
		return false;
	(void)sys_waitpid(pid, &status, 0); /* our child */
	return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

enum refusal refusal_find(int code)
{
	const struct refusal_facts facts = {
		.code = code,
		.is_root = geteuid() == 0,
		.is_off = setting_is("/proc/sys/user/max_user_namespaces", "0"),
		.is_off_for_users = setting_is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
		.has_apparmor_restriction =
		    setting_is("/sys/module/apparmor/parameters/enabled", "Y") &&
		    setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
		.is_nested = !idmap_is_initial(),
		.is_filtered = refusal_is_filtered(),
		.is_chroot = (code == EPERM || code == EACCES) &&
			     (is_root_without_mount() || is_root_below_another()),
		.lacks_ids = !capabilities_is_effective(CAP_SETUID) ||
			     !capabilities_is_effective(CAP_SETGID),
	};
	return refusal_classify(&facts);
}

int refusal_hint(struct cj_error *err)
{
	enum refusal why = refusal_find(err->code);
	struct utsname name = { 0 };

	if (why != REFUSAL_KERNEL)
		return cj_hint(err, "%s: 'cejail doctor' names the remedy", refusal_texts[why]);
	(void)uname(&name); /* fails only for a bad pointer */
	return cj_hint(err,
		       "Linux %s lacks the call; cejail needs Linux " KERNEL_MINIMUM " or later",
		       name.release);
}
