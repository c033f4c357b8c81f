/* SPDX-License-Identifier: Apache-2.0 */
/* The process of exec. */
#include "runtime/container/exec/exec.h"

#include <fcntl.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

static int reject_memory(struct cj_error *err)
{
	return cj_fail(err, ENOMEM, "read the command line of exec");
}

/* A name stands once: programs read the first, shells the last of two. */
static int merge_env(const struct strings *flags, const struct strings *env, struct arena *a,
		     struct strings *out, struct cj_error *err)
{
	struct strings merged = { 0 };
	for (size_t i = 0; i < flags->count; i++)
		if (!strchr(flags->items[i], '=') || flags->items[i][0] == '=')
			return cj_reject(err, "--env '%s' is not NAME=VALUE", flags->items[i]);
	for (size_t i = 0; i < env->count; i++)
		if (!strings_find_variable(flags, env->items[i]) &&
		    strings_add(&merged, a, env->items[i]) < 0)
			return reject_memory(err);
	if (strings_add_all(&merged, a, flags) < 0)
		return reject_memory(err);
	*out = merged;
	return 0;
}

/* Lists of the container are shared with its configuration: a copy grows. */
static int add_caps(const struct strings *flags, struct arena *a, struct strings *set,
		    struct cj_error *err)
{
	struct strings copy = { 0 };
	if (strings_add_all(&copy, a, set) < 0 || strings_add_all(&copy, a, flags) < 0)
		return reject_memory(err);
	*set = copy;
	return 0;
}

static int merge_caps(const struct strings *flags, struct arena *a, struct oci_capabilities *caps,
		      struct cj_error *err)
{
	if (flags->count == 0)
		return 0;
	caps->is_given = true;
	if (add_caps(flags, a, &caps->bounding, err) < 0 ||
	    add_caps(flags, a, &caps->effective, err) < 0 ||
	    add_caps(flags, a, &caps->permitted, err) < 0)
		return -err->code;
	return 0;
}

static int merge_groups(const struct strings *flags, struct arena *a, struct oci_user *user,
			struct cj_error *err)
{
	if (flags->count == 0)
		return 0;
	uint32_t *groups = arena_array(a, user->ngroups + flags->count, sizeof(*groups));
	if (!groups)
		return reject_memory(err);
	if (user->ngroups > 0)
		memcpy(groups, user->groups, user->ngroups * sizeof(*groups));
	for (size_t i = 0; i < flags->count; i++) {
		uint64_t gid;
		if (parse_u64(flags->items[i], 0, OCI_ID_MAX, &gid, err) < 0)
			return cj_wrap(err, "--additional-gids");
		groups[user->ngroups + i] = (uint32_t)gid;
	}
	user->groups = groups;
	user->ngroups += flags->count;
	return 0;
}

static int merge_text(const char *flag, struct arena *a, const char **out, struct cj_error *err)
{
	if (!flag)
		return 0;
	*out = arena_strdup(a, flag);
	return *out ? 0 : reject_memory(err);
}

int exec_process_merge(const struct oci_options *o, const struct oci_process *of_container,
		       struct arena *a, struct oci_process *out, struct cj_error *err)
{
	struct oci_process p = *of_container;
	p.args = (struct strings){ 0 };
	p.has_terminal = o->wants_tty;
	p.no_new_privileges = p.no_new_privileges || o->no_new_privs;
	if (o->operands.count == 0)
		return cj_reject(err, "exec needs a command, or --process");
	if (strings_add_all(&p.args, a, &o->operands) < 0)
		return reject_memory(err);
	if (merge_env(&o->env, &of_container->env, a, &p.env, err) < 0)
		return -err->code;
	if (o->user && oci_user_parse(o->user, &p.user.uid, &p.user.gid, err) < 0)
		return cj_wrap(err, "--user");
	if (merge_groups(&o->additional_gids, a, &p.user, err) < 0 ||
	    merge_caps(&o->caps, a, &p.capabilities, err) < 0 ||
	    merge_text(o->cwd, a, &p.cwd, err) < 0 ||
	    merge_text(o->apparmor, a, &p.apparmor_profile, err) < 0 ||
	    merge_text(o->process_label, a, &p.selinux_label, err) < 0)
		return -err->code;
	if (p.cwd[0] != '/')
		return cj_reject(err, "--cwd '%s' is not absolute", p.cwd);
	*out = p;
	return 0;
}

/* It may be a pipe, /dev/fd/N or a file that the engine has just written. */
int exec_process_file(const struct oci_options *o, struct arena *a, struct oci_process *out,
		      struct cj_error *err)
{
	char *text;
	size_t size;

	if (!o->process)
		return 0;
	auto_fd int fd = open(o->process, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return cj_fail(err, errno, "--process: open '%s'", o->process);
	const struct {
		bool is_given;
		const char *name;
	} flags[] = {
		{ o->operands.count > 0, "a command" },
		{ o->user, "--user" },
		{ o->cwd, "--cwd" },
		{ o->env.count > 0, "--env" },
		{ o->caps.count > 0, "--cap" },
		{ o->apparmor, "--apparmor" },
		{ o->process_label, "--process-label" },
		{ o->no_new_privs, "--no-new-privs" },
		{ o->additional_gids.count > 0, "--additional-gids" },
	};
	for (size_t i = 0; i < COUNT_OF(flags); i++)
		if (flags[i].is_given)
			return cj_reject(err, "exec: --process and %s exclude each other",
					 flags[i].name);
	if (fd_read_all(fd, OCI_CONFIG_BYTES_MAX, a, &text, &size, o->process, err) < 0 ||
	    oci_process_read(o->process, text, size, a, out, err) < 0)
		return -err->code;
	out->has_terminal = out->has_terminal || o->wants_tty;
	return 0;
}
