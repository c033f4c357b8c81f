/* SPDX-License-Identifier: Apache-2.0 */
/* histogram - a Prometheus histogram of times or of sizes.  Pure. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HISTOGRAM_BUCKETS_MAX 18
#define HISTOGRAM_MICROS      1000000

/* `unit`: 1 for bytes, HISTOGRAM_MICROS for microseconds that are shown in seconds. */
struct histogram_scale {
	const uint64_t *bounds; /* upper ones */
	size_t count;
	uint64_t unit;
};
extern const struct histogram_scale histogram_times, histogram_sizes;

struct histogram {
	uint64_t buckets[HISTOGRAM_BUCKETS_MAX]; /* not cumulative */
	uint64_t count, sum;
};

void histogram_observe(struct histogram *h, const struct histogram_scale *scale, uint64_t value);
/* `label` is "" or `tier="cold",`.  The caller checks `out` for errors. */
void histogram_put(FILE *out, const char *name, const char *label, const struct histogram *h,
		   const struct histogram_scale *scale);
