/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/kernel/seccomp/call_list.h"

#include <sys/syscall.h>

#include "runtime/kernel/seccomp/filter_parts.h"

/* The condition of a half, for a whole argument. */
static struct policy_arg arg_of(const struct call_check *check)
{
	const size_t offset = check->half - CALL_LOW(0);
	const unsigned shift = offset % sizeof(uint64_t) * 8; /* 32 for the high half */
	const unsigned index = (unsigned)(offset / sizeof(uint64_t));
	if (check->is_above)
		return (struct policy_arg){ index, POLICY_LOW_GT, check->value, 0 };
	return (struct policy_arg){ index, POLICY_MASKED_EQ, (uint64_t)check->mask << shift,
				    (uint64_t)check->value << shift };
}

static int add_rule(struct filter_plan *plan, const struct call_rule *rule, struct arena *a)
{
	struct policy_arg args[CALL_CHECKS_MAX];
	size_t count = 0;
	for (; count < CALL_CHECKS_MAX && rule->checks[count].half > 0; count++)
		args[count] = arg_of(&rule->checks[count]);
	const struct filter_branch branch = { args, count, SECCOMP_RET_ALLOW };
	return filter_plan_add(plan, a, rule->number, &branch);
}

int call_list_load(const struct call_list *list, const char *whose, struct cj_error *err)
{
	auto_arena struct arena a = { 0 };
	struct filter_plan *plan = filter_plan_new(&a, SECCOMP_RET_ERRNO | (uint32_t)EPERM);
	int rc = plan ? 0 : -ENOMEM;
	for (size_t i = 0; rc == 0 && i < list->nrules; i++)
		rc = add_rule(plan, &list->rules[i], &a);
	if (rc < 0)
		return cj_fail(err, -rc, "write the seccomp filter of %s", whose);
	for (size_t i = 0; i < list->nallowed; i++)
		plan->calls[list->allowed[i]].otherwise = SECCOMP_RET_ALLOW;
	/* its flags can't be seen: libc uses clone(2) then */
	plan->calls[SYS_clone3].otherwise = SECCOMP_RET_ERRNO | (uint32_t)ENOSYS;
	return filter_plan_load(plan, whose, err);
}
