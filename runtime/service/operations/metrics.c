/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, and the page that shows them. */
#include "runtime/service/operations/metrics.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>

#include "runtime/base/clock.h"
#include "runtime/base/files/fd.h"
#include "runtime/base/json/json.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"

#define NAME_MAX_SIZE   33 /* is_name() */
#define OTHER           METRICS_PROFILES_MAX
#define HTTP_STATUS_MIN 100
#define HTTP_STATUS_MAX 599
#define MICROS          1000000

#define HISTOGRAM_BUCKETS_MAX 18

struct histogram_scale {
	const uint64_t *bounds; /* upper ones */
	size_t count;
	uint64_t unit; /* 1, or MICROS: microseconds that are shown in seconds */
};
struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS_MAX]; /* not cumulative */
	uint64_t count, sum;
};

static const uint64_t time_bounds[] = {
	500,    1000,    2500,    5000,    10000,    25000,    50000,    100000,    250000,
	500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000, 120000000, 300000000,
};
static const uint64_t memory_bounds[] = {
	4ull << 20,   8ull << 20,   16ull << 20,   32ull << 20,   64ull << 20,   128ull << 20,
	256ull << 20, 512ull << 20, 1024ull << 20, 2048ull << 20, 4096ull << 20, 8192ull << 20,
};
static_assert(COUNT_OF(time_bounds) <= HISTOGRAM_BUCKETS_MAX &&
		  COUNT_OF(memory_bounds) <= HISTOGRAM_BUCKETS_MAX,
	      "every bound has a bucket");

static const struct histogram_scale times = { time_bounds, COUNT_OF(time_bounds), MICROS };
static const struct histogram_scale sizes = { memory_bounds, COUNT_OF(memory_bounds), 1 };

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

/* Without a float: a sum never loses a microsecond. */
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

struct metrics {
	char profiles[METRICS_PROFILES_MAX][NAME_MAX_SIZE];
	size_t nprofiles;
	bool has_other; /* there were more */
	uint64_t runs[METRICS_PROFILES_MAX + 1][STATUS_COUNT];
	uint64_t pool[METRICS_PROFILES_MAX + 1][TIER_COUNT][TIER_COUNT]; /* wanted, got */
	uint64_t bypassed[METRICS_PROFILES_MAX + 1][BYPASS_COUNT];
	uint64_t networks[NETWORK_STATE_COUNT];
	uint64_t zygotes[METRICS_PROFILES_MAX + 1][ZYGOTE_EVENT_COUNT];
	uint64_t sessions[METRICS_PROFILES_MAX + 1];
	uint64_t session_ends[SESSION_END_COUNT];
	uint64_t execs;
	uint64_t calls[CALL_END_COUNT];
	uint64_t refusals[API_CODE_COUNT];
	uint64_t http[HTTP_STATUS_MAX + 1];
	struct histogram run, memory, setup[TIER_COUNT + 1], request[TIER_COUNT + 1];
	uint64_t cpu_us, denied_packets, denied_syscalls;
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
	if (m->nprofiles == METRICS_PROFILES_MAX || !is_name(profile)) {
		m->has_other = true;
		return OTHER;
	}
	(void)snprintf(m->profiles[m->nprofiles], NAME_MAX_SIZE, "%s", profile);
	return m->nprofiles++;
}

void metrics_count_run(struct metrics *m, const char *profile, enum tier tier,
		       const struct summary *s, uint64_t request_us)
{
	m->runs[place_of(m, profile)][s->totals.status]++;
	m->execs += tier == METRICS_IN_SESSION;
	observe(&m->request[tier], &times, request_us);
	m->denied_packets += s->totals.denied_packets;
	m->denied_syscalls += s->totals.denied_syscalls;
	m->cpu_us += (s->totals.usage.cpu_user_ms + s->totals.usage.cpu_system_ms) * 1000;
	if (s->totals.status == STATUS_SETUP_ERROR || s->setup_us == 0)
		return; /* the program never ran: cancelled in the queue */
	if (s->has_network)
		m->networks[s->network_state]++;
	observe(&m->run, &times, s->totals.usage.wall_ms * 1000);
	observe(&m->setup[tier], &times, s->setup_us);
	if (s->totals.usage.has_memory_peak)
		observe(&m->memory, &sizes, s->totals.usage.memory_peak_bytes);
}

void metrics_count_call(struct metrics *m, enum call_end end)
{
	m->calls[end]++;
}

void metrics_count_session(struct metrics *m, const char *profile)
{
	m->sessions[place_of(m, profile)]++;
}

void metrics_count_session_end(struct metrics *m, enum session_end why)
{
	m->session_ends[why]++;
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
	m->zygotes[place_of(m, profile)][event]++;
}

void metrics_count_http(struct metrics *m, unsigned http_status)
{
	if (http_status >= HTTP_STATUS_MIN && http_status <= HTTP_STATUS_MAX)
		m->http[http_status]++;
}

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

void metrics_look_at_process(struct metrics_process *out)
{
	struct rusage used = { 0 };
	(void)getrusage(RUSAGE_SELF, &used); /* cannot fail: getrusage(2) */
	*out = (struct metrics_process){
		.resident_bytes = look_at_memory(),
		.open_fds = count_fds(),
		.cpu_us = clock_us_of(used.ru_utime) + clock_us_of(used.ru_stime),
	};
}

struct metrics_page {
	FILE *out;
	const struct metrics *m;
	struct gauges gauges;
	struct metrics_process process;
};

/* A label with `count` values: the texts that lie `step` bytes apart.  NULL: it has no sample. */
struct label {
	const char *name;
	const void *texts;
	size_t step, count;
};
#define NAMES(label, texts)                                                                        \
	{                                                                                          \
		label, (texts), sizeof((texts)[0]), COUNT_OF(texts)                                \
	}

#define LABELS_MAX 3

struct metric_family {
	const char *name, *type, *help;
	void (*put)(struct metrics_page *p, const struct metric_family *f);
	size_t offset; /* of its value, from the page or from the metrics */
	bool is_counted;
	uint64_t micros; /* in one of its value, which is shown in seconds; or 0 */
	const struct histogram_scale *scale; /* of a histogram */
	/* Of an array of counts: an index for each. */
	const struct label *labels[LABELS_MAX];
	size_t step;     /* from a count to the next; 0: 1 */
	bool shows_zero; /* else counts of 0 are left out */
};
#define GAUGE(field)   .offset = offsetof(struct metrics_page, gauges.field)
#define PROCESS(field) .offset = offsetof(struct metrics_page, process.field)
#define COUNTER(field) .offset = offsetof(struct metrics, field), .is_counted = true

static const void *value_of(const struct metrics_page *p, const struct metric_family *f)
{
	return (f->is_counted ? (const char *)p->m : (const char *)p) + f->offset;
}

/* The stream is checked once, at the end. */
static void put_value(struct metrics_page *p, const struct metric_family *f)
{
	uint64_t value = *(const uint64_t *)value_of(p, f);

	(void)fprintf(p->out, "%s ", f->name);
	put_scaled(p->out, f->micros ? value * f->micros : value, f->micros ? MICROS : 1);
	(void)fprintf(p->out, "\n");
}

/* A value of 0 is left out. */
static void put_limit(struct metrics_page *p, const struct metric_family *f)
{
	if (*(const uint64_t *)value_of(p, f) > 0)
		put_value(p, f);
}

static void put_probe(struct metrics_page *p, const struct metric_family *f)
{
	if (p->gauges.has_probed)
		put_value(p, f);
}

static void put_histogram(struct metrics_page *p, const struct metric_family *f)
{
	histogram_put(p->out, f->name, "", value_of(p, f), f->scale);
}

static void put_tiers(struct metrics_page *p, const struct metric_family *f)
{
	const struct histogram *tiers = value_of(p, f);

	for (size_t i = 0; i <= TIER_COUNT; i++) {
		char label[48];
		if (i == TIER_REPL) /* of sessions, not of runs */
			continue;
		(void)snprintf(label, sizeof(label), "tier=\"%s\",",
			       i == METRICS_IN_SESSION ? "session" : tier_names[i]);
		histogram_put(p->out, f->name, label, &tiers[i], f->scale);
	}
}

/* NULL: there is no such profile yet. */
static const char *profile_name(const struct metrics *m, size_t place)
{
	if (place == OTHER)
		return m->has_other ? "other" : NULL;
	return place < m->nprofiles ? m->profiles[place] : NULL;
}

static const char *const bypass_names[BYPASS_COUNT] = {
	[BYPASS_REQUEST] = "request",
	[BYPASS_CEILING] = "ceiling",
	[BYPASS_EMPTY] = "empty",
};
static const char *const zygote_fallback_names[ZYGOTE_EVENT_COUNT] = {
	[ZYGOTE_FAILED] = "failed",
	[ZYGOTE_MISSING] = "missing",
	[ZYGOTE_UNSUITABLE] = "unsuitable",
};

static const struct label by_profile = { "profile", .count = OTHER + 1 };
static const struct label by_status = NAMES("status", status_names);
static const struct label by_network = NAMES("state", network_state_names);
static const struct label by_wanted = NAMES("wanted", tier_names);
static const struct label by_result = NAMES("result", tier_names);
static const struct label by_tier = { "tier", &tier_names[TIER_JAIL], sizeof(tier_names[0]),
				      TIER_COUNT - TIER_JAIL };
static const struct label by_bypass = NAMES("reason", bypass_names);
static const struct label by_fallback = NAMES("reason", zygote_fallback_names);
static const struct label by_outcome = NAMES("outcome", call_end_names);
static const struct label by_end = NAMES("reason", session_ends);
static const struct label by_code = NAMES("reason", api_rows);

static const char *text_of(const struct metrics *m, const struct label *label, size_t i)
{
	if (!label->texts)
		return profile_name(m, i);
	return *(const char *const *)((const char *)label->texts + i * label->step);
}

static void put_count(struct metrics_page *p, const struct metric_family *f, size_t place,
		      size_t total)
{
	uint64_t count = ((const uint64_t *)value_of(p, f))[place * (f->step ? f->step : 1)];
	char labels[192] = "";

	if (count == 0 && !f->shows_zero)
		return;
	for (size_t i = 0; i < LABELS_MAX && f->labels[i]; i++) {
		const struct label *label = f->labels[i];
		total /= label->count;
		const char *text = text_of(p->m, label, place / total % label->count);
		if (!text)
			return;
		text_append(labels, sizeof(labels), "%s%s=\"%s\"", i > 0 ? "," : "", label->name,
			    text);
	}
	(void)fprintf(p->out, "%s{%s} %" PRIu64 "\n", f->name, labels, count);
}

static void put_counts(struct metrics_page *p, const struct metric_family *f)
{
	size_t total = 1;

	for (size_t i = 0; i < LABELS_MAX && f->labels[i]; i++)
		total *= f->labels[i]->count;
	for (size_t i = 0; i < total; i++)
		put_count(p, f, i, total);
}

static void put_responses(struct metrics_page *p, const struct metric_family *f)
{
	for (unsigned i = HTTP_STATUS_MIN; i <= HTTP_STATUS_MAX; i++)
		if (p->m->http[i] > 0)
			(void)fprintf(p->out, "%s{code=\"%u\"} %" PRIu64 "\n", f->name, i,
				      p->m->http[i]);
}

static void put_build(struct metrics_page *p, const struct metric_family *f)
{
	(void)fprintf(p->out, "%s{version=\"%s\"} 1\n", f->name, CJ_VERSION);
}

void metrics_write_bypassed(const struct metrics *m, struct json_writer *w)
{
	for (size_t i = 0; i < (OTHER + 1) * BYPASS_COUNT; i++) {
		uint64_t runs = m->bypassed[i / BYPASS_COUNT][i % BYPASS_COUNT];
		if (runs == 0)
			continue;
		json_open_object(w);
		json_member_text(w, "profile", profile_name(m, i / BYPASS_COUNT));
		json_member_text(w, "reason", bypass_names[i % BYPASS_COUNT]);
		json_member_u64(w, "runs", runs);
		json_close_object(w);
	}
}

static const struct metric_family families[] = {
	{ "cejail_runs_total", "counter", "Runs that have ended, by profile and status.",
	  put_counts, COUNTER(runs), .labels = { &by_profile, &by_status }, .shows_zero = true },
	{ "cejail_run_duration_seconds", "histogram", "Wall time of the program.", put_histogram,
	  .scale = &times, COUNTER(run) },
	{ "cejail_request_duration_seconds", "histogram",
	  "Time from the complete request to its result, by the tier of the worker.", put_tiers,
	  .scale = &times, COUNTER(request) },
	{ "cejail_setup_duration_seconds", "histogram",
	  "Time from the job to the program's first instruction, by the tier of the worker.",
	  put_tiers, .scale = &times, COUNTER(setup) },
	{ "cejail_run_cpu_seconds_total", "counter", "CPU time of all runs.", put_value,
	  .micros = 1, COUNTER(cpu_us) },
	{ "cejail_run_memory_peak_bytes", "histogram", "Peak memory of a run's whole jail.",
	  put_histogram, .scale = &sizes, COUNTER(memory) },
	{ "cejail_runs_in_flight", "gauge", "Runs in progress.", put_value, GAUGE(in_flight) },
	{ "cejail_runs_in_flight_limit", "gauge", "Maximum number of concurrent runs.", put_limit,
	  GAUGE(in_flight_max) },
	{ "cejail_queue_depth", "gauge", "Runs in the queue.", put_value, GAUGE(queued) },
	{ "cejail_queue_limit", "gauge", "Maximum number of runs in the queue.", put_limit,
	  GAUGE(queued_max) },
	{ "cejail_connections", "gauge", "Open connections.", put_value, GAUGE(connections) },
	{ "cejail_rejected_total", "counter", "Requests that were refused, by the error's code.",
	  put_counts, COUNTER(refusals), .labels = { &by_code }, .shows_zero = true },
	{ "cejail_run_networks_total", "counter",
	  "Runs with a public network, by its state: unused, ready, failed.", put_counts,
	  COUNTER(networks), .labels = { &by_network }, .shows_zero = true },
	{ "cejail_network_denied_packets_total", "counter", "Packets that the jails' rules denied.",
	  put_value, COUNTER(denied_packets) },
	{ "cejail_syscalls_denied_total", "counter",
	  "System calls that suggest an attack and that the jails' filters denied.", put_value,
	  COUNTER(denied_syscalls) },
	{ "cejail_pool_requests_total", "counter",
	  "Runs by the tier that the pool keeps for them, and the tier they got.", put_counts,
	  COUNTER(pool), .labels = { &by_profile, &by_wanted, &by_result } },
	{ "cejail_pool_bypassed_total", "counter",
	  "Runs with a cold worker although their profile has a pool, by reason.", put_counts,
	  COUNTER(bypassed), .labels = { &by_profile, &by_bypass } },
	{ "cejail_pool_ready", "gauge", "Prepared workers in the pool.", put_counts,
	  GAUGE(pool_ready[TIER_JAIL]), .labels = { &by_tier }, .shows_zero = true },
	{ "cejail_zygotes", "gauge", "Zygotes from which jails are forked.", put_value,
	  GAUGE(zygotes) },
	{ "cejail_zygotes_started_total", "counter", "Zygotes that became ready, by profile.",
	  put_counts, COUNTER(zygotes[0][ZYGOTE_STARTED]), .labels = { &by_profile },
	  .step = ZYGOTE_EVENT_COUNT },
	{ "cejail_zygote_children_total", "counter", "Jails forked from a zygote, by profile.",
	  put_counts, COUNTER(zygotes[0][ZYGOTE_CHILD]), .labels = { &by_profile },
	  .step = ZYGOTE_EVENT_COUNT },
	{ "cejail_zygote_fallbacks_total", "counter",
	  "Interpreters that had no zygote although their profile wants one, by reason.",
	  put_counts, COUNTER(zygotes), .labels = { &by_profile, &by_fallback } },
	{ "cejail_sessions", "gauge", "Sessions that have not ended.", put_value, GAUGE(sessions) },
	{ "cejail_sessions_limit", "gauge", "Maximum number of sessions.", put_value,
	  GAUGE(sessions_max) },
	{ "cejail_sessions_reserved_bytes", "gauge", "Memory that all sessions reserve together.",
	  put_value, GAUGE(sessions_reserved_bytes) },
	{ "cejail_sessions_limits_bytes", "gauge", "Memory limits of all sessions together.",
	  put_value, GAUGE(sessions_limits_bytes) },
	{ "cejail_sessions_created_total", "counter", "Sessions that were created, by profile.",
	  put_counts, .labels = { &by_profile }, COUNTER(sessions) },
	{ "cejail_sessions_ended_total", "counter", "Sessions that have ended, by reason.",
	  put_counts, COUNTER(session_ends), .labels = { &by_end } },
	{ "cejail_session_execs_total", "counter", "Execs of sessions that have ended.", put_value,
	  COUNTER(execs) },
	{ "cejail_calls_total", "counter",
	  "Calls of tools by programs that have ended, by their outcome.", put_counts,
	  COUNTER(calls), .labels = { &by_outcome }, .shows_zero = true },
	{ "cejail_audit_failures_total", "counter", "Audit lines that could not be written.",
	  put_value, GAUGE(audit_failures) },
	{ "cejail_http_responses_total", "counter", "HTTP responses by status code.",
	  put_responses },
	{ "cejail_probe_success", "gauge", "1 if the last probe succeeded, else 0.", put_probe,
	  GAUGE(probe_succeeded) },
	{ "cejail_probe_age_seconds", "gauge", "Time since the last probe ended.", put_probe,
	  .micros = 1000, GAUGE(probe_age_ms) },
	{ "cejail_build_info", "gauge", "Always 1; the label is the version.", put_build },
	{ "process_start_time_seconds", "gauge", "Start time of the server since the epoch.",
	  put_value, .micros = 1000, GAUGE(started_ms) },
	{ "process_resident_memory_bytes", "gauge", "Memory of the server process, without jails.",
	  put_value, PROCESS(resident_bytes) },
	{ "process_open_fds", "gauge", "Open file descriptors of the server process.", put_value,
	  PROCESS(open_fds) },
	{ "process_cpu_seconds_total", "counter", "CPU time of the server process, without jails.",
	  put_value, .micros = 1, PROCESS(cpu_us) },
};

int metrics_write(const struct metrics *m, const struct gauges *g, char **out_text,
		  size_t *out_size, struct cj_error *err)
{
	auto_free char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return cj_fail(err, ENOMEM, "write the metrics");

	struct metrics_page p = { .out = out, .m = m, .gauges = *g };
	metrics_look_at_process(&p.process);
	for (size_t i = 0; i < COUNT_OF(families); i++) {
		const struct metric_family *f = &families[i];
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
