/* SPDX-License-Identifier: Apache-2.0 */
/* resolver: what reaches the host's name server, what comes back, and who has to wait. */
/* WRAP: clock_gettime */
#include "netns/relay/resolver.h"

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "netns/network_parts.h"
#include "netns/relay/resolver_message.h"
#include "netns/rtnetlink/links.h"
#include "runtime/base/scope.h"
#include "tests/netns/turns.h"
#include "tests/patience.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define GATEWAY      2 /* 127.0.0.2: where the resolver listens */
#define SERVER_A     3 /* and the servers it knows */
#define STRANGER     9

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);

static time_t leap;            /* seconds our clock is ahead: nobody waits for a time limit */
static struct timespec frozen; /* what it shows if it stands still, else nothing */

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	int rc = __real_clock_gettime(id, out);
	if (frozen.tv_sec > 0)
		*out = frozen;
	out->tv_sec += leap;
	return rc;
}

/* Or a server would be taken for silent whenever we are kept from turning. */
static void freeze(void)
{
	assert_int_equal(__real_clock_gettime(CLOCK_MONOTONIC, &frozen), 0);
	frozen.tv_sec++; /* never 0 */
}

static bool has_namespace;

static void make_namespace(void)
{
	struct cj_error err = { 0 };
	has_namespace = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
			links_raise_loopback(&err) == 0;
}

/* --- messages -------------------------------------------------------------------- */

/* "example.com", type A, class IN; a test changes what it is about. */
static const uint8_t plain[] = { 0x12, 0x34, 0x01, 0x00, 0,   1,   0,   0,   0,   0,
				 0,    0,    7,    'e',  'x', 'a', 'm', 'p', 'l', 'e',
				 3,    'c',  'o',  'm',  0,   0,   1,   0,   1 };
#define PLAIN_TYPE  25
#define PLAIN_CLASS 27

/* An OPT record with a cookie of eight bytes (RFC 6891, RFC 7873). */
static const uint8_t edns[] = { 0,  0, 41, 16, 0, 0, 0, 0, 0, 0, 12, 0,
				10, 0, 8,  1,  2, 3, 4, 5, 6, 7, 8 };

/* What the host's name server gets of it. */
static const uint8_t bare_edns[] = { 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0 };

/* The size it has then, 0: it does not pass.  `out` may be NULL. */
static size_t make_plain(const uint8_t *bytes, size_t size, uint8_t *out)
{
	uint8_t *exact = malloc(size ? size : 1); /* a sanitizer sees one byte too far */
	assert_non_null(exact);
	if (size > 0)
		memcpy(exact, bytes, size);
	size_t result = resolver_make_plain(exact, size);
	assert_true(result <= size);
	if (out && result > 0)
		memcpy(out, exact, result);
	free(exact);
	return result;
}

static bool passes(const uint8_t *bytes, size_t size)
{
	return make_plain(bytes, size, NULL) > 0;
}

/* The plain question with a record behind it. */
static size_t with_record(uint8_t *out, const uint8_t *record, size_t size)
{
	memcpy(out, plain, sizeof(plain));
	memcpy(out + sizeof(plain), record, size);
	out[11] = 1;
	return sizeof(plain) + size;
}

static void plain_queries_pass_unchanged(void **state)
{
	(void)state;
	uint8_t got[sizeof(plain)];
	assert_int_equal(make_plain(plain, sizeof(plain), got), sizeof(plain));
	assert_memory_equal(got, plain, sizeof(plain));
}

static void only_the_flag_recursion_desired_passes(void **state)
{
	(void)state;
	static const uint8_t flags[][2] = { { 0, 0 }, { 1, 0 }, { 7, 0xff }, { 1, 0x30 } };
	for (size_t i = 0; i < COUNT(flags); i++) {
		uint8_t message[sizeof(plain)];
		memcpy(message, plain, sizeof(plain));
		memcpy(message + 2, flags[i], 2);
		assert_int_equal(make_plain(message, sizeof(message), message), sizeof(plain));
		assert_memory_equal(message, plain, sizeof(plain));
	}
}

static void edns_passes_without_its_options(void **state)
{
	(void)state;
	uint8_t message[sizeof(plain) + sizeof(edns)];
	size_t size = with_record(message, edns, sizeof(edns));
	assert_int_equal(make_plain(message, size, message), sizeof(plain) + sizeof(bare_edns));
	assert_memory_equal(message + 12, plain + 12, sizeof(plain) - 12);
	assert_memory_equal(message + sizeof(plain), bare_edns, sizeof(bare_edns));
	assert_int_equal(message[11], 1);

	/* as large as an answer may be, and the "DNSSEC OK" flag */
	static const struct {
		uint16_t asked, passed;
	} sizes[] = { { 0, 512 }, { 511, 512 }, { 1200, 1200 }, { 1233, 1232 }, { 65535, 1232 } };
	for (size_t i = 0; i < COUNT(sizes); i++) {
		(void)with_record(message, bare_edns, sizeof(bare_edns));
		message[sizeof(plain) + 3] = (uint8_t)(sizes[i].asked >> 8);
		message[sizeof(plain) + 4] = (uint8_t)sizes[i].asked;
		message[sizeof(plain) + 7] = 0x80;
		size = sizeof(plain) + sizeof(bare_edns);
		assert_int_equal(make_plain(message, size, message), size);
		assert_int_equal(message[sizeof(plain) + 3] << 8 | message[sizeof(plain) + 4],
				 sizes[i].passed);
		assert_int_equal(message[sizeof(plain) + 7], 0);
	}
}

static void another_record_does_not_pass(void **state)
{
	(void)state;
	static const uint8_t records[][11] = {
		{ 0, 0, 41, 4, 208, 0, 1 },          /* EDNS of version 1 */
		{ 0, 0, 250, 0, 255 },               /* TSIG (RFC 8945) */
		{ 0, 0, 24, 0, 255 },                /* SIG(0) (RFC 2931) */
		{ 0, 0, 249, 0, 255 },               /* TKEY */
		{ 0, 0, 1, 0, 1 },                   /* an address */
		{ 0, 0, 41, 4, 208, 0, 0, 0, 0, 1 }, /* options that are cut off */
	};
	uint8_t message[sizeof(plain) + 2 * sizeof(edns)];
	for (size_t i = 0; i < COUNT(records); i++) {
		size_t size = with_record(message, records[i], sizeof(records[i]));
		if (passes(message, size))
			fail_msg("record %zu passes", i);
	}
	static const uint8_t named[] = { 1, 'x', 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0 };
	assert_false(passes(message, with_record(message, named, sizeof(named))));

	size_t size = with_record(message, edns, sizeof(edns));
	memcpy(message + size, edns, sizeof(edns));
	message[11] = 2;
	assert_false(passes(message, sizeof(message)));
}

static void the_root_and_every_ordinary_type_may_be_asked_for(void **state)
{
	(void)state;
	static const uint8_t types[] = { 1, 2, 5, 6, 12, 15, 16, 28, 33, 43, 48, 64, 65, 255 };
	uint8_t root[17] = { 1, 1, 1, 0, 0, 1, [14] = 2, [16] = 1 };
	uint8_t message[sizeof(plain)];
	assert_true(passes(root, sizeof(root)));
	for (size_t i = 0; i < COUNT(types); i++) {
		memcpy(message, plain, sizeof(plain));
		message[PLAIN_TYPE + 1] = types[i];
		assert_true(passes(message, sizeof(message)));
	}
}

/* One byte of the plain query is another: it does not pass. */
static const struct change {
	size_t at;
	uint8_t value;
	const char *what;
} changes[] = {
	{ 2, 0x81, "an answer" },
	{ 2, 0x09, "an inverse query" },
	{ 2, 0x11, "a status request" },
	{ 2, 0x21, "a notify" },
	{ 2, 0x29, "an update" },
	{ 2, 0x79, "an unknown operation" },
	{ 4, 1, "257 questions" },
	{ 5, 0, "no question" },
	{ 5, 2, "two questions" },
	{ 7, 1, "an answer record" },
	{ 9, 1, "an authority record" },
	{ 11, 1, "an additional record that is not there" },
	{ 11, 2, "two additional records" },
	{ 12, 0xc0, "a compressed name" },
	{ 12, 0x40, "a label of an unknown kind" },
	{ 12, 63, "a name that is cut off" },
	{ 12, 8, "another division into labels" },
	{ 24, 1, "a name without an end" },
	{ 24, 0xc0, "a name that ends in a pointer" },
	{ PLAIN_TYPE + 1, 41, "EDNS as a question" },
	{ PLAIN_TYPE + 1, 128, "the first type that is no data" },
	{ PLAIN_TYPE + 1, 249, "an exchange of keys" },
	{ PLAIN_TYPE + 1, 250, "a signature of a transaction" },
	{ PLAIN_TYPE + 1, 251, "an incremental zone transfer" },
	{ PLAIN_TYPE + 1, 252, "a zone transfer" },
	{ PLAIN_TYPE + 1, 253, "a list of mailboxes" },
	{ PLAIN_TYPE + 1, 254, "a list of mail agents" },
	{ PLAIN_CLASS + 1, 0, "class 0" },
	{ PLAIN_CLASS + 1, 3, "class CH" },
	{ PLAIN_CLASS + 1, 4, "class HS" },
	{ PLAIN_CLASS + 1, 255, "any class" },
	{ PLAIN_CLASS, 1, "a private class" },
};

static void another_message_than_a_plain_query_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(changes); i++) {
		uint8_t message[sizeof(plain)];
		memcpy(message, plain, sizeof(plain));
		message[changes[i].at] = changes[i].value;
		if (passes(message, sizeof(message)))
			fail_msg("%s passes", changes[i].what);
	}
}

static void a_message_ends_where_its_last_record_ends(void **state)
{
	(void)state;
	uint8_t message[RESOLVER_QUESTION_MAX + 1] = { 0 };
	size_t size = sizeof(plain) + sizeof(edns);
	memcpy(message, plain, sizeof(plain));
	for (size_t i = 0; i < sizeof(plain); i++)
		assert_false(passes(plain, i));
	assert_false(passes(message, sizeof(plain) + 1));

	memcpy(message + sizeof(plain), edns, sizeof(edns));
	message[11] = 1;
	for (size_t i = sizeof(plain); i < size; i++)
		assert_false(passes(message, i));
	assert_true(passes(message, size));
	assert_false(passes(message, size + 1));
}

/* A query whose name has this many bytes on the wire, and with an option it fills `size`. */
static void names_and_messages_have_a_maximum_length(void **state)
{
	(void)state;
	for (size_t name = 250; name < 260; name++) {
		uint8_t message[300] = { 0, 1, 1, 0, 0, 1 };
		size_t at = 12, left = name - 1;
		while (left > 0) {
			size_t label = left > 64 ? 63 : left - 1;
			message[at] = (uint8_t)label;
			at += 1 + label;
			left -= 1 + label;
			if (left == 1) { /* no room for a label and its length */
				message[at - 1 - label] = (uint8_t)(label - 1);
				at--;
				left++;
			}
		}
		at++;
		message[at + 1] = message[at + 3] = 1;
		assert_int_equal(passes(message, at + 4), at - 12 <= 255);
	}
	uint8_t message[RESOLVER_QUESTION_MAX + 1] = { 0 };
	for (size_t size = RESOLVER_QUESTION_MAX; size <= RESOLVER_QUESTION_MAX + 1; size++) {
		size_t data = size - sizeof(plain) - 11;
		memcpy(message, plain, sizeof(plain));
		memcpy(message + sizeof(plain), edns, 11);
		message[11] = 1;
		message[sizeof(plain) + 9] = (uint8_t)(data >> 8);
		message[sizeof(plain) + 10] = (uint8_t)data;
		assert_int_equal(passes(message, size), size == RESOLVER_QUESTION_MAX);
	}
}

/* --- resolv.conf ----------------------------------------------------------------- */

static void expect_servers(const char *text, const char *wanted)
{
	struct ip servers[RESOLVER_SERVERS_MAX];
	char got[256] = "", one[IP_TEXT_MAX];
	size_t count = resolver_read_conf(text, servers), at = 0;
	for (size_t i = 0; i < count; i++)
		at += (size_t)snprintf(got + at, sizeof(got) - at, "%s%s", i ? " " : "",
				       ip_format(&servers[i], one));
	assert_string_equal(got, wanted);
}

static void servers_are_read_as_the_c_library_reads_them(void **state)
{
	(void)state;
	expect_servers("", "127.0.0.1");
	expect_servers("search example.com\noptions edns0\n", "127.0.0.1");
	expect_servers("nameserver 10.0.0.1", "10.0.0.1");
	expect_servers("nameserver\t10.0.0.1 \r\nnameserver fd00::1\n", "10.0.0.1 fd00::1");
	expect_servers("# nameserver 1.1.1.1\n; nameserver 1.1.1.2\nnameserver 1.1.1.3 # it\n",
		       "1.1.1.3");
	expect_servers("nameserver 1.1.1.1;x\nnameserver 1.1.1.2#y\n", "1.1.1.1 1.1.1.2");
	expect_servers("nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n"
		       "nameserver 10.0.0.4\n",
		       "10.0.0.1 10.0.0.2 10.0.0.3");
	expect_servers(" nameserver 1.1.1.1\nnameservers 1.1.1.2\nnameserver1.1.1.3\nNameserver "
		       "1.1.1.4\nnameserver\n10.0.0.1\n",
		       "127.0.0.1");
	expect_servers("nameserver dns.example\nnameserver 1.2.3\nnameserver 010.0.0.1\n"
		       "nameserver 1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8.9.0.1.2.3.4.5.6.7.8\n",
		       "127.0.0.1");
	expect_servers("nameserver fe80::1%eth0\nnameserver 10.0.0.1\n", "10.0.0.1");
}

/* --- the world of a test --------------------------------------------------------- */

struct world {
	struct resolver *resolver;
	int conf_fd;
	int udp_fds[2], tcp_fds[2]; /* what the servers A and B listen with */
	size_t descriptors;
};

static size_t open_descriptors(void)
{
	size_t count = 0;
	auto_dir DIR *dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	return count;
}

static struct ip loopback(uint8_t last)
{
	return (struct ip){ .family = 4, .bytes = { 127, 0, 0, last } };
}

static struct sockaddr_in socket_address(uint8_t last, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	address.sin_addr.s_addr = htonl(0x7f000000 + last);
	return address;
}

/* The name servers are sockets like the resolver's own. */
static void start_server(struct world *w, int i)
{
	struct cj_error err = { 0 };
	struct ip at = loopback((uint8_t)(SERVER_A + i));
	if (resolver_listen(&at, &w->udp_fds[i], &w->tcp_fds[i], &err) < 0)
		fail_msg("%s", err.msg);
}

static void stop_server(struct world *w, int i)
{
	cj_close(&w->udp_fds[i]);
	cj_close(&w->tcp_fds[i]);
}

static int connect_server(void *context, size_t server, int type)
{
	return name_servers_connect(context, server, type);
}

/* As the gateway does it, but for the processes between. */
static int create(int udp_fd, int tcp_fd, const char *path, struct resolver **out,
		  struct cj_error *err)
{
	static struct name_servers servers;
	if (name_servers_read(path, &servers, err) < 0)
		return -err->code;
	const struct resolver_upstream upstream = { servers.count, connect_server, &servers };
	return resolver_create(udp_fd, tcp_fd, &upstream, out, err);
}

static void make_resolver(struct world *w, const char *conf)
{
	struct cj_error err = { 0 };
	struct ip at = loopback(GATEWAY);
	int udp_fd, tcp_fd;
	char path[64];
	w->conf_fd = memfd_create("resolv.conf", MFD_CLOEXEC);
	assert_int_equal(write(w->conf_fd, conf, strlen(conf)), strlen(conf));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", w->conf_fd);
	if (resolver_listen(&at, &udp_fd, &tcp_fd, &err) < 0 ||
	    create(udp_fd, tcp_fd, path, &w->resolver, &err) < 0)
		fail_msg("%s", err.msg);
}

static int set_up(void **state)
{
	static struct world world;
	*state = NULL;
	if (!has_namespace)
		return 0;
	leap = 0;
	freeze();
	world.descriptors = open_descriptors();
	make_resolver(&world, "nameserver 127.0.0.3\nnameserver 127.0.0.4\n");
	start_server(&world, 0);
	start_server(&world, 1);
	*state = &world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	if (w) {
		resolver_destroy(&w->resolver);
		resolver_destroy(&w->resolver); /* of nothing: no harm */
		cj_close(&w->conf_fd);
		stop_server(w, 0);
		stop_server(w, 1);
		assert_int_equal(open_descriptors(), w->descriptors);
	}
	return 0;
}

static int serve(void *world, struct cj_error *err)
{
	return resolver_serve(((struct world *)world)->resolver, err);
}

/* One turn of the supervisor's loop. */
static bool turn_for(struct world *w, int ms)
{
	return turn_once(resolver_fd(w->resolver), ms, serve, w);
}

#define QUIET_MAX_MS 50 /* the clock's ticks come more slowly */

/* Until nothing comes for a moment. */
static void settle(struct world *w)
{
	for (int i = 0; i < 5000; i++)
		if (!turn_for(w, patience_ms(2) < QUIET_MAX_MS ? patience_ms(2) : QUIET_MAX_MS))
			return;
	fail_msg("the resolver never rests");
}

/* `seconds` pass, and the resolver's next tick with them. */
static void pass_time(struct world *w, time_t seconds)
{
	leap += seconds;
	assert_true(turn_for(w, patience_ms(5000)));
	settle(w);
}

static int udp_client(void)
{
	struct sockaddr_in to = socket_address(GATEWAY, 53);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int tcp_client(void)
{
	struct sockaddr_in to = socket_address(GATEWAY, 53);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void put(int fd, const void *bytes, size_t size)
{
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

static void ask(int fd, uint8_t id)
{
	uint8_t message[sizeof(plain)];
	memcpy(message, plain, sizeof(plain));
	message[1] = id;
	put(fd, message, sizeof(message));
}

/* Who has asked a server, and with which id. */
struct asker {
	struct sockaddr_in at;
	uint8_t id[2];
};

/* The size of the next query at a server, -1: none. */
static ssize_t next_query(struct world *w, int i, struct asker *out_from)
{
	uint8_t bytes[2048];
	socklen_t size = sizeof(out_from->at);
	settle(w);
	ssize_t n = recvfrom(w->udp_fds[i], bytes, sizeof(bytes), 0,
			     (struct sockaddr *)&out_from->at, &size);
	if (n < 0)
		return -1;
	assert_int_equal(n, sizeof(plain));
	assert_memory_equal(bytes + sizeof(out_from->id), plain + sizeof(out_from->id),
			    sizeof(plain) - sizeof(out_from->id));
	memcpy(out_from->id, bytes, sizeof(out_from->id));
	return n;
}

static void expect_query(struct world *w, int i, struct asker *out_from)
{
	ssize_t got = -1;
	for (int tries = 0; tries < 2500 && got < 0; tries++)
		got = next_query(w, i, out_from);
	assert_true(got > 0);
}

static void expect_silence(struct world *w)
{
	struct asker from;
	assert_int_equal(next_query(w, 0, &from), -1);
	assert_int_equal(next_query(w, 1, &from), -1);
}

/* What the client gets of an answer to the plain query: the question again, and a code. */
static void make_answer(uint8_t out[sizeof(plain)], uint8_t id)
{
	memcpy(out, plain, sizeof(plain));
	out[1] = id;
	out[2] = 0x81;
	out[3] = 0x83; /* no such name */
}

/* With the id that the server was asked with. */
static void answer_from(int fd, const struct asker *to, const uint8_t *bytes, size_t size)
{
	uint8_t message[4096];
	assert_true(size <= sizeof(message));
	memcpy(message, bytes, size);
	memcpy(message, to->id, size < sizeof(to->id) ? size : sizeof(to->id));
	assert_int_equal(
	    sendto(fd, message, size, 0, (const struct sockaddr *)&to->at, sizeof(to->at)), size);
}

static ssize_t try_bytes(struct world *w, int fd, uint8_t *out, size_t size, int tries)
{
	ssize_t n = -1;
	for (; tries > 0 && n < 0; tries--) {
		settle(w);
		n = recv(fd, out, size, 0);
		if (n < 0 && errno != EAGAIN)
			break;
	}
	return n;
}

/* What comes to a socket next; its size, or -1. */
static ssize_t next_bytes(struct world *w, int fd, uint8_t *out, size_t size)
{
	return try_bytes(w, fd, out, size, 500);
}

static void expect_nothing(struct world *w, int client)
{
	uint8_t bytes[64];
	assert_int_equal(try_bytes(w, client, bytes, sizeof(bytes), 20), -1);
	assert_int_equal(errno, EAGAIN);
}

/* --- UDP ------------------------------------------------------------------------- */

static void a_query_reaches_the_first_server_and_its_answer_the_client(void **state)
{
	struct world *w = world_of(state);
	struct asker from;
	uint8_t answer[sizeof(plain)], got[64];
	auto_fd int client = udp_client();
	ask(client, 7);
	expect_query(w, 0, &from);
	make_answer(answer, 7);
	answer_from(w->udp_fds[0], &from, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
	assert_memory_equal(got, answer, sizeof(answer));
	expect_silence(w);
}

static void a_large_answer_arrives_complete(void **state)
{
	struct world *w = world_of(state);
	struct asker from;
	uint8_t answer[4096] = { 0 }, got[8192];
	auto_fd int client = udp_client();
	ask(client, 8);
	expect_query(w, 0, &from);
	make_answer(answer, 8);
	answer_from(w->udp_fds[0], &from, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
	assert_memory_equal(got, answer, sizeof(answer));
}

static void two_clients_with_one_id_get_their_own_answers(void **state)
{
	struct world *w = world_of(state);
	struct asker from[2];
	uint8_t answer[sizeof(plain)], got[64];
	auto_fd int first = udp_client();
	auto_fd int second = udp_client();
	ask(first, 7);
	expect_query(w, 0, &from[0]);
	ask(second, 7);
	expect_query(w, 0, &from[1]);
	assert_int_not_equal(from[0].at.sin_port, from[1].at.sin_port);
	make_answer(answer, 7);
	answer_from(w->udp_fds[0], &from[1], answer, sizeof(answer));
	assert_int_equal(next_bytes(w, second, got, sizeof(got)), sizeof(answer));
	expect_nothing(w, first);
}

/* Whoever answers in a server's place has to guess it, though the program chose its own. */
static void each_query_has_a_random_id_at_the_server_and_its_own_at_the_client(void **state)
{
	struct world *w = world_of(state);
	uint8_t answer[sizeof(plain)], got[64];
	uint16_t ids[32];
	unsigned repeated = 0, same = 0;
	auto_fd int client = udp_client();
	for (size_t i = 0; i < COUNT(ids); i++) {
		struct asker from;
		ask(client, 7);
		expect_query(w, 0, &from);
		memcpy(&ids[i], from.id, sizeof(ids[i]));
		same += from.id[0] == plain[0] && from.id[1] == 7;
		for (size_t j = 0; j < i; j++)
			repeated += ids[j] == ids[i];
		make_answer(answer, 7);
		answer_from(w->udp_fds[0], &from, answer, sizeof(answer));
		assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
		assert_memory_equal(got, answer, sizeof(answer));
	}
	/* By chance one pair of 32 is equal once in 132 runs, and four never. */
	assert_true(repeated < 4 && same < 4);
}

static void only_plain_queries_reach_a_server(void **state)
{
	struct world *w = world_of(state);
	uint8_t big[4000] = { 0 };
	auto_fd int client = udp_client();
	for (size_t i = 0; i < COUNT(changes); i++) {
		uint8_t message[sizeof(plain)];
		memcpy(message, plain, sizeof(plain));
		message[changes[i].at] = changes[i].value;
		put(client, message, sizeof(message));
	}
	memcpy(big, plain, sizeof(plain));
	put(client, big, sizeof(big));
	put(client, plain, 11);
	put(client, plain, 0);
	expect_silence(w);
	ask(client, 9); /* and it was not deaf */
	struct asker from;
	expect_query(w, 0, &from);
}

static void a_query_reaches_a_server_without_options(void **state)
{
	struct world *w = world_of(state);
	uint8_t message[sizeof(plain) + sizeof(edns)], got[256];
	auto_fd int client = udp_client();
	put(client, message, with_record(message, edns, sizeof(edns)));
	assert_int_equal(next_bytes(w, w->udp_fds[0], got, sizeof(got)),
			 sizeof(plain) + sizeof(bare_edns));
	assert_memory_equal(got + 2, message + 2, sizeof(plain) - 2);
	assert_memory_equal(got + sizeof(plain), bare_edns, sizeof(bare_edns));
}

static void a_signed_query_is_answered_with_a_refusal(void **state)
{
	struct world *w = world_of(state);
	static const uint8_t tsig[11] = { 0, 0, 250, 0, 255 };
	uint8_t message[sizeof(plain) + sizeof(tsig)], got[256];
	auto_fd int client = udp_client();
	put(client, message, with_record(message, tsig, sizeof(tsig)));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(plain));
	assert_int_equal(got[2], 0x81);
	assert_int_equal(got[3], 5); /* refused */
	assert_memory_equal(got + 4, plain + 4, sizeof(plain) - 4);
	put(client, got, sizeof(plain)); /* an answer is not answered */
	expect_nothing(w, client);
	expect_silence(w);
}

static void an_answer_must_come_from_the_server_that_was_asked(void **state)
{
	struct world *w = world_of(state);
	struct cj_error err = { 0 };
	struct asker from;
	struct ip at = loopback(STRANGER);
	uint8_t answer[sizeof(plain)], got[64];
	int stranger, unused;
	auto_fd int client = udp_client();
	assert_int_equal(resolver_listen(&at, &stranger, &unused, &err), 0);
	cj_close(&unused);
	ask(client, 7);
	expect_query(w, 0, &from);
	make_answer(answer, 7);
	answer_from(stranger, &from, answer, sizeof(answer));
	answer_from(w->udp_fds[1], &from, answer, sizeof(answer));
	expect_nothing(w, client);
	answer_from(w->udp_fds[0], &from, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
	cj_close(&stranger);
}

static void an_answer_must_have_the_id_and_the_question(void **state)
{
	struct world *w = world_of(state);
	/* byte of the right answer, and what else stands there */
	static const struct {
		size_t at;
		uint8_t value;
	} wrong[] = { { 2, 0x01 },           { 2, 0xa9 }, { 5, 2 },
		      { 13, 'f' },           { 12, 6 },   { PLAIN_TYPE + 1, 28 },
		      { PLAIN_CLASS + 1, 3 } };
	struct asker from;
	uint8_t answer[sizeof(plain)], got[64];
	auto_fd int client = udp_client();
	ask(client, 7);
	expect_query(w, 0, &from);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		make_answer(answer, 7);
		answer[wrong[i].at] = wrong[i].value;
		answer_from(w->udp_fds[0], &from, answer, sizeof(answer));
	}
	make_answer(answer, 7);
	for (size_t i = 0; i < sizeof(from.id); i++) {
		struct asker other = from;
		other.id[i] ^= 1;
		answer_from(w->udp_fds[0], &other, answer, sizeof(answer));
	}
	/* nor the client's own */
	answer_from(w->udp_fds[0], &(struct asker){ from.at, { plain[0], 7 } }, answer,
		    sizeof(answer));
	make_answer(answer, 7);
	for (size_t size = 0; size < sizeof(answer); size += 4)
		answer_from(w->udp_fds[0], &from, answer, size);
	expect_nothing(w, client);

	answer[13] = 'E'; /* no other name */
	answer_from(w->udp_fds[0], &from, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
}

static void an_error_needs_no_question(void **state)
{
	struct world *w = world_of(state);
	static const uint8_t unreadable[12] = { 0x12, 7, 0x80, 0x01 };
	static const uint8_t empty[12] = { 0x12, 7, 0x80, 0x00 };
	struct asker from;
	uint8_t got[64];
	auto_fd int client = udp_client();
	ask(client, 7);
	expect_query(w, 0, &from);
	answer_from(w->udp_fds[0], &from, empty, sizeof(empty));
	expect_nothing(w, client);
	answer_from(w->udp_fds[0], &from, unreadable, sizeof(unreadable));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(unreadable));
}

static void after_a_refusal_the_next_server_is_asked_at_once(void **state)
{
	struct world *w = world_of(state);
	struct asker from;
	auto_fd int client = udp_client();
	stop_server(w, 0);
	ask(client, 7);
	expect_query(w, 1, &from);
	start_server(w, 0);
	ask(client, 8); /* it stays with the one that works */
	expect_query(w, 1, &from);
}

/* As the C library does, which knows one server alone in the jail. */
static void after_a_failure_the_next_server_is_asked_at_once(void **state)
{
	static const uint8_t codes[] = { 2, 4, 5 };
	struct world *w = world_of(state);
	struct asker from;
	uint8_t failure[sizeof(plain)], answer[sizeof(plain)], got[64];
	auto_fd int client = udp_client();
	make_answer(answer, 7);
	make_answer(failure, 7);
	for (size_t i = 0; i < sizeof(codes); i++) {
		failure[3] = 0x80 | codes[i];
		ask(client, 7); /* the first one may know the next name */
		expect_query(w, 0, &from);
		answer_from(w->udp_fds[0], &from, failure, sizeof(failure));
		expect_query(w, 1, &from);
		answer_from(w->udp_fds[1], &from, i == 0 ? answer : failure, sizeof(answer));
		assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
		assert_memory_equal(got, i == 0 ? answer : failure, sizeof(answer));
		expect_silence(w);
	}

	ask(client, 7); /* "no such name" is an answer */
	expect_query(w, 0, &from);
	answer_from(w->udp_fds[0], &from, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
	expect_silence(w);
}

static void without_any_server_the_client_gets_a_failure(void **state)
{
	struct world *w = world_of(state);
	uint8_t got[64];
	auto_fd int client = udp_client();
	stop_server(w, 0);
	stop_server(w, 1);
	ask(client, 7);
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(plain));
	assert_int_equal(got[1], 7);
	assert_int_equal(got[2], 0x81);
	assert_int_equal(got[3], 2); /* server failure */
	assert_memory_equal(got + 4, plain + 4, sizeof(plain) - 4);
}

static void a_silent_server_gets_no_new_queries(void **state)
{
	struct world *w = world_of(state);
	struct asker late, from;
	uint8_t answer[sizeof(plain)], got[64];
	auto_fd int client = udp_client();
	ask(client, 7);
	expect_query(w, 0, &late);
	pass_time(w, 3);
	ask(client, 8);
	expect_query(w, 1, &from);

	make_answer(answer, 7); /* late, but not too late */
	answer_from(w->udp_fds[0], &late, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
}

static void a_query_without_an_answer_expires(void **state)
{
	struct world *w = world_of(state);
	struct asker from;
	size_t before = open_descriptors();
	auto_fd int client = udp_client();
	ask(client, 7);
	expect_query(w, 0, &from);
	assert_int_equal(open_descriptors(), before + 2);
	pass_time(w, 6);
	assert_int_equal(open_descriptors(), before + 1);
	(void)turn_for(w, 300); /* the last tick: nothing waits, no more of them */
	assert_false(turn_for(w, 600));
}

static void a_flood_uses_bounded_memory_and_the_newest_query_is_answered(void **state)
{
	struct world *w = world_of(state);
	struct asker from;
	uint8_t answer[sizeof(plain)], got[64];
	size_t before = open_descriptors();
	auto_fd int client = udp_client();
	for (int i = 0; i < 300; i++) {
		ask(client, (uint8_t)(i % 200));
		while (next_query(w, 0, &from) >= 0)
			;
	}
	assert_in_range(open_descriptors(), before, before + RESOLVER_QUERIES_MAX + 1);
	ask(client, 255);
	expect_query(w, 0, &from);
	make_answer(answer, 255);
	answer_from(w->udp_fds[0], &from, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), sizeof(answer));
}

static void queries_per_second_are_bounded(void **state)
{
	struct world *w = world_of(state);
	struct asker from;
	auto_fd int client = udp_client();
	unsigned reached = 0;
	for (int i = 0; i < 1500; i++) {
		ask(client, 1);
		while (i % 50 == 49 && next_query(w, 0, &from) >= 0)
			reached++;
	}
	assert_int_equal(reached, 1000);

	frozen.tv_sec++; /* the next second has as many again */
	ask(client, 2);
	expect_query(w, 0, &from);
}

/* --- TCP ------------------------------------------------------------------------- */

static void put_framed(int fd, const uint8_t *message, size_t size)
{
	uint8_t framed[2 + 64] = { 0, (uint8_t)size };
	memcpy(framed + 2, message, size);
	put(fd, framed, 2 + size);
}

/* What the resolver connects to a server next, -1: nothing. */
static int accept_at(struct world *w, int i)
{
	int fd = -1;
	for (int tries = 0; tries < 200 && fd < 0; tries++) {
		settle(w);
		fd = accept4(w->tcp_fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	}
	return fd;
}

static void a_query_over_tcp_is_forwarded_and_its_answer_returned(void **state)
{
	struct world *w = world_of(state);
	uint8_t answer[sizeof(plain)], got[256];
	auto_fd int client = tcp_client();
	put_framed(client, plain, sizeof(plain));
	auto_fd int server = accept_at(w, 0);
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), 2 + sizeof(plain));
	assert_int_equal(got[1], sizeof(plain));
	assert_memory_equal(got + 2, plain, sizeof(plain));
	make_answer(answer, plain[1]);
	put_framed(server, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), 2 + sizeof(answer));
	assert_memory_equal(got + 2, answer, sizeof(answer));
}

static void a_query_in_pieces_is_forwarded_when_it_is_complete(void **state)
{
	struct world *w = world_of(state);
	uint8_t framed[2 + sizeof(plain)] = { 0, sizeof(plain) }, got[256];
	memcpy(framed + 2, plain, sizeof(plain));
	auto_fd int client = tcp_client();
	auto_fd int server = accept_at(w, 0);
	for (size_t i = 0; i < sizeof(framed); i++) {
		settle(w);
		assert_int_equal(recv(server, got, sizeof(got), 0), -1);
		put(client, framed + i, 1);
	}
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), sizeof(framed));
	assert_memory_equal(got, framed, sizeof(framed));
}

static void two_queries_in_one_segment_both_arrive(void **state)
{
	struct world *w = world_of(state);
	uint8_t twice[2 * (2 + sizeof(plain)) + 5] = { 0, sizeof(plain) }, got[256];
	const size_t one = 2 + sizeof(plain);
	memcpy(twice + 2, plain, sizeof(plain));
	memcpy(twice + one, twice, one);
	memcpy(twice + 2 * one, twice, 5); /* and the beginning of a third */
	auto_fd int client = tcp_client();
	auto_fd int server = accept_at(w, 0);
	put(client, twice, sizeof(twice));
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), 2 * one);
	assert_memory_equal(got, twice, 2 * one);
	put(client, twice + 5, one - 5);
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), one);
	assert_memory_equal(got, twice, one);
}

static void a_framed_query_loses_its_options_and_the_next_one_stays_complete(void **state)
{
	struct world *w = world_of(state);
	uint8_t stream[256] = { 0, sizeof(plain) + sizeof(edns) }, got[256];
	size_t size = 2 + with_record(stream + 2, edns, sizeof(edns));
	const size_t first = sizeof(plain) + sizeof(bare_edns);
	stream[size + 1] = sizeof(plain);
	memcpy(stream + size + 2, plain, sizeof(plain));
	auto_fd int client = tcp_client();
	auto_fd int server = accept_at(w, 0);

	put(client, stream, size + 2 + 5); /* the follower in two pieces */
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), 2 + first);
	assert_int_equal(got[1], first);
	assert_memory_equal(got + 2, stream + 2, sizeof(plain));
	assert_memory_equal(got + 2 + sizeof(plain), bare_edns, sizeof(bare_edns));
	put(client, stream + size + 2 + 5, sizeof(plain) - 5);
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), 2 + sizeof(plain));
	assert_memory_equal(got + 2, plain, sizeof(plain));
}

static void another_message_than_a_plain_query_closes_the_connection(void **state)
{
	struct world *w = world_of(state);
	for (size_t i = 0; i < COUNT(changes); i++) {
		uint8_t message[sizeof(plain)], got[64];
		memcpy(message, plain, sizeof(plain));
		message[changes[i].at] = changes[i].value;
		auto_fd int client = tcp_client();
		auto_fd int server = accept_at(w, 0);
		put_framed(client, message, sizeof(message));
		if (next_bytes(w, server, got, sizeof(got)) != -1 || errno != ECONNRESET)
			fail_msg("%s is not refused", changes[i].what);
		assert_int_equal(next_bytes(w, client, got, sizeof(got)), -1);
		assert_int_equal(errno, ECONNRESET);
		leap++; /* new connections are rationed, too */
	}
}

static void a_message_too_long_is_refused_by_its_length(void **state)
{
	struct world *w = world_of(state);
	static const uint8_t lengths[][2] = { { 0, 0 }, { 0, 11 }, { 4, 1 }, { 255, 255 } };
	for (size_t i = 0; i < COUNT(lengths); i++) {
		uint8_t got[64];
		auto_fd int client = tcp_client();
		auto_fd int server = accept_at(w, 0);
		assert_true(server >= 0);
		put(client, lengths[i], 2);
		assert_int_equal(next_bytes(w, client, got, sizeof(got)), -1);
		assert_int_equal(errno, ECONNRESET);
	}
}

static void tcp_goes_to_a_server_that_accepts(void **state)
{
	struct world *w = world_of(state);
	stop_server(w, 0);
	auto_fd int client = tcp_client();
	put_framed(client, plain, sizeof(plain));
	auto_fd int server = accept_at(w, 1);
	uint8_t got[64];
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), 2 + sizeof(plain));
}

static void without_any_server_tcp_is_reset(void **state)
{
	struct world *w = world_of(state);
	uint8_t got[64];
	stop_server(w, 0);
	stop_server(w, 1);
	auto_fd int client = tcp_client();
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), -1);
	assert_int_equal(errno, ECONNRESET);
}

static void a_client_that_never_reads_does_not_block_another(void **state)
{
	struct world *w = world_of(state);
	static const uint8_t many[65536];
	uint8_t answer[sizeof(plain)], got[256];
	auto_fd int lazy_client = tcp_client();
	auto_fd int lazy_server = accept_at(w, 0);
	assert_true(lazy_client >= 0 && lazy_server >= 0);
	for (int idle = 0; idle < 3; settle(w))
		idle = send(lazy_server, many, sizeof(many), MSG_NOSIGNAL) > 0 ? 0 : idle + 1;

	auto_fd int client = tcp_client();
	put_framed(client, plain, sizeof(plain));
	auto_fd int server = accept_at(w, 0);
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), 2 + sizeof(plain));
	make_answer(answer, plain[1]);
	put_framed(server, answer, sizeof(answer));
	assert_int_equal(next_bytes(w, client, got, sizeof(got)), 2 + sizeof(answer));
}

static void excess_clients_wait_until_idle_sessions_end(void **state)
{
	struct world *w = world_of(state);
	int clients[17], servers[17];
	for (size_t i = 0; i < 16; i++) {
		clients[i] = tcp_client();
		servers[i] = accept_at(w, 0);
		assert_true(servers[i] >= 0);
	}
	clients[16] = tcp_client();
	assert_int_equal(accept_at(w, 0), -1);

	pass_time(w, 11);
	uint8_t got[64];
	assert_int_equal(next_bytes(w, clients[0], got, sizeof(got)), -1);
	assert_int_equal(errno, ECONNRESET);
	servers[16] = accept_at(w, 0);
	assert_true(servers[16] >= 0);
	for (size_t i = 0; i < 17; i++) {
		cj_close(&clients[i]);
		cj_close(&servers[i]);
	}
}

static void connections_per_second_are_bounded(void **state)
{
	struct world *w = world_of(state);
	for (int i = 0; i < 50; i++) {
		auto_fd int client = tcp_client();
		auto_fd int server = accept_at(w, 0);
		assert_true(client >= 0 && server >= 0);
		settle(w);
	}
	auto_fd int client = tcp_client();
	assert_int_equal(accept_at(w, 0), -1);
	pass_time(w, 1);
	auto_fd int server = accept_at(w, 0);
	assert_true(client >= 0 && server >= 0);
}

static bool refuse(void *context, const char *name)
{
	(void)context;
	(void)name;
	return false;
}

/* Answers over TCP are not read: no session may outlive the switch, nor begin after it. */
static void a_resolver_that_judges_names_has_no_connections(void **state)
{
	struct world *w = world_of(state);
	const struct resolver_names names = { .may_ask = refuse };
	uint8_t got[64];
	auto_fd int before = tcp_client();
	auto_fd int server = accept_at(w, 0);
	assert_true(server >= 0);
	put_framed(before, plain, sizeof(plain));
	assert_int_equal(next_bytes(w, server, got, sizeof(got)), 2 + sizeof(plain));
	resolver_filter(w->resolver, &names);
	assert_true(next_bytes(w, before, got, sizeof(got)) <= 0 && errno != EAGAIN);
	auto_fd int meanwhile = tcp_client();
	assert_int_equal(accept_at(w, 0), -1);

	resolver_filter(w->resolver, NULL);
	auto_fd int after = tcp_client();
	auto_fd int again = accept_at(w, 0);
	assert_true(meanwhile >= 0 && again >= 0);
	put_framed(after, plain, sizeof(plain));
	assert_int_equal(next_bytes(w, again, got, sizeof(got)), 2 + sizeof(plain));
}

/* --- life ------------------------------------------------------------------------ */

static void a_missing_resolv_conf_means_a_server_on_the_host(void **state)
{
	struct world *w = world_of(state);
	struct cj_error err = { 0 };
	struct asker from;
	struct sockaddr_in to = socket_address(GATEWAY, 53);
	int udp_fd, tcp_fd;
	struct ip local = loopback(1), at = loopback(STRANGER);
	stop_server(w, 0);
	assert_int_equal(resolver_listen(&local, &w->udp_fds[0], &w->tcp_fds[0], &err), 0);
	resolver_destroy(&w->resolver);
	assert_int_equal(resolver_listen(&at, &udp_fd, &tcp_fd, &err), 0);
	assert_int_equal(create(udp_fd, tcp_fd, "/nowhere", &w->resolver, &err), 0);
	auto_fd int client = udp_client();
	to = socket_address(STRANGER, 53);
	assert_int_equal(connect(client, (struct sockaddr *)&to, sizeof(to)), 0);
	ask(client, 7);
	expect_query(w, 0, &from);
}

static void a_resolv_conf_that_can_not_be_read_is_named(void **state)
{
	(void)world_of(state);
	struct cj_error err = { 0 };
	struct name_servers servers;
	assert_int_equal(name_servers_read("/proc", &servers, &err), -EISDIR);
	assert_non_null(strstr(err.msg, "/proc"));
	assert_int_equal(name_servers_read("/dev/zero", &servers, &err), -EFBIG);
}

static void a_server_that_is_not_in_the_list_is_not_connected(void **state)
{
	(void)world_of(state);
	const struct name_servers servers = { .items = { loopback(SERVER_A) }, .count = 1 };
	assert_int_equal(name_servers_connect(&servers, 1, SOCK_DGRAM), -EINVAL);
	assert_int_equal(name_servers_connect(&servers, 0, SOCK_RAW), -EINVAL);
	auto_fd int fd = name_servers_connect(&servers, 0, SOCK_DGRAM);
	assert_true(fd >= 0);
}

static void without_servers_left_each_query_fails_at_once(void **state)
{
	struct world *w = world_of(state);
	uint8_t answer[sizeof(plain)];
	auto_fd int waiting = udp_client(), stream = tcp_client();
	struct asker from;
	ask(waiting, 1);
	expect_query(w, 0, &from);
	auto_fd int server = accept_at(w, 0);
	assert_true(server >= 0);
	resolver_lose_servers(w->resolver);
	assert_int_equal(next_bytes(w, waiting, answer, sizeof(answer)), sizeof(plain));
	assert_int_equal(answer[3] & 0xf, 2); /* the server failed: RFC 1035 4.1.1 */
	assert_int_equal(try_bytes(w, stream, answer, 1, 100), -1);
	auto_fd int later = udp_client();
	ask(later, 2);
	assert_int_equal(next_bytes(w, later, answer, sizeof(answer)), sizeof(plain));
	assert_int_equal(answer[3] & 0xf, 2);
	expect_silence(w);
}

static void it_listens_before_its_address_exists(void **state)
{
	(void)world_of(state);
	static const char *const addresses[] = { "198.18.0.3", "fdce:6a11::3" };
	for (size_t i = 0; i < COUNT(addresses); i++) {
		struct cj_error err = { 0 };
		struct ip at;
		int udp_fd, tcp_fd;
		assert_true(ip_parse(addresses[i], &at));
		if (resolver_listen(&at, &udp_fd, &tcp_fd, &err) < 0)
			fail_msg("%s", err.msg);
		cj_close(&udp_fd);
		cj_close(&tcp_fd);
	}
}

static void an_address_that_is_in_use_is_named(void **state)
{
	(void)world_of(state);
	struct cj_error err = { 0 };
	struct ip at = loopback(GATEWAY);
	int udp_fd = -1, tcp_fd = -1;
	auto_fd int holder = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in taken = socket_address(STRANGER, 53);
	assert_int_equal(bind(holder, (struct sockaddr *)&taken, sizeof(taken)), 0);
	at = loopback(STRANGER);
	assert_int_equal(resolver_listen(&at, &udp_fd, &tcp_fd, &err), -EADDRINUSE);
	assert_string_equal(err.msg, "bind '127.0.0.9' port 53: Address already in use");
	assert_int_equal(udp_fd, -1);
}

#define PURE(name) cmocka_unit_test(name)
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PURE(plain_queries_pass_unchanged),
		PURE(only_the_flag_recursion_desired_passes),
		PURE(edns_passes_without_its_options),
		PURE(another_record_does_not_pass),
		PURE(the_root_and_every_ordinary_type_may_be_asked_for),
		PURE(another_message_than_a_plain_query_is_refused),
		PURE(a_message_ends_where_its_last_record_ends),
		PURE(names_and_messages_have_a_maximum_length),
		PURE(servers_are_read_as_the_c_library_reads_them),
		TEST(a_query_reaches_the_first_server_and_its_answer_the_client),
		TEST(a_large_answer_arrives_complete),
		TEST(two_clients_with_one_id_get_their_own_answers),
		TEST(each_query_has_a_random_id_at_the_server_and_its_own_at_the_client),
		TEST(only_plain_queries_reach_a_server),
		TEST(a_query_reaches_a_server_without_options),
		TEST(a_signed_query_is_answered_with_a_refusal),
		TEST(an_answer_must_come_from_the_server_that_was_asked),
		TEST(an_answer_must_have_the_id_and_the_question),
		TEST(an_error_needs_no_question),
		TEST(after_a_refusal_the_next_server_is_asked_at_once),
		TEST(after_a_failure_the_next_server_is_asked_at_once),
		TEST(without_any_server_the_client_gets_a_failure),
		TEST(a_silent_server_gets_no_new_queries),
		TEST(a_query_without_an_answer_expires),
		TEST(a_flood_uses_bounded_memory_and_the_newest_query_is_answered),
		TEST(queries_per_second_are_bounded),
		TEST(a_query_over_tcp_is_forwarded_and_its_answer_returned),
		TEST(a_query_in_pieces_is_forwarded_when_it_is_complete),
		TEST(two_queries_in_one_segment_both_arrive),
		TEST(a_framed_query_loses_its_options_and_the_next_one_stays_complete),
		TEST(another_message_than_a_plain_query_closes_the_connection),
		TEST(a_message_too_long_is_refused_by_its_length),
		TEST(tcp_goes_to_a_server_that_accepts),
		TEST(without_any_server_tcp_is_reset),
		TEST(a_client_that_never_reads_does_not_block_another),
		TEST(excess_clients_wait_until_idle_sessions_end),
		TEST(connections_per_second_are_bounded),
		TEST(a_resolver_that_judges_names_has_no_connections),
		TEST(a_missing_resolv_conf_means_a_server_on_the_host),
		TEST(a_resolv_conf_that_can_not_be_read_is_named),
		TEST(a_server_that_is_not_in_the_list_is_not_connected),
		TEST(without_servers_left_each_query_fails_at_once),
		TEST(it_listens_before_its_address_exists),
		TEST(an_address_that_is_in_use_is_named),
	};
	make_namespace();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
