// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "openmetrics.h"

#include <inttypes.h>

static const char *const type_names[] = {
	[METRIC_COUNTER] = "counter",
	[METRIC_GAUGE] = "gauge",
	[METRIC_HISTOGRAM] = "histogram",
	[METRIC_INFO] = "info",
};

static const char *suffix(enum metric_type type)
{
	if (type == METRIC_COUNTER)
		return "_total";
	return type == METRIC_INFO ? "_info" : "";
}

const char *metrics_media_type(bool openmetrics)
{
	return openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
			   : "text/plain; version=0.0.4; charset=utf-8";
}

void metrics_family(struct metrics *m, const char *name, enum metric_type type, const char *unit,
		    const char *help)
{
	const char *end = m->openmetrics ? "" : suffix(type);
	/* the older format does not know info */
	bool as_gauge = type == METRIC_INFO && !m->openmetrics;

	m->name = name;
	m->type = type;
	fprintf(m->out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, end, help, name, end,
		type_names[as_gauge ? METRIC_GAUGE : type]);
	if (unit && m->openmetrics)
		fprintf(m->out, "# UNIT %s %s\n", name, unit);
}

/* the text must be UTF-8, which names from the kernel need not be */
static void put_value(FILE *out, const char *value)
{
	for (; *value; value++) {
		unsigned char c = *value;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			fprintf(out, "\\\\x%02x", c);
		else
			fputc(c, out);
	}
}

static void put_labels(struct metrics *m, const char *end, const struct label *labels,
		       const double *edge, bool infinite)
{
	char separator = '{';

	fprintf(m->out, "%s%s", m->name, end);
	for (; labels && labels->name; labels++, separator = ',') {
		fprintf(m->out, "%c%s=\"", separator, labels->name);
		put_value(m->out, labels->value);
		fputc('"', m->out);
	}
	if (infinite)
		fprintf(m->out, "%cle=\"+Inf\"", separator);
	else if (edge)
		fprintf(m->out, "%cle=\"%.10g\"", separator, *edge);
	fputs(separator == ',' || edge || infinite ? "} " : " ", m->out);
}

static void put_seconds(struct metrics *m, __u64 ns)
{
	fprintf(m->out, "%" PRIu64 ".%09u\n", (uint64_t)(ns / 1000000000),
		(unsigned int)(ns % 1000000000));
}

void metrics_count(struct metrics *m, const struct label *labels, __u64 value)
{
	put_labels(m, suffix(m->type), labels, NULL, false);
	fprintf(m->out, "%" PRIu64 "\n", (uint64_t)value);
}

void metrics_seconds(struct metrics *m, const struct label *labels, __u64 ns)
{
	put_labels(m, suffix(m->type), labels, NULL, false);
	put_seconds(m, ns);
}

void metrics_number(struct metrics *m, const struct label *labels, double value)
{
	put_labels(m, suffix(m->type), labels, NULL, false);
	fprintf(m->out, "%.10g\n", value);
}

void metrics_bucket(struct metrics *m, const struct label *labels, double edge, __u64 count)
{
	put_labels(m, "_bucket", labels, &edge, false);
	fprintf(m->out, "%" PRIu64 "\n", (uint64_t)count);
}

void metrics_histogram_end(struct metrics *m, const struct label *labels, __u64 count, __u64 sum_ns)
{
	put_labels(m, "_bucket", labels, NULL, true);
	fprintf(m->out, "%" PRIu64 "\n", (uint64_t)count);
	put_labels(m, "_count", labels, NULL, false);
	fprintf(m->out, "%" PRIu64 "\n", (uint64_t)count);
	put_labels(m, "_sum", labels, NULL, false);
	put_seconds(m, sum_ns);
}

void metrics_end(struct metrics *m)
{
	if (m->openmetrics)
		fputs("# EOF\n", m->out);
}
