/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller may ask for, and what its ceilings clamp. */
#include "runtime/run/request/rights.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "profiles/profile.h"
#include "profiles/settings.h"
#include "runtime/base/scope.h"
#include "runtime/run/request/request.h"
#include "runtime/service/access/account.h"

static void profiles_are_all_or_those_named(void **state)
{
	auto_arena struct arena arena = { 0 };
	(void)state;
	struct rights r = { 0 };
	assert_true(rights_has_profile(&r, "python"));
	assert_int_equal(strings_add(&r.profiles, &arena, "node"), 0);
	assert_int_equal(strings_add(&r.profiles, &arena, "base"), 0);
	assert_true(rights_has_profile(&r, "base"));
	assert_false(rights_has_profile(&r, "python"));
	assert_false(rights_has_profile(&r, "bas"));
}

struct validated {
	struct config profile, asked;
	struct rights rights;
	struct rights_clamp clamp;
	struct cj_error err;
};

static void validated_init(struct validated *v)
{
	*v = (struct validated){ 0 };
	config_init(&v->profile);
	config_init(&v->asked);
}

static int validate(struct validated *v)
{
	v->err = (struct cj_error){ 0 };
	return rights_validate(&v->rights, &v->asked, &v->profile, &v->clamp, &v->err);
}

static void assert_forbidden(struct validated *v, const char *said)
{
	assert_int_equal(validate(v), -EACCES);
	assert_string_equal(v->err.msg, said);
}

/* Each number, by the name it has in a request. */
static const struct {
	const char *key;
	size_t config_at, ceiling_at;
	uint64_t less, value, more;
	const char *less_said, *value_said, *more_said;
} numbers[] = {
#define AT(group, field) offsetof(struct config, group.field), offsetof(struct ceilings, field)
	{ "memory", AT(limits, memory_bytes), 256u << 20, 512u << 20, 2147483648u, "256M", "512M",
	  "2G" },
	{ "cpus", AT(limits, millicpus), 500, 1000, 2500, "0.500", "1.000", "2.500" },
	{ "pids", AT(limits, pids), 10, 64, 65, "10", "64", "65" },
	{ "timeout", AT(run_limits, wall_ms), 1500, 30000, 60000, "1.5s", "30s", "1m" },
	{ "disk", AT(limits, disk_bytes), 1u << 20, 64u << 20, (64u << 20) + 1, "1M", "64M",
	  "67108865" },
	{ "max_output", AT(run_limits, output_bytes), 1024, 2048, 3072, "1K", "2K", "3K" },
#undef AT
};

static void put(void *base, size_t offset, uint64_t value)
{
	memcpy((char *)base + offset, &value, sizeof(value));
}

static uint64_t get(const void *base, size_t offset)
{
	uint64_t value;
	memcpy(&value, (const char *)base + offset, sizeof(value));
	return value;
}

static void asking_above_a_ceiling_is_refused_with_both_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct validated v;
		char said[128];
		validated_init(&v);
		put(&v.profile, numbers[i].config_at, numbers[i].less);
		put(&v.asked, numbers[i].config_at, numbers[i].more);
		put(&v.rights.ceilings, numbers[i].ceiling_at, numbers[i].value);
		(void)snprintf(said, sizeof(said), "%s: %s is above this caller's ceiling of %s",
			       numbers[i].key, numbers[i].more_said, numbers[i].value_said);
		assert_forbidden(&v, said);
		assert_non_null(strstr(v.err.hint, numbers[i].key));

		put(&v.asked, numbers[i].config_at, numbers[i].value);
		assert_int_equal(validate(&v), 0);
		assert_int_equal(get(&v.clamp.ceilings, numbers[i].ceiling_at), 0);
	}
}

static void without_a_ceiling_the_profiles_value_is_the_most(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct validated v;
		char said[128];
		validated_init(&v);
		put(&v.profile, numbers[i].config_at, numbers[i].value);
		put(&v.asked, numbers[i].config_at, numbers[i].more);
		(void)snprintf(said, sizeof(said), "%s: %s is above the profile's value of %s",
			       numbers[i].key, numbers[i].more_said, numbers[i].value_said);
		assert_forbidden(&v, said);
		put(&v.asked, numbers[i].config_at, numbers[i].less);
		assert_int_equal(validate(&v), 0);

		put(&v.asked, numbers[i].config_at, numbers[i].more);
		put(&v.rights.ceilings, numbers[i].ceiling_at, CEILING_NONE);
		assert_int_equal(validate(&v), 0);
	}
}

static void a_value_from_the_profile_above_a_ceiling_is_clamped(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct validated v;
		validated_init(&v);
		put(&v.profile, numbers[i].config_at, numbers[i].more);
		put(&v.asked, numbers[i].config_at, numbers[i].more);
		put(&v.rights.ceilings, numbers[i].ceiling_at, numbers[i].value);
		assert_int_equal(validate(&v), 0);
		assert_int_equal(get(&v.clamp.ceilings, numbers[i].ceiling_at), numbers[i].value);
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			if (k != i)
				assert_int_equal(get(&v.clamp.ceilings, numbers[k].ceiling_at), 0);

		/* less than the profile, and still too much: that was the request's own wish */
		put(&v.asked, numbers[i].config_at, numbers[i].more - 1);
		put(&v.rights.ceilings, numbers[i].ceiling_at, numbers[i].less);
		assert_int_equal(validate(&v), -EACCES);
	}
}

static void a_refusal_clamps_nothing(void **state)
{
	(void)state;
	struct validated v;
	validated_init(&v);
	v.rights.ceilings.memory_bytes = 1u << 20; /* would clamp it */
	v.asked.limits.nofile = v.profile.limits.nofile + 1;
	assert_int_equal(validate(&v), -EACCES);
	assert_int_equal(v.clamp.ceilings.memory_bytes, 0);
}

static void more_open_files_than_the_profiles_are_refused(void **state)
{
	(void)state;
	struct validated v;
	validated_init(&v);
	v.asked.limits.nofile = 2048;
	assert_forbidden(&v, "nofile: 2048 is above the profile's value of 1024");
	v.asked.limits.nofile = 100;
	assert_int_equal(validate(&v), 0);
	v.asked.limits.nofile = 2048;
	v.rights.host_paths = true;
	assert_int_equal(validate(&v), 0);
}

static void no_right_to_a_network_is_none(void **state)
{
	(void)state;
	struct validated v;
	validated_init(&v);
	v.rights.network = NETWORK_NEVER;
	assert_int_equal(validate(&v), 0);
	assert_false(v.clamp.no_network);
	v.profile.network = v.asked.network = NETWORK_PUBLIC;
	assert_int_equal(validate(&v), 0);
	assert_true(v.clamp.no_network);
	v.asked.network = NETWORK_NONE;
	assert_int_equal(validate(&v), 0);
	assert_false(v.clamp.no_network);
	v.profile.network = NETWORK_NONE;
	v.asked.network = NETWORK_PUBLIC;
	assert_forbidden(&v, "network: this caller's runs may have none");
}

static void a_caller_has_no_more_network_than_the_profile(void **state)
{
	auto_arena struct arena arena = { 0 };
	(void)state;
	struct validated v;
	validated_init(&v);
	v.asked.network = NETWORK_PUBLIC;
	assert_forbidden(&v, "network.mode: 'public' is more than the profile's 'none'");
	v.profile.network = NETWORK_PUBLIC;
	assert_int_equal(validate(&v), 0);
	assert_int_equal(strings_add(&v.asked.allow, &arena, "example.org:443"), 0);
	assert_int_equal(validate(&v), 0); /* of everything only this: that is less */

	assert_int_equal(strings_add(&v.profile.allow, &arena, "example.net"), 0);
	assert_int_equal(validate(&v), -EACCES);
	assert_int_equal(strings_add(&v.profile.allow, &arena, "example.org:443"), 0);
	assert_int_equal(validate(&v), 0);
	v.asked.allow.count = 0;
	assert_int_equal(validate(&v), -EACCES); /* no list is everything */
	v.rights.network = NETWORK_ANY;
	assert_int_equal(validate(&v), 0);
}

static void a_clamp_changes_the_config_and_names_what_shapes_the_jail(void **state)
{
	struct rights_clamp clamp = { .ceilings = { 0 } };
	char names[RIGHTS_CLAMP_LIST_MAX];
	struct config c;
	(void)state;

	config_init(&c);
	c.network = NETWORK_PUBLIC;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		put(&c, numbers[i].config_at, numbers[i].more);
		rights_clamp_apply(&clamp, &c);
		assert_int_equal(get(&c, numbers[i].config_at), numbers[i].more);
		put(&clamp.ceilings, numbers[i].ceiling_at, numbers[i].less);
		rights_clamp_apply(&clamp, &c);
		assert_int_equal(get(&c, numbers[i].config_at), numbers[i].less);
	}
	assert_int_equal(c.network, NETWORK_PUBLIC);
	clamp.no_network = true;
	rights_clamp_apply(&clamp, &c);
	assert_int_equal(c.network, NETWORK_NONE);
	rights_clamp_list_shape(&clamp, names);
	assert_string_equal(names, "memory, cpus, pids, disk, network");
	assert_true(rights_clamp_changes_shape(&clamp));
	clamp = (struct rights_clamp){ .ceilings = { .wall_ms = 1, .output_bytes = 1 } };
	assert_false(rights_clamp_changes_shape(&clamp));
	config_fini(&c);
}

static void more_cpu_time_than_the_profiles_is_refused(void **state)
{
	(void)state;
	struct validated v;
	validated_init(&v);
	v.asked.limits.cpu_ms = 5000; /* the profile has no limit: this is one more */
	assert_int_equal(validate(&v), 0);
	v.profile.limits.cpu_ms = 1000;
	assert_forbidden(&v, "cpu_time: 5s is above the profile's value of 1s");
	v.asked.limits.cpu_ms = 1000;
	assert_int_equal(validate(&v), 0);
}

static void the_services_own_uid_may_ask_for_all_that_run_may(void **state)
{
	(void)state;
	struct validated v;
	validated_init(&v);
	struct callers callers;
	callers_init(&callers);
	v.rights = callers.own;
	v.profile.limits.cpu_ms = 5;
	v.asked.limits.cpu_ms = 6;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		put(&v.asked, numbers[i].config_at, numbers[i].more << 10);
	v.asked.limits.nofile = 1u << 20;
	v.asked.network = NETWORK_PUBLIC;
	assert_int_equal(validate(&v), 0);
	struct rights_clamp none = { 0 };
	assert_memory_equal(&v.clamp.ceilings, &none, sizeof(none));
}

/* --- the table of keys ---------------------------------------------------------- */

static bool is_own_key(const char *key)
{
	for (size_t i = 0; request_own_key(i); i++)
		if (strcmp(request_own_key(i), key) == 0)
			return true;
	return false;
}

static void every_key_of_a_request_has_one_rule_and_no_other_key_has(void **state)
{
	(void)state;
	for (size_t i = 0; i < settings_count; i++) {
		const struct setting *s = &settings[i];
		int effect = s->key ? rights_effect_of(s->key) : -1;
		bool is_own = s->key && is_own_key(s->key); /* "command" is another key there */
		if (!s->key || is_own)
			continue;
		if ((effect < 0) != (s->scope == SCOPE_NO_REQUEST))
			fail_msg("%s: its scope and its rule differ", s->key);
		assert_int_equal(effect == RIGHTS_RAISES, s->scope == SCOPE_HOST);
	}
	for (size_t i = 0; request_own_key(i); i++)
		if (rights_effect_of(request_own_key(i)) < 0)
			fail_msg("%s has no rule", request_own_key(i));
	for (size_t i = 0; rights_key(i); i++) {
		const char *key = rights_key(i);
		if (!setting_by_key(key) && !is_own_key(key))
			fail_msg("%s is no key of a request", key);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(rights_key(k), key);
	}
}

/* Each rule that lowers: what a profile sets, and a request one step above it. */
static const struct step {
	const char *key, *profile, *above, *same;
} steps[] = {
	{ "memory", "\"memory\":\"64M\"", "\"memory\":67108865", "\"memory\":\"64M\"" },
	{ "cpus", "\"cpus\":0.5", "\"cpus\":0.501", "\"cpus\":0.5" },
	{ "pids", "\"pids\":9", "\"pids\":10", "\"pids\":9" },
	{ "timeout", "\"timeout\":\"2s\"", "\"timeout\":\"2001ms\"", "\"timeout\":2" },
	{ "disk", "\"disk\":\"1M\"", "\"disk\":1048577", "\"disk\":\"1M\"" },
	{ "max_output", "\"max_output\":\"1K\"", "\"max_output\":1025", "\"max_output\":1024" },
	{ "nofile", "\"nofile\":64", "\"nofile\":65", "\"nofile\":64" },
	{ "cpu_time", "\"cpu_time\":\"1s\"", "\"cpu_time\":\"1001ms\"", "\"cpu_time\":1" },
	{ "on_output_limit", "\"on_output_limit\":\"kill\"", "\"on_output_limit\":\"truncate\"",
	  "\"on_output_limit\":\"kill\"" },
	{ "network.mode", "\"network\":\"none\"", "\"network\":\"public\"",
	  "\"network\":\"none\"" },
	{ "network.uplink", "\"network\":{\"mode\":\"public\",\"uplink\":\"none\"}",
	  "\"network\":{\"uplink\":\"auto\"}", "\"network\":{\"uplink\":\"none\"}" },
	{ "network.allow", "\"network\":{\"mode\":\"public\",\"allow\":[\"a.example\"]}",
	  "\"network\":{\"allow\":[\"b.example\"]}", "\"network\":{\"allow\":[\"a.example\"]}" },
	{ "network.allow_by", "\"network\":{\"mode\":\"public\",\"allow_by\":\"name\"}",
	  "\"network\":{\"allow_by\":\"auto\"}", "\"network\":{\"allow_by\":\"name\"}" },
	{ "network.names", "\"network\":{\"mode\":\"public\",\"names\":\"start\"}",
	  "\"network\":{\"names\":\"auto\"}", "\"network\":{\"names\":\"start\"}" },
	{ "calls.max", "\"calls\":{\"max\":5}", "\"calls\":{\"max\":6}", "\"calls\":{\"max\":5}" },
	{ "calls.outstanding", "\"calls\":{\"outstanding\":5}", "\"calls\":{\"outstanding\":6}",
	  "\"calls\":{\"outstanding\":5}" },
	{ "calls.rate", "\"calls\":{\"rate\":5}", "\"calls\":{\"rate\":6}",
	  "\"calls\":{\"rate\":5}" },
	{ "calls.timeout", "\"calls\":{\"timeout\":\"5s\"}", "\"calls\":{\"timeout\":\"6s\"}",
	  "\"calls\":{\"timeout\":\"5s\"}" },
	{ "strict", "\"strict\":true", "\"strict\":false", "\"strict\":true" },
	{ "noexec", "\"noexec\":true", "\"noexec\":false", "\"noexec\":true" },
	{ "writable", "\"noexec\":true", "\"writable\":true", "\"writable\":false" },
};

static const struct step *find_step(const char *key)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (strcmp(steps[i].key, key) == 0)
			return &steps[i];
	return NULL;
}

/* As each door does: parse, apply, validate.  0, or the first refusal. */
static int ask_as(enum request_kind kind, const struct config *profile, const char *members,
		  struct cj_error *err)
{
	static const char *const programs[] = { [REQUEST_RUN] = ",\"command\":[\"true\"]",
						[REQUEST_SESSION] = "",
						[REQUEST_EXEC] = ",\"command\":[\"true\"]" };
	static const struct rights rights = { .network = NETWORK_AS_PROFILE };
	const struct request_caps caps = { SIZE_MAX, SIZE_MAX,     SIZE_MAX,
					   SIZE_MAX, .kind = kind, .profile = "p" };
	auto_arena struct arena a = { 0 };
	struct rights_clamp clamp;
	struct request r;
	struct config c;

	const char *text = arena_printf(&a, "{%s%s}", members, programs[kind]);
	assert_non_null(text);
	*err = (struct cj_error){ 0 };
	assert_int_equal(config_copy(&c, profile, err), 0);
	int rc = request_parse((struct blob){ text, strlen(text) }, &caps, &a, &r, err);
	if (rc == 0)
		rc = request_apply(&r, false, &c, err);
	if (rc == 0)
		rc = rights_validate(&rights, &c, profile, &clamp, err);
	config_fini(&c);
	return rc;
}

static void no_kind_of_request_goes_one_step_above_its_profile(void **state)
{
	(void)state;
	for (size_t i = 0; rights_key(i); i++) {
		const struct step *step = find_step(rights_key(i));
		auto_arena struct arena a = { 0 };
		const char *extends;
		struct cj_error err = { 0 };
		struct config profile;

		if (rights_effect_of(rights_key(i)) != RIGHTS_LOWERS)
			continue;
		if (!step)
			fail_msg("%s can only lower: the test needs a step above it",
				 rights_key(i));
		config_init(&profile);
		const char *text = arena_printf(&a, "{%s}", step->profile);
		assert_int_equal(
		    profile_read_text(&profile, "p", text, strlen(text), &extends, &err), 0);
		for (enum request_kind kind = REQUEST_RUN; kind <= REQUEST_EXEC; kind++) {
			if (ask_as(kind, &profile, step->above, &err) == 0)
				fail_msg("%s by a request of kind %d", step->above, (int)kind);
			if (strstr(err.msg, step->key) == NULL || err.hint[0] == '\0')
				fail_msg("%s: %s", step->above, err.msg);
			bool is_jails = kind == REQUEST_EXEC &&
					request_fit_of(setting_by_key(step->key)) == FIT_COLD;
			if (!is_jails && ask_as(kind, &profile, step->same, &err) < 0)
				fail_msg("%s: %s", step->same, err.msg);
		}
		config_fini(&profile);
	}
}

static void a_request_chooses_no_uplink_but_none(void **state)
{
	(void)state;
	struct validated v;
	validated_init(&v);
	v.profile.network = v.asked.network = NETWORK_PUBLIC;
	for (enum uplink_kind given = 0; given < UPLINK_COUNT; given++) {
		for (enum uplink_kind asked = 0; asked < UPLINK_COUNT; asked++) {
			v.profile.uplink = given;
			v.asked.uplink = asked;
			v.rights.network = NETWORK_AS_PROFILE;
			int wanted = asked == given || asked == UPLINK_NONE ? 0 : -EACCES;
			assert_int_equal(validate(&v), wanted);
			v.rights.network = NETWORK_NEVER;
			assert_int_equal(validate(&v), wanted);
			v.rights.network = NETWORK_ANY;
			assert_int_equal(validate(&v), 0);
		}
	}
	v.rights.network = NETWORK_AS_PROFILE;
	v.profile.uplink = UPLINK_NONE;
	v.asked.uplink = UPLINK_PASTA;
	assert_forbidden(&v, "network.uplink: 'pasta' is not the profile's, which is 'none'");
	assert_non_null(strstr(v.err.hint, "'none'"));
}

static void the_output_policy_kill_stays_unless_the_caller_may_name_host_paths(void **state)
{
	(void)state;
	struct validated v;
	validated_init(&v);
	v.profile.run_limits.on_output_limit = OUTPUT_KILL;
	assert_forbidden(&v, "on_output_limit: 'truncate' is more than the profile's 'kill'");
	v.rights.host_paths = true;
	assert_int_equal(validate(&v), 0);
	v = (struct validated){ .profile = v.asked, .asked = v.profile };
	assert_int_equal(validate(&v), 0);
}

/* The closed ranges open by an entry of the list: a list that a request may choose would open all.
 */
static void with_allow_private_only_the_profiles_own_destinations_are_open(void **state)
{
	auto_arena struct arena arena = { 0 };
	(void)state;
	struct validated v;
	validated_init(&v);
	v.profile.network = v.asked.network = NETWORK_PUBLIC;
	v.profile.allow_private = v.asked.allow_private = true;
	assert_int_equal(validate(&v), 0);
	assert_int_equal(strings_add(&v.asked.allow, &arena, "10.0.0.1"), 0);
	assert_forbidden(&v, "network.allow: '10.0.0.1' is not in the profile's list, and it has "
			     "allow_private");
	v.rights.host_paths = true;
	assert_int_equal(validate(&v), 0);
	v.rights.host_paths = false;
	assert_int_equal(strings_add(&v.profile.allow, &arena, "10.0.0.1"), 0);
	assert_int_equal(validate(&v), 0);
}

/* 0 in a config is no limit: it is above every ceiling. */
static void no_limit_is_more_than_each_ceiling(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct validated v;
		validated_init(&v);
		put(&v.asked, numbers[i].config_at, 0);
		assert_int_equal(validate(&v), -EACCES);
		assert_non_null(strstr(v.err.msg, "no limit is above the profile's value of"));
		put(&v.profile, numbers[i].config_at, 0);
		assert_int_equal(validate(&v), 0);
		put(&v.rights.ceilings, numbers[i].ceiling_at, numbers[i].value);
		assert_int_equal(validate(&v), 0);
		assert_int_equal(get(&v.clamp.ceilings, numbers[i].ceiling_at), numbers[i].value);
	}
	struct validated v;
	validated_init(&v);
	v.profile.limits.cpu_ms = 1000;
	assert_forbidden(&v, "cpu_time: no limit is above the profile's value of 1s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_are_all_or_those_named),
		cmocka_unit_test(asking_above_a_ceiling_is_refused_with_both_numbers),
		cmocka_unit_test(without_a_ceiling_the_profiles_value_is_the_most),
		cmocka_unit_test(a_value_from_the_profile_above_a_ceiling_is_clamped),
		cmocka_unit_test(a_refusal_clamps_nothing),
		cmocka_unit_test(more_open_files_than_the_profiles_are_refused),
		cmocka_unit_test(no_right_to_a_network_is_none),
		cmocka_unit_test(a_caller_has_no_more_network_than_the_profile),
		cmocka_unit_test(a_clamp_changes_the_config_and_names_what_shapes_the_jail),
		cmocka_unit_test(more_cpu_time_than_the_profiles_is_refused),
		cmocka_unit_test(every_key_of_a_request_has_one_rule_and_no_other_key_has),
		cmocka_unit_test(no_kind_of_request_goes_one_step_above_its_profile),
		cmocka_unit_test(a_request_chooses_no_uplink_but_none),
		cmocka_unit_test(
		    the_output_policy_kill_stays_unless_the_caller_may_name_host_paths),
		cmocka_unit_test(with_allow_private_only_the_profiles_own_destinations_are_open),
		cmocka_unit_test(no_limit_is_more_than_each_ceiling),
		cmocka_unit_test(the_services_own_uid_may_ask_for_all_that_run_may),
	};
	return cmocka_run_group_tests_name("rights", tests, NULL, NULL);
}
