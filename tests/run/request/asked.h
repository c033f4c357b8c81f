/* SPDX-License-Identifier: Apache-2.0 */
/* asked - what the tests of requests share: one request, what it is applied to, and its refusal. */
#pragma once

#include "runtime/run/request/request.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiles/settings.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct request_caps caps = {
	.body_bytes = 32u << 20, .code_bytes = 1000, .file_bytes = 100, .stdin_bytes = 10
};

struct asked {
	struct arena arena;
	struct request request;
	struct config config;
	struct cj_error err;
};

static inline int setup(void **state)
{
	static struct asked a;
	memset(&a, 0, sizeof(a));
	config_init(&a.config);
	*state = &a;
	return 0;
}

static inline int teardown(void **state)
{
	struct asked *a = *state;
	arena_fini(&a->arena);
	config_fini(&a->config);
	return 0;
}

static inline int parse(struct asked *a, const char *text)
{
	a->err = (struct cj_error){ 0 };
	return request_parse((struct blob){ text, strlen(text) }, &caps, &a->arena, &a->request,
			     &a->err);
}

static inline void assert_taken(struct asked *a, const char *text)
{
	if (parse(a, text) < 0)
		fail_msg("%s in %s", a->err.msg, text);
}

/* {"profile": "python", "code": "1", REST}. */
static inline const char *with(struct asked *a, const char *rest)
{
	const char *text =
	    arena_printf(&a->arena, "{\"profile\": \"python\", \"code\": \"1\", %s}", rest);
	assert_non_null(text);
	return text;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
