/* SPDX-License-Identifier: Apache-2.0 */
/* WRAP: getrandom */
/* X-Request-Id and traceparent: what is taken over, what is minted. */
#include "runtime/run/report/trace.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define CALLERS "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static enum { RANDOM_REAL, RANDOM_ZERO, RANDOM_NONE } randomness;
ssize_t __real_getrandom(void *to, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags);
ssize_t __wrap_getrandom(void *to, size_t size, unsigned flags)
{
	if (randomness == RANDOM_REAL)
		return __real_getrandom(to, size, flags);
	if (randomness == RANDOM_NONE) {
		errno = ENOSYS;
		return -1;
	}
	memset(to, 0, size);
	return (ssize_t)size;
}

static struct trace adopt(const char *request_id, const char *traceparent)
{
	struct trace t;
	struct cj_error err = { 0 };
	memset(&t, 'x', sizeof(t));
	assert_int_equal(trace_adopt(request_id, traceparent, &t, &err), 0);
	return t;
}

static bool is_lower_hex(const char *text, size_t size)
{
	return strspn(text, "0123456789abcdef") >= size;
}

static void a_well_formed_request_id_is_used(void **state)
{
	(void)state;
	static const char *const good[] = {
		"a",
		"0",
		"-",
		"._-",
		"01J9ZK5W8Q3T7V2X4Y6A8C0E1G",
		"A.b_c-9",
		"0123456789012345678901234567890123456789012345678901234567890123",
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_string_equal(adopt(good[i], NULL).request_id, good[i]);
}

static void any_other_request_id_is_replaced(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",     "a b",
		"a\nb", "a/b",
		"\"",   "\xc3\xa9",
		"a,b",  "01234567890123456789012345678901234567890123456789012345678901234",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct trace t = adopt(bad[i], NULL);
		assert_int_equal(strlen(t.request_id), 32);
		assert_true(is_lower_hex(t.request_id, 32));
	}
	assert_int_equal(strlen(adopt(NULL, NULL).request_id), 32);
}

static void generated_request_ids_differ(void **state)
{
	(void)state;
	struct trace a = adopt(NULL, NULL), b = adopt(NULL, NULL);
	assert_string_not_equal(a.request_id, b.request_id);
	assert_memory_not_equal(a.traceparent + 3, b.traceparent + 3, 32);
	assert_memory_not_equal(a.traceparent + 36, b.traceparent + 36, 16);
	assert_memory_not_equal(a.request_id, a.traceparent + 3, 32);
}

static void a_callers_trace_continues_with_a_new_span(void **state)
{
	(void)state;
	struct trace t = adopt(NULL, CALLERS);
	assert_int_equal(strlen(t.traceparent), strlen(CALLERS));
	assert_memory_equal(t.traceparent, CALLERS, 36);
	assert_memory_not_equal(t.traceparent + 36, &CALLERS[36], 16);
	assert_true(is_lower_hex(t.traceparent + 36, 16));
	assert_string_equal(t.traceparent + 52, "-01");
	assert_string_equal(t.parent, "00f067aa0ba902b7");
}

static void only_known_trace_flags_are_kept(void **state)
{
	(void)state;
	static const char *const flags[][2] = { { "00", "00" }, { "01", "01" }, { "02", "02" },
						{ "03", "03" }, { "ff", "03" }, { "fe", "02" },
						{ "10", "00" }, { "0d", "01" } };
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		char sent[] = CALLERS;
		memcpy(sent + 53, flags[i][0], 2);
		assert_string_equal(adopt(NULL, sent).traceparent + 53, flags[i][1]);
	}
}

static void assert_starts_anew(const char *sent)
{
	struct trace t = adopt(NULL, sent);
	assert_int_equal(strlen(t.traceparent), 55);
	assert_memory_equal(t.traceparent, "00-", 3);
	assert_true(is_lower_hex(t.traceparent + 3, 32));
	assert_string_equal(t.traceparent + 52, "-00");
	assert_string_equal(t.parent, "");
	if (strncmp(t.traceparent + 3, "4bf92f3577b34da6a3ce929d0e0e4736", 32) == 0)
		fail_msg("'%s' was taken over", sent);
}

static void a_malformed_traceparent_starts_a_trace_anew(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"00",
		"00-4bf92f3577b34da6a3ce929d0e0e4736",
		"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", /* capitals */
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", /* no trace */
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", /* no span */
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-001",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
		"00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
		" " CALLERS,
		CALLERS " ",
		CALLERS "-",      /* 00 has nothing behind */
		CALLERS "-extra", /* likewise */
		CALLERS CALLERS,
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_starts_anew(bad[i]);
	assert_starts_anew(NULL);
}

static void the_known_part_of_a_later_traceparent_version_is_used(void **state)
{
	(void)state;
	static const char trace_id[] = "4bf92f3577b34da6a3ce929d0e0e4736";
	char later[600] = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-09";
	struct trace t = adopt(NULL, later);
	assert_memory_equal(t.traceparent, "00-", 3);
	assert_memory_equal(t.traceparent + 3, trace_id, 32);
	assert_string_equal(t.traceparent + 52, "-01");

	memcpy(later + 55, "-what-the-future-is-like", 25);
	assert_memory_equal(adopt(NULL, later).traceparent + 3, trace_id, 32);
	later[55] = '.';
	assert_starts_anew(later);
	later[55] = '-';
	memset(later + 56, 'a', 540);
	assert_starts_anew(later); /* too long for a header of this kind */
	assert_starts_anew("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
	assert_starts_anew("CC-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
}

static void no_id_is_ever_all_zero(void **state)
{
	(void)state;
	randomness = RANDOM_ZERO;
	struct trace t = adopt(NULL, NULL);
	randomness = RANDOM_REAL;
	assert_string_equal(t.traceparent,
			    "00-01000000000000000000000000000000-0100000000000000-00");
}

static void without_random_bytes_no_request_id_is_made(void **state)
{
	(void)state;
	struct trace t;
	struct cj_error err = { 0 };
	randomness = RANDOM_NONE;
	int rc = trace_adopt(NULL, NULL, &t, &err);
	randomness = RANDOM_REAL;
	assert_int_equal(rc, -ENOSYS);
	assert_non_null(strstr(err.msg, "getrandom"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_well_formed_request_id_is_used),
		cmocka_unit_test(any_other_request_id_is_replaced),
		cmocka_unit_test(generated_request_ids_differ),
		cmocka_unit_test(a_callers_trace_continues_with_a_new_span),
		cmocka_unit_test(only_known_trace_flags_are_kept),
		cmocka_unit_test(a_malformed_traceparent_starts_a_trace_anew),
		cmocka_unit_test(the_known_part_of_a_later_traceparent_version_is_used),
		cmocka_unit_test(no_id_is_ever_all_zero),
		cmocka_unit_test(without_random_bytes_no_request_id_is_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
