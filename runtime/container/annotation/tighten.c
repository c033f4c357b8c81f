/* SPDX-License-Identifier: Apache-2.0 */
/* The restrictions of a profile. */
#include "runtime/container/annotation/tighten.h"

#include <linux/seccomp.h>
#include <string.h>

#include "runtime/kernel/seccomp/policy.h"
#include "profiles/profile.h"
#include "runtime/base/sys.h"
#include "runtime/kernel/process/landlock.h"
#include "runtime/kernel/seccomp/filter.h"

/* No supervisor answers here: the kernel would refuse with ENOSYS, which programs take for an old
 * kernel. */
static void refuse_notified(struct sock_filter *insns, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (insns[i].code == (BPF_RET | BPF_K) &&
		    (insns[i].k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF)
			insns[i].k = SECCOMP_RET_ERRNO | EPERM;
}

static int copy_filter(const struct filter *filter, struct arena *a, struct sock_fprog *out,
		       struct cj_error *err)
{
	struct sock_filter *insns = arena_array(a, filter->ninsns, sizeof(*insns));

	if (!insns)
		return cj_fail(err, ENOMEM, "prepare the profile's filter");
	filter_settle(filter, insns); /* the network is the engine's: inet sockets are allowed */
	refuse_notified(insns, filter->ninsns);
	*out = (struct sock_fprog){ .len = filter->ninsns, .filter = insns };
	return 0;
}

static int compile(const struct config *c, struct arena *a, struct sock_fprog *out,
		   struct cj_error *err)
{
	const struct policy *policy;
	struct filter filter;

	if (strcmp(c->seccomp, "default") == 0) {
		filter_builtin(&filter);
		return copy_filter(&filter, a, out, err);
	}
	if (policy_load(c->seccomp, a, &policy, err) < 0 ||
	    filter_compile(policy, a, &filter, err) < 0)
		return -err->code;
	return copy_filter(&filter, a, out, err);
}

int tighten_prepare(const char *profile, struct arena *a, struct sock_fprog *out,
		    struct strings *warnings, struct cj_error *err)
{
	__attribute__((cleanup(config_fini))) struct config c;

	config_init(&c);
	if (profile_load(&c, profile, err) < 0 || compile(&c, a, out, err) < 0)
		return cj_wrap(err, "annotation 'io.cejail.profile'");
	if (landlock_abi() == 0 &&
	    strings_add(warnings, a, "io.cejail.profile: this kernel has no Landlock") < 0)
		return cj_fail(err, ENOMEM, "prepare the profile");
	return 0;
}

int tighten_tree(struct cj_error *err)
{
	int rc = landlock_apply_tree(err);

	return rc < 0 ? cj_wrap(err, "annotation 'io.cejail.profile'") : 0;
}

int tighten_load(const struct sock_fprog *filter, struct cj_error *err)
{
	struct sock_fprog loaded = *filter;

	if (sys_seccomp(SECCOMP_SET_MODE_FILTER, 0, &loaded) == 0)
		return 0;
	int rc = cj_fail(err, errno, "annotation 'io.cejail.profile': load the filter");
	cj_hint(err, "linux.seccomp of config.json must allow seccomp(2)");
	return rc;
}
