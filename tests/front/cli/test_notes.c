/* SPDX-License-Identifier: Apache-2.0 */
/* The messages after a run: one line each, and few lines for many denied packets. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>

#include "runtime/base/scope.h"
#include "runtime/front/cli/notes.c" /* the front end is in no library */

#define auto_outcome __attribute__((cleanup(outcome_fini)))

/* What a test writes to descriptor 2 goes to this file. */
static struct {
	int stdout_fd, stderr_fd; /* the real ones */
	int fd;
	char text[8192];
} terminal;

static int capture_stderr(void **state)
{
	(void)state;
	terminal.stdout_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	terminal.stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	terminal.fd = memfd_create("terminal", MFD_CLOEXEC);
	log_set_level(LOG_NORMAL);
	return terminal.fd >= 0 && dup2(terminal.fd, STDERR_FILENO) >= 0 ? 0 : -1;
}

/* What was written since capture_stderr().  Restores stdout and stderr. */
static const char *captured(void)
{
	(void)dup2(terminal.stdout_fd, STDOUT_FILENO);
	(void)dup2(terminal.stderr_fd, STDERR_FILENO);
	ssize_t size = pread(terminal.fd, terminal.text, sizeof(terminal.text) - 1, 0);
	terminal.text[size > 0 ? size : 0] = '\0';
	return terminal.text;
}

static int restore_streams(void **state)
{
	(void)state;
	(void)captured();
	cj_close(&terminal.stdout_fd);
	cj_close(&terminal.stderr_fd);
	cj_close(&terminal.fd);
	return 0;
}

static struct outcome make_outcome(void)
{
	struct outcome o;
	outcome_init(&o, "a", 100);
	outcome_decide(&o, STATUS_EXITED);
	return o;
}

static const struct denial refusals[] = {
	{ NET_METADATA, IPPROTO_TCP, { 4, { 169, 254, 169, 254 } }, 80, 2 },
	{ NET_METADATA, IPPROTO_UDP, { 6, { 0xfd, 0, 0x0e, 0xc2, [14] = 2, 0x54 } }, 53, 1 },
	{ NET_PRIVATE, IPPROTO_ICMP, { 4, { 10, 0, 0, 5 } }, 0, 1 },
	{ NET_RESERVED, IPPROTO_ICMPV6, { 6, { 0x20, 0x01, 0x0d, 0xb8 } }, 0, 7 },
	{ NET_PRIVATE, 0, { 0 }, 0, 996 },
};

static void print_refusals(const struct denial *denied, size_t count)
{
	auto_outcome struct outcome o = make_outcome();
	o.network = (struct network_outcome){
		.uplink = UPLINK_HOST,
		.state = NETWORK_READY,
		.denied = denied,
		.ndenied = count,
	};
	notes_print(&o, &(struct strings){ 0 });
}

static void each_denied_destination_is_a_line(void **state)
{
	(void)state;
	print_refusals(refusals, sizeof(refusals) / sizeof(refusals[0]));
	assert_string_equal(captured(),
			    "cejail: network: denied tcp 169.254.169.254:80 (metadata), 2 times\n"
			    "cejail: network: denied udp [fd00:ec2::254]:53 (metadata)\n"
			    "cejail: network: denied icmp 10.0.0.5 (private)\n"
			    "cejail: network: denied icmpv6 2001:db8:: (reserved), 7 times\n"
			    "cejail: network: denied 996 more (private)\n");
}

static void each_denied_name_is_a_line(void **state)
{
	static const struct denial names[] = {
		{ .class = NET_NAME, .count = 1, .name = "a.example.org" },
		{ .class = NET_NAME, .count = 3, .name = "b.example.org", .is_shared = true },
		{ .class = NET_NAME, .count = 8 },
	};
	(void)state;
	print_refusals(names, sizeof(names) / sizeof(names[0]));
	assert_string_equal(captured(), "cejail: network: denied the name a.example.org (not "
					"allowed)\n"
					"cejail: network: denied the name b.example.org (not "
					"allowed), 3 times, perhaps sent by another exec\n"
					"cejail: network: denied 8 more (name)\n");
}

static size_t count_lines(const char *text)
{
	size_t lines = 0;
	for (; (text = strchr(text, '\n')); text++)
		lines++;
	return lines;
}

static void many_denied_destinations_are_ten_lines_and_a_count(void **state)
{
	(void)state;
	struct denial many[DENIALS_MAX];
	for (uint16_t i = 0; i < DENIALS_MAX; i++) {
		many[i] = refusals[0];
		many[i].port = (uint16_t)(i + 1);
	}
	print_refusals(many, 10);
	assert_null(strstr(captured(), "..."));
	assert_int_equal(count_lines(terminal.text), 10);

	assert_int_equal(dup2(terminal.fd, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(ftruncate(terminal.fd, 0), 0);
	assert_int_equal(lseek(terminal.fd, 0, SEEK_SET), 0);
	print_refusals(many, DENIALS_MAX);
	assert_int_equal(count_lines(captured()), 11);
	char last[80];
	(void)snprintf(last, sizeof(last),
		       "\ncejail: network: ... and %d more (--json lists all)\n", DENIALS_MAX - 10);
	assert_non_null(strstr(terminal.text, last));
}

static void quiet_does_not_hide_denied_packets(void **state)
{
	(void)state;
	log_set_level(LOG_QUIET);
	print_refusals(refusals, 5);
	assert_true(count_lines(captured()) >= 5);
}

/* The last test: nothing shows the report again. */
static void without_a_report_denied_packets_are_not_printed(void **state)
{
	(void)state;
	log_hide_report();
	print_refusals(refusals, 5);
	assert_string_equal(captured(), "");
}

static void only_a_verbose_run_prints_the_state_of_its_network(void **state)
{
	(void)state;
	auto_outcome struct outcome o = make_outcome();
	o.network.state = NETWORK_READY;
	o.network.uplink = UPLINK_PASTA;
	notes_print(&o, &(struct strings){ 0 });
	log_set_level(LOG_VERBOSE);
	notes_print(&o, &(struct strings){ 0 });
	o.network.state = NETWORK_FAILED;
	o.network.why = "no tun device";
	notes_print(&o, &(struct strings){ 0 });
	o.network.state = NETWORK_UNUSED;
	notes_print(&o, &(struct strings){ 0 });
	assert_string_equal(captured(), "cejail: network: ready, uplink 'pasta'\n"
					"cejail: network: failed: no tun device\n");
}

static void missing_features_of_the_host_are_one_line(void **state)
{
	(void)state;
	auto_outcome struct outcome o = make_outcome();
	outcome_warn(&o, "limits: memory is enforced by supervisor: no cgroup");
	outcome_warn(&o, "network: nothing leads out of the jail: no pasta");
	outcome_warn(&o, "network: the uplink may not work: a firewall");
	outcome_warn(&o, "artifacts: 'x' is not copied");
	notes_print(&o, &(struct strings){ 0 });
	assert_string_equal(captured(),
			    "cejail: warning: this host does not fully enforce: limits, "
			    "network (see 'cejail doctor'; --accept-weaker hides this)\n"
			    "cejail: warning: artifacts: 'x' is not copied\n");
}

static void an_accepted_weakness_is_no_warning(void **state)
{
	(void)state;
	const char *both[] = { "limits", "network", NULL };
	auto_outcome struct outcome o = make_outcome();
	outcome_warn(&o, "limits: memory is enforced by supervisor: no cgroup");
	outcome_warn(&o, "network: nothing leads out of the jail: no pasta");
	notes_print(&o, &(struct strings){ .items = both, .count = 1 });
	notes_print(&o, &(struct strings){ .items = both, .count = 2 });
	assert_string_equal(captured(),
			    "cejail: warning: this host does not fully enforce: network "
			    "(see 'cejail doctor'; --accept-weaker hides this)\n");
}

static void a_warning_about_the_host_is_recognised_by_its_prefix(void **state)
{
	(void)state;
	assert_int_equal(degraded_of("limits: x"), DEGRADED_LIMITS);
	assert_int_equal(degraded_of("network_filter: x"), DEGRADED_NETWORK_FILTER);
	assert_int_equal(degraded_of("network"), DEGRADED_COUNT);
	assert_int_equal(degraded_of("limit: x"), DEGRADED_COUNT);
	assert_int_equal(degraded_of(": x"), DEGRADED_COUNT);
	assert_int_equal(degraded_of(""), DEGRADED_COUNT);
}

/* --- lines the program left unfinished ---------------------------------------------- */

static const char *after_output(const char *to_stdout, const char *to_stderr, const char *note)
{
	auto_outcome struct outcome o = make_outcome();
	assert_int_equal(capture_add(&o.output[0], to_stdout, strlen(to_stdout)), 0);
	assert_int_equal(capture_add(&o.output[1], to_stderr, strlen(to_stderr)), 0);
	notes_follow_output(&o);
	if (note)
		log_note("%s", note);
	return captured();
}

static void an_unfinished_line_is_ended_before_a_message(void **state)
{
	(void)state;
	assert_string_equal(after_output("", "half a line", "ours"), "\ncejail: ours\n");
}

static void after_a_finished_line_no_newline_is_added(void **state)
{
	(void)state;
	assert_string_equal(after_output("half", "a line\n", "ours"), "cejail: ours\n");
}

static void without_a_message_no_newline_is_added(void **state)
{
	(void)state;
	assert_string_equal(after_output("", "half a line", NULL), "");
	assert_int_equal(dup2(terminal.fd, STDERR_FILENO), STDERR_FILENO);
	log_note("later"); /* for the next test nothing is unfinished */
}

static void stdout_elsewhere_ends_no_line_of_stderr(void **state)
{
	(void)state;
	auto_fd int other_fd = memfd_create("other", MFD_CLOEXEC);
	assert_int_equal(dup2(other_fd, STDOUT_FILENO), STDOUT_FILENO);
	assert_string_equal(after_output("half", "", "ours"), "cejail: ours\n");
}

static void stdout_on_the_same_terminal_is_ended(void **state)
{
	(void)state;
	assert_int_equal(dup2(terminal.fd, STDOUT_FILENO), STDOUT_FILENO);
	assert_string_equal(after_output("half", "", "ours"), "\ncejail: ours\n");
}

#define CAPTURING(test) cmocka_unit_test_setup_teardown(test, capture_stderr, restore_streams)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CAPTURING(each_denied_destination_is_a_line),
		CAPTURING(each_denied_name_is_a_line),
		CAPTURING(many_denied_destinations_are_ten_lines_and_a_count),
		CAPTURING(quiet_does_not_hide_denied_packets),
		CAPTURING(only_a_verbose_run_prints_the_state_of_its_network),
		CAPTURING(missing_features_of_the_host_are_one_line),
		CAPTURING(an_accepted_weakness_is_no_warning),
		cmocka_unit_test(a_warning_about_the_host_is_recognised_by_its_prefix),
		CAPTURING(an_unfinished_line_is_ended_before_a_message),
		CAPTURING(after_a_finished_line_no_newline_is_added),
		CAPTURING(without_a_message_no_newline_is_added),
		CAPTURING(stdout_elsewhere_ends_no_line_of_stderr),
		CAPTURING(stdout_on_the_same_terminal_is_ended),
		CAPTURING(without_a_report_denied_packets_are_not_printed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
