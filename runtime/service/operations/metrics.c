/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, and the page that shows them. */
#include "runtime/service/operations/metrics.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/files/fd.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define NAME_MAX_SIZE    33 /* is_name() */
#define OTHER            METRICS_PROFILES_MAX
#define HTTP_STATUS_MIN  100
#define HTTP_STATUS_MAX  599
#define MICROS           1000000
#define SESSION_ENDS_MAX 16 /* more than there are reasons */

/* --- histograms ------------------------------------------------------------------------------ */

#define HISTOGRAM_BUCKETS_MAX 18
#define HISTOGRAM_MICROS      1000000

/* `unit`: 1 for bytes, HISTOGRAM_MICROS for microseconds that are shown in seconds. */
struct histogram_scale {
	const uint64_t *bounds; /* upper ones */
	size_t count;
	uint64_t unit;
};
struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS_MAX]; /* not cumulative */
	uint64_t count, sum;
};

/* Upper bounds: microseconds, or bytes; shown in seconds, or bytes. */
static const uint64_t time_bounds[] = {
	500,    1000,    2500,    5000,    10000,    25000,    50000,    100000,    250000,
	500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000, 120000000, 300000000,
};
static const uint64_t memory_bounds[] = {
	4ull << 20,   8ull << 20,   16ull << 20,   32ull << 20,   64ull << 20,   128ull << 20,
	256ull << 20, 512ull << 20, 1024ull << 20, 2048ull << 20, 4096ull << 20, 8192ull << 20,
};
static_assert(LENGTH(time_bounds) <= HISTOGRAM_BUCKETS_MAX &&
		  LENGTH(memory_bounds) <= HISTOGRAM_BUCKETS_MAX,
	      "every bound has a bucket");

static const struct histogram_scale histogram_times = { time_bounds, LENGTH(time_bounds),
							HISTOGRAM_MICROS };
static const struct histogram_scale histogram_sizes = { memory_bounds, LENGTH(memory_bounds), 1 };

static void observe(struct histogram *h, const struct histogram_scale *scale, uint64_t value)
{
	h->count++;
	h->sum += value;
	for (size_t i = 0; i < scale->count; i++) {
		if (value <= scale->bounds[i]) {
			h->buckets[i]++;
			return;
		}
	}
}

static void put_scaled(FILE *out, uint64_t value, uint64_t unit)
{
	if (unit == 1)
		(void)fprintf(out, "%" PRIu64, value);
	else
		(void)fprintf(out, "%" PRIu64 ".%06" PRIu64, value / unit, value % unit);
}

/* `label` is "" or `tier="cold",`. */
static void histogram_put(FILE *out, const char *name, const char *label, const struct histogram *h,
			  const struct histogram_scale *scale)
{
	uint64_t cumulative = 0;
	char braces[64] = "";
	for (size_t i = 0; i < scale->count; i++) {
		cumulative += h->buckets[i];
		(void)fprintf(out, "%s_bucket{%sle=\"", name, label);
		put_scaled(out, scale->bounds[i], scale->unit);
		(void)fprintf(out, "\"} %" PRIu64 "\n", cumulative);
	}
	if (label[0] != '\0')
		(void)snprintf(braces, sizeof(braces), "{%.*s}", (int)strlen(label) - 1, label);
	(void)fprintf(out, "%s_bucket{%sle=\"+Inf\"} %" PRIu64 "\n%s_sum%s ", name, label, h->count,
		      name, braces);
	put_scaled(out, h->sum, scale->unit);
	(void)fprintf(out, "\n%s_count%s %" PRIu64 "\n", name, braces, h->count);
}

static const char *const pool_bypass_names[BYPASS_COUNT] = {
	[BYPASS_REQUEST] = "request",
	[BYPASS_CEILING] = "ceiling",
	[BYPASS_EMPTY] = "empty",
};

/* --- counting ------------------------------------------------------------------ */

struct metrics {
	char profiles[METRICS_PROFILES_MAX][NAME_MAX_SIZE];
	size_t nprofiles;
	uint64_t runs[METRICS_PROFILES_MAX + 1][STATUS_COUNT];
	uint64_t pool[METRICS_PROFILES_MAX + 1][TIER_COUNT][TIER_COUNT]; /* wanted, got */
	uint64_t bypassed[METRICS_PROFILES_MAX + 1][BYPASS_COUNT];
	uint64_t networks[NETWORK_STATE_COUNT];
	uint64_t zygotes[ZYGOTE_EVENT_COUNT][METRICS_PROFILES_MAX + 1];
	uint64_t sessions[METRICS_PROFILES_MAX + 1];
	struct {
		const char *reason; /* borrowed: a constant */
		uint64_t count;
	} session_ends[SESSION_ENDS_MAX];
	uint64_t execs;
	uint64_t refusals[API_CODE_COUNT];
	uint64_t http[HTTP_STATUS_MAX + 1];
	struct histogram run, memory, setup[TIER_COUNT + 1], request[TIER_COUNT + 1];
	uint64_t cpu_us, denied_packets, denied_syscalls, audit_failures;
};

struct metrics *metrics_create(void)
{
	return calloc(1, sizeof(struct metrics));
}

void metrics_destroy(struct metrics **m)
{
	cj_free(m);
}

/* The index of a profile.  A path instead of a name is counted as "other". */
static size_t place_of(struct metrics *m, const char *profile)
{
	for (size_t i = 0; i < m->nprofiles; i++)
		if (strcmp(m->profiles[i], profile) == 0)
			return i;
	if (m->nprofiles == METRICS_PROFILES_MAX || !is_name(profile))
		return OTHER;
	(void)snprintf(m->profiles[m->nprofiles], NAME_MAX_SIZE, "%s", profile);
	return m->nprofiles++;
}

void metrics_count_run(struct metrics *m, const char *profile, enum tier tier,
		       const struct summary *s, uint64_t request_us)
{
	m->runs[place_of(m, profile)][s->status]++;
	m->execs += tier == METRICS_IN_SESSION;
	observe(&m->request[tier], &histogram_times, request_us);
	m->denied_packets += s->denied_packets;
	m->denied_syscalls += s->denied_syscalls;
	m->cpu_us += (s->usage.cpu_user_ms + s->usage.cpu_system_ms) * 1000;
	if (s->status == STATUS_SETUP_ERROR || s->setup_us == 0)
		return; /* the program never ran: cancelled in the queue */
	if (s->has_network)
		m->networks[s->network_state]++;
	observe(&m->run, &histogram_times, s->usage.wall_ms * 1000);
	observe(&m->setup[tier], &histogram_times, s->setup_us);
	if (s->usage.has_memory_peak)
		observe(&m->memory, &histogram_sizes, s->usage.memory_peak_bytes);
}

void metrics_count_session(struct metrics *m, const char *profile)
{
	m->sessions[place_of(m, profile)]++;
}

void metrics_count_session_end(struct metrics *m, const char *reason)
{
	size_t i = 0;

	while (i < SESSION_ENDS_MAX - 1 && m->session_ends[i].reason &&
	       strcmp(m->session_ends[i].reason, reason) != 0)
		i++;
	m->session_ends[i].reason = reason;
	m->session_ends[i].count++;
}

void metrics_count_refusal(struct metrics *m, enum api_code why)
{
	m->refusals[why]++;
}

void metrics_count_pool(struct metrics *m, const char *profile, enum tier wanted, enum tier got)
{
	m->pool[place_of(m, profile)][wanted][got]++;
}

void metrics_count_bypass(struct metrics *m, const char *profile, enum pool_bypass why)
{
	if (why < BYPASS_COUNT)
		m->bypassed[place_of(m, profile)][why]++;
}

void metrics_count_zygote(struct metrics *m, const char *profile, enum zygote_event event)
{
	m->zygotes[event][place_of(m, profile)]++;
}

void metrics_count_audit_failure(struct metrics *m)
{
	m->audit_failures++;
}

void metrics_count_http(struct metrics *m, unsigned http_status)
{
	if (http_status >= HTTP_STATUS_MIN && http_status <= HTTP_STATUS_MAX)
		m->http[http_status]++;
}

/* --- this process ---------------------------------------------------------------------------- */

/* proc(5): the second number of /proc/self/statm is that of resident pages. */
static uint64_t look_at_memory(void)
{
	auto_arena struct arena a = { 0 };
	struct cj_error unused = { 0 };
	char *text, *rest;
	size_t size;

	if (fd_read_file(AT_FDCWD, "/proc/self/statm", 4096, &a, &text, &size, &unused) < 0)
		return 0;
	(void)strtoull(text, &rest, 10);
	long page = sysconf(_SC_PAGESIZE);
	return strtoull(rest, NULL, 10) * (uint64_t)(page > 0 ? page : 0);
}

static uint64_t count_fds(void)
{
	uint64_t count = 0;
	auto_dir DIR *dir = opendir("/proc/self/fd");
	if (!dir)
		return 0;
	for (const struct dirent *e; (e = readdir(dir)) != NULL;)
		count += e->d_name[0] != '.';
	return count > 0 ? count - 1 : 0; /* without the descriptor of this directory */
}

static uint64_t microseconds(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

void metrics_look_at_process(struct metrics_process *out)
{
	struct rusage used = { 0 };
	(void)getrusage(RUSAGE_SELF, &used); /* cannot fail: getrusage(2) */
	*out = (struct metrics_process){
		.resident_bytes = look_at_memory(),
		.open_fds = count_fds(),
		.cpu_us = microseconds(used.ru_utime) + microseconds(used.ru_stime),
	};
}

/* --- samples --------------------------------------------------------------------- */

struct page {
	FILE *out;
	const struct metrics *m;
	struct gauges gauges;
	struct metrics_process process;
};

struct family {
	const char *name, *type, *help;
	void (*put)(struct page *p, const struct family *f);
	size_t offset; /* of its value, from the page or from the metrics */
	bool is_counted;
};
#define GAUGE(field)   .offset = offsetof(struct page, gauges.field)
#define PROCESS(field) .offset = offsetof(struct page, process.field)
#define COUNTER(field) .offset = offsetof(struct metrics, field), .is_counted = true

static const void *value_of(const struct page *p, const struct family *f)
{
	return (f->is_counted ? (const char *)p->m : (const char *)p) + f->offset;
}

/* The stream is checked once, at the end. */
static void put_u64(struct page *p, const struct family *f)
{
	(void)fprintf(p->out, "%s %" PRIu64 "\n", f->name, *(const uint64_t *)value_of(p, f));
}

/* A value of 0 is left out. */
static void put_limit(struct page *p, const struct family *f)
{
	if (*(const uint64_t *)value_of(p, f) > 0)
		put_u64(p, f);
}

/* Millionths as seconds, without a float: a sum never loses a microsecond. */
static void put_micros(struct page *p, const struct family *f)
{
	uint64_t us = *(const uint64_t *)value_of(p, f);
	(void)fprintf(p->out, "%s %" PRIu64 ".%06" PRIu64 "\n", f->name, us / MICROS, us % MICROS);
}

static void put_millis(struct page *p, const struct family *f)
{
	uint64_t ms = *(const uint64_t *)value_of(p, f);
	(void)fprintf(p->out, "%s %" PRIu64 ".%03" PRIu64 "000\n", f->name, ms / 1000, ms % 1000);
}

static void put_times(struct page *p, const struct family *f)
{
	histogram_put(p->out, f->name, "", value_of(p, f), &histogram_times);
}

static void put_sizes(struct page *p, const struct family *f)
{
	histogram_put(p->out, f->name, "", value_of(p, f), &histogram_sizes);
}

static const char *profile_name(const struct metrics *m, size_t place)
{
	return place == OTHER ? "other" : m->profiles[place];
}

/* What is counted by profile alone. */
static void put_profiles(struct page *p, const struct family *f)
{
	const uint64_t *counts = value_of(p, f);

	for (size_t i = 0; i <= OTHER; i++)
		if (counts[i] > 0)
			(void)fprintf(p->out, "%s{profile=\"%s\"} %" PRIu64 "\n", f->name,
				      profile_name(p->m, i), counts[i]);
}

/* Profiles by name, then "other" if it has runs. */
static bool has_place(const struct metrics *m, size_t place)
{
	if (place < OTHER)
		return place < m->nprofiles;
	for (size_t i = 0; i < STATUS_COUNT; i++)
		if (m->runs[OTHER][i] > 0)
			return true;
	return false;
}

static void put_runs(struct page *p, const struct family *f)
{
	for (size_t i = 0; i <= OTHER; i++)
		for (size_t s = 0; has_place(p->m, i) && s < STATUS_COUNT; s++)
			(void)fprintf(p->out, "%s{profile=\"%s\",status=\"%s\"} %" PRIu64 "\n",
				      f->name, profile_name(p->m, i), status_names[s],
				      p->m->runs[i][s]);
}

static void put_networks(struct page *p, const struct family *f)
{
	for (size_t i = 0; i < NETWORK_STATE_COUNT; i++)
		(void)fprintf(p->out, "%s{state=\"%s\"} %" PRIu64 "\n", f->name,
			      network_state_names[i], p->m->networks[i]);
}

static void put_pool_requests(struct page *p, const struct family *f)
{
	for (size_t i = 0; i <= OTHER; i++)
		for (size_t k = 0; k < TIER_COUNT * TIER_COUNT; k++) {
			uint64_t value = p->m->pool[i][k / TIER_COUNT][k % TIER_COUNT];
			if (value > 0)
				(void)fprintf(p->out,
					      "%s{profile=\"%s\",wanted=\"%s\",result=\"%s\"} "
					      "%" PRIu64 "\n",
					      f->name, profile_name(p->m, i),
					      tier_names[k / TIER_COUNT],
					      tier_names[k % TIER_COUNT], value);
		}
}

void metrics_list_bypassed(const struct metrics *m, void *context,
			   void (*row)(void *context, const char *profile, const char *why,
				       uint64_t runs))
{
	for (size_t i = 0; i <= OTHER; i++)
		for (size_t k = 0; k < BYPASS_COUNT; k++)
			if (m->bypassed[i][k] > 0)
				row(context, profile_name(m, i), pool_bypass_names[k],
				    m->bypassed[i][k]);
}

static void put_bypassed(struct page *p, const struct family *f)
{
	for (size_t i = 0; i <= OTHER; i++)
		for (size_t k = 0; k < BYPASS_COUNT; k++)
			if (p->m->bypassed[i][k] > 0)
				(void)fprintf(p->out,
					      "%s{profile=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
					      f->name, profile_name(p->m, i), pool_bypass_names[k],
					      p->m->bypassed[i][k]);
}

static void put_zygote_fallbacks(struct page *p, const struct family *f)
{
	static const char *const reasons[ZYGOTE_EVENT_COUNT] = {
		[ZYGOTE_FAILED] = "failed",
		[ZYGOTE_MISSING] = "missing",
		[ZYGOTE_UNSUITABLE] = "unsuitable",
	};
	for (size_t i = 0; i <= OTHER; i++)
		for (size_t k = 0; k < ZYGOTE_EVENT_COUNT; k++)
			if (reasons[k] && p->m->zygotes[k][i] > 0)
				(void)fprintf(p->out,
					      "%s{profile=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
					      f->name, profile_name(p->m, i), reasons[k],
					      p->m->zygotes[k][i]);
}

static void put_sessions_ended(struct page *p, const struct family *f)
{
	for (size_t i = 0; i < SESSION_ENDS_MAX && p->m->session_ends[i].reason; i++)
		(void)fprintf(p->out, "%s{reason=\"%s\"} %" PRIu64 "\n", f->name,
			      p->m->session_ends[i].reason, p->m->session_ends[i].count);
}

static void put_refusals(struct page *p, const struct family *f)
{
	for (size_t i = API_OK + 1; i < API_CODE_COUNT; i++)
		(void)fprintf(p->out, "%s{reason=\"%s\"} %" PRIu64 "\n", f->name, api_rows[i].code,
			      p->m->refusals[i]);
}

static void put_responses(struct page *p, const struct family *f)
{
	for (unsigned i = HTTP_STATUS_MIN; i <= HTTP_STATUS_MAX; i++)
		if (p->m->http[i] > 0)
			(void)fprintf(p->out, "%s{code=\"%u\"} %" PRIu64 "\n", f->name, i,
				      p->m->http[i]);
}

static void put_pool_ready(struct page *p, const struct family *f)
{
	const uint64_t ready[TIER_COUNT] = {
		[TIER_JAIL] = p->gauges.pool_jails,
		[TIER_INTERPRETER] = p->gauges.pool_interpreters,
		[TIER_REPL] = p->gauges.pool_repls,
	};
	for (size_t i = TIER_COLD + 1; i < TIER_COUNT; i++)
		(void)fprintf(p->out, "%s{tier=\"%s\"} %" PRIu64 "\n", f->name, tier_names[i],
			      ready[i]);
}

static void put_tiers(struct page *p, const struct family *f)
{
	const struct histogram *tiers = value_of(p, f);

	for (size_t i = 0; i <= TIER_COUNT; i++) {
		char label[48];
		if (i == TIER_REPL) /* of sessions, not of runs */
			continue;
		(void)snprintf(label, sizeof(label), "tier=\"%s\",",
			       i == METRICS_IN_SESSION ? "session" : tier_names[i]);
		histogram_put(p->out, f->name, label, &tiers[i], &histogram_times);
	}
}

static void put_probe(struct page *p, const struct family *f)
{
	if (p->gauges.has_probed)
		(void)fprintf(p->out, "%s %d\n", f->name, p->gauges.probe_succeeded);
}

static void put_probe_age(struct page *p, const struct family *f)
{
	if (p->gauges.has_probed)
		put_millis(p, f);
}

static void put_build(struct page *p, const struct family *f)
{
	(void)fprintf(p->out, "%s{version=\"%s\"} 1\n", f->name, CJ_VERSION);
}

/* --- the page ---------------------------------------------------------------------- */

static const struct family families[] = {
	{ "cejail_runs_total", "counter", "Runs that have ended, by profile and status.",
	  put_runs },
	{ "cejail_run_duration_seconds", "histogram", "Wall time of the program.", put_times,
	  COUNTER(run) },
	{ "cejail_request_duration_seconds", "histogram",
	  "Time from the complete request to its result, by the tier of the worker.", put_tiers,
	  COUNTER(request) },
	{ "cejail_setup_duration_seconds", "histogram",
	  "Time from the job to the program's first instruction, by the tier of the worker.",
	  put_tiers, COUNTER(setup) },
	{ "cejail_run_cpu_seconds_total", "counter", "CPU time of all runs.", put_micros,
	  COUNTER(cpu_us) },
	{ "cejail_run_memory_peak_bytes", "histogram", "Peak memory of a run's whole jail.",
	  put_sizes, COUNTER(memory) },
	{ "cejail_runs_in_flight", "gauge", "Runs in progress.", put_u64, GAUGE(in_flight) },
	{ "cejail_runs_in_flight_limit", "gauge", "Maximum number of concurrent runs.", put_limit,
	  GAUGE(in_flight_max) },
	{ "cejail_queue_depth", "gauge", "Runs in the queue.", put_u64, GAUGE(queued) },
	{ "cejail_queue_limit", "gauge", "Maximum number of runs in the queue.", put_limit,
	  GAUGE(queued_max) },
	{ "cejail_connections", "gauge", "Open connections.", put_u64, GAUGE(connections) },
	{ "cejail_rejected_total", "counter", "Requests that were refused, by the error's code.",
	  put_refusals },
	{ "cejail_run_networks_total", "counter",
	  "Runs with a public network, by its state: unused, ready, failed.", put_networks },
	{ "cejail_network_denied_packets_total", "counter", "Packets that the jails' rules denied.",
	  put_u64, COUNTER(denied_packets) },
	{ "cejail_syscalls_denied_total", "counter",
	  "System calls that suggest an attack and that the jails' filters denied.", put_u64,
	  COUNTER(denied_syscalls) },
	{ "cejail_pool_requests_total", "counter",
	  "Runs by the tier that the pool keeps for them, and the tier they got.",
	  put_pool_requests },
	{ "cejail_pool_bypassed_total", "counter",
	  "Runs with a cold worker although their profile has a pool, by reason.", put_bypassed },
	{ "cejail_pool_ready", "gauge", "Prepared workers in the pool.", put_pool_ready },
	{ "cejail_zygotes", "gauge", "Zygotes from which jails are forked.", put_u64,
	  GAUGE(zygotes) },
	{ "cejail_zygotes_started_total", "counter", "Zygotes that became ready, by profile.",
	  put_profiles, COUNTER(zygotes[ZYGOTE_STARTED]) },
	{ "cejail_zygote_children_total", "counter", "Jails forked from a zygote, by profile.",
	  put_profiles, COUNTER(zygotes[ZYGOTE_CHILD]) },
	{ "cejail_zygote_fallbacks_total", "counter",
	  "Interpreters that had no zygote although their profile wants one, by reason.",
	  put_zygote_fallbacks },
	{ "cejail_sessions", "gauge", "Sessions that have not ended.", put_u64, GAUGE(sessions) },
	{ "cejail_sessions_limit", "gauge", "Maximum number of sessions.", put_u64,
	  GAUGE(sessions_max) },
	{ "cejail_sessions_reserved_bytes", "gauge", "Memory that all sessions reserve together.",
	  put_u64, GAUGE(sessions_reserved_bytes) },
	{ "cejail_sessions_limits_bytes", "gauge", "Memory limits of all sessions together.",
	  put_u64, GAUGE(sessions_limits_bytes) },
	{ "cejail_sessions_created_total", "counter", "Sessions that were created, by profile.",
	  put_profiles, COUNTER(sessions) },
	{ "cejail_sessions_ended_total", "counter", "Sessions that have ended, by reason.",
	  put_sessions_ended },
	{ "cejail_session_execs_total", "counter", "Execs of sessions that have ended.", put_u64,
	  COUNTER(execs) },
	{ "cejail_audit_failures_total", "counter", "Audit lines that could not be written.",
	  put_u64, COUNTER(audit_failures) },
	{ "cejail_http_responses_total", "counter", "HTTP responses by status code.",
	  put_responses },
	{ "cejail_probe_success", "gauge", "1 if the last probe succeeded, else 0.", put_probe },
	{ "cejail_probe_age_seconds", "gauge", "Time since the last probe ended.", put_probe_age,
	  GAUGE(probe_age_ms) },
	{ "cejail_build_info", "gauge", "Always 1; the label is the version.", put_build },
	{ "process_start_time_seconds", "gauge", "Start time of the server since the epoch.",
	  put_millis, GAUGE(started_ms) },
	{ "process_resident_memory_bytes", "gauge", "Memory of the server process, without jails.",
	  put_u64, PROCESS(resident_bytes) },
	{ "process_open_fds", "gauge", "Open file descriptors of the server process.", put_u64,
	  PROCESS(open_fds) },
	{ "process_cpu_seconds_total", "counter", "CPU time of the server process, without jails.",
	  put_micros, PROCESS(cpu_us) },
};

int metrics_write(const struct metrics *m, const struct gauges *g, char **out_text,
		  size_t *out_size, struct cj_error *err)
{
	auto_free char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return cj_fail(err, ENOMEM, "write the metrics");

	struct page p = { .out = out, .m = m, .gauges = *g };
	metrics_look_at_process(&p.process);
	for (size_t i = 0; i < LENGTH(families); i++) {
		const struct family *f = &families[i];
		(void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
			      f->type);
		f->put(&p, f);
	}
	bool is_whole = ferror(out) == 0;
	if (fclose(out) != 0 || !is_whole)
		return cj_fail(err, ENOMEM, "write the metrics");
	*out_text = take_ptr(text);
	*out_size = size;
	return 0;
}
