/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms.  Pure. */
#include "runtime/service/operations/histogram.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

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

const struct histogram_scale histogram_times = { time_bounds, LENGTH(time_bounds),
						 HISTOGRAM_MICROS };
const struct histogram_scale histogram_sizes = { memory_bounds, LENGTH(memory_bounds), 1 };

void histogram_observe(struct histogram *h, const struct histogram_scale *scale, uint64_t value)
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

void histogram_put(FILE *out, const char *name, const char *label, const struct histogram *h,
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
