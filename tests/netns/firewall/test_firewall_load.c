/* SPDX-License-Identifier: Apache-2.0 */
/* firewall: what the kernel answers to a batch, and what it may do instead. */
/* WRAP: sendto recvmsg poll getsockname */
#include "netns/firewall/firewall.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "netns/firewall/denials.h"
#include "tests/netns/firewall/lab_rules.h"

/* What the next calls do instead of the real ones. */
static struct {
	int send_errno, receive_errno, poll_errno, name_errno; /* once */
	unsigned spoilt;  /* so many answers say that the rules changed meanwhile */
	bool is_cut;      /* the next answer does not fit */
	bool is_silent;   /* nothing comes, and nothing is waited for */
	uint32_t sender;  /* one acknowledgement comes from this port, not the kernel's 0 */
	uint32_t to_port; /* ... or the kernel's, but for another port */
	const struct nft_batch *batch;
} fake;

ssize_t __real_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_size);
ssize_t __real_recvmsg(int fd, struct msghdr *header, int flags);
int __real_poll(struct pollfd *fds, nfds_t count, int wait_ms);

ssize_t __wrap_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_size);
ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags);
int __wrap_poll(struct pollfd *fds, nfds_t count, int wait_ms);
int __real_getsockname(int fd, struct sockaddr *out, socklen_t *size);
int __wrap_getsockname(int fd, struct sockaddr *out, socklen_t *size);

static int take(int *code)
{
	int taken = *code;
	*code = 0;
	return taken;
}

ssize_t __wrap_sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to,
		      socklen_t to_size)
{
	if (fake.send_errno) {
		errno = take(&fake.send_errno);
		return -1;
	}
	return __real_sendto(fd, bytes, size, flags, to, to_size);
}

/* An acknowledgement of the last object that is not what it seems. */
static ssize_t forge(int fd, struct msghdr *header)
{
	struct sockaddr_nl self = { 0 }, from = { .nl_family = AF_NETLINK, .nl_pid = fake.sender };
	socklen_t size = sizeof(self);
	struct nlmsghdr *answer = header->msg_iov->iov_base;

	getsockname(fd, (void *)&self, &size);
	memset(answer, 0, NLMSG_LENGTH(sizeof(struct nlmsgerr)));
	answer->nlmsg_len = NLMSG_LENGTH(sizeof(struct nlmsgerr));
	answer->nlmsg_type = NLMSG_ERROR;
	answer->nlmsg_seq = fake.batch->last_seq - 1;
	answer->nlmsg_pid = fake.to_port ? fake.to_port : self.nl_pid;
	memcpy(header->msg_name, &from, sizeof(from));
	fake.sender = fake.to_port = 0;
	return answer->nlmsg_len;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags)
{
	if (fake.receive_errno) {
		errno = take(&fake.receive_errno);
		return -1;
	}
	if (fake.sender || fake.to_port)
		return forge(fd, header);
	if (fake.is_silent) {
		errno = EAGAIN;
		return -1;
	}
	ssize_t got = __real_recvmsg(fd, header, flags);
	if (got > 0 && fake.spoilt > 0) {
		struct nlmsghdr *answer = header->msg_iov->iov_base;
		answer->nlmsg_flags |= NLM_F_DUMP_INTR;
		fake.spoilt--;
	}
	if (got > 0 && fake.is_cut)
		header->msg_flags |= MSG_TRUNC;
	return got;
}

int __wrap_getsockname(int fd, struct sockaddr *out, socklen_t *size)
{
	if (fake.name_errno) {
		errno = take(&fake.name_errno);
		return -1;
	}
	return __real_getsockname(fd, out, size);
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
	if (fake.poll_errno) {
		errno = take(&fake.poll_errno);
		return -1;
	}
	return fake.is_silent ? 0 : __real_poll(fds, count, wait_ms);
}

/* A small batch, and a socket in a namespace of its own. */
struct load {
	struct nft_batch batch;
	int fd;
};

static int set_up(void **state)
{
	static struct load load;
	if (no_lab)
		return 0;
	load.fd = lab_socket(lab_namespace(), AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	nft_batch_begin(&load.batch, "t");
	nft_add_table(&load.batch, 0);
	nft_add_chain(&load.batch, "c");
	nft_batch_end(&load.batch);
	memset(&fake, 0, sizeof(fake));
	fake.batch = &load.batch;
	*state = &load;
	return 0;
}

static int tear_down(void **state)
{
	struct load *load = *state;
	memset(&fake, 0, sizeof(fake));
	if (!load)
		return 0;
	nft_batch_fini(&load->batch);
	cj_close(&load->fd);
	return 0;
}

static struct load *loaded(void **state)
{
	if (!*state) {
		print_message("skipped: %s\n", no_lab);
		skip();
	}
	return *state;
}

static void expect_failure(struct load *load, int code, const char *words)
{
	struct cj_error err = { 0 };
	assert_int_equal(firewall_load(load->fd, &load->batch, &err), -code);
	if (!strstr(err.msg, words))
		fail_msg("%s", err.msg);
}

static void interrupted_calls_are_repeated(void **state)
{
	struct load *load = loaded(state);
	fake.send_errno = EINTR;
	fake.receive_errno = EINTR;
	CHECK(firewall_load(load->fd, &load->batch, &err));
}

static void an_existing_table_is_an_error_that_names_it(void **state)
{
	struct load *load = loaded(state);
	CHECK(firewall_load(load->fd, &load->batch, &err));
	expect_failure(load, EEXIST, "load table 't' into nf_tables: table 't': File exists");
}

static void the_first_refused_object_is_named(void **state)
{
	struct load *load = loaded(state);
	nft_batch_begin(&load->batch, "t");
	nft_add_table(&load->batch, 0);
	nft_add_chain(&load->batch, "c");
	for (size_t i = 0; i < 2; i++) {
		nft_rule_begin(&load->batch, "c");
		nft_verdict(&load->batch, i == 0 ? NF_ACCEPT : NFT_JUMP, i == 0 ? NULL : "nowhere");
		nft_rule_end(&load->batch);
	}
	nft_batch_end(&load->batch);
	expect_failure(load, ENOENT, "rule 2 of chain 'c'");
}

static void a_refused_batch_leaves_no_object_and_no_unread_answer(void **state)
{
	struct load *load = loaded(state);
	nft_batch_begin(&load->batch, "t");
	nft_add_table(&load->batch, 0);
	nft_add_chain(&load->batch, "c");
	for (size_t i = 0; i < 20; i++) {
		nft_rule_begin(&load->batch, "nowhere");
		nft_rule_end(&load->batch);
	}
	nft_batch_end(&load->batch);
	expect_failure(load, ENOENT, "rule 1 of chain 'nowhere'");

	nft_batch_begin(&load->batch, "t");
	nft_add_table(&load->batch, 0); /* NLM_F_EXCL */
	nft_batch_end(&load->batch);
	CHECK(firewall_load(load->fd, &load->batch, &err));
}

static void lost_answers_are_a_failure(void **state)
{
	struct load *load = loaded(state);
	fake.receive_errno = ENOBUFS;
	expect_failure(load, ENOBUFS, "read the answers");
}

static void a_kernel_that_does_not_answer_is_a_failure(void **state)
{
	struct load *load = loaded(state);
	fake.is_silent = true;
	expect_failure(load, ETIMEDOUT, "wait for an answer");
}

static void an_answer_of_another_sender_or_to_another_request_is_ignored(void **state)
{
	struct load *load = loaded(state);
	fake.is_silent = true;
	fake.sender = 77;
	expect_failure(load, ETIMEDOUT, "wait for an answer");
	fake.to_port = 77;
	expect_failure(load, ETIMEDOUT, "wait for an answer");
}

static void counters_of_a_table_that_is_not_there_are_an_error(void **state)
{
	struct load *load = loaded(state);
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	struct cj_error err = { 0 };
	assert_int_equal(firewall_read_table(load->fd, FIREWALL_TABLE, counts, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "read the counters"));
}

static void calls_that_fail_are_named(void **state)
{
	struct load *load = loaded(state);
	fake.send_errno = ENOBUFS;
	expect_failure(load, ENOBUFS, "send ");
	fake.name_errno = EBADF;
	expect_failure(load, EBADF, "getsockname");
	fake.is_silent = true;
	fake.poll_errno = ENOMEM;
	expect_failure(load, ENOMEM, "poll the netlink socket");
	fake.is_silent = false;
	fake.is_cut = true;
	expect_failure(load, EMSGSIZE, "read an answer");
}

static void missing_rules_are_an_error_for_a_new_address(void **state)
{
	struct load *load = loaded(state);
	const struct ip address = lab_address("192.0.2.7");
	struct cj_error err = { 0 };
	assert_int_equal(firewall_close_host(load->fd, &address, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "close host address '192.0.2.7'"));
	assert_int_equal(firewall_unreachable(load->fd, 6, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "reject IPv6"));
}

/* --- the counters --- */

static int read_counters(const struct lab *lab, uint64_t *out_metadata, struct cj_error *err)
{
	uint64_t counts[NET_CLASS_COUNT] = { 0 };
	int rc = firewall_read_table(lab->jail_rules, FIREWALL_TABLE, counts, err);
	*out_metadata = counts[NET_METADATA];
	return rc;
}

/* Elements could be missing, or be counted twice. */
static void counters_read_while_the_rules_changed_are_read_again(void **state)
{
	const struct ip metadata = lab_address("169.254.169.254");
	struct cj_error err = { 0 };
	uint64_t count;
	struct lab lab;
	(void)loaded(state);
	open_public(&lab);
	assert_int_equal(lab_connect(lab.jail, &metadata, 80, LAB_WAIT_MS, NULL), ECONNREFUSED);

	fake.spoilt = 3;
	assert_int_equal(read_counters(&lab, &count, &err), 0);
	assert_int_equal(fake.spoilt, 0);
	assert_int_equal(count, 1);
	fake.spoilt = 1000;
	assert_int_equal(read_counters(&lab, &count, &err), -EAGAIN);
	assert_non_null(strstr(err.msg, "the rules changed each time"));
	fake.spoilt = 0;
	lab_close(&lab);
}

static void counters_that_can_not_be_read_are_an_error(void **state)
{
	struct cj_error err = { 0 };
	uint64_t count;
	struct lab lab;
	(void)loaded(state);
	open_public(&lab);
	fake.send_errno = ENOBUFS;
	assert_int_equal(read_counters(&lab, &count, &err), -ENOBUFS);
	fake.receive_errno = ENOBUFS;
	assert_int_equal(read_counters(&lab, &count, &err), -ENOBUFS);
	fake.is_silent = true;
	assert_int_equal(read_counters(&lab, &count, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.msg, "read the counters of the rules"));
	fake.is_silent = false;
	lab_close(&lab);
}

/* --- the log --- */

static struct denial heard;

static void hear(void *context, const struct denial *denial)
{
	(void)context;
	heard = *denial;
}

static void a_denial_is_received_at_once_with_its_class(void **state)
{
	static struct denials denials;
	const struct ip metadata = lab_address("169.254.169.254");
	struct lab lab;
	(void)loaded(state);
	open_public(&lab);
	auto_fd int log_fd = lab_socket(lab.jail, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);

	CHECK(denials_listen(log_fd, &err));
	assert_int_equal(lab_connect(lab.jail, &metadata, 80, LAB_WAIT_MS, NULL), ECONNREFUSED);
	CHECK(denials_receive(log_fd, &denials, hear, NULL, &err));
	assert_int_equal(heard.class, NET_METADATA);
	assert_int_equal(heard.protocol, IPPROTO_TCP);
	assert_true(ip_equal(&heard.address, &metadata));
	assert_int_equal(heard.port, 80);
	lab_close(&lab);
}

#define LOAD_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOAD_TEST(interrupted_calls_are_repeated),
		LOAD_TEST(an_existing_table_is_an_error_that_names_it),
		LOAD_TEST(the_first_refused_object_is_named),
		LOAD_TEST(a_refused_batch_leaves_no_object_and_no_unread_answer),
		LOAD_TEST(lost_answers_are_a_failure),
		LOAD_TEST(a_kernel_that_does_not_answer_is_a_failure),
		LOAD_TEST(an_answer_of_another_sender_or_to_another_request_is_ignored),
		LOAD_TEST(counters_of_a_table_that_is_not_there_are_an_error),
		LOAD_TEST(calls_that_fail_are_named),
		LOAD_TEST(missing_rules_are_an_error_for_a_new_address),
		LOAD_TEST(counters_read_while_the_rules_changed_are_read_again),
		LOAD_TEST(counters_that_can_not_be_read_are_an_error),
		LOAD_TEST(a_denial_is_received_at_once_with_its_class),
	};
	no_lab = lab_enter_user();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
