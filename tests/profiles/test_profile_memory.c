/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: arena_alloc arena_array arena_strdup arena_strndup arena_printf strings_add calloc */
/* Reading profiles when there is no memory: an error whatever is being kept. */
#include "tests/no_memory.h"
#include "tests/profiles/profile_home.h"

#include "profiles/profile.h"
#include "runtime/kernel/seccomp/policy.h"

NO_MEMORY(void *, calloc, (size_t count, size_t size), (count, size), NULL)

static int load_child(void *context, struct cj_error *err)
{
	(void)context;
	struct config c;
	config_init(&c);
	int rc = profile_load(&c, "child", err);
	config_fini(&c);
	return rc;
}

static void a_profile_and_its_parents_are_read_whole_or_not_at_all(void **state)
{
	(void)state;
	put_profile("parent", "{\"extends\": \"base\", \"description\": \"p\", \"pids\": 7}");
	put_profile("child",
		    "{\"extends\": \"parent\", \"env\": {\"A\": \"1\", \"B\": \"2\"},"
		    " \"command\": [\"run\", \"{file}\"], \"extensions\": [\".x\"],"
		    " \"ro_bind\": [\"/usr\"], \"seccomp\": \"policy.json\","
		    " \"network\": {\"allow\": [\"example.com:443\"]}, \"memory\": \"64M\"}");
	fail_each_allocation(load_child, NULL);
}

static int list_all(void *context, struct cj_error *err)
{
	(void)context;
	auto_arena struct arena a = { 0 };
	struct profile_entry *list;
	size_t count;
	return profile_list(&a, &list, &count, err);
}

/* One that can't be read is listed with its problem, whatever that is. */
static void the_list_is_whole_or_an_error(void **state)
{
	(void)state;
	put_profile("broken", "{\"pids\": }");
	fail_each_allocation(list_all, NULL);
}

static int find_for_file(void *context, struct cj_error *err)
{
	(void)context;
	struct config c;
	config_init(&c);
	const char *name = NULL;
	int rc = profile_for_file(&c, "program.py", &name, err);
	config_fini(&c);
	return rc;
}

static void no_profile_is_chosen_for_a_file_without_memory(void **state)
{
	(void)state;
	fail_each_allocation(find_for_file, NULL);
}

static const char policy_text[] =
    "{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"defaultErrnoRet\": 38,"
    " \"archMap\": [{\"architecture\": \"SCMP_ARCH_X86_64\", \"subArchitectures\":"
    " [\"SCMP_ARCH_X86\", \"SCMP_ARCH_X32\"]}],"
    " \"syscalls\": [{\"names\": [\"read\", \"no_such_call\"], \"action\": \"SCMP_ACT_ALLOW\","
    " \"args\": [{\"index\": 0, \"value\": 1, \"op\": \"SCMP_CMP_EQ\"}],"
    " \"includes\": {\"minKernel\": \"3.0\"}},"
    " {\"name\": \"write\", \"action\": \"SCMP_ACT_NOTIFY\"}]}";

static int parse_policy(void *context, struct cj_error *err)
{
	(void)context;
	auto_arena struct arena a = { 0 };
	const struct policy *policy = NULL;
	return policy_parse("p.json", policy_text, sizeof(policy_text) - 1, &a, &policy, err);
}

static void a_policy_is_read_whole_or_not_at_all(void **state)
{
	(void)state;
	fail_each_allocation(parse_policy, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HOME_TEST(a_profile_and_its_parents_are_read_whole_or_not_at_all),
		HOME_TEST(the_list_is_whole_or_an_error),
		HOME_TEST(no_profile_is_chosen_for_a_file_without_memory),
		HOME_TEST(a_policy_is_read_whole_or_not_at_all),
	};
	return cmocka_run_group_tests(tests, home_setup, home_teardown);
}
