// SPDX-License-Identifier: GPL-2.0-only
#include "stat_hist.h"

#include <inttypes.h>

#define STARS	  "**********************************"
#define BAR_WIDTH ((int)sizeof(STARS) - 1)

void print_histogram(FILE *out, const struct hist *h)
{
	__u64 octave[32] = {}, most = 0;
	int first = 31, last = 0;

	for (int b = 0; b < LOGLIN_BUCKETS; b++) {
		int at = 63 - __builtin_clzll(loglin_upper(b) - 1);

		if (!h->bucket[b])
			continue;
		octave[at] += h->bucket[b];
		most = octave[at] > most ? octave[at] : most;
		first = at < first ? at : first;
		last = at;
	}
	fprintf(out, "    %23s : count      distribution\n", "ns");
	for (int at = first; at <= last; at++) {
		int stars = (octave[at] * BAR_WIDTH + most - 1) / most;

		fprintf(out, "    %10u -> %-10u: %-10" PRIu64 " |%-*.*s|\n", at > 1 ? 1u << at : 0,
			~0u >> (31 - at), (uint64_t)octave[at], BAR_WIDTH, stars, STARS);
	}
	fprintf(out, "    p99.9 %" PRIu64 ", p99.99 %" PRIu64 "\n",
		(uint64_t)hist_quantile(h, 0.999), (uint64_t)hist_quantile(h, 0.9999));
}

void put_sums(struct json *j, const struct hist *h)
{
	json_u64(j, "count", h->count);
	json_u64(j, "sum_ns", h->sum);
	json_u64(j, "min_ns", h->min);
	json_u64(j, "max_ns", h->max);
	json_double(j, "mean_ns", hist_mean(h));
}

void put_quantiles(struct json *j, const struct hist *h)
{
	json_u64(j, "p50_ns", hist_quantile(h, 0.5));
	json_u64(j, "p99_ns", hist_quantile(h, 0.99));
	json_u64(j, "p999_ns", hist_quantile(h, 0.999));
	json_u64(j, "p9999_ns", hist_quantile(h, 0.9999));
	json_open_array(j, "buckets");
	for (int b = 0; b < LOGLIN_BUCKETS; b++) {
		if (!h->bucket[b])
			continue;
		json_open_array(j, NULL);
		json_u64(j, NULL, loglin_upper(b));
		json_u64(j, NULL, h->bucket[b]);
		json_close_array(j);
	}
	json_close_array(j);
	json_open_array(j, "bucket_sums_ns");
	for (int b = 0; b < LOGLIN_NEAR_BUCKETS; b++) {
		if (h->bucket[b])
			json_u64(j, NULL, h->bucket_sum[b]);
	}
	json_close_array(j);
}
