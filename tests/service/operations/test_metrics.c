/* SPDX-License-Identifier: Apache-2.0 */
/* The page of metrics: well-formed, bounded, and the sum of what was counted. */
#include "runtime/service/operations/metrics.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <ctype.h>

#include "runtime/base/scope.h"

static int set_up(void **state)
{
	*state = metrics_create();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	metrics_destroy((struct metrics **)state);
	return 0;
}

static char *page_of(struct metrics *m, const struct gauges *g)
{
	char *text = NULL;
	size_t size = 0;
	struct cj_error err = { 0 };
	if (metrics_write(m, g, &text, &size, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(strlen(text), size);
	return text;
}

static void assert_has(const char *page, const char *line)
{
	char whole[256];
	(void)snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(page, whole))
		fail_msg("no line '%s'", line);
}

static struct summary a_summary(void)
{
	return (struct summary){
		.totals.status = STATUS_EXITED,
		.totals.usage = { .wall_ms = 31,
				  .cpu_user_ms = 1500,
				  .cpu_system_ms = 7,
				  .memory_peak_bytes = 9u << 20,
				  .has_memory_peak = true },
		.has_network = true,
		.network_state = NETWORK_READY,
		.setup_us = 700,
		.totals.denied_packets = 3,
		.totals.denied_syscalls = 2,
	};
}

/* --- the format ----------------------------------------------------------------------- */

/* The family that HELP and TYPE have opened, and its samples so far. */
struct open_family {
	char name[64], type[16];
	bool has_type;
	uint64_t last_bucket;
	bool has_bucket;
};

static size_t name_length(const char *text)
{
	return isdigit((unsigned char)text[0])
		   ? 0
		   : strspn(text,
			    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:");
}

/* {name="value",...}; returns what follows. */
static const char *check_labels(const char *at)
{
	if (*at != '{')
		return at;
	do {
		at++;
		size_t size = name_length(at);
		assert_true(size > 0 && at[size] == '=' && at[size + 1] == '"');
		at += size + 2;
		size = strcspn(at, "\"\\\n"); /* we need no escapes */
		assert_true(at[size] == '"');
		at += size + 1;
	} while (*at == ',');
	assert_int_equal(*at, '}');
	return at + 1;
}

static uint64_t check_value(const char *at)
{
	assert_int_equal(*at, ' ');
	char *end = NULL;
	double value = strtod(at + 1, &end);
	assert_true(end > at + 1 && *end == '\0' && value >= 0);
	assert_int_equal(strspn(at + 1, "0123456789."), strlen(at + 1));
	return (uint64_t)value;
}

/* Buckets never fall, and +Inf is the count. */
static void check_histogram(struct open_family *f, const char *line, const char *suffix,
			    uint64_t value)
{
	if (strncmp(suffix, "_bucket", 7) == 0) {
		assert_non_null(strstr(line, "le=\""));
		assert_true(!f->has_bucket || value >= f->last_bucket);
		f->has_bucket = true;
		f->last_bucket = value;
		return;
	}
	assert_null(strstr(line, "le=\""));
	if (strncmp(suffix, "_count", 6) == 0) {
		assert_int_equal(value, f->last_bucket);
		f->has_bucket = false;
	} else {
		assert_memory_equal(suffix, "_sum", 4);
	}
}

static void check_sample(struct open_family *f, const char *line)
{
	size_t size = name_length(line);
	assert_true(size > 0 && f->has_type);
	uint64_t value = check_value(check_labels(line + size));
	size_t family = strlen(f->name);
	assert_true(strncmp(line, f->name, family) == 0);
	if (strcmp(f->type, "histogram") == 0)
		check_histogram(f, line, line + family, value);
	else
		assert_int_equal(size, family);
}

static void check_line(struct open_family *f, const char *line)
{
	char name[64] = "", rest[128] = "";
	if (sscanf(line, "# HELP %63s %127[^\n]", name, rest) == 2) {
		*f = (struct open_family){ 0 };
		(void)snprintf(f->name, sizeof(f->name), "%s", name);
		assert_int_equal(name_length(name), strlen(name));
	} else if (sscanf(line, "# TYPE %63s %15s", name, rest) == 2) {
		assert_string_equal(name, f->name);
		assert_false(f->has_type);
		f->has_type = true;
		(void)snprintf(f->type, sizeof(f->type), "%.15s", rest);
		bool is_total = strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0;
		assert_true(is_total == (strcmp(rest, "counter") == 0));
		assert_true(is_total || strcmp(rest, "gauge") == 0 ||
			    strcmp(rest, "histogram") == 0);
	} else {
		check_sample(f, line);
	}
}

/* Every series stands there once, and all of a family together. */
static void check_page(const char *page)
{
	static char seen[2048][128];
	size_t count = 0;
	struct open_family f = { 0 };
	for (const char *at = page; *at; at += strcspn(at, "\n") + 1) {
		char line[256];
		size_t size = strcspn(at, "\n");
		assert_in_range(size, 1, sizeof(line) - 1);
		assert_int_equal(at[size], '\n');
		(void)snprintf(line, sizeof(line), "%.*s", (int)size, at);
		check_line(&f, line);
		size_t key = strncmp(line, "# ", 2) == 0 ? size
							 : (size_t)(strrchr(line, ' ') - line);
		assert_in_range(key, 1, sizeof(seen[0]) - 1);
		line[key] = '\0';
		for (size_t i = 0; i < count; i++)
			assert_string_not_equal(seen[i], line);
		assert_true(count < sizeof(seen) / sizeof(seen[0]));
		memcpy(seen[count++], line, key + 1);
	}
}

static void an_empty_page_is_well_formed(void **state)
{
	const struct gauges none = { 0 };
	auto_free char *page = page_of(*state, &none);
	check_page(page);
	assert_null(strstr(page, "\ncejail_probe_success")); /* no probe is not a failed one */
	assert_has(page, "cejail_rejected_total{reason=\"rate_limited\"} 0");
	assert_null(strstr(page, "reason=\"none\""));
}

static void a_full_page_is_well_formed_and_bounded(void **state)
{
	struct metrics *m = *state;
	const struct gauges g = { .has_probed = true, .in_flight_max = 8, .queued_max = 9 };
	char name[32];
	struct summary s = a_summary();
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "p%u", i);
		s.totals.status = i % STATUS_COUNT;
		s.setup_us = s.totals.usage.wall_ms = (uint64_t)i * i * i;
		s.totals.usage.memory_peak_bytes = (uint64_t)i << 25;
		metrics_count_run(m, name, i % TIER_COUNT, &s, (uint64_t)i * i * i);
		metrics_count_pool(m, name, i % TIER_COUNT, i / 3 % TIER_COUNT);
		metrics_count_http(m, i);
		if (i % API_CODE_COUNT != API_OK)
			metrics_count_refusal(m, i % API_CODE_COUNT);
	}
	auto_free char *page = page_of(m, &g);
	check_page(page);
	assert_in_range(strlen(page), 1, 200000);
	assert_non_null(strstr(page, "profile=\"p31\""));
	assert_null(strstr(page, "profile=\"p32\""));
	assert_non_null(strstr(page, "profile=\"other\""));
}

/* --- what is counted -------------------------------------------------------------------- */

static void a_run_is_in_every_family_of_runs(void **state)
{
	struct metrics *m = *state;
	const struct gauges g = { .started_ms = 1795284408123 };
	struct summary s = a_summary();
	metrics_count_run(m, "python", TIER_INTERPRETER, &s, 2400);
	metrics_count_run(m, "python", TIER_INTERPRETER, &s, 2600);
	auto_free char *page = page_of(m, &g);
	assert_has(page, "cejail_runs_total{profile=\"python\",status=\"exited\"} 2");
	assert_has(page, "cejail_runs_total{profile=\"python\",status=\"oom\"} 0");
	assert_has(page, "cejail_run_cpu_seconds_total 3.014000");
	assert_has(page, "cejail_run_duration_seconds_bucket{le=\"0.025000\"} 0");
	assert_has(page, "cejail_run_duration_seconds_bucket{le=\"0.050000\"} 2");
	assert_has(page, "cejail_run_duration_seconds_sum 0.062000");
	assert_has(page, "cejail_run_duration_seconds_count 2");
	assert_has(
	    page, "cejail_request_duration_seconds_bucket{tier=\"interpreter\",le=\"0.002500\"} 1");
	assert_has(page, "cejail_request_duration_seconds_sum{tier=\"interpreter\"} 0.005000");
	assert_has(page, "cejail_request_duration_seconds_count{tier=\"cold\"} 0");
	assert_has(page,
		   "cejail_setup_duration_seconds_bucket{tier=\"interpreter\",le=\"0.000500\"} 0");
	assert_has(page,
		   "cejail_setup_duration_seconds_bucket{tier=\"interpreter\",le=\"0.001000\"} 2");
	assert_has(page, "cejail_run_memory_peak_bytes_bucket{le=\"8388608\"} 0");
	assert_has(page, "cejail_run_memory_peak_bytes_bucket{le=\"16777216\"} 2");
	assert_has(page, "cejail_run_memory_peak_bytes_sum 18874368");
	assert_has(page, "cejail_run_networks_total{state=\"unused\"} 0");
	assert_has(page, "cejail_run_networks_total{state=\"ready\"} 2");
	assert_has(page, "cejail_run_networks_total{state=\"failed\"} 0");
	assert_has(page, "cejail_network_denied_packets_total 6");
	assert_has(page, "cejail_syscalls_denied_total 4");
	assert_has(page, "process_start_time_seconds 1795284408.123000");
}

static void a_run_that_never_started_has_no_times(void **state)
{
	struct metrics *m = *state;
	const struct gauges g = { 0 };
	struct summary s = a_summary();
	s.totals.status = STATUS_SETUP_ERROR;
	metrics_count_run(m, "python", TIER_COLD, &s, 100);
	s.totals.status = STATUS_TIMEOUT;
	s.totals.usage.has_memory_peak = false;
	metrics_count_run(m, "python", TIER_COLD, &s, 100);
	const struct summary cancelled = { .totals.status =
					       STATUS_CANCELLED }; /* while it waited */
	metrics_count_run(m, "python", TIER_COLD, &cancelled, 100);
	auto_free char *page = page_of(m, &g);
	assert_has(page, "cejail_runs_total{profile=\"python\",status=\"setup_error\"} 1");
	assert_has(page, "cejail_runs_total{profile=\"python\",status=\"cancelled\"} 1");
	assert_has(page, "cejail_run_duration_seconds_count 1");
	assert_has(page, "cejail_setup_duration_seconds_count{tier=\"cold\"} 1");
	assert_has(page, "cejail_request_duration_seconds_count{tier=\"cold\"} 3");
	assert_has(page, "cejail_run_memory_peak_bytes_count 0");
}

static void a_name_from_a_caller_is_never_a_label(void **state)
{
	struct metrics *m = *state;
	const struct gauges g = { 0 };
	static const char *const names[] = { "/tmp/x.json",
					     "./a",
					     "a\"} 1\nevil 1",
					     "",
					     "A",
					     "a\\",
					     "0123456789012345678901234567890123" };
	struct summary s = a_summary();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		metrics_count_run(m, names[i], TIER_COLD, &s, 1);
		metrics_count_pool(m, names[i], TIER_COLD, TIER_COLD);
	}
	auto_free char *page = page_of(m, &g);
	check_page(page);
	assert_has(page, "cejail_runs_total{profile=\"other\",status=\"exited\"} 7");
	assert_has(
	    page,
	    "cejail_pool_requests_total{profile=\"other\",wanted=\"cold\",result=\"cold\"} 7");
}

static void all_else_is_shown(void **state)
{
	struct metrics *m = *state;
	const struct gauges g = {
		.in_flight = 1,
		.queued = 2,
		.connections = 3,
		.pool_ready = { [TIER_JAIL] = 4, [TIER_INTERPRETER] = 5, [TIER_REPL] = 9 },
		.audit_failures = 1,
		.in_flight_max = 6,
		.queued_max = 7,
		.has_probed = true,
		.probe_succeeded = true,
		.probe_age_ms = 8
	};
	metrics_count_refusal(m, API_ABOVE_CEILING);
	metrics_count_pool(m, "python", TIER_INTERPRETER, TIER_JAIL);
	metrics_count_bypass(m, "python", BYPASS_CEILING);
	metrics_count_bypass(m, "python", BYPASS_COUNT);
	metrics_count_http(m, 200);
	metrics_count_http(m, 99);
	metrics_count_http(m, 600);
	metrics_count_http(m, 4000000000u);
	auto_free char *page = page_of(m, &g);
	check_page(page);
	assert_has(page, "cejail_runs_in_flight 1");
	assert_has(page, "cejail_queue_depth 2");
	assert_has(page, "cejail_connections 3");
	assert_has(page, "cejail_pool_ready{tier=\"jail\"} 4");
	assert_has(page, "cejail_pool_ready{tier=\"interpreter\"} 5");
	assert_has(page, "cejail_pool_ready{tier=\"repl\"} 9");
	assert_has(page, "cejail_runs_in_flight_limit 6");
	assert_has(page, "cejail_queue_limit 7");
	assert_has(page, "cejail_probe_success 1");
	assert_has(page, "cejail_probe_age_seconds 0.008000");
	assert_has(page, "cejail_rejected_total{reason=\"above_ceiling\"} 1");
	assert_has(page, "cejail_pool_requests_total{profile=\"python\",wanted=\"interpreter\","
			 "result=\"jail\"} 1");
	assert_has(page, "cejail_pool_bypassed_total{profile=\"python\",reason=\"ceiling\"} 1");
	assert_has(page, "cejail_audit_failures_total 1");
	assert_has(page, "cejail_http_responses_total{code=\"200\"} 1");
	assert_null(strstr(page, "code=\"99\""));
	assert_has(page, "cejail_build_info{version=\"" CJ_VERSION "\"} 1");
}

static void the_process_reports_its_own_usage(void **state)
{
	struct metrics_process before, after;
	(void)state;
	metrics_look_at_process(&before);
	int fd = dup(STDOUT_FILENO);
	assert_true(fd >= 0);
	metrics_look_at_process(&after);
	(void)close(fd);
	assert_int_equal(after.open_fds, before.open_fds + 1);
	assert_in_range(after.resident_bytes, 100u << 10, 1ull << 40);
	assert_true(after.cpu_us >= before.cpu_us);
}

/* Each metric of the line is on the page.  Returns how many there are. */
static unsigned find_metrics(const char *line, const char *page)
{
	unsigned names = 0;
	for (const char *at = line; (at = strstr(at, "cejail_")) != NULL; names++) {
		size_t size = name_length(at);
		char name[80];
		(void)snprintf(name, sizeof(name), "\n%.*s", (int)size, at);
		const char *found = strstr(page, name);
		if (!found || !strchr("{ ", found[size + 1]))
			fail_msg("there is no metric%s", name);
		at += size;
	}
	return names;
}

/* "by (a, b)": some metric has each label.  Prometheus adds "instance". */
static void find_labels(const char *line, const char *page)
{
	for (const char *at = line; (at = strstr(at, "by (")) != NULL;) {
		for (at += strlen("by ("); *at && *at != ')'; at += strspn(at, ", ")) {
			size_t size = strcspn(at, ",)");
			char label[80];
			(void)snprintf(label, sizeof(label), "%.*s=\"", (int)size, at);
			if (strncmp(label, "instance", strlen("instance")) != 0 &&
			    !strstr(page, label))
				fail_msg("there is no label %s", label);
			at += size;
		}
	}
}

/* Every name that the alert rules and the board use is one of ours. */
static void alert_rules_and_dashboard_name_only_what_there_is(void **state)
{
	static const char *const paths[] = { "tools/prometheus/cejail.rules.yml",
					     "tools/prometheus/cejail.dashboard.json" };
	const struct gauges g = { .has_probed = true, .in_flight_max = 1, .queued_max = 1 };
	struct summary s = a_summary();
	metrics_count_run(*state, "python", TIER_COLD, &s, 1);
	metrics_count_pool(*state, "python", TIER_COLD, TIER_COLD);
	metrics_count_refusal(*state, API_QUEUE_FULL);
	metrics_count_http(*state, 200);
	auto_free char *page = page_of(*state, &g);
	for (size_t i = 0; i < 2; i++) {
		auto_file FILE *file = fopen(paths[i], "re");
		auto_free char *line = NULL;
		size_t room = 0;
		unsigned names = 0;
		assert_non_null(file); /* run from the top of the tree */
		while (getline(&line, &room, file) > 0) {
			if (line[0] == '#')
				continue;
			names += find_metrics(line, page);
			find_labels(line, page);
		}
		assert_true(names >= 6);
	}
}

static void every_refusal_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (size_t i = API_OK + 1; i < API_CODE_COUNT; i++) {
		assert_int_equal(strspn(api_rows[i].code, "abcdefghijklmnopqrstuvwxyz_"),
				 strlen(api_rows[i].code));
		for (size_t k = API_OK + 1; k < i; k++)
			assert_string_not_equal(api_rows[i].code, api_rows[k].code);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_empty_page_is_well_formed),
		CASE(a_full_page_is_well_formed_and_bounded),
		CASE(a_run_is_in_every_family_of_runs),
		CASE(a_run_that_never_started_has_no_times),
		CASE(a_name_from_a_caller_is_never_a_label),
		CASE(all_else_is_shown),
		CASE(every_refusal_has_a_name_of_its_own),
		CASE(the_process_reports_its_own_usage),
		CASE(alert_rules_and_dashboard_name_only_what_there_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
