/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver: a live allow list.  Which queries reach a server, which addresses are opened before the
 * client has them, and that no other byte of an answer reaches the client.
 *
 * The resolver listens on the loopback; its servers are local sockets.
 */
/* WRAP: clock_gettime */
#include "netns/relay/resolver.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <time.h>

#include <cmocka.h>

#include "netns/relay/resolver_message.h"
#include "runtime/base/scope.h"
#include "tests/netns/turns.h"
#include "tests/patience.h"

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

#define A     1
#define CNAME 5
#define AAAA  28
#define OPT   41
#define IN    1

#define FAILED    2
#define NO_NAME   3
#define REFUSED   5
#define HEADER    12
#define TRUNCATED 0x02

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);

static time_t leap;            /* seconds our clock is ahead: nobody waits for a time limit */
static struct timespec frozen; /* what it shows */

int __wrap_clock_gettime(clockid_t id, struct timespec *out)
{
	int rc = __real_clock_gettime(id, out);
	if (frozen.tv_sec > 0)
		*out = frozen;
	out->tv_sec += leap;
	return rc;
}

/* --- messages -------------------------------------------------------------------- */

struct message {
	uint8_t bytes[4096];
	size_t size;
};

static void put8(struct message *m, unsigned value)
{
	m->bytes[m->size++] = (uint8_t)value;
}

static void put16(struct message *m, unsigned value)
{
	put8(m, value >> 8);
	put8(m, value & 0xff);
}

static unsigned get16(const uint8_t *bytes)
{
	return (unsigned)bytes[0] << 8 | bytes[1];
}

static void put_name(struct message *m, const char *name)
{
	while (*name != '\0') {
		size_t size = strcspn(name, ".");
		put8(m, (unsigned)size);
		memcpy(m->bytes + m->size, name, size);
		m->size += size;
		name += size + (name[size] == '.');
	}
	put8(m, 0);
}

/* A query; `answer`: how long EDNS lets its answer be, 0: without EDNS. */
static struct message query_for(const char *name, unsigned type, unsigned answer)
{
	struct message m = { .bytes = { 0x12, 0x34, 1, 0, 0, 1 }, .size = HEADER };
	put_name(&m, name);
	put16(&m, type);
	put16(&m, IN);
	if (answer == 0)
		return m;
	m.bytes[11] = 1;
	put8(&m, 0);
	put16(&m, OPT);
	put16(&m, answer);
	m.size += 6;
	return m;
}

/* The beginning of a server's answer: the header and the question. */
static struct message answer_to(const struct message *query, unsigned code)
{
	struct message m = *query;
	size_t end = HEADER;
	while (m.bytes[end] != 0)
		end += 1 + (size_t)m.bytes[end];
	m.size = end + 5;
	m.bytes[2] = 0x85; /* and authoritative */
	m.bytes[3] = (uint8_t)(0xb0 | code);
	m.bytes[11] = 0;
	return m;
}

#define ANSWER     1
#define AUTHORITY  2
#define ADDITIONAL 3

/* name NULL: that of the question. */
static void add_record(struct message *m, unsigned section, const char *name, unsigned type,
		       const void *data, size_t size)
{
	uint8_t *count = m->bytes + 4 + 2 * (size_t)section;
	count[1]++;
	if (name)
		put_name(m, name);
	else
		put16(m, 0xc00c);
	put16(m, type);
	put16(m, IN);
	put16(m, 0);
	put16(m, 300); /* seconds */
	put16(m, (unsigned)size);
	memcpy(m->bytes + m->size, data, size);
	m->size += size;
}

static void add_address(struct message *m, unsigned section, const char *name, const char *text)
{
	struct ip ip;
	assert_true(ip_parse(text, &ip));
	add_record(m, section, name, ip.family == 4 ? A : AAAA, ip.bytes, ip.family == 4 ? 4 : 16);
}

/* --- what the client gets ----------------------------------------------------------- */

/* "ADDRESS/SECONDS ..." of an answer; each byte of it is looked at. */
static void read_answer(const struct message *query, const struct message *m, unsigned *out_code,
			char *out, size_t out_size)
{
	const bool has_opt = query->bytes[11] == 1;
	const size_t opt = has_opt ? 11 : 0;
	const size_t question = answer_to(query, 0).size;
	const unsigned type = get16(query->bytes + question - 4);
	const size_t bytes = type == A ? 4 : 16;
	size_t at = question, used = 0;

	assert_true(m->size >= question);
	assert_memory_equal(m->bytes, query->bytes, 2);
	assert_int_equal(m->bytes[2], 0x81); /* a response, recursion desired: nothing else */
	assert_int_equal(m->bytes[3] & 0x70, 0);
	*out_code = m->bytes[3] & 0x0f;
	assert_int_equal(get16(m->bytes + 4), 1);
	assert_int_equal(get16(m->bytes + 8), 0);
	assert_memory_equal(m->bytes + HEADER, query->bytes + HEADER, question - HEADER);
	out[0] = '\0';
	for (unsigned left = get16(m->bytes + 6); left > 0; left--) {
		const uint8_t *r = m->bytes + at;
		struct ip ip = { .family = bytes == 4 ? 4 : 6 };
		char text[IP_TEXT_MAX];
		assert_true(m->size - at >= 12 + bytes);
		assert_int_equal(get16(r), 0xc00c); /* the name of the question */
		assert_int_equal(get16(r + 2), type);
		assert_int_equal(get16(r + 4), IN);
		assert_int_equal(get16(r + 10), bytes);
		memcpy(ip.bytes, r + 12, bytes);
		used += (size_t)snprintf(out + used, out_size - used, "%s%s/%u", used ? " " : "",
					 ip_format(&ip, text), get16(r + 6) << 16 | get16(r + 8));
		at += 12 + bytes;
	}
	if (get16(m->bytes + 10) == 1) {
		assert_true(has_opt);
		assert_memory_equal(m->bytes + at, "\0\0\x29", 3);
		assert_memory_equal(m->bytes + at + 5, "\0\0\0\0\0\0", 6);
		at += opt;
	} else {
		assert_true(!has_opt || *out_code == REFUSED || *out_code == FAILED);
	}
	assert_int_equal(m->size, at);
}

/* --- the world of a test --------------------------------------------------------- */

#define QUERIES 16

struct world {
	struct resolver *resolver;
	struct resolver_names names;
	struct sockaddr_in udp_at, tcp_at;
	int client;
	int servers[QUERIES]; /* what each query has connected to */
	uint8_t id[2];        /* of the last query that a server has got */
	size_t nservers, nstreams;
	char asked[512]; /* names */
	char opened[2048];
	char aliases[4096];    /* of the last answer that was opened */
	unsigned kept;         /* which addresses open() leaves, as bits */
	enum resolver_end end; /* of open() */
};

static bool may_ask(void *context, const char *name)
{
	struct world *w = context;
	const size_t size = strlen(name), end = strlen(".example.com");
	(void)snprintf(w->asked + strlen(w->asked), sizeof(w->asked) - strlen(w->asked), "%s ",
		       name);
	return size > end && strcmp(name + size - end, ".example.com") == 0;
}

static enum resolver_end open_addresses(void *context, const char *name,
					const struct resolver_aliases *aliases,
					struct resolver_address *addresses, size_t *count)
{
	struct world *w = context;
	size_t used = strlen(w->opened), kept = 0;
	char text[IP_TEXT_MAX];
	used += (size_t)snprintf(w->opened + used, sizeof(w->opened) - used, "%s:", name);
	for (size_t i = 0; i < *count; i++) {
		used += (size_t)snprintf(w->opened + used, sizeof(w->opened) - used, " %s/%u",
					 ip_format(&addresses[i].ip, text), addresses[i].ttl);
		if (w->kept >> i & 1) {
			addresses[kept] = addresses[i];
			addresses[kept++].ttl = 60;
		}
	}
	*count = kept;
	w->aliases[0] = '\0';
	for (size_t i = 0; i < aliases->count; i++) {
		used = strlen(w->aliases);
		(void)snprintf(w->aliases + used, sizeof(w->aliases) - used, "%s ",
			       aliases->names[i]);
	}
	return w->end;
}

static int connect_server(void *context, size_t server, int type)
{
	struct world *w = context;
	int ends[2];
	assert_int_equal(server, 0);
	w->nstreams += type == SOCK_STREAM;
	assert_true(w->nservers < QUERIES);
	assert_int_equal(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
	w->servers[w->nservers++] = ends[0];
	return ends[1];
}

static int open_loopback(int type, struct sockaddr_in *out)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(*out);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_true(type != SOCK_STREAM || listen(fd, 8) == 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)out, &size), 0);
	return fd;
}

static int set_up(void **state)
{
	static struct world world;
	struct world *w = &world;
	struct cj_error err = { 0 };
	*w = (struct world){ .kept = ~0U, .end = RESOLVER_OPEN };
	w->names = (struct resolver_names){ may_ask, open_addresses, w };
	const struct resolver_upstream upstream = { .count = 1,
						    .connect = connect_server,
						    .context = w };
	leap = 0;
	assert_int_equal(__real_clock_gettime(CLOCK_MONOTONIC, &frozen), 0);
	frozen.tv_sec++; /* never 0 */
	int udp_fd = open_loopback(SOCK_DGRAM, &w->udp_at);
	int tcp_fd = open_loopback(SOCK_STREAM, &w->tcp_at);
	if (resolver_create(udp_fd, tcp_fd, &upstream, &w->resolver, &err) < 0)
		fail_msg("%s", err.msg);
	resolver_filter(w->resolver, &w->names);
	w->client = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(w->client, (struct sockaddr *)&w->udp_at, sizeof(w->udp_at)), 0);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	resolver_destroy(&w->resolver);
	cj_close(&w->client);
	for (size_t i = 0; i < w->nservers; i++)
		cj_close(&w->servers[i]);
	return 0;
}

static int serve(void *world, struct cj_error *err)
{
	return resolver_serve(((struct world *)world)->resolver, err);
}

static bool turn_for(struct world *w, int ms)
{
	return turn_once(resolver_fd(w->resolver), ms, serve, w);
}

/* The loopback delivers at once: what was sent is there. */
static void settle(struct world *w)
{
	for (int i = 0; i < 5000; i++)
		if (!turn_for(w, 2))
			return;
	fail_msg("the resolver never rests");
}

static void pass_time(struct world *w, time_t seconds)
{
	leap += seconds;
	assert_true(turn_for(w, patience_ms(5000)));
	settle(w);
}

static void ask(struct world *w, const struct message *query)
{
	assert_int_equal(send(w->client, query->bytes, query->size, MSG_NOSIGNAL), query->size);
	settle(w);
}

static void expect_nothing(const struct world *w)
{
	struct message m;
	assert_int_equal(recv(w->client, m.bytes, sizeof(m.bytes), 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static struct message next_answer(struct world *w)
{
	struct message m = { .size = 0 };
	ssize_t got = -1;
	for (int i = 0; i < 500 && got < 0; i++) {
		settle(w);
		got = recv(w->client, m.bytes, sizeof(m.bytes), 0);
	}
	assert_true(got > 0);
	m.size = (size_t)got;
	return m;
}

static void expect_answer(struct world *w, const struct message *query, unsigned code,
			  const char *addresses)
{
	const struct message m = next_answer(w);
	char text[2048];
	unsigned got;
	read_answer(query, &m, &got, text, sizeof(text));
	assert_int_equal(got, code);
	assert_string_equal(text, addresses);
	expect_nothing(w);
}

/* What the server of the last query has got. */
static struct message at_server(struct world *w)
{
	struct message m = { .size = 0 };
	assert_true(w->nservers > 0);
	ssize_t got = recv(w->servers[w->nservers - 1], m.bytes, sizeof(m.bytes), 0);
	assert_true(got > 2);
	m.size = (size_t)got;
	memcpy(w->id, m.bytes, sizeof(w->id));
	return m;
}

/* The query at the server is this one, but for its id, which is the resolver's own. */
static void expect_at_server(struct world *w, const struct message *wanted)
{
	const struct message got = at_server(w);
	assert_int_equal(got.size, wanted->size);
	assert_memory_equal(got.bytes + 2, wanted->bytes + 2, got.size - 2);
}

/* As the server of the last query, which has read it. */
static void answer_read(struct world *w, const struct message *m)
{
	struct message sent = *m;
	memcpy(sent.bytes, w->id, sizeof(w->id));
	assert_int_equal(send(w->servers[w->nservers - 1], sent.bytes, sent.size, MSG_NOSIGNAL),
			 sent.size);
	settle(w);
}

static void answer(struct world *w, const struct message *m)
{
	(void)at_server(w);
	answer_read(w, m);
}

/* --- queries ----------------------------------------------------------------------- */

static void a_query_for_another_name_is_refused_at_once_and_reported(void **state)
{
	static const char *const names[] = { "a.example.org", "example.com", "secret.evil.net",
					     "" };
	struct world *w = *state;
	for (size_t i = 0; i < COUNT(names); i++) {
		for (unsigned edns = 0; edns <= 1232; edns += 1232) {
			const struct message query = query_for(names[i], i % 2 ? A : AAAA, edns);
			ask(w, &query);
			expect_answer(w, &query, REFUSED, "");
		}
	}
	assert_string_equal(w->asked, "a.example.org a.example.org example.com example.com "
				      "secret.evil.net secret.evil.net   ");
	assert_int_equal(w->nservers, 0);
}

static void the_list_sees_a_name_in_lower_case_and_without_its_last_dot(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("API_1.sub-2.EXAMPLE.com", A, 0);
	ask(w, &query);
	assert_string_equal(w->asked, "api_1.sub-2.example.com ");
	assert_memory_equal(at_server(w).bytes + HEADER, query.bytes + HEADER, query.size - HEADER);
}

/* A client may tell a forged answer by the case of its letters; this server does not keep it. */
static void an_answer_has_the_letters_of_its_question(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("aPI.Sub-2.eXAMPLE.cOM", A, 1232);
	const struct message lower = query_for("api.sub-2.example.com", A, 0);
	struct message m = answer_to(&lower, 0);
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	ask(w, &query);
	answer(w, &m);
	expect_answer(w, &query, 0, "8.0.0.1/60");
	assert_string_equal(w->opened, "api.sub-2.example.com: 8.0.0.1/300");

	const struct message other = query_for("aPI.Sub-2.eXAMPLE.oRG", A, 0);
	ask(w, &other);
	expect_answer(w, &other, REFUSED, "");
}

static void a_name_of_other_bytes_is_refused_and_not_asked_for(void **state)
{
	static const uint8_t bytes[] = { 0,   '.', '*', ' ', '\n', 0x1b, '/',
					 '@', '[', '`', '{', 0x7f, 0x80, 0xff };
	struct world *w = *state;
	for (size_t i = 0; i < COUNT(bytes); i++) {
		struct message query = query_for("axb.example.com", A, 0);
		query.bytes[HEADER + 2] = bytes[i];
		ask(w, &query);
		expect_answer(w, &query, REFUSED, "");
	}
	assert_string_equal(w->asked, "");
	assert_int_equal(w->nservers, 0);
}

/* NS, CNAME, SOA, PTR, MX, TXT, SRV, SVCB, HTTPS, all */
static void another_type_than_an_address_has_an_empty_answer(void **state)
{
	static const unsigned types[] = { 2, CNAME, 6, 12, 15, 16, 33, 64, 65, 255 };
	struct world *w = *state;
	for (size_t i = 0; i < COUNT(types); i++) {
		for (unsigned edns = 0; edns <= 1232; edns += 1232) {
			const struct message query = query_for("a.example.com", types[i], edns);
			ask(w, &query);
			expect_answer(w, &query, 0, "");
		}
	}
	assert_int_equal(w->nservers, 0);
	assert_string_equal(w->opened, "");
}

static void a_server_may_answer_as_long_as_any_path_carries(void **state)
{
	static const unsigned lengths[] = { 0, 512, 600, 1232, 4096 };
	struct world *w = *state;
	const struct message longest = query_for("a.example.com", A, 1232);
	for (size_t i = 0; i < COUNT(lengths); i++) {
		const struct message query = query_for("a.example.com", A, lengths[i]);
		ask(w, &query);
		expect_at_server(w, &longest);
	}
}

/* --- answers ----------------------------------------------------------------------- */

static void addresses_are_opened_and_are_those_of_the_name_itself(void **state)
{
	static const uint8_t alias[] = { 3, 'c', 'd', 'n', 3, 'n', 'e', 't', 0 };
	struct world *w = *state;
	for (unsigned edns = 0; edns <= 1232; edns += 1232) {
		const struct message query = query_for("WWW.example.com", A, edns);
		struct message m = answer_to(&query, 0);
		w->opened[0] = '\0';
		add_record(&m, ANSWER, NULL, CNAME, alias, sizeof(alias));
		add_address(&m, ANSWER, "cdn.net", "93.184.216.34");
		add_address(&m, ANSWER, "cdn.net", "2a00::1"); /* nobody asked for it */
		add_address(&m, ANSWER, "cdn.net", "93.184.216.35");
		add_record(&m, AUTHORITY, "net", 2, alias, sizeof(alias));
		add_address(&m, AUTHORITY, NULL, "8.8.8.8");
		add_address(&m, ADDITIONAL, NULL, "9.9.9.9");
		ask(w, &query);
		answer(w, &m);
		assert_string_equal(w->opened,
				    "www.example.com: 93.184.216.34/300 93.184.216.35/300");
		expect_answer(w, &query, 0, "93.184.216.34/60 93.184.216.35/60");
	}
}

static void ipv6_addresses_are_opened_likewise(void **state)
{
	static const uint8_t alias[] = { 3, 'c', 'd', 'n', 0xc0, HEADER };
	struct world *w = *state;
	const struct message query = query_for("www.example.com", AAAA, 0);
	struct message m = answer_to(&query, 0);
	add_record(&m, ANSWER, NULL, CNAME, alias, sizeof(alias));
	add_address(&m, ANSWER, NULL, "93.184.216.34");
	add_address(&m, ANSWER, NULL, "2a00:1450::1");
	ask(w, &query);
	answer(w, &m);
	assert_string_equal(w->opened, "www.example.com: 2a00:1450::1/300");
	expect_answer(w, &query, 0, "2a00:1450::1/60");
}

static void an_answer_has_only_the_addresses_that_are_open(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 0);
	struct message m = answer_to(&query, 0);
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	add_address(&m, ANSWER, NULL, "10.0.0.1");
	add_address(&m, ANSWER, NULL, "8.0.0.3");
	w->kept = 5;
	ask(w, &query);
	answer(w, &m);
	expect_answer(w, &query, 0, "8.0.0.1/60 8.0.0.3/60");

	w->kept = 0; /* an empty answer, and no failure: the name exists */
	ask(w, &query);
	answer(w, &m);
	expect_answer(w, &query, 0, "");
}

static void an_address_that_can_not_be_opened_is_a_failure(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 1232);
	struct message m = answer_to(&query, 0);
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	w->end = RESOLVER_LATER;
	ask(w, &query);
	answer(w, &m);
	expect_answer(w, &query, FAILED, "");
}

/* Each target of `m`, as open() gets them; NULL: it gets no answer, and the client a failure. */
static void expect_aliases(struct world *w, const struct message *query, const struct message *m,
			   const char *wanted)
{
	w->opened[0] = w->aliases[0] = '\0';
	ask(w, query);
	answer(w, m);
	expect_answer(w, query, wanted ? 0 : FAILED, wanted ? "8.0.0.1/60" : "");
	assert_string_equal(w->aliases, wanted ? wanted : "");
	assert_int_equal(w->opened[0] != '\0', wanted != NULL);
}

static void each_alias_of_an_answer_is_checked_and_one_that_is_unreadable_fails_it(void **state)
{
	static const struct {
		const char *data; /* of the second CNAME; the first is "CDN.net" at offset 43 */
		size_t size;
		const char *wanted;
	} rows[] = {
		{ "\1b\xc0\x2b", 4, "cdn.net b.cdn.net " },
		{ "\xc0\x2f", 2, "cdn.net net " },
		{ "\xc0\x0e", 2, "cdn.net example.com " }, /* into the question */
		{ "\0", 1, "cdn.net  " },                  /* the root */
		{ "\1b", 2, NULL },                        /* its end is behind the record's */
		{ "\xc0", 1, NULL },                       /* half a pointer */
		{ "\xc0\x41", 2, NULL },                   /* to itself */
		{ "\xc0\x43", 2, NULL },                   /* to what follows */
		{ "\1*\0", 3, NULL },
		{ "\1/\0", 3, NULL },
		{ "\2a.\0", 4, NULL }, /* a dot in a label */
		{ "\x40z\0", 3, NULL },
	};
	static const char cdn[] = "\3CDN\3net";
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct message m = answer_to(&query, 0);
		add_record(&m, ANSWER, NULL, CNAME, cdn, sizeof(cdn));
		assert_int_equal(m.bytes[43], 3);
		add_record(&m, ANSWER, "x", CNAME, rows[i].data, rows[i].size);
		add_address(&m, ANSWER, NULL, "8.0.0.1");
		expect_aliases(w, &query, &m, rows[i].wanted);
	}
}

static void a_chain_of_aliases_has_a_limit(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 0);
	struct message m = answer_to(&query, 0);
	char wanted[64] = "";
	for (size_t i = 0; i <= RESOLVER_ALIASES_MAX; i++) {
		const char target[] = { 1, (char)('a' + i), 0 };
		struct message whole = m;
		add_address(&whole, ANSWER, NULL, "8.0.0.1");
		expect_aliases(w, &query, &whole, wanted);
		(void)snprintf(wanted + 2 * i, sizeof(wanted) - 2 * i, "%c ", target[1]);
		add_record(&m, ANSWER, NULL, CNAME, target, sizeof(target));
	}
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	expect_aliases(w, &query, &m, NULL);
}

static void an_answer_with_a_denied_alias_is_refused(void **state)
{
	static const char target[] = "\6secret";
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 1232);
	struct message m = answer_to(&query, 0);
	add_record(&m, ANSWER, NULL, CNAME, target, sizeof(target));
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	w->end = RESOLVER_DENIED;
	ask(w, &query);
	answer(w, &m);
	expect_answer(w, &query, REFUSED, "");
	assert_string_equal(w->aliases, "secret ");
}

static void an_answer_without_an_address_keeps_its_code(void **state)
{
	static const unsigned codes[] = { 0, 1, FAILED, NO_NAME, 4, REFUSED };
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 0);
	for (size_t i = 0; i < COUNT(codes); i++) {
		struct message m = answer_to(&query, codes[i]);
		add_record(&m, AUTHORITY, NULL, 6, "serial number", 13);
		ask(w, &query);
		answer(w, &m);
		expect_answer(w, &query, codes[i], "");
	}
	/* of a server that could not read the question */
	const struct message unreadable = { .bytes = { 0x12, 0x34, 0x80, 1 }, .size = HEADER };
	ask(w, &query);
	answer(w, &unreadable);
	expect_answer(w, &query, 1, "");
	assert_string_equal(w->opened, "");
}

static void a_truncated_answer_without_an_address_is_a_failure(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 0);
	struct message m = answer_to(&query, 0);
	m.bytes[2] |= TRUNCATED;
	ask(w, &query);
	answer(w, &m);
	expect_answer(w, &query, FAILED, "");

	add_address(&m, ANSWER, NULL, "8.0.0.1"); /* with one the client can go on */
	ask(w, &query);
	answer(w, &m);
	expect_answer(w, &query, 0, "8.0.0.1/60");
}

/* How many addresses the client gets of an answer with 40 of them. */
static unsigned addresses_within(struct world *w, const char *name, unsigned type, unsigned edns)
{
	const struct message query = query_for(name, type, edns);
	struct message m = answer_to(&query, 0);
	char text[2048];
	unsigned code;
	w->opened[0] = '\0';
	for (uint8_t i = 0; i < 40; i++) {
		const uint8_t bytes[16] = { 0x2a, [3] = i, [15] = i };
		add_record(&m, ANSWER, NULL, type, bytes, type == A ? 4 : 16);
	}
	ask(w, &query);
	answer(w, &m);
	const struct message got = next_answer(w);
	read_answer(&query, &got, &code, text, sizeof(text));
	assert_int_equal(code, 0);
	assert_true(got.size <= (edns > 512 ? edns : 512));
	return get16(got.bytes + 6);
}

static void an_answer_is_no_longer_than_the_client_takes(void **state)
{
	struct world *w = *state;
	char name[254];
	for (size_t i = 0; i < 253; i++)
		name[i] = i % 64 == 63 ? '.' : 'a';
	(void)snprintf(name + 253 - 14, 15, "bb.example.com");

	/* a header and a question of 31 bytes, records of 16 or 28, EDNS of 11 */
	assert_int_equal(addresses_within(w, "a.example.com", AAAA, 0), (512 - 31) / 28);
	assert_int_equal(addresses_within(w, "a.example.com", AAAA, 512), (512 - 31 - 11) / 28);
	assert_int_equal(addresses_within(w, "a.example.com", AAAA, 600), (600 - 31 - 11) / 28);
	assert_int_equal(addresses_within(w, "a.example.com", AAAA, 1232), RESOLVER_ADDRESSES_MAX);
	assert_int_equal(addresses_within(w, "a.example.com", A, 0), RESOLVER_ADDRESSES_MAX);
	assert_int_equal(addresses_within(w, name, AAAA, 0), (512 - 271) / 28);
	assert_int_equal(addresses_within(w, name, AAAA, 1232), RESOLVER_ADDRESSES_MAX);
}

static void a_late_answer_opens_no_address(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 0);
	struct message m = answer_to(&query, 0);
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	ask(w, &query);
	pass_time(w, 3); /* late, but not too late */
	answer(w, &m);
	expect_answer(w, &query, 0, "8.0.0.1/60");
	assert_string_equal(w->opened, "a.example.com: 8.0.0.1/300");

	w->opened[0] = '\0';
	ask(w, &query);
	pass_time(w, 6);
	assert_int_equal(send(w->servers[1], m.bytes, m.size, MSG_NOSIGNAL), -1);
	settle(w);
	expect_nothing(w);
	assert_string_equal(w->opened, "");
}

static void an_answer_to_another_question_opens_no_address(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("a.example.com", A, 0);
	const struct message other = query_for("b.example.com", A, 0);
	struct message m = answer_to(&other, 0);
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	ask(w, &query);
	answer(w, &m);
	expect_nothing(w);
	assert_string_equal(w->opened, "");
}

static void a_connection_is_closed_without_a_server(void **state)
{
	struct world *w = *state;
	uint8_t byte;
	auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&w->tcp_at, sizeof(w->tcp_at)), 0);
	settle(w);
	assert_true(recv(fd, &byte, 1, 0) <= 0);
	assert_int_equal(w->nservers + w->nstreams, 0);
	assert_string_equal(w->asked, "");
}

/* --- switching --------------------------------------------------------------------- */

/* A connection to the resolver; what reads its other end is the server's. */
static int tcp_client(struct world *w)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&w->tcp_at, sizeof(w->tcp_at)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 500 && w->nstreams == 0; i++)
		settle(w);
	return fd;
}

static void a_resolver_that_judges_no_more_answers_any_name_as_it_came(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("other.example.org", 16, 600);
	const struct message plain = query_for("other.example.org", A, 0);
	struct message m = answer_to(&query, 0);
	add_record(&m, ANSWER, NULL, 16, "\4text", 5);
	ask(w, &query);
	expect_answer(w, &query, REFUSED, "");
	w->asked[0] = '\0';

	resolver_filter(w->resolver, NULL);
	ask(w, &query);
	expect_at_server(w, &query);
	answer_read(w, &m);
	struct message got = next_answer(w);
	assert_int_equal(got.size, m.size);
	assert_memory_equal(got.bytes, m.bytes, m.size);
	ask(w, &plain);
	expect_at_server(w, &plain); /* without EDNS, as the client sent it */
	assert_string_equal(w->asked, "");
	assert_string_equal(w->opened, "");
	auto_fd int fd = tcp_client(w);
	assert_true(fd >= 0 && w->nstreams == 1);

	resolver_filter(w->resolver, &w->names); /* and back */
	ask(w, &query);
	expect_answer(w, &query, REFUSED, "");
	assert_string_equal(w->asked, "other.example.org ");
}

/* Its query went out before; open() still decides what the client gets of the answer. */
static void an_answer_that_comes_after_the_switch_is_judged(void **state)
{
	struct world *w = *state;
	const struct message query = query_for("other.example.org", A, 0);
	struct message m = answer_to(&query, 0);
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	add_address(&m, ANSWER, NULL, "8.0.0.2");
	add_record(&m, ADDITIONAL, NULL, 16, "\4text", 5);
	resolver_filter(w->resolver, NULL);
	ask(w, &query);
	resolver_filter(w->resolver, &w->names);
	w->kept = 2;
	answer(w, &m);
	assert_string_equal(w->opened, "other.example.org: 8.0.0.1/300 8.0.0.2/300");
	expect_answer(w, &query, 0, "8.0.0.2/60");
}

/* --- the parser ---------------------------------------------------------------------- */

/* From a heap block of exactly that size: a sanitizer sees any read past it. */
static size_t addresses_of(const struct message *query, const uint8_t *bytes, size_t size,
			   struct resolver_address out[static RESOLVER_ADDRESSES_MAX])
{
	uint8_t *exact = malloc(size);
	assert_non_null(exact);
	memcpy(exact, bytes, size);
	size_t count = resolver_addresses(query->bytes, exact, size, out);
	free(exact);
	return count;
}

static void an_answer_that_is_cut_off_has_the_addresses_before_the_cut(void **state)
{
	static const uint8_t alias[] = { 3, 'c', 'd', 'n', 3, 'n', 'e', 't', 0 };
	struct message query = query_for("a.example.com", A, 0);
	struct message m = answer_to(&query, 0);
	struct resolver_address out[RESOLVER_ADDRESSES_MAX];
	(void)state;
	add_record(&m, ANSWER, NULL, CNAME, alias, sizeof(alias));
	add_address(&m, ANSWER, "cdn.net", "8.0.0.1");
	const size_t first = m.size;
	add_address(&m, ANSWER, NULL, "8.0.0.2");
	for (size_t size = HEADER + 1; size <= m.size; size++)
		assert_int_equal(addresses_of(&query, m.bytes, size, out), size == m.size  ? 2
									   : size >= first ? 1
											   : 0);
}

static void a_record_of_another_kind_is_no_address(void **state)
{
	/* the byte of the record that is another, behind its name of two bytes */
	static const struct {
		size_t at;
		uint8_t value;
		size_t wanted;
	} changes[] = {
		{ 3, AAAA, 1 }, { 2, 1, 1 },  { 5, 3, 1 }, /* type, class */
		{ 11, 3, 0 },   { 11, 5, 0 },              /* length: what follows is shifted */
		{ 0, 0xff, 2 },                            /* any pointer is skipped */
	};
	struct message query = query_for("a.example.com", A, 0);
	struct resolver_address out[RESOLVER_ADDRESSES_MAX];
	(void)state;
	for (size_t i = 0; i < COUNT(changes); i++) {
		struct message m = answer_to(&query, 0);
		const size_t record = m.size;
		add_address(&m, ANSWER, NULL, "8.0.0.1");
		add_address(&m, ANSWER, NULL, "8.0.0.2");
		m.bytes[record + changes[i].at] = changes[i].value;
		assert_int_equal(addresses_of(&query, m.bytes, m.size, out), changes[i].wanted);
	}
}

static void the_time_of_an_address_is_read(void **state)
{
	struct message query = query_for("a.example.com", A, 0);
	struct message m = answer_to(&query, 0);
	struct resolver_address out[RESOLVER_ADDRESSES_MAX];
	(void)state;
	const size_t record = m.size;
	add_address(&m, ANSWER, NULL, "8.0.0.1");
	memcpy(m.bytes + record + 6, "\x81\x02\x03\x04", 4);
	assert_int_equal(addresses_of(&query, m.bytes, m.size, out), 1);
	assert_int_equal(out[0].ttl, 0x81020304);
	m.bytes[7] = 0; /* an answer without records, whatever follows */
	assert_int_equal(addresses_of(&query, m.bytes, m.size, out), 0);
}

#define PURE(name) cmocka_unit_test(name)
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_query_for_another_name_is_refused_at_once_and_reported),
		TEST(the_list_sees_a_name_in_lower_case_and_without_its_last_dot),
		TEST(an_answer_has_the_letters_of_its_question),
		TEST(a_name_of_other_bytes_is_refused_and_not_asked_for),
		TEST(another_type_than_an_address_has_an_empty_answer),
		TEST(a_server_may_answer_as_long_as_any_path_carries),
		TEST(addresses_are_opened_and_are_those_of_the_name_itself),
		TEST(ipv6_addresses_are_opened_likewise),
		TEST(an_answer_has_only_the_addresses_that_are_open),
		TEST(an_address_that_can_not_be_opened_is_a_failure),
		TEST(each_alias_of_an_answer_is_checked_and_one_that_is_unreadable_fails_it),
		TEST(a_chain_of_aliases_has_a_limit),
		TEST(an_answer_with_a_denied_alias_is_refused),
		TEST(an_answer_without_an_address_keeps_its_code),
		TEST(a_truncated_answer_without_an_address_is_a_failure),
		TEST(an_answer_is_no_longer_than_the_client_takes),
		TEST(a_late_answer_opens_no_address),
		TEST(an_answer_to_another_question_opens_no_address),
		TEST(a_connection_is_closed_without_a_server),
		TEST(a_resolver_that_judges_no_more_answers_any_name_as_it_came),
		TEST(an_answer_that_comes_after_the_switch_is_judged),
		PURE(an_answer_that_is_cut_off_has_the_addresses_before_the_cut),
		PURE(a_record_of_another_kind_is_no_address),
		PURE(the_time_of_an_address_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
