/* SPDX-License-Identifier: Apache-2.0 */
/* What a process will be, resolved outside; and the last call inside. */
#include "runtime/container/process/process.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/stat.h>

#include "runtime/base/child.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/files/system_file.h"
#include "runtime/base/scope.h"
#include "runtime/base/step.h"
#include "runtime/base/sys.h"
#include "runtime/base/text.h"
#include "runtime/container/process/process_parts.h"
#include "runtime/container/annotation/annotations.h"
#include "runtime/kernel/process/landlock.h"

/* What was inherited by execve(2) is not close-on-exec; all that we open is. */
static int check_preserved(unsigned preserved, struct cj_error *err)
{
	for (unsigned i = 0; i < preserved; i++) {
		int fd = CHILD_FIRST_FD + (int)i;
		int flags = fcntl(fd, F_GETFD);
		if (flags < 0 || flags & FD_CLOEXEC)
			return cj_reject_as(err, EBADF,
					    "descriptor %d is not open, and --preserve-fds or "
					    "LISTEN_FDS keeps those from 3 to %u",
					    fd, CHILD_FIRST_FD + preserved - 1);
	}
	return 0;
}

int process_keep_fds(unsigned preserved, struct cj_error *err)
{
	if (check_preserved(preserved, err) < 0)
		return -err->code;
	if (sys_close_range(CHILD_FIRST_FD + preserved, ~0u, 0) < 0)
		return cj_fail(err, errno, "close inherited descriptors");
	return 0;
}

int process_check_dumpable(struct cj_error *err)
{
	static const char path[] = "/proc/sys/fs/suid_dumpable";
	char text[SYSTEM_FILE_SMALL];
	ssize_t size = system_file_read(AT_FDCWD, path, text, sizeof(text));
	if (size < 0)
		return cj_fail(err, (int)-size, "read '%s'", path);
	if (text[0] != '1')
		return 0;
	cj_refuse_as(err, EPERM, "a process of the user namespace could trace one that joins it");
	return cj_hint(err, "set the sysctl fs.suid_dumpable to 0 or 2");
}

/* Does the file of the security module say that it is enabled here? */
static bool is_enabled(const char *file, const char *yes)
{
	char text[SYSTEM_FILE_SMALL];
	ssize_t size = system_file_read(AT_FDCWD, file, text, sizeof(text));
	return size > 0 && strchr(yes, text[0]);
}

/* A container that asks for a security module's confinement never starts without it. */
static int check_labels(const struct process *p, struct cj_error *err)
{
	const struct {
		const char *key, *label, *module, *file, *yes, *parameter;
	} labels[] = {
		{ "process.apparmorProfile", p->wanted->apparmor_profile, "AppArmor",
		  "/sys/module/apparmor/parameters/enabled", "Y", "apparmor=1" },
		{ "process.selinuxLabel", p->wanted->selinux_label, "SELinux",
		  "/sys/fs/selinux/enforce", "01", "security=selinux" },
		{ "linux.mountLabel", p->config->on_linux.mount_label, "SELinux",
		  "/sys/fs/selinux/enforce", "01", "security=selinux" },
	};
	for (size_t i = 0; i < COUNT_OF(labels); i++) {
		if (!labels[i].label || is_enabled(labels[i].file, labels[i].yes))
			continue;
		cj_refuse_as(err, ENOTSUP,
			     "%s: '%s' can't be applied: %s is not enabled on this host",
			     labels[i].key, labels[i].label, labels[i].module);
		return cj_hint(err, "boot with %s, or remove %s from the configuration",
			       labels[i].parameter, labels[i].key);
	}
	return 0;
}

/* execve(2) takes pointers to char that it doesn't write. */
static const char *const *vector_of(const struct strings *list)
{
	static const char *const none[] = { NULL };
	return list->count > 0 ? list->items : none;
}

/* Engines leave HOME to the runtime.  As there, an empty one counts as none. */
static int prepare_env(struct process *p, struct arena *a, struct cj_error *err)
{
	const struct strings *env = &p->wanted->env;
	const char **vector = arena_array(a, env->count + 2, sizeof(*vector));
	size_t count = 0;
	if (!vector)
		return cj_fail(err, ENOMEM, "prepare the environment");
	p->env = vector;
	for (size_t i = 0; i < env->count; i++) {
		const char *home = text_after(env->items[i], PROCESS_HOME);
		if (home && *home) {
			p->env = vector_of(env);
			return 0;
		}
		if (!home)
			vector[count++] = env->items[i];
	}
	memcpy(p->home, PROCESS_HOME, sizeof(PROCESS_HOME));
	vector[count++] = p->home;
	vector[count] = NULL;
	return 0;
}

int process_prepare(const struct oci_config *config, const struct oci_process *process,
		    const struct process_context *context, struct arena *a, struct process **out,
		    struct cj_error *err)
{
	auto_process struct process *p = arena_alloc(a, sizeof(*p));
	if (!p)
		return cj_fail(err, ENOMEM, "prepare the container's process");
	*p = (struct process){
		.config = config,
		.wanted = process,
		.context = *context,
		.no_new_privileges = process->no_new_privileges || context->profile,
		.agent = SECCOMP_AGENT_NULL,
		.argv = vector_of(&process->args),
	};
	if (process->args.count == 0)
		return cj_reject(err, "process.args is empty: there is no program to execute");
	if (check_preserved(context->preserved_fds, err) < 0 || check_labels(p, err) < 0 ||
	    process_adjust_self(process, err) < 0)
		return -err->code;
	struct stat st;
	if (stat("/proc/self/exe", &st) < 0)
		return cj_fail(err, errno, "look at '/proc/self/exe'");
	p->own_program.device = st.st_dev;
	p->own_program.inode = st.st_ino;
	if (prepare_env(p, a, err) < 0)
		return -err->code;
	uint64_t available;
	int rc = p->context.has_user_namespace ? capabilities_of_kernel(&available, err)
					       : capabilities_of_self(&available, err);
	if (rc < 0)
		return rc;
	if (process_caps_resolve(&p->wanted->capabilities, available, a, &p->caps, &p->warnings) <
	    0)
		return cj_fail(err, ENOMEM, "resolve the capabilities");
	/* With an agent no call of ours can follow its filter: process_parts.h. */
	if (context->profile && config->on_linux.seccomp.notifies)
		return cj_reject(err, "a profile and a seccomp filter with SCMP_ACT_NOTIFY exclude "
				      "each other");
	if ((context->profile && annotations_prepare_profile(context->profile, a, &p->tight_filter,
							     &p->warnings, err) < 0) ||
	    process_filter_prepare(p, &config->on_linux.seccomp, a, err) < 0)
		return -err->code;
	*out = take_ptr(p);
	return 0;
}

void process_close(struct process **slot)
{
	if (*slot)
		seccomp_agent_close(&(*slot)->agent);
	*slot = NULL;
}

const struct strings *process_warnings(const struct process *p)
{
	return &p->warnings;
}

int process_agent_fd(const struct process *p)
{
	return p->agent.sock_fd;
}

int process_await(const struct step_link *link, const char *what, struct cj_error *err)
{
	auto_step_msg struct step_msg msg = { 0 };
	if (step_next(link, &msg, err) == 0)
		return cj_fail(err, EPROTO, "%s", what);
	if (err->code != EPIPE)
		return -err->code;
	*err = (struct cj_error){ 0 };
	return 0;
}

/* Kernels before 5.8 have only the second, which all security modules share. */
int process_label(const struct process *p, struct cj_error *err)
{
	char text[512];
	if (p->wanted->selinux_label) {
		int rc = fd_put_file(AT_FDCWD, "/proc/thread-self/attr/exec",
				     p->wanted->selinux_label, err);
		if (rc == -EINVAL)
			(void)cj_hint(
			    err,
			    "the policy of this host has no such label: seinfo(1) lists its types");
		if (rc < 0)
			return cj_wrap(err, "process.selinuxLabel '%s'", p->wanted->selinux_label);
	}
	if (!p->wanted->apparmor_profile)
		return 0;
	int size = snprintf(text, sizeof(text), "exec %s", p->wanted->apparmor_profile);
	if (size < 0 || (size_t)size >= sizeof(text))
		return cj_reject(err, "process.apparmorProfile: the name is too long");
	int rc = fd_put_file(AT_FDCWD, "/proc/thread-self/attr/apparmor/exec", text, err);
	if (rc == -ENOENT)
		rc = fd_put_file(AT_FDCWD, "/proc/thread-self/attr/exec", text, err);
	if (rc == -ENOENT)
		(void)cj_hint(err, "load the profile first: apparmor_parser(8)");
	return rc < 0 ? cj_wrap(err, "process.apparmorProfile") : 0;
}

/*
 * The usual mistake and the usual attack get a clear message.  This is no barrier: a "#!" line of
 * the image may lead to /proc/self/exe, or the file be exchanged before execve(2).  Then the sealed
 * copy runs as the container's program.  It has no right and no descriptor that this one would not
 * have, and can't be written to.  execveat(2) of a checked descriptor would take "$0" from scripts.
 */
static int refuse_ourselves(const struct process *p, struct cj_error *err)
{
	struct stat st;
	if (stat(p->executable, &st) == 0 && st.st_dev == p->own_program.device &&
	    st.st_ino == p->own_program.inode)
		return cj_reject_as(err, EACCES,
				    "open executable '%s': permission denied: it leads to "
				    "cejail-oci itself",
				    p->executable);
	return 0;
}

int process_find(struct process *p, struct cj_error *err)
{
	if (process_program_find(p->argv[0], &p->wanted->env, p->executable, err) < 0)
		return -err->code;
	if (p->home[0])
		process_program_home(p->wanted->user.uid, p->home + sizeof(PROCESS_HOME) - 1);
	return refuse_ourselves(p, err);
}

static int confine(const struct process *p, bool is_hook, struct cj_error *err)
{
	if (process_set_limits(p->wanted, 0, err) < 0)
		return -err->code;
	if (p->context.profile && landlock_apply_tree(err) < 0)
		return cj_wrap(err, "annotation '" ANNOTATION_PROFILE "'");
	if (process_filter_load(p, is_hook, err) < 0)
		return -err->code;
	return p->context.profile ? annotations_load_profile(&p->tight_filter, err) : 0;
}

int process_confine_hook(const struct process *p, struct cj_error *err)
{
	return confine(p, true, err);
}

const char *const *process_env(const struct process *p)
{
	return p->env;
}

int process_execute(const struct process *p, struct cj_error *err)
{
	if (confine(p, false, err) < 0)
		return -err->code;
	/* From here on the filter applies: nothing else may be called on the way to the program. */
	execve(p->executable, (char *const *)p->argv, (char *const *)p->env);
	(void)!cj_fail(err, errno, "execute '%s'", p->executable);
	return cj_hint_for(err, ENOENT,
			   "the file exists; its interpreter, the first line of a script or the "
			   "dynamic linker, does not");
}
