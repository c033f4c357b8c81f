/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads rules into the kernel and reads counters from it.
 *
 * The kernel handles a batch within sendmsg(2): when that returns, all answers are in the socket.
 * An answer counts if it comes from the kernel, has our port and the number of a message we sent.
 * If an answer was lost (ENOBUFS), the result is unknown: that is a failure, and the jail gets no
 * network.
 */
#include "netns/firewall/firewall.h"

#include <assert.h>
#include <endian.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "netns/firewall/firewall_parts.h"
#include "netns/nftables/nfnl.h"
#include "runtime/base/files/sha256.h"

#define ANSWER_WAIT_MS 5000
#define ANSWER_BYTES   (32 * 1024) /* the kernel fills at most this much of a dump at a time */
#define DUMP_ATTEMPTS  8           /* one fails when the rules change meanwhile */

static int send_all(int nft_fd, const void *bytes, size_t size, struct cj_error *err)
{
	const int on = 1;

	/* Error answers then leave out our own message.  Ignored: that only saves space. */
	(void)setsockopt(nft_fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	int rc = nfnl_send(nft_fd, bytes, size);
	return rc < 0 ? cj_fail(err, -rc, "send %zu bytes", size) : 0;
}

static int port_of(int nft_fd, uint32_t *out_port, struct cj_error *err)
{
	struct sockaddr_nl self = { 0 };
	socklen_t size = sizeof(self);

	if (getsockname(nft_fd, (struct sockaddr *)&self, &size) < 0)
		return cj_fail(err, errno, "getsockname of the netlink socket");
	*out_port = self.nl_pid;
	return 0;
}

static int await_answer(int nft_fd, struct cj_error *err)
{
	struct pollfd waiting = { .fd = nft_fd, .events = POLLIN };
	int ready = (int)TEMP_FAILURE_RETRY(poll(&waiting, 1, ANSWER_WAIT_MS));
	if (ready < 0)
		return cj_fail(err, errno, "poll the netlink socket");
	if (ready == 0)
		return cj_fail(err, ETIMEDOUT, "wait for an answer");
	return 0;
}

/* 0: there is none. */
static ssize_t receive(int nft_fd, void *buffer, size_t size, struct cj_error *err)
{
	ssize_t got = nfnl_receive(nft_fd, buffer, size, MSG_DONTWAIT);
	if (got == -EAGAIN)
		return 0;
	if (got < 0)
		return cj_fail(err, (int)-got,
			       got == -EMSGSIZE ? "read an answer" : "read the answers");
	return got;
}

struct verdict {
	const struct nft_batch *batch;
	uint32_t port;
	bool is_loaded; /* the last object was acknowledged */
	int code;       /* the first refusal */
	uint32_t seq;   /* of the message it is about */
};

/* In place of mnl_cb_run(), which ends at a dump that was interrupted: the rest must be read, too.
 * libmnl takes a length above INT_MAX for a small one. */
static void each_message(const void *bytes, ssize_t size,
			 void (*take)(const struct nlmsghdr *message, void *data), void *data)
{
	int left = (int)size;
	const struct nlmsghdr *message = bytes;
	for (; mnl_nlmsg_ok(message, left) && message->nlmsg_len <= ANSWER_BYTES;
	     message = mnl_nlmsg_next(message, &left))
		take(message, data);
}

static void read_answer(const struct nlmsghdr *answer, void *data)
{
	struct verdict *v = data;
	if (answer->nlmsg_type != NLMSG_ERROR || answer->nlmsg_pid != v->port ||
	    answer->nlmsg_seq < v->batch->first_seq || answer->nlmsg_seq > v->batch->last_seq)
		return;

	int code = nfnl_error(answer);
	if (code == 0 && answer->nlmsg_seq == v->batch->last_seq - 1)
		v->is_loaded = true;
	if (code != 0 && v->code == 0) {
		v->code = code;
		v->seq = answer->nlmsg_seq;
	}
}

/* Reads until the socket is empty; waits until the batch is accepted or refused. */
static int read_verdict(int nft_fd, struct verdict *v, struct cj_error *err)
{
	_Alignas(struct nlmsghdr) char buffer[ANSWER_BYTES];

	for (;;) {
		ssize_t got = receive(nft_fd, buffer, sizeof(buffer), err);
		if (got < 0)
			return (int)got;
		if (got == 0 && (v->is_loaded || v->code != 0))
			return 0;
		if (got == 0 && await_answer(nft_fd, err) < 0)
			return -err->code;
		each_message(buffer, got, read_answer, v);
	}
}

static int refused(const struct verdict *v, struct cj_error *err)
{
	const struct nft_batch *b = v->batch;
	char what[3 * NFT_NAME_MAX];
	nft_batch_describe(b, v->seq, what, sizeof(what));

	int rc = cj_fail(err, v->code, "load table '%s' into nf_tables: %s", b->table, what);
	if (v->code == EOPNOTSUPP || v->code == ENOENT || v->code == EPROTONOSUPPORT)
		cj_hint(err, "the kernel needs nf_tables with inet, ct, log, reject, limit, "
			     "connlimit, fib, masq, redir and sets (CONFIG_NF_TABLES and NFT_*)");
	if (v->code == EPERM)
		cj_hint(err, "CAP_NET_ADMIN over the network namespace is needed");
	return rc;
}

int firewall_load(int nft_fd, struct nft_batch *b, struct cj_error *err)
{
	struct verdict verdict = { .batch = b };

	if (b->error)
		return cj_fail(err, b->error, "build table '%s' for nf_tables", b->table);
	if (send_all(nft_fd, b->bytes, b->size, err) < 0 ||
	    port_of(nft_fd, &verdict.port, err) < 0 || read_verdict(nft_fd, &verdict, err) < 0)
		return cj_wrap(err, "load table '%s' into nf_tables", b->table);
	if (verdict.code != 0)
		return refused(&verdict, err);
	return 0;
}

int firewall_apply_jail(int nft_fd, const struct firewall_spec *spec, struct cj_error *err)
{
	auto_nft_batch struct nft_batch b = { 0 };
	firewall_build_jail(&b, spec);
	return firewall_load(nft_fd, &b, err);
}

int firewall_apply_gateway(int nft_fd, const struct firewall_spec *spec, struct cj_error *err)
{
	auto_nft_batch struct nft_batch b = { 0 };
	firewall_build_gateway(&b, spec);
	return firewall_load(nft_fd, &b, err);
}

int firewall_apply_host(int nft_fd, const struct firewall_host_spec *spec, struct cj_error *err)
{
	auto_nft_batch struct nft_batch b = { 0 };
	firewall_build_host(&b, spec);
	return firewall_load(nft_fd, &b, err);
}

int firewall_apply_container(int nft_fd, const struct firewall_container_spec *spec,
			     char out_table[static FIREWALL_TABLE_MAX], struct cj_error *err)
{
	char digits[SHA256_HEX_MAX];
	auto_nft_batch struct nft_batch b = { 0 };

	firewall_build_container(&b, FIREWALL_TABLE, spec);
	if (b.error == 0) {
		sha256_hex(b.bytes, b.size, digits);
		(void)snprintf(out_table, FIREWALL_TABLE_MAX, FIREWALL_TABLE "-%.16s", digits);
		firewall_build_container(&b, out_table, spec);
	}
	return firewall_load(nft_fd, &b, err);
}

/* Adds one element to a set of a loaded table. */
static int add_element(int nft_fd, const char *set, const void *key, uint32_t key_bytes,
		       struct cj_error *err)
{
	auto_nft_batch struct nft_batch b = { 0 };
	nft_batch_begin(&b, FIREWALL_TABLE);
	nft_elements_begin(&b, set);
	nft_element(&b, &(struct nft_element){ .key = key, .key_bytes = key_bytes });
	nft_elements_end(&b);
	nft_batch_end(&b);
	return firewall_load(nft_fd, &b, err);
}

int firewall_open_names(int nft_fd, const struct endpoint *named, size_t n, struct cj_error *err)
{
	auto_nft_batch struct nft_batch b = { 0 };
	nft_batch_begin(&b, FIREWALL_TABLE);
	/* Only a new element has the whole time, and only one that is there can be deleted. */
	firewall_add_named(&b, named, n);
	firewall_delete_named(&b, named, n);
	firewall_add_named(&b, named, n);
	nft_batch_end(&b);
	return firewall_load(nft_fd, &b, err);
}

int firewall_replace(int nft_fd, const struct firewall_spec *from, const struct firewall_spec *to,
		     struct cj_error *err)
{
	auto_nft_batch struct nft_batch b = { 0 };
	nft_batch_begin(&b, FIREWALL_TABLE);
	if (from->has_proxy)
		firewall_empty_checks(&b);
	firewall_delete_rules(&b, from);
	firewall_add_rules(&b, to);
	if (to->has_proxy)
		firewall_add_checks(&b, to);
	nft_batch_end(&b);
	return firewall_load(nft_fd, &b, err);
}

int firewall_close_host(int nft_fd, const struct ip *ip, struct cj_error *err)
{
	char text[IP_TEXT_MAX];
	const char *set = firewall_families[ip->family == 6].host;
	if (add_element(nft_fd, set, ip->bytes, (uint32_t)ip_size(ip), err) < 0)
		return cj_wrap(err, "close host address '%s'", ip_format(ip, text));
	return 0;
}

int firewall_unreachable(int nft_fd, int family, struct cj_error *err)
{
	const uint8_t *nfproto = &firewall_families[family == 6].nfproto;
	int rc = add_element(nft_fd, FIREWALL_UNREACHABLE, nfproto, sizeof(*nfproto), err);
	if (rc == 0 || rc == -EEXIST) /* already done */
		return 0;
	return cj_wrap(err, "reject IPv%d, which has no way out", family);
}

struct attributes {
	const struct nlattr *at[NFTA_SET_ELEM_MAX + 1]; /* the largest type that is read */
};
static_assert(NFTA_SET_ELEM_MAX >= NFTA_SET_ELEM_LIST_MAX &&
		  NFTA_SET_ELEM_MAX >= NFTA_COUNTER_MAX && NFTA_SET_ELEM_MAX >= NFTA_EXPR_MAX &&
		  NFTA_SET_ELEM_MAX >= NFTA_DATA_MAX,
	      "every attribute that is read has a place");

static int take_attribute(const struct nlattr *attribute, void *data)
{
	struct attributes *out = data;
	const uint16_t type = mnl_attr_get_type(attribute);
	if (type <= NFTA_SET_ELEM_MAX)
		out->at[type] = attribute;
	return MNL_CB_OK;
}

/* False: there is none. */
static bool open_nest(const struct nlattr *nest, struct attributes *out)
{
	*out = (struct attributes){ 0 };
	return nest && mnl_attr_parse_nested(nest, take_attribute, out) == MNL_CB_OK;
}

/* Adds the counter of one element; ignores a mark that is no class. */
static int add_counter(const struct nlattr *element, void *data)
{
	uint64_t *counts = data;
	struct attributes parts, key, expression, counter;

	if (!open_nest(element, &parts) || !open_nest(parts.at[NFTA_SET_ELEM_KEY], &key) ||
	    !open_nest(parts.at[NFTA_SET_ELEM_EXPR], &expression) ||
	    !open_nest(expression.at[NFTA_EXPR_DATA], &counter))
		return MNL_CB_OK;

	const struct nlattr *value = key.at[NFTA_DATA_VALUE];
	const struct nlattr *packets = counter.at[NFTA_COUNTER_PACKETS];
	if (!value || mnl_attr_get_payload_len(value) != sizeof(uint32_t) || !packets ||
	    mnl_attr_get_payload_len(packets) != sizeof(uint64_t))
		return MNL_CB_OK;

	uint32_t mark = mnl_attr_get_u32(value);
	if (mark >= 1 && mark <= NET_CLASS_COUNT)
		counts[mark - 1] += be64toh(mnl_attr_get_u64(packets));
	return MNL_CB_OK;
}

static void add_counters(const struct nlmsghdr *message, uint64_t counts[static NET_CLASS_COUNT])
{
	struct attributes list = { 0 };
	if (message->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWSETELEM) ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(struct nfgenmsg))
		return;
	(void)mnl_attr_parse(message, sizeof(struct nfgenmsg), take_attribute, &list);
	const struct nlattr *elements = list.at[NFTA_SET_ELEM_LIST_ELEMENTS];
	if (elements)
		(void)mnl_attr_parse_nested(elements, add_counter, counts);
}

struct dump {
	uint32_t seq, port;
	bool is_done, is_spoilt;
	int code;
	uint64_t counts[NET_CLASS_COUNT];
};

static void take_dump(const struct nlmsghdr *message, void *data)
{
	struct dump *d = data;
	if (message->nlmsg_seq != d->seq || message->nlmsg_pid != d->port)
		return;
	if (message->nlmsg_flags & NLM_F_DUMP_INTR)
		d->is_spoilt = true;
	if (message->nlmsg_type == NLMSG_DONE)
		d->is_done = true;
	if (message->nlmsg_type == NLMSG_ERROR) {
		int code = nfnl_error(message);
		d->code = code != 0 ? code : EBADMSG; /* no acknowledgement was requested */
	}
	add_counters(message, d->counts);
}

static int ask_counters(int nft_fd, const char *table, uint32_t seq, struct cj_error *err)
{
	_Alignas(struct nlmsghdr) char buffer[256] = { 0 };
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	request->nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETSETELEM;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->nlmsg_seq = seq;
	struct nfgenmsg *head = mnl_nlmsg_put_extra_header(request, sizeof(*head));
	*head = (struct nfgenmsg){ .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };
	if (!mnl_attr_put_strz_check(request, sizeof(buffer), NFTA_SET_ELEM_LIST_TABLE, table) ||
	    !mnl_attr_put_strz_check(request, sizeof(buffer), NFTA_SET_ELEM_LIST_SET,
				     FIREWALL_COUNTERS))
		return cj_fail(err, ENOBUFS, "ask for the counters");
	return send_all(nft_fd, request, request->nlmsg_len, err);
}

static int read_dump(int nft_fd, const char *table, struct dump *d, struct cj_error *err)
{
	_Alignas(struct nlmsghdr) char buffer[ANSWER_BYTES];

	if (ask_counters(nft_fd, table, d->seq, err) < 0 || port_of(nft_fd, &d->port, err) < 0)
		return -err->code;
	while (!d->is_done && d->code == 0) {
		ssize_t got = receive(nft_fd, buffer, sizeof(buffer), err);
		if (got < 0)
			return (int)got;
		if (got == 0 && await_answer(nft_fd, err) < 0)
			return -err->code;
		each_message(buffer, got, take_dump, d);
	}
	if (d->code != 0)
		return cj_fail(err, d->code, "list set '%s'", FIREWALL_COUNTERS);
	return 0;
}

int firewall_read_table(int nft_fd, const char *table, uint64_t counts[static NET_CLASS_COUNT],
			struct cj_error *err)
{
	for (uint32_t attempt = 1; attempt <= DUMP_ATTEMPTS; attempt++) {
		struct dump dump = { .seq = attempt };

		if (read_dump(nft_fd, table, &dump, err) < 0)
			return cj_wrap(err, "read the counters of the rules");
		if (dump.is_spoilt)
			continue;
		for (size_t i = 0; i < NET_CLASS_COUNT; i++)
			counts[i] += dump.counts[i];
		return 0;
	}
	return cj_reject_as(err, EAGAIN,
			    "the rules changed each time the counters "
			    "were read");
}
