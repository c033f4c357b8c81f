/* SPDX-License-Identifier: Apache-2.0 */
/* client_name: which name a client states, and which bytes state none. */
#include "netns/relay/client_name.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct asked {
	char names[4][CLIENT_NAME_MAX]; /* in the order of the questions */
	size_t count;
	const char *refused;
};

static bool may(void *context, const char *name)
{
	struct asked *a = context;
	assert_in_range(a->count, 0, 3);
	(void)snprintf(a->names[a->count++], CLIENT_NAME_MAX, "%s", name);
	return !a->refused || strcmp(name, a->refused) != 0;
}

struct text {
	uint8_t bytes[20000];
	size_t size;
};

static void add(struct text *t, const void *bytes, size_t size)
{
	assert_in_range(t->size + size, 0, sizeof(t->bytes));
	if (size > 0)
		memcpy(t->bytes + t->size, bytes, size);
	t->size += size;
}

static void add_number(struct text *t, size_t number, size_t bytes)
{
	for (size_t i = bytes; i > 0; i--) {
		const uint8_t byte = (uint8_t)(number >> (8 * (i - 1)));
		add(t, &byte, 1);
	}
}

/* How a ClientHello is built; all zero is an ordinary one. */
struct hello {
	size_t names;         /* extensions with a name; 0: one */
	bool has_none;        /* no such extension */
	bool has_two;         /* two names in one extension */
	size_t name_type;     /* 0: a host name */
	size_t padding;       /* bytes of another extension */
	size_t record;        /* bytes of a record; 0: one record */
	ssize_t wrong_length; /* of the list of names, of the extensions, of the message */
	ssize_t wrong_all, wrong_message;
};

static void add_server_name(struct text *t, const struct hello *h, const char *name, size_t size)
{
	const size_t entry = 3 + size, list = h->has_two ? 2 * entry : entry;
	add_number(t, 0, 2);
	add_number(t, 2 + list, 2);
	add_number(t, (size_t)((ssize_t)list + h->wrong_length), 2);
	for (int i = 0; i < (h->has_two ? 2 : 1); i++) {
		add_number(t, h->name_type, 1);
		add_number(t, size, 2);
		add(t, name, size);
	}
}

static void make_hello(const struct hello *h, const char *name, size_t size, struct text *out)
{
	struct text extensions = { .size = 0 }, message = { .size = 0 };
	static const uint8_t random[32], padding[17000];
	add_number(&extensions, 21, 2);
	add_number(&extensions, h->padding, 2);
	add(&extensions, padding, h->padding);
	for (size_t i = 0; !h->has_none && i < (h->names ? h->names : 1); i++)
		add_server_name(&extensions, h, name, size);

	const size_t body = 2 + 32 + 1 + 32 + 2 + 4 + 1 + 1 + 2 + extensions.size;
	add_number(&message, 1, 1);
	add_number(&message, (size_t)((ssize_t)body + h->wrong_message), 3);
	add_number(&message, 0x0303, 2);
	add(&message, random, 32);
	add_number(&message, 32, 1);
	add(&message, random, 32);
	add_number(&message, 4, 2);
	add_number(&message, 0x13011302, 4);
	add_number(&message, 0x0100, 2);
	add_number(&message, (size_t)((ssize_t)extensions.size + h->wrong_all), 2);
	add(&message, extensions.bytes, extensions.size);

	const size_t record = h->record ? h->record : message.size;
	out->size = 0;
	for (size_t at = 0; at < message.size; at += record) {
		const size_t part = message.size - at < record ? message.size - at : record;
		add_number(out, 0x160301, 3);
		add_number(out, part, 2);
		add(out, message.bytes + at, part);
	}
}

/* All bytes at once, and then byte by byte: the same bytes pass.  Returns how many, or -1. */
static ssize_t read_all(const struct text *t, struct asked *a)
{
	struct client_stream whole = { .may = may, .context = a };
	struct asked again = { .refused = a->refused };
	struct client_stream pieces = { .may = may, .context = &again };
	size_t passed = 0;
	ssize_t rc = 0;
	const ssize_t all = client_stream_read(&whole, t->bytes, t->size);
	for (size_t end = 1; end <= t->size && rc >= 0; end++) {
		rc = client_stream_read(&pieces, t->bytes + passed, end - passed);
		if (rc > 0)
			passed += (size_t)rc;
	}
	assert_int_equal(all, rc < 0 ? -1 : (ssize_t)passed);
	assert_int_equal(whole.is_denied, pieces.is_denied);
	assert_string_equal(whole.name, pieces.name);
	return all;
}

static void assert_tls(const struct hello *h, const char *name, size_t size, const char *expected)
{
	static struct text t;
	struct asked a = { 0 };
	make_hello(h, name, size, &t);
	const ssize_t rc = read_all(&t, &a);
	assert_int_equal(rc, expected ? (ssize_t)t.size : -1);
	assert_int_equal(a.count, expected ? 1 : 0);
	if (expected)
		assert_string_equal(a.names[0], expected);
}

static void the_name_of_a_client_hello_is_found(void **state)
{
	(void)state;
	assert_tls(&(struct hello){ 0 }, "example.org", 11, "example.org");
	assert_tls(&(struct hello){ 0 }, "EXAMPLE.Org.", 12, "example.org");
	assert_tls(&(struct hello){ .padding = 1500 }, "a_b-c.example.org", 17,
		   "a_b-c.example.org");
	assert_tls(&(struct hello){ .record = 1 }, "example.org", 11, "example.org");
	assert_tls(&(struct hello){ .record = 7, .padding = 2000 }, "a.b", 3, "a.b");
	assert_tls(&(struct hello){ .padding = 16000 }, "a.b", 3, "a.b");
}

static void a_client_hello_with_no_name_or_two_is_refused(void **state)
{
	(void)state;
	assert_tls(&(struct hello){ .has_none = true }, "", 0, NULL);
	assert_tls(&(struct hello){ .names = 2 }, "a.b", 3, NULL);
	assert_tls(&(struct hello){ .has_two = true }, "a.b", 3, NULL);
	assert_tls(&(struct hello){ .name_type = 1 }, "a.b", 3, NULL);
	static const char *const bad[] = { "",    ".",   "a..b",  ".a",
					   "a b", "a/b", "[::1]", "\xc3\xa4.org" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_tls(&(struct hello){ 0 }, bad[i], strlen(bad[i]), NULL);
	assert_tls(&(struct hello){ 0 }, "a.b\0.c", 6, NULL);
	char longest[300];
	memset(longest, 'a', sizeof(longest));
	assert_tls(&(struct hello){ 0 }, longest, 64, NULL); /* of one label */
	for (size_t i = 1; i < sizeof(longest); i += 2)
		longest[i] = '.';
	assert_tls(&(struct hello){ 0 }, longest, 257, NULL);
}

static void a_client_hello_with_a_wrong_length_is_refused(void **state)
{
	(void)state;
	static const ssize_t wrong[] = { -1, 1 };
	for (size_t i = 0; i < 2; i++) {
		assert_tls(&(struct hello){ .wrong_length = wrong[i] }, "a.b", 3, NULL);
		assert_tls(&(struct hello){ .wrong_all = wrong[i] }, "a.b", 3, NULL);
	}
	assert_tls(&(struct hello){ .wrong_message = -1 }, "a.b", 3, NULL);
	assert_tls(&(struct hello){ .padding = 16400 }, "a.b", 3, NULL); /* too long */
}

static void assert_bytes(const void *bytes, size_t size, ssize_t expected, const char *names)
{
	struct asked a = { .refused = "evil.org" };
	struct text t = { .size = 0 };
	char joined[4 * CLIENT_NAME_MAX] = "";
	add(&t, bytes, size);
	assert_int_equal(read_all(&t, &a), expected);
	size_t used = 0;
	for (size_t i = 0; i < a.count; i++)
		used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s%s",
					 i > 0 ? " " : "", a.names[i]);
	assert_string_equal(joined, names);
}

#define PASSES(text, names)  assert_bytes(text, sizeof(text) - 1, sizeof(text) - 1, names)
#define REFUSED(text, names) assert_bytes(text, sizeof(text) - 1, -1, names)
#define WAITS(text)          assert_bytes(text, sizeof(text) - 1, 0, "")

static void other_bytes_are_refused_at_once(void **state)
{
	(void)state;
	REFUSED("SSH-2.0-x\r\n", "");
	REFUSED("\x80\x2e\x01\x03\x01", "");         /* SSLv2 */
	REFUSED("\x16\x03\x01\x00\x01\x02", "");     /* a ServerHello */
	REFUSED("\x16\x02\x01\x00\x01", "");         /* another version */
	REFUSED("\x16\x03\x01\x00\x00", "");         /* an empty record */
	REFUSED("\x15\x03\x01\x00\x02\x01\x00", ""); /* an alert */
	REFUSED("\0", "");
	REFUSED("PRI * HTTP/2.0\r\n\r\n", "");
	REFUSED("\n", "");
	WAITS("\x16");
	WAITS("\x16\x03\x01\x02");
	WAITS("GET / HT");
}

static void the_host_of_each_request_is_asked_about(void **state)
{
	(void)state;
	PASSES("GET / HTTP/1.1\r\nHost: Good.ORG.:80\r\n\r\n", "good.org");
	PASSES("GET / HTTP/1.0\r\na: b\r\nhOST:\tgood.org \r\n\r\n", "good.org");
	PASSES("OPTIONS * HTTP/1.1\r\nHost: good.org\r\n\r\n", "good.org");
	PASSES("GET http://GOOD.org:80/x HTTP/1.1\r\nHost: good.org\r\n\r\n", "good.org");
	PASSES("GET / HTTP/1.1\r\nHost: a.org\r\n\r\nGET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
	       "a.org");
	PASSES("GET / HTTP/1.1\r\nHost: a.org\r\n\r\nGET / HTTP/1.1\r\nHost: b.org\r\n\r\n",
	       "a.org b.org");
	REFUSED("GET / HTTP/1.1\r\nHost: evil.org\r\n\r\n", "evil.org");
	REFUSED("GET / HTTP/1.1\r\nHost: a.org\r\n\r\nGET / HTTP/1.1\r\nHost: evil.org\r\n\r\n",
		"a.org evil.org");
	REFUSED("GET http://evil.org/ HTTP/1.1\r\nHost: good.org\r\n\r\n", "");
	REFUSED("GET http://good.org@evil.org/ HTTP/1.1\r\nHost: good.org\r\n\r\n", "");
	REFUSED("GET good.org/ HTTP/1.1\r\nHost: good.org\r\n\r\n", "");
	REFUSED("CONNECT good.org:80 HTTP/1.1\r\nHost: good.org\r\n\r\n", "");
}

static void bodies_pass_and_end_where_they_say(void **state)
{
	(void)state;
	PASSES("POST / HTTP/1.1\r\nHost: a.org\r\nContent-Length: 9\r\n\r\n\0\r\n\r\nbody"
	       "GET / HTTP/1.1\r\nHost: b.org\r\n\r\n",
	       "a.org b.org");
	PASSES(
	    "POST / HTTP/1.1\r\nHost: a.org\r\nTransfer-Encoding: Chunked\r\n\r\n"
	    "a\r\n0123456789\r\n0B\r\nHost: x\r\n\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: b.org\r\n\r\n",
	    "a.org b.org");
#define POST "POST / HTTP/1.1\r\nHost: a.org\r\n"
	REFUSED(POST "Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: evil.org\r\n\r\n",
		"a.org evil.org");
	REFUSED(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "");
	REFUSED(POST "Content-Length: 3, 3\r\n\r\nabc", "");
	REFUSED(POST "Content-Length: +3\r\n\r\nabc", "");
	REFUSED(POST "Content-Length: 1234567890123456\r\n\r\n", "");
	REFUSED(POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "");
	REFUSED(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "");
	REFUSED(POST "Transfer-Encoding: gzip, chunked\r\n\r\n", "");
	REFUSED("POST / HTTP/1.0\r\nHost: a.org\r\nTransfer-Encoding: chunked\r\n\r\n", "");
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"
	REFUSED(CHUNKED "\r\n", "a.org");
	REFUSED(CHUNKED "3;a=b\r\nabc\r\n", "a.org");
	REFUSED(CHUNKED "0x3\r\nabc\r\n", "a.org");
	REFUSED(CHUNKED "123456789\r\n", "a.org");
	REFUSED(CHUNKED "3\r\nabcd\r\n", "a.org");
	REFUSED(CHUNKED "0\r\nHost: evil.org\r\n\r\n", "a.org");
}

static void heads_that_servers_read_in_two_ways_are_refused(void **state)
{
	(void)state;
	REFUSED("GET / HTTP/1.1\r\n\r\n", "");
	REFUSED("GET / HTTP/1.1\r\nHost:\r\n\r\n", "");
	REFUSED("GET / HTTP/1.1\r\nHost: a.org\r\nHost: a.org\r\n\r\n", "");
	REFUSED("GET / HTTP/1.1\r\nHost: a.org, evil.org\r\n\r\n", "");
	REFUSED("GET / HTTP/1.1\r\nHost : a.org\r\n\r\n", "");
	REFUSED("GET / HTTP/1.1\r\nHost: a.org\r\n b.org\r\n\r\n", "");
	REFUSED("GET / HTTP/1.1\nHost: a.org\n\n", "");
	REFUSED("GET / HTTP/1.1\r\nHost: a.org\r\nx: a\rb\r\n\r\n", "");
	REFUSED("GET / HTTP/1.1\r\nHost: a.org\r\nx: a\0b\r\n\r\n", "");
	REFUSED("GET / HTTP/1.1\r\nHost: a.org:8x\r\n\r\n", "");
	REFUSED("GET  / HTTP/1.1\r\nHost: a.org\r\n\r\n", "");
	REFUSED("GET / HTTP/1.2\r\nHost: a.org\r\n\r\n", "");
	REFUSED("GET /\r\nHost: a.org\r\n\r\n", "");
	REFUSED(" GET / HTTP/1.1\r\nHost: a.org\r\n\r\n", "");
	REFUSED("\r\nGET / HTTP/1.1\r\nHost: a.org\r\n\r\n", "");
}

static void a_name_that_does_not_come_within_16_kib_is_refused(void **state)
{
	(void)state;
	struct text t = { .size = 0 };
	struct asked a = { 0 };
	static const char begin[] = "GET / HTTP/1.1\r\nHost: a.org\r\nx: ";
	add(&t, begin, sizeof(begin) - 1);
	memset(t.bytes + t.size, 'x', CLIENT_FIRST_MAX - t.size);
	t.size = CLIENT_FIRST_MAX - 4;
	add(&t, "\r\n\r\n", 4);
	assert_int_equal(read_all(&t, &a), CLIENT_FIRST_MAX);
	memcpy(t.bytes + t.size - 4, "x\r\n\r", 4);
	add(&t, "\n", 1);
	assert_int_equal(read_all(&t, &a), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_of_a_client_hello_is_found),
		cmocka_unit_test(a_client_hello_with_no_name_or_two_is_refused),
		cmocka_unit_test(a_client_hello_with_a_wrong_length_is_refused),
		cmocka_unit_test(other_bytes_are_refused_at_once),
		cmocka_unit_test(the_host_of_each_request_is_asked_about),
		cmocka_unit_test(bodies_pass_and_end_where_they_say),
		cmocka_unit_test(heads_that_servers_read_in_two_ways_are_refused),
		cmocka_unit_test(a_name_that_does_not_come_within_16_kib_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
