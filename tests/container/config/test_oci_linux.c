/* SPDX-License-Identifier: Apache-2.0 */
/* linux.seccomp: every action, operator, architecture and flag of the specification is read. */
#include "runtime/container/config/oci_linux.h"

#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/container/config/oci_sample.h"

static struct arena arena;
static struct cj_error err;
static struct oci_config config;

static int empty_arena(void **state)
{
	(void)state;
	arena_fini(&arena);
	return 0;
}

static int read_filter(const char *members)
{
	char text[4096];

	(void)snprintf(text, sizeof(text), SAMPLE_SPACES ", \"seccomp\": {%s}", members);
	err = (struct cj_error){ 0 };
	return sample_read(&(struct sample){ .linux_ = text }, &arena, &config, &err);
}

static const struct oci_seccomp *take(const char *members)
{
	if (read_filter(members) < 0)
		fail_msg("%s", err.msg);
	return &config.on_linux.seccomp;
}

static void a_filter_is_read_whole(void **state)
{
	const struct oci_seccomp *s =
	    take("\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38,"
		 " \"architectures\": [\"SCMP_ARCH_X86_64\", \"SCMP_ARCH_X32\"],"
		 " \"flags\": [\"SECCOMP_FILTER_FLAG_LOG\", \"SECCOMP_FILTER_FLAG_SPEC_ALLOW\"],"
		 " \"listenerPath\": \"/run/agent\", \"listenerMetadata\": \"m\","
		 " \"syscalls\": [{\"names\": [\"read\", \"write\"],"
		 " \"action\": \"SCMP_ACT_ALLOW\", \"args\": []},"
		 " {\"names\": [\"clone\"], \"action\": \"SCMP_ACT_NOTIFY\", \"errnoRet\": 1,"
		 " \"args\": [{\"index\": 0, \"value\": 2114060288, \"valueTwo\": 0,"
		 " \"op\": \"SCMP_CMP_MASKED_EQ\"}, {\"index\": 5,"
		 " \"value\": 18446744073709551615, \"op\": \"SCMP_CMP_NE\"}]}]");
	const struct oci_seccomp_rule *rule = &s->rules[1];
	(void)state;

	assert_true(s->is_given && s->default_action == POLICY_ERRNO &&
		    s->default_errno_ret.is_set && s->default_errno_ret.value == 38);
	assert_int_equal(s->narchitectures, 2);
	assert_int_equal(s->flags, 2 | 4);
	assert_string_equal(s->listener_path, "/run/agent");
	assert_string_equal(s->listener_metadata, "m");
	assert_true(s->notifies && s->nrules == 2);
	assert_int_equal(s->rules[0].names.count, 2);
	assert_true(s->rules[0].nargs == 0 && !s->rules[0].errno_ret.is_set);
	assert_true(rule->action == POLICY_NOTIFY && rule->errno_ret.value == 1);
	assert_true(rule->args[0].op == POLICY_MASKED_EQ && rule->args[0].value == 2114060288 &&
		    rule->args[0].value_two == 0);
	assert_true(rule->args[1].index == 5 && rule->args[1].value == UINT64_MAX &&
		    rule->args[1].op == POLICY_NE);
}

static void every_architecture_is_the_one_that_libseccomp_means(void **state)
{
	(void)state;
	for (size_t i = 0; i < oci_seccomp_archs.count; i++) {
		const struct oci_name *arch = &oci_seccomp_archs.items[i];
		char name[32] = "", *at = name;
		for (const char *c = arch->name + strlen("SCMP_ARCH_"); *c; c++)
			*at++ = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
		if (seccomp_arch_resolve_name(name) != arch->value)
			fail_msg("%s is %#x", arch->name, arch->value);
	}
}

static void every_action_is_read(void **state)
{
	char text[128];
	(void)state;

	for (size_t i = 0; i < oci_seccomp_actions.count; i++) {
		const struct oci_name *action = &oci_seccomp_actions.items[i];
		(void)snprintf(text, sizeof(text), "\"defaultAction\": \"%s\"", action->name);
		if (action->value == POLICY_NOTIFY)
			assert_int_equal(read_filter(text), -EINVAL);
		else
			assert_int_equal(take(text)->default_action, action->value);
	}
}

static void mistakes_are_refused(void **state)
{
	static const struct {
		const char *members, *end;
	} rows[] = {
		{ "\"syscalls\": []", "linux.seccomp.defaultAction is missing" },
		{ "\"defaultAction\": \"ALLOW\"", "cejail-oci has no 'ALLOW'" },
		{ "\"defaultAction\": \"SCMP_ACT_NOTIFY\"", "must not be SCMP_ACT_NOTIFY" },
		{ "\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [\"x86_64\"]",
		  "has no 'x86_64'" },
		{ "\"defaultAction\": \"SCMP_ACT_ALLOW\", \"flags\": [\"NEW_LISTENER\"]",
		  "has no 'NEW_LISTENER'" },
		{ "\"defaultAction\": \"SCMP_ACT_ALLOW\", \"listenerPath\": \"agent\"",
		  "'agent' is not an absolute path" },
		{ "\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 65536",
		  "is too large" },
		{ "\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": -1", "'-1'" },
		{ "\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [],"
		  " \"action\": \"SCMP_ACT_KILL\"}]",
		  "a rule needs names" },
		{ "\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"a\"]}]",
		  "linux.seccomp.syscalls.action is missing" },
		{ "\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"a\"],"
		  " \"action\": \"SCMP_ACT_NOTIFY\"}]",
		  "SCMP_ACT_NOTIFY needs listenerPath" },
		{ "\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"a\"],"
		  " \"action\": \"SCMP_ACT_KILL\", \"args\": [{\"index\": 6, \"value\": 0,"
		  " \"op\": \"SCMP_CMP_EQ\"}]}]",
		  "is too large" },
		{ "\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [{\"names\": [\"a\"],"
		  " \"action\": \"SCMP_ACT_KILL\", \"args\": [{\"index\": 0, \"value\": 0,"
		  " \"op\": \"EQ\"}]}]",
		  "there is no 'EQ'" },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (read_filter(rows[i].members) != -EINVAL || !strstr(err.msg, rows[i].end))
			fail_msg("%s: '%s'", rows[i].members, err.msg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filter_is_read_whole),
		cmocka_unit_test(every_architecture_is_the_one_that_libseccomp_means),
		cmocka_unit_test(every_action_is_read),
		cmocka_unit_test(mistakes_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, empty_arena);
}
