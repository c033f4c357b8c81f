/* SPDX-License-Identifier: Apache-2.0 */
/* The body that changes a session's network: no byte of it may become another part of a request. */
/* WRAP: api_refuse */
#include "runtime/service/api/api_sessions.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static enum api_code refused;
static char said[CJ_ERROR_MSG_MAX];

bool __wrap_api_refuse(struct api_call *c, enum api_code code, const struct cj_error *err);
bool __wrap_api_refuse(struct api_call *c, enum api_code code, const struct cj_error *err)
{
	(void)c;
	refused = code;
	(void)snprintf(said, sizeof(said), "%s", err ? err->msg : "");
	return false;
}

static struct posted posted_of(const char *text, size_t size)
{
	struct posted p = { .body = malloc(size + 1), .size = size };
	assert_non_null(p.body);
	memcpy(p.body, text, size);
	refused = API_OK;
	return p;
}

static void release(struct posted *p)
{
	arena_fini(&p->arena);
	free(p->body);
}

/* As api_change_network(): wrapped, parsed, checked. */
static bool is_accepted(struct posted *p, struct cj_error *err)
{
	const struct request_caps caps = { .kind = REQUEST_SESSION,
					   .body_bytes = 4096,
					   .profile = "own" };
	said[0] = '\0';
	return wrap_network(p) &&
	       request_parse((struct blob){ p->body, p->size }, &caps, &p->arena, &p->request,
			     err) == 0 &&
	       check_network(p);
}

static void a_mode_and_a_list_are_the_network_of_a_request(void **state)
{
	static const struct {
		const char *body, *whole;
	} rows[] = {
		{ "{}", "{\"network\":{}}" },
		{ " {\"mode\":\"none\"}\n", "{\"network\": {\"mode\":\"none\"}\n}" },
		{ "{\"mode\":\"public\",\"allow\":[\"*.example.com:443\"]}",
		  "{\"network\":{\"mode\":\"public\",\"allow\":[\"*.example.com:443\"]}}" },
		{ "{\"mode\":\"public\",\"deny\":[\"8.8.8.8\"]}",
		  "{\"network\":{\"mode\":\"public\",\"deny\":[\"8.8.8.8\"]}}" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct posted p = posted_of(rows[i].body, strlen(rows[i].body));
		struct cj_error err = { 0 };
		if (!is_accepted(&p, &err))
			fail_msg("%s: %s%s", rows[i].body, said, err.msg);
		assert_int_equal(p.size, strlen(rows[i].whole));
		assert_memory_equal(p.body, rows[i].whole, p.size);
		assert_string_equal(p.request.profile, "own");
		release(&p);
	}
}

static void another_body_is_refused(void **state)
{
	static const struct {
		const char *body, *said;
	} rows[] = {
		{ "", "" },
		{ "{", "" },
		{ "{\"mode\":\"none\"},\"profile\":\"other\"", "" },
		{ "{\"mode\":\"none\"},\"profile\":\"other\",\"network\":{}", "" },
		{ "{\"mode\":\"none\"}}", "" },
		{ "{\"mode\":\"none\"} {}", "" },
		{ "{\"mode\":\"none\",\"mode\":\"public\"}", "" },
		{ "{\"uplink\":\"host\"}", "'uplink'" },
		{ "{\"mode\":\"public\",\"allow_private\":true}", "'allow_private'" },
		{ "{\"start\":\"early\"}", "'start'" },
		{ "{\"\":1}", "" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct posted p = posted_of(rows[i].body, strlen(rows[i].body));
		struct cj_error err = { 0 };
		if (is_accepted(&p, &err))
			fail_msg("%s is accepted", rows[i].body);
		assert_true(refused == API_BAD_REQUEST || err.code != 0);
		if (!strstr(said, rows[i].said) && !strstr(err.msg, rows[i].said))
			fail_msg("'%s' does not say %s", said, rows[i].said);
		release(&p);
	}
}

/* What follows a NUL would be cut off, and what stands there is no JSON. */
static void a_body_with_a_nul_is_refused(void **state)
{
	static const char bodies[][20] = { "{\"mode\":\"none\"}\0,", "{\"mode\":\"no\0ne\"}" };
	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct posted p = posted_of(bodies[i], 17);
		struct cj_error err = { 0 };
		assert_false(is_accepted(&p, &err));
		release(&p);
	}
}

static void what_is_no_object_is_refused(void **state)
{
	static const char *const bodies[] = {
		"[]", "1", "true", "null", "[{\"mode\":\"none\"}]", "\"other\""
	};
	(void)state;
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct posted p = posted_of(bodies[i], strlen(bodies[i]));
		struct cj_error err = { 0 };
		if (is_accepted(&p, &err))
			fail_msg("%s is accepted", bodies[i]);
		release(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mode_and_a_list_are_the_network_of_a_request),
		cmocka_unit_test(another_body_is_refused),
		cmocka_unit_test(a_body_with_a_nul_is_refused),
		cmocka_unit_test(what_is_no_object_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
