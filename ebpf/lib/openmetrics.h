/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes metrics as text: OpenMetrics 1.0, or Prometheus' older format 0.0.4, which has another
 * head for counters, no units and no end. The caller keeps the samples of a family together.
 */
#ifndef ROCELAB_OPENMETRICS_H
#define ROCELAB_OPENMETRICS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_INFO };

struct metrics {
	FILE *out;
	bool openmetrics;
	/* the family whose samples follow */
	const char *name;
	enum metric_type type;
};

struct label {
	const char *name, *value;
};

/* media type of what is written */
const char *metrics_media_type(bool openmetrics);
/* name: without _total and _info; unit: its last word, or NULL; help: a line */
void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *unit,
		    const char *help);
/* labels end with one without a name; values are escaped */
void metrics_count(struct metrics *m, const struct label *labels, __u64 value);
/* seconds of a counter, to the nanosecond */
void metrics_seconds(struct metrics *m, const struct label *labels, __u64 ns);
void metrics_number(struct metrics *m, const struct label *labels, double value);
/* One histogram: buckets with rising edges, each counting all values up to its edge, then: */
void metrics_bucket(struct metrics *m, const struct label *labels, double edge, __u64 count);
void metrics_histogram_end(struct metrics *m, const struct label *labels, __u64 count,
			   __u64 sum_ns);
void metrics_end(struct metrics *m);

#endif /* ROCELAB_OPENMETRICS_H */
