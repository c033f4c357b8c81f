/* SPDX-License-Identifier: Apache-2.0 */
/* The OCI / Docker seccomp format: what is read, what is reported, what is refused and where. */
#include "runtime/kernel/seccomp/policy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "tests/kernel/seccomp/policy_text.h"

#if defined(__x86_64__)
#define NATIVE "SCMP_ARCH_X86_64"
#define GO     "amd64"
#define SUB    "SCMP_ARCH_X32"
#else
#define NATIVE "SCMP_ARCH_AARCH64"
#define GO     "arm64"
#define SUB    "SCMP_ARCH_ARM"
#endif

/* `rules` are the items of "syscalls" under a default of ERRNO. */
static const char *file_with(const char *rules)
{
	const char *text = arena_printf(
	    &arena, "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"syscalls\": [%s]}", rules);
	assert_non_null(text);
	return text;
}

static const struct policy *parse_rules(const char *rules)
{
	return parse(file_with(rules));
}

static void expect_refusal(const char *text, const char *message)
{
	struct cj_error err = { 0 };
	const struct policy *policy = NULL;
	assert_int_equal(policy_parse("p.json", text, strlen(text), &arena, &policy, &err),
			 -EINVAL);
	assert_string_equal(err.msg, message);
	assert_null(policy);
}

/* --- what is read ------------------------------------------------------------------- */

static void a_rule_keeps_its_names_action_and_conditions(void **state)
{
	(void)state;
	const struct policy *p = parse(
	    "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"defaultErrnoRet\": 38, \"syscalls\": ["
	    "{\"names\": [\"read\", \"write\"], \"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": 13,"
	    " \"args\": [{\"index\": 0, \"value\": 18446744073709551615, \"op\": \"SCMP_CMP_NE\"},"
	    " {\"index\": 5, \"value\": 255, \"valueTwo\": 16, \"op\": \"SCMP_CMP_MASKED_EQ\"}]}]}");
	assert_string_equal(p->path, "p.json");
	assert_int_equal(p->default_action, POLICY_ALLOW);
	assert_int_equal(p->default_errno, 38);
	assert_int_equal(p->nrules, 1);
	assert_int_equal(p->rules[0].action, POLICY_ERRNO);
	assert_int_equal(p->rules[0].errno_value, 13);
	assert_int_equal(p->rules[0].names.count, 2);
	assert_string_equal(p->rules[0].names.items[1], "write");
	assert_int_equal(p->rules[0].nargs, 2);
	assert_int_equal(p->rules[0].args[0].op, POLICY_NE);
	assert_true(p->rules[0].args[0].value == UINT64_MAX);
	assert_int_equal(p->rules[0].args[1].index, 5);
	assert_int_equal(p->rules[0].args[1].value, 255);
	assert_int_equal(p->rules[0].args[1].value_two, 16);
	assert_int_equal(p->notes.count, 0);
}

static void an_errno_that_is_not_given_is_eperm(void **state)
{
	(void)state;
	const struct policy *p =
	    parse("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38, \"syscalls\": ["
		  "{\"names\": [\"read\"], \"action\": \"SCMP_ACT_ERRNO\"}]}");
	assert_int_equal(p->default_errno, 38);
	assert_int_equal(p->rules[0].errno_value, EPERM);
	assert_int_equal(parse("{\"defaultAction\": \"SCMP_ACT_ERRNO\"}")->default_errno, EPERM);
}

static void every_action_has_its_meaning(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum policy_action action;
	} rows[] = {
		{ "SCMP_ACT_ALLOW", POLICY_ALLOW },
		{ "SCMP_ACT_ERRNO", POLICY_ERRNO },
		{ "SCMP_ACT_KILL", POLICY_KILL_PROCESS },
		{ "SCMP_ACT_KILL_THREAD", POLICY_KILL_PROCESS },
		{ "SCMP_ACT_KILL_PROCESS", POLICY_KILL_PROCESS },
		{ "SCMP_ACT_LOG", POLICY_LOG },
		{ "SCMP_ACT_TRAP", POLICY_TRAP },
		{ "SCMP_ACT_NOTIFY", POLICY_ERRNO },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *rule = arena_printf(
		    &arena, "{\"names\": [\"read\"], \"action\": \"%s\"}", rows[i].name);
		assert_int_equal(parse_rules(rule)->rules[0].action, rows[i].action);
	}
}

static void every_operator_has_its_meaning(void **state)
{
	(void)state;
	static const char *const names[] = { "NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ" };
	for (int op = POLICY_NE; op <= POLICY_MASKED_EQ; op++) {
		const char *rule = arena_printf(
		    &arena,
		    "{\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\", \"args\": "
		    "[{\"index\": 0, \"value\": 1, \"valueTwo\": 1, \"op\": \"SCMP_CMP_%s\"}]}",
		    names[op]);
		assert_int_equal(parse_rules(rule)->rules[0].args[0].op, op);
	}
}

static void old_files_name_one_call_and_write_null_for_nothing(void **state)
{
	(void)state;
	const struct policy *p = parse(
	    "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"architectures\": null, \"archMap\": null,"
	    " \"flags\": null, \"comment\": null, \"syscalls\": [{\"name\": \"accept\","
	    " \"action\": \"SCMP_ACT_ALLOW\", \"args\": null, \"includes\": null,"
	    " \"excludes\": null, \"comment\": \"\", \"errnoRet\": null}]}");
	assert_int_equal(p->nrules, 1);
	assert_string_equal(p->rules[0].names.items[0], "accept");
	assert_int_equal(p->notes.count, 0);
	assert_int_equal(parse("{\"defaultAction\": \"SCMP_ACT_LOG\", \"syscalls\": null}")->nrules,
			 0);
}

static void podmans_errno_names_are_understood(void **state)
{
	(void)state;
	const struct policy *p = parse(
	    "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38, \"defaultErrno\": "
	    "\"ENOSYS\", \"syscalls\": [{\"names\": [\"bdflush\"], \"action\": \"SCMP_ACT_ERRNO\", "
	    "\"errnoRet\": 1, \"errno\": \"EPERM\"}, {\"names\": [\"bpf\"], \"action\": "
	    "\"SCMP_ACT_ERRNO\", \"errno\": \"EAFNOSUPPORT\"}, {\"names\": [\"read\"], \"action\": "
	    "\"SCMP_ACT_ALLOW\", \"errno\": \"\"}]}");
	assert_int_equal(p->default_errno, ENOSYS);
	assert_int_equal(p->rules[0].errno_value, EPERM);
	assert_int_equal(p->rules[1].errno_value, EAFNOSUPPORT);
}

static size_t rules_left(const char *conditions)
{
	const char *rule = arena_printf(
	    &arena, "{\"names\": [\"read\"], \"action\": \"SCMP_ACT_ALLOW\", %s}", conditions);
	return parse_rules(rule)->nrules;
}

static void includes_and_excludes_are_decided_for_a_jail_on_this_host(void **state)
{
	(void)state;
	assert_int_equal(rules_left("\"includes\": {}"), 1);
	assert_int_equal(rules_left("\"includes\": {\"caps\": []}"), 1);
	assert_int_equal(rules_left("\"includes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}"), 0);
	assert_int_equal(rules_left("\"excludes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}"), 1);
	assert_int_equal(rules_left("\"includes\": {\"arches\": [\"s390\", \"" GO "\"]}"), 1);
	assert_int_equal(rules_left("\"includes\": {\"arches\": [\"s390\"]}"), 0);
	assert_int_equal(rules_left("\"excludes\": {\"arches\": [\"s390\", \"" GO "\"]}"), 0);
	assert_int_equal(rules_left("\"excludes\": {\"arches\": [\"s390\"]}"), 1);
	assert_int_equal(rules_left("\"includes\": {\"minKernel\": \"4.8\"}"), 1);
	assert_int_equal(rules_left("\"includes\": {\"minKernel\": \"900.0\"}"), 0);
	assert_int_equal(rules_left("\"excludes\": {\"minKernel\": \"4.8\"}"), 0);
	assert_int_equal(rules_left("\"includes\": {\"minKernel\": \"\"}"), 1);
	assert_int_equal(
	    rules_left("\"includes\": {\"minKernel\": \"4.8\", \"arches\": [\"s390\"]}"), 0);
}

static void the_shipped_file_reads_without_a_note(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	const struct policy *p;
	if (policy_load("profiles/seccomp/default.json", &arena, &p, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(p->notes.count, 0);
	assert_int_equal(p->default_action, POLICY_ERRNO);
	assert_int_equal(p->default_errno, ENOSYS);
	assert_true(p->nrules > 50);
}

/* --- what is reported ------------------------------------------------------------------ */

static void expect_note(const char *text, const char *note)
{
	const struct policy *p = parse(text);
	assert_int_equal(p->notes.count, 1);
	assert_string_equal(p->notes.items[0], note);
}

static void an_unsupported_request_of_a_file_is_noted(void **state)
{
	(void)state;
	expect_note("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [\"" NATIVE
		    "\", \"" SUB "\"]}",
		    "p.json: 32-bit system calls stay closed");
	expect_note("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"archMap\": [{\"architecture\": "
		    "\"" NATIVE "\", \"subArchitectures\": [\"" SUB "\"]}]}",
		    "p.json: 32-bit system calls stay closed");
	expect_note("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": "
		    "[\"SCMP_ARCH_S390X\"]}",
		    "p.json: not written for this architecture, " NATIVE);
	expect_note("{\"defaultAction\": \"SCMP_ACT_ALLOW\",\n\"flags\": "
		    "[\"SECCOMP_FILTER_FLAG_LOG\"]}",
		    "p.json:2: flag 'SECCOMP_FILTER_FLAG_LOG' is not used");
	expect_note("{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"listenerPath\": \"/run/agent\"}",
		    "p.json:1: 'listenerPath' is not used: cejail's supervisor answers");
	expect_note(file_with("\n{\"names\": [\"read\"],\n\"action\": \"SCMP_ACT_NOTIFY\"}"),
		    "p.json:3: SCMP_ACT_NOTIFY: cejail's supervisor answers, and refuses");
}

/* --- what is refused --------------------------------------------------------------------- */

static void an_invalid_policy_is_refused_with_its_place(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "[]", "p.json:1:1: a seccomp profile must be an object, not an array" },
		{ "{}", "p.json:1:1: defaultAction is missing" },
		{ "{\"defaultAction\": 1}",
		  "p.json:1:19: defaultAction must be a string, not a number" },
		{ "{\"defaultAction\": \"ALLOW\"}",
		  "p.json:1:19: 'ALLOW' is not an action cejail has" },
		{ "{\"defaultAction\": \"SCMP_ACT_TRACE\"}",
		  "p.json:1:19: 'SCMP_ACT_TRACE' is not an action cejail has" },
		{ "{\"defaultaction\": \"SCMP_ACT_ALLOW\"}",
		  "p.json:1:2: unknown key 'defaultaction'" },
		{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": {}}",
		  "p.json:1:49: syscalls must be an array of objects, not an object" },
		{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": [\"X86\"]}",
		  "p.json:1:55: architectures: unknown architecture 'X86'" },
		{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"archMap\": [{\"arch\": \"x\"}]}",
		  "p.json:1:50: unknown key 'archMap.arch'" },
		{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"flags\": [\"LOG\"]}",
		  "p.json:1:47: unknown flag 'LOG'" },
		{ "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 1, "
		  "\"defaultErrno\": \"ENOSYS\"}",
		  "p.json:1:1: the error's number and name differ" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_refusal(rows[i].text, rows[i].message);
}

#define NAMES "\"names\": [\"read\"]"
#define ALLOW "\"action\": \"SCMP_ACT_ALLOW\""
#define ERRNO "\"action\": \"SCMP_ACT_ERRNO\""

static void a_bad_rule_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *rule, *message;
	} rows[] = {
		{ "7", "syscalls must be an array of objects, not a number" },
		{ "{" NAMES "}", "syscalls.action is missing" },
		{ "{" ALLOW "}", "a rule needs 'names'" },
		{ "{" ALLOW ", \"names\": []}", "a rule needs 'names'" },
		{ "{" ALLOW ", \"names\": [7]}",
		  "syscalls.names must be an array of strings, not a number" },
		{ "{" ALLOW ", \"names\": [\"\"]}", "not the name of a system call" },
		{ "{" ALLOW ", \"names\": [\"READ\"]}", "not the name of a system call" },
		{ "{" ALLOW ", \"names\": [\"a b\"]}", "not the name of a system call" },
		{ "{" ALLOW ", " NAMES ", \"arg\": []}", "unknown key 'syscalls.arg'" },
		{ "{" ALLOW ", " NAMES ", \"errnoRet\": 1}",
		  "'errnoRet' only goes with SCMP_ACT_ERRNO" },
		{ "{" ERRNO ", " NAMES ", \"errnoRet\": 1, \"errno\": \"EINVAL\"}",
		  "the error's number and name differ" },
		{ "{" ERRNO ", " NAMES ", \"errno\": \"ENONSENSE\"}",
		  "unknown error name 'ENONSENSE'" },
		{ "{" ALLOW ", " NAMES ", \"includes\": {\"cap\": []}}",
		  "unknown key 'syscalls.includes.cap'" },
		{ "{" ALLOW ", " NAMES ", \"includes\": {\"caps\": [1]}}",
		  "syscalls.includes.caps must be an array of strings, not a number" },
		{ "{" ALLOW ", " NAMES ", \"includes\": {\"minKernel\": \"new\"}}",
		  "not a kernel release: 'new'" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cj_error err = { 0 };
		const struct policy *p = NULL;
		const char *text = file_with(rows[i].rule);
		assert_int_equal(policy_parse("p", text, strlen(text), &arena, &p, &err), -EINVAL);
		assert_non_null(strstr(err.msg, rows[i].message));
		assert_memory_equal(err.msg, "p:1:", 4);
	}
}

static void no_key_takes_a_value_of_another_kind(void **state)
{
	(void)state;
	static const char *const members[] = {
		"\"architectures\": \"SCMP_ARCH_X86_64\"",
		"\"architectures\": [7]",
		"\"archMap\": {}",
		"\"archMap\": [7]",
		"\"archMap\": [{\"architecture\": 7}]",
		"\"flags\": \"SECCOMP_FILTER_FLAG_LOG\"",
		"\"flags\": [7]",
		"\"listenerPath\": 7",
		"\"defaultErrno\": 7",
		"\"defaultErrnoRet\": \"7\"",
		"\"syscalls\": [{\"action\": 7, " NAMES "}]",
		"\"syscalls\": [{" ALLOW ", \"names\": \"read\"}]",
		"\"syscalls\": [{" ALLOW ", " NAMES ", \"args\": {}}]",
		"\"syscalls\": [{" ALLOW ", " NAMES ", \"args\": [7]}]",
		"\"syscalls\": [{" ALLOW ", " NAMES ", \"args\": [{\"index\": 0, \"value\": 1, "
		"\"op\": 7}]}]",
		"\"syscalls\": [{" ALLOW ", " NAMES ", \"includes\": 7}]",
		"\"syscalls\": [{" ALLOW ", " NAMES ", \"excludes\": 7}]",
		"\"syscalls\": [{" ALLOW ", " NAMES ", \"includes\": {\"arches\": 7}}]",
		"\"syscalls\": [{" ALLOW ", " NAMES ", \"includes\": {\"minKernel\": 7}}]",
	};
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		struct cj_error err = { 0 };
		const struct policy *p = NULL;
		const char *text =
		    arena_printf(&arena, "{\"defaultAction\": \"SCMP_ACT_ALLOW\", %s}", members[i]);
		assert_int_equal(policy_parse("p", text, strlen(text), &arena, &p, &err), -EINVAL);
		if (!strstr(err.msg, " must be a"))
			print_error("%s: %s\n", members[i], err.msg);
		assert_non_null(strstr(err.msg, " must be a"));
		assert_null(p);
	}
}

/* Programs in Go write null where nothing is set. */
static void null_stands_for_nothing(void **state)
{
	(void)state;
	const struct policy *with =
	    parse("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": null,"
		  " \"defaultErrno\": \"\", \"architectures\": null, \"archMap\": null,"
		  " \"flags\": null, \"syscalls\": [{" ALLOW ", \"name\": \"read\","
		  " \"names\": null, \"args\": null, \"includes\": {\"arches\": null,"
		  " \"minKernel\": \"\"}, \"excludes\": null}]}");
	assert_int_equal(with->default_action, POLICY_ERRNO);
	assert_int_equal(with->default_errno, EPERM);
	assert_int_equal(with->nrules, 1);
	assert_int_equal(with->notes.count, 0);
}

static void numbers_are_whole_and_in_range(void **state)
{
	(void)state;
	static const char *const numbers[] = { "4096", "-1",    "1.0",
					       "1e2",  "\"1\"", "99999999999999999999" };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct cj_error err = { 0 };
		const struct policy *p = NULL;
		const char *rule =
		    arena_printf(&arena, "{" ERRNO ", " NAMES ", \"errnoRet\": %s}", numbers[i]);
		const char *text = file_with(rule);
		assert_int_equal(policy_parse("p", text, strlen(text), &arena, &p, &err), -EINVAL);
	}
}

static void a_bad_condition_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *args, *message;
	} rows[] = {
		{ "{}", "syscalls.args must be an array of objects, not an object" },
		{ "[1]", "syscalls.args must be an array of objects, not a number" },
		{ "[{}]", "syscalls.args.index is missing" },
		{ "[{\"index\": 0, \"value\": 1}]", "syscalls.args.op is missing" },
		{ "[{\"index\": 0, \"op\": \"SCMP_CMP_EQ\"}]", "syscalls.args.value is missing" },
		{ "[{\"index\": 6, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"}]", "6" },
		{ "[{\"index\": 0, \"value\": 18446744073709551616, \"op\": \"SCMP_CMP_EQ\"}]",
		  "18446744073709551616" },
		{ "[{\"index\": 0, \"value\": 1, \"op\": \"==\"}]",
		  "syscalls.args.op: there is no '=='" },
		{ "[{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\", \"x\": 1}]",
		  "unknown key 'syscalls.args.x'" },
		{ "[{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"},"
		  " {\"index\": 0, \"value\": 2, \"op\": \"SCMP_CMP_EQ\"}]",
		  "two conditions on one argument: write a rule for each" },
		{ "[{\"index\": 0, \"value\": 15, \"valueTwo\": 16, \"op\": "
		  "\"SCMP_CMP_MASKED_EQ\"}]",
		  "the condition never holds" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cj_error err = { 0 };
		const struct policy *p = NULL;
		const char *rule =
		    arena_printf(&arena, "{" ALLOW ", " NAMES ", \"args\": %s}", rows[i].args);
		const char *text = file_with(rule);
		assert_int_equal(policy_parse("p", text, strlen(text), &arena, &p, &err), -EINVAL);
		assert_non_null(strstr(err.msg, rows[i].message));
	}
}

/* --- files --------------------------------------------------------------------------------- */

static void a_file_that_is_no_file_is_refused(void **state)
{
	(void)state;
	struct cj_error err = { 0 };
	const struct policy *p = NULL;
	assert_int_equal(policy_load("/nonexistent/p.json", &arena, &p, &err), -ENOENT);
	assert_true(policy_load("/dev/zero", &arena, &p, &err) < 0);
	assert_true(policy_load("/tmp", &arena, &p, &err) < 0);
	assert_null(p);
}

static void a_huge_file_is_refused(void **state)
{
	(void)state;
	char path[] = "/tmp/cejail-policy-XXXXXX";
	struct cj_error err = { 0 };
	const struct policy *p = NULL;
	auto_fd int fd = mkstemp(path);
	assert_return_code(fd, errno);
	assert_return_code(ftruncate(fd, 64 << 20), errno);
	int rc = policy_load(path, &arena, &p, &err);
	unlink(path);
	assert_int_equal(rc, -EFBIG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_rule_keeps_its_names_action_and_conditions),
		TEST(an_errno_that_is_not_given_is_eperm),
		TEST(every_action_has_its_meaning),
		TEST(every_operator_has_its_meaning),
		TEST(old_files_name_one_call_and_write_null_for_nothing),
		TEST(podmans_errno_names_are_understood),
		TEST(includes_and_excludes_are_decided_for_a_jail_on_this_host),
		TEST(the_shipped_file_reads_without_a_note),
		TEST(an_unsupported_request_of_a_file_is_noted),
		TEST(an_invalid_policy_is_refused_with_its_place),
		TEST(a_bad_rule_is_refused),
		TEST(no_key_takes_a_value_of_another_kind),
		TEST(null_stands_for_nothing),
		TEST(numbers_are_whole_and_in_range),
		TEST(a_bad_condition_is_refused),
		TEST(a_file_that_is_no_file_is_refused),
		TEST(a_huge_file_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
