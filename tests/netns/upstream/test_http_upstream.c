/* SPDX-License-Identifier: Apache-2.0 */
/* http_upstream: the texts of --upstream, and the names that the jail has for them. */
#include "netns/upstream/http_upstream.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct http_upstream_spec accept_text(struct arena *a, const char *text)
{
	struct cj_error err = { 0 };
	struct http_upstream_spec spec;
	if (http_upstream_parse(text, a, &spec, &err) < 0)
		fail_msg("'%s': %s", text, err.msg);
	return spec;
}

static void a_name_and_a_url_are_enough(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct http_upstream_spec s = accept_text(&a, "model=https://api.example.com");
	assert_string_equal(s.name, "model");
	assert_string_equal(s.url, "https://api.example.com");
	assert_string_equal(s.path, "/");
	assert_int_equal(s.nheaders, 0);
	assert_int_equal(s.requests_max, UPSTREAM_REQUESTS);
	assert_int_equal(s.bytes_max, UPSTREAM_BYTES);
	assert_string_equal(accept_text(&a, "a=http://127.0.0.1:8080/").url,
			    "http://127.0.0.1:8080");
	assert_string_equal(accept_text(&a, "a-1=https://[2001:db8::1]:8443").url,
			    "https://[2001:db8::1]:8443");
}

static void all_parts_are_read(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	struct http_upstream_spec s = accept_text(
	    &a, "m=https://h:1,header=Authorization:Bearer @/k/a@b,path=/v1/x,header=X-Key:@f,"
		"requests=5,bytes=2M");
	assert_string_equal(s.path, "/v1/x");
	assert_int_equal(s.requests_max, 5);
	assert_int_equal(s.bytes_max, 2 << 20);
	assert_int_equal(s.nheaders, 2);
	assert_string_equal(s.headers[0].name, "Authorization");
	assert_string_equal(s.headers[0].prefix, "Bearer ");
	assert_string_equal(s.headers[0].file, "/k/a@b");
	assert_string_equal(s.headers[1].name, "X-Key");
	assert_string_equal(s.headers[1].prefix, "");
	assert_string_equal(s.headers[1].file, "f");
}

static void a_wrong_text_is_refused_with_the_word_that_is_wrong(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{ "", "is not 'NAME=URL" },
		{ "model", "is not 'NAME=URL" },
		{ "=https://h", "is no name" },
		{ "Model=https://h", "is no name" },
		{ "a.b=https://h", "is no name" },
		{ "-a=https://h", "is no name" },
		{ "a-=https://h", "is no name" },
		{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=https://h", "is no name" },
		{ "a=h", "is no URL" },
		{ "a=ftp://h", "is no URL" },
		{ "a=HTTPS://h", "is no URL" },
		{ "a=https://", "is not https://HOST" },
		{ "a=https://user@h", "is not https://HOST" },
		{ "a=https://user:word@h", "is not https://HOST" },
		{ "a=https://h:0", "is not https://HOST" },
		{ "a=https://h:65536", "is not https://HOST" },
		{ "a=https://h:", "is not https://HOST" },
		{ "a=https://h?q", "is not https://HOST" },
		{ "a=https://h#f", "is not https://HOST" },
		{ "a=https://h\r\nX: y", "is not https://HOST" },
		{ "a=https://[::1", "is not https://HOST" },
		{ "a=https://h/v1", "write 'https://h,path=/v1'" },
		{ "a=https://h,", "is not part of" },
		{ "a=https://h,v1", "is not part of" },
		{ "a=https://h,user=x", "'user=' is none of header=, path=" },
		{ "a=https://h,header=Authorization", "is not header=NAME:[PREFIX]@FILE" },
		{ "a=https://h,header=Authorization:key", "is not header=NAME:[PREFIX]@FILE" },
		{ "a=https://h,header=Authorization:@", "is not header=NAME:[PREFIX]@FILE" },
		{ "a=https://h,header=:@f", "is no name of a header" },
		{ "a=https://h,header=A B:@f", "is no name of a header" },
		{ "a=https://h,header=Host:@f", "'Host' is cejail's own header" },
		{ "a=https://h,header=content-length:@f", "is cejail's own header" },
		{ "a=https://h,header=Keep-Alive:@f", "is cejail's own header" },
		{ "a=https://h,header=Proxy-Authorization:@f", "is cejail's own header" },
		{ "a=https://h,header=X:a\nb@f", "has a control character" },
		{ "a=https://h,path=v1", "is no prefix of a path" },
		{ "a=https://h,path=/a,path=/b", "'path=/b' is a second prefix" },
		{ "a=https://h,requests=0", "requests=: '0' is too small" },
		{ "a=https://h,bytes=1Q", "bytes=: '1Q' is not a size" },
		{ "a=https://h,path=/a//b", "is no prefix of a path" },
		{ "a=https://h,path=/../b", "is no prefix of a path" },
		{ "a=https://h,path=/a%2f", "is no prefix of a path" },
		{ "a=https://h,requests=0", "0" },
		{ "a=https://h,requests=many", "many" },
		{ "a=https://h,bytes=-1", "-1" },
		{ "a=https://h,header=A:@f,header=B:@f,header=C:@f,header=D:@f,header=E:@f,"
		  "header=F:@f,header=G:@f,header=H:@f,header=I:@f",
		  "more than 8 headers" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_arena struct arena a = { 0 };
		struct cj_error err = { 0 };
		struct http_upstream_spec spec;
		assert_int_equal(http_upstream_parse(rows[i][0], &a, &spec, &err), -EINVAL);
		if (!strstr(err.msg, rows[i][1]))
			fail_msg("'%s': '%s' is not in '%s'", rows[i][0], rows[i][1], err.msg);
	}
}

static void each_has_an_address_of_the_loopback(void **state)
{
	(void)state;
	auto_arena struct arena a = { 0 };
	const struct http_upstream_spec specs[] = { { .name = "one" }, { .name = "two" } };
	assert_string_equal(http_upstream_hosts(specs, 2, &a),
			    "127.0.80.1\tone.upstream.internal\n"
			    "127.0.80.2\ttwo.upstream.internal\n");
	assert_string_equal(http_upstream_hosts(specs, 0, &a), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_and_a_url_are_enough),
		cmocka_unit_test(all_parts_are_read),
		cmocka_unit_test(a_wrong_text_is_refused_with_the_word_that_is_wrong),
		cmocka_unit_test(each_has_an_address_of_the_loopback),
	};
	return cmocka_run_group_tests_name("http_upstream", tests, NULL, NULL);
}
