/* SPDX-License-Identifier: Apache-2.0 */
/* policy_text - an arena for each test, and policies parsed from text into it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "runtime/kernel/seccomp/policy.h"

static struct arena arena;

static inline int setup(void **state)
{
	(void)state;
	arena = (struct arena){ 0 };
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

static inline const struct policy *parse(const char *text)
{
	struct cj_error err = { 0 };
	const struct policy *policy = NULL;
	if (policy_parse("p.json", text, strlen(text), &arena, &policy, &err) < 0)
		fail_msg("%s", err.msg);
	return policy;
}
