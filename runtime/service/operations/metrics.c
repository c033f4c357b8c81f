/* SPDX-License-Identifier: Apache-2.0 */
/* Counters, and the page that shows them.  Pure but for process_*. */
#include "runtime/service/operations/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/service/operations/histogram.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

#define NAME_MAX_SIZE    33 /* is_name() */
#define OTHER            METRICS_PROFILES_MAX
#define HTTP_STATUS_MIN  100
#define HTTP_STATUS_MAX  599
#define MICROS           1000000
#define SESSION_ENDS_MAX 16 /* more than there are reasons */

/* --- counting ------------------------------------------------------------------ */

struct metrics {
	char profiles[METRICS_PROFILES_MAX][NAME_MAX_SIZE];
	size_t nprofiles;
	uint64_t runs[METRICS_PROFILES_MAX + 1][STATUS_COUNT];
	uint64_t pool[METRICS_PROFILES_MAX + 1][TIER_COUNT][TIER_COUNT]; /* wanted, got */
	uint64_t bypassed[METRICS_PROFILES_MAX + 1][BYPASS_COUNT];
	uint64_t networks[NETWORK_STATE_COUNT];
	uint64_t zygotes[METRICS_PROFILES_MAX + 1][ZYGOTE_EVENT_COUNT];
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
	histogram_observe(&m->request[tier], &histogram_times, request_us);
	m->denied_packets += s->denied_packets;
	m->denied_syscalls += s->denied_syscalls;
	m->cpu_us += (s->usage.cpu_user_ms + s->usage.cpu_system_ms) * 1000;
	if (s->status == STATUS_SETUP_ERROR || s->setup_us == 0)
		return; /* the program never ran: cancelled in the queue */
	if (s->has_network)
		m->networks[s->network_state]++;
	histogram_observe(&m->run, &histogram_times, s->usage.wall_ms * 1000);
	histogram_observe(&m->setup[tier], &histogram_times, s->setup_us);
	if (s->usage.has_memory_peak)
		histogram_observe(&m->memory, &histogram_sizes, s->usage.memory_peak_bytes);
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
	m->zygotes[place_of(m, profile)][event]++;
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

/* --- samples --------------------------------------------------------------------- */

struct page {
	FILE *out;
	const struct metrics *m;
	const struct gauges *g;
	struct process_usage process;
};

static void put_u64(struct page *p, const char *name, uint64_t value)
{
	(void)fprintf(p->out, "%s %" PRIu64 "\n", name, value); /* checked once, at the end */
}

/* Millionths, without a float: a sum never loses a microsecond. */
static void put_micros(struct page *p, const char *name, uint64_t value)
{
	(void)fprintf(p->out, "%s %" PRIu64 ".%06" PRIu64 "\n", name, value / MICROS,
		      value % MICROS);
}

static const char *profile_name(const struct metrics *m, size_t place)
{
	return place == OTHER ? "other" : m->profiles[place];
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

static void put_runs(struct page *p, const char *name)
{
	for (size_t i = 0; i <= OTHER; i++)
		for (size_t s = 0; has_place(p->m, i) && s < STATUS_COUNT; s++)
			(void)fprintf(p->out, "%s{profile=\"%s\",status=\"%s\"} %" PRIu64 "\n",
				      name, profile_name(p->m, i), status_names[s],
				      p->m->runs[i][s]);
}

static void put_networks(struct page *p, const char *name)
{
	for (size_t i = 0; i < NETWORK_STATE_COUNT; i++)
		(void)fprintf(p->out, "%s{state=\"%s\"} %" PRIu64 "\n", name,
			      network_state_names[i], p->m->networks[i]);
}

static void put_pool_requests(struct page *p, const char *name)
{
	for (size_t i = 0; i <= OTHER; i++)
		for (size_t k = 0; k < TIER_COUNT * TIER_COUNT; k++) {
			uint64_t value = p->m->pool[i][k / TIER_COUNT][k % TIER_COUNT];
			if (value > 0)
				(void)fprintf(p->out,
					      "%s{profile=\"%s\",wanted=\"%s\",result=\"%s\"} "
					      "%" PRIu64 "\n",
					      name, profile_name(p->m, i),
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

struct bypass_rows {
	struct page *page;
	const char *name;
};

static void put_bypass(void *context, const char *profile, const char *why, uint64_t runs)
{
	const struct bypass_rows *f = context;
	(void)fprintf(f->page->out, "%s{profile=\"%s\",reason=\"%s\"} %" PRIu64 "\n", f->name,
		      profile, why, runs);
}

static void put_bypassed(struct page *p, const char *name)
{
	struct bypass_rows f = { p, name };
	metrics_list_bypassed(p->m, &f, put_bypass);
}

static void put_zygote_event(struct page *p, const char *name, enum zygote_event event)
{
	for (size_t i = 0; i <= OTHER; i++)
		if (p->m->zygotes[i][event] > 0)
			(void)fprintf(p->out, "%s{profile=\"%s\"} %" PRIu64 "\n", name,
				      profile_name(p->m, i), p->m->zygotes[i][event]);
}

static void put_zygote_starts(struct page *p, const char *name)
{
	put_zygote_event(p, name, ZYGOTE_STARTED);
}

static void put_zygote_children(struct page *p, const char *name)
{
	put_zygote_event(p, name, ZYGOTE_CHILD);
}

static void put_zygote_fallbacks(struct page *p, const char *name)
{
	static const char *const reasons[ZYGOTE_EVENT_COUNT] = {
		[ZYGOTE_FAILED] = "failed",
		[ZYGOTE_MISSING] = "missing",
		[ZYGOTE_UNSUITABLE] = "unsuitable",
	};
	for (size_t i = 0; i <= OTHER; i++)
		for (size_t k = 0; k < ZYGOTE_EVENT_COUNT; k++)
			if (reasons[k] && p->m->zygotes[i][k] > 0)
				(void)fprintf(
				    p->out, "%s{profile=\"%s\",reason=\"%s\"} %" PRIu64 "\n", name,
				    profile_name(p->m, i), reasons[k], p->m->zygotes[i][k]);
}

static void put_zygotes(struct page *p, const char *name)
{
	put_u64(p, name, p->g->zygotes);
}

static void put_sessions(struct page *p, const char *name)
{
	put_u64(p, name, p->g->sessions);
}

static void put_sessions_max(struct page *p, const char *name)
{
	put_u64(p, name, p->g->sessions_max);
}

static void put_sessions_memory(struct page *p, const char *name)
{
	put_u64(p, name, p->g->sessions_reserved_bytes);
}

static void put_sessions_limits(struct page *p, const char *name)
{
	put_u64(p, name, p->g->sessions_limits_bytes);
}

static void put_sessions_created(struct page *p, const char *name)
{
	for (size_t i = 0; i <= OTHER; i++)
		if (p->m->sessions[i] > 0)
			(void)fprintf(p->out, "%s{profile=\"%s\"} %" PRIu64 "\n", name,
				      profile_name(p->m, i), p->m->sessions[i]);
}

static void put_sessions_ended(struct page *p, const char *name)
{
	for (size_t i = 0; i < SESSION_ENDS_MAX && p->m->session_ends[i].reason; i++)
		(void)fprintf(p->out, "%s{reason=\"%s\"} %" PRIu64 "\n", name,
			      p->m->session_ends[i].reason, p->m->session_ends[i].count);
}

static void put_execs(struct page *p, const char *name)
{
	put_u64(p, name, p->m->execs);
}

static void put_refusals(struct page *p, const char *name)
{
	for (size_t i = API_OK + 1; i < API_CODE_COUNT; i++)
		(void)fprintf(p->out, "%s{reason=\"%s\"} %" PRIu64 "\n", name, api_rows[i].code,
			      p->m->refusals[i]);
}

static void put_responses(struct page *p, const char *name)
{
	for (unsigned i = HTTP_STATUS_MIN; i <= HTTP_STATUS_MAX; i++)
		if (p->m->http[i] > 0)
			(void)fprintf(p->out, "%s{code=\"%u\"} %" PRIu64 "\n", name, i,
				      p->m->http[i]);
}

static void put_pool_ready(struct page *p, const char *name)
{
	const uint64_t ready[TIER_COUNT] = {
		[TIER_JAIL] = p->g->pool_jails,
		[TIER_INTERPRETER] = p->g->pool_interpreters,
		[TIER_REPL] = p->g->pool_repls,
	};
	for (size_t i = TIER_COLD + 1; i < TIER_COUNT; i++)
		(void)fprintf(p->out, "%s{tier=\"%s\"} %" PRIu64 "\n", name, tier_names[i],
			      ready[i]);
}

static void put_tiers(struct page *p, const char *name, const struct histogram *tiers)
{
	for (size_t i = 0; i <= TIER_COUNT; i++) {
		char label[48];
		if (i == TIER_REPL) /* of sessions, not of runs */
			continue;
		(void)snprintf(label, sizeof(label), "tier=\"%s\",",
			       i == METRICS_IN_SESSION ? "session" : tier_names[i]);
		histogram_put(p->out, name, label, &tiers[i], &histogram_times);
	}
}

static void put_run_times(struct page *p, const char *name)
{
	histogram_put(p->out, name, "", &p->m->run, &histogram_times);
}

static void put_request_times(struct page *p, const char *name)
{
	put_tiers(p, name, p->m->request);
}

static void put_setup_times(struct page *p, const char *name)
{
	put_tiers(p, name, p->m->setup);
}

static void put_memory(struct page *p, const char *name)
{
	histogram_put(p->out, name, "", &p->m->memory, &histogram_sizes);
}

static void put_cpu(struct page *p, const char *name)
{
	put_micros(p, name, p->m->cpu_us);
}

static void put_in_flight(struct page *p, const char *name)
{
	put_u64(p, name, p->g->in_flight);
}

static void put_in_flight_max(struct page *p, const char *name)
{
	if (p->g->in_flight_max > 0)
		put_u64(p, name, p->g->in_flight_max);
}

static void put_queue(struct page *p, const char *name)
{
	put_u64(p, name, p->g->queued);
}

static void put_queue_max(struct page *p, const char *name)
{
	if (p->g->queued_max > 0)
		put_u64(p, name, p->g->queued_max);
}

static void put_connections(struct page *p, const char *name)
{
	put_u64(p, name, p->g->connections);
}

static void put_packets(struct page *p, const char *name)
{
	put_u64(p, name, p->m->denied_packets);
}

static void put_syscalls(struct page *p, const char *name)
{
	put_u64(p, name, p->m->denied_syscalls);
}

static void put_audit_failures(struct page *p, const char *name)
{
	put_u64(p, name, p->m->audit_failures);
}

static void put_probe(struct page *p, const char *name)
{
	if (p->g->has_probed)
		put_u64(p, name, p->g->probe_succeeded);
}

static void put_probe_age(struct page *p, const char *name)
{
	if (p->g->has_probed)
		put_micros(p, name, p->g->probe_age_ms * 1000);
}

static void put_build(struct page *p, const char *name)
{
	(void)fprintf(p->out, "%s{version=\"%s\"} 1\n", name, CJ_VERSION);
}

static void put_start(struct page *p, const char *name)
{
	put_micros(p, name, p->g->started_ms * 1000);
}

static void put_resident(struct page *p, const char *name)
{
	put_u64(p, name, p->process.resident_bytes);
}

static void put_fds(struct page *p, const char *name)
{
	put_u64(p, name, p->process.open_fds);
}

static void put_process_cpu(struct page *p, const char *name)
{
	put_micros(p, name, p->process.cpu_us);
}

/* --- the page ---------------------------------------------------------------------- */

static const struct family {
	const char *name, *type, *help;
	void (*put)(struct page *p, const char *name);
} families[] = {
	{ "cejail_runs_total", "counter", "Runs that have ended, by profile and status.",
	  put_runs },
	{ "cejail_run_duration_seconds", "histogram", "Wall time of the program.", put_run_times },
	{ "cejail_request_duration_seconds", "histogram",
	  "Time from the complete request to its result, by the tier of the worker.",
	  put_request_times },
	{ "cejail_setup_duration_seconds", "histogram",
	  "Time from the job to the program's first instruction, by the tier of the worker.",
	  put_setup_times },
	{ "cejail_run_cpu_seconds_total", "counter", "CPU time of all runs.", put_cpu },
	{ "cejail_run_memory_peak_bytes", "histogram", "Peak memory of a run's whole jail.",
	  put_memory },
	{ "cejail_runs_in_flight", "gauge", "Runs in progress.", put_in_flight },
	{ "cejail_runs_in_flight_limit", "gauge", "Maximum number of concurrent runs.",
	  put_in_flight_max },
	{ "cejail_queue_depth", "gauge", "Runs in the queue.", put_queue },
	{ "cejail_queue_limit", "gauge", "Maximum number of runs in the queue.", put_queue_max },
	{ "cejail_connections", "gauge", "Open connections.", put_connections },
	{ "cejail_rejected_total", "counter", "Requests that were refused, by the error's code.",
	  put_refusals },
	{ "cejail_run_networks_total", "counter",
	  "Runs with a public network, by its state: unused, ready, failed.", put_networks },
	{ "cejail_network_denied_packets_total", "counter", "Packets that the jails' rules denied.",
	  put_packets },
	{ "cejail_syscalls_denied_total", "counter",
	  "System calls that suggest an attack and that the jails' filters denied.", put_syscalls },
	{ "cejail_pool_requests_total", "counter",
	  "Runs by the tier that the pool keeps for them, and the tier they got.",
	  put_pool_requests },
	{ "cejail_pool_bypassed_total", "counter",
	  "Runs with a cold worker although their profile has a pool, by reason.", put_bypassed },
	{ "cejail_pool_ready", "gauge", "Prepared workers in the pool.", put_pool_ready },
	{ "cejail_zygotes", "gauge", "Zygotes from which jails are forked.", put_zygotes },
	{ "cejail_zygotes_started_total", "counter", "Zygotes that became ready, by profile.",
	  put_zygote_starts },
	{ "cejail_zygote_children_total", "counter", "Jails forked from a zygote, by profile.",
	  put_zygote_children },
	{ "cejail_zygote_fallbacks_total", "counter",
	  "Interpreters that had no zygote although their profile wants one, by reason.",
	  put_zygote_fallbacks },
	{ "cejail_sessions", "gauge", "Sessions that have not ended.", put_sessions },
	{ "cejail_sessions_limit", "gauge", "Maximum number of sessions.", put_sessions_max },
	{ "cejail_sessions_reserved_bytes", "gauge", "Memory that all sessions reserve together.",
	  put_sessions_memory },
	{ "cejail_sessions_limits_bytes", "gauge", "Memory limits of all sessions together.",
	  put_sessions_limits },
	{ "cejail_sessions_created_total", "counter", "Sessions that were created, by profile.",
	  put_sessions_created },
	{ "cejail_sessions_ended_total", "counter", "Sessions that have ended, by reason.",
	  put_sessions_ended },
	{ "cejail_session_execs_total", "counter", "Execs of sessions that have ended.",
	  put_execs },
	{ "cejail_audit_failures_total", "counter", "Audit lines that could not be written.",
	  put_audit_failures },
	{ "cejail_http_responses_total", "counter", "HTTP responses by status code.",
	  put_responses },
	{ "cejail_probe_success", "gauge", "1 if the last probe succeeded, else 0.", put_probe },
	{ "cejail_probe_age_seconds", "gauge", "Time since the last probe ended.", put_probe_age },
	{ "cejail_build_info", "gauge", "Always 1; the label is the version.", put_build },
	{ "process_start_time_seconds", "gauge", "Start time of the server since the epoch.",
	  put_start },
	{ "process_resident_memory_bytes", "gauge", "Memory of the server process, without jails.",
	  put_resident },
	{ "process_open_fds", "gauge", "Open file descriptors of the server process.", put_fds },
	{ "process_cpu_seconds_total", "counter", "CPU time of the server process, without jails.",
	  put_process_cpu },
};

int metrics_write(const struct metrics *m, const struct gauges *g, char **out_text,
		  size_t *out_size, struct cj_error *err)
{
	auto_free char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return cj_fail(err, ENOMEM, "write the metrics");

	struct page p = { .out = out, .m = m, .g = g };
	process_usage_look(&p.process);
	for (size_t i = 0; i < LENGTH(families); i++) {
		const struct family *f = &families[i];
		(void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
			      f->type);
		f->put(&p, f->name);
	}
	bool is_whole = ferror(out) == 0;
	if (fclose(out) != 0 || !is_whole)
		return cj_fail(err, ENOMEM, "write the metrics");
	*out_text = take_ptr(text);
	*out_size = size;
	return 0;
}
