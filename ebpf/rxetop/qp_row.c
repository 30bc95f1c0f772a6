// SPDX-License-Identifier: GPL-2.0-only
#include "qp_row.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "rxe_record.h"

void latency_add(struct hist *into, const struct latency *from)
{
	into->sum += from->sum;
	into->max = ~0u;
	for (int b = 0; b < LOGLIN_BUCKETS; b++) {
		into->count += from->bucket[b];
		into->bucket[b] += from->bucket[b];
	}
}

struct quantiles quantiles_of(const struct hist *h)
{
	return (struct quantiles){
		.count = h->count,
		.mean = hist_mean(h),
		.p50 = hist_quantile(h, 0.5),
		.p99 = hist_quantile(h, 0.99),
		.p999 = hist_quantile(h, 0.999),
	};
}

static struct quantiles between(struct latency *interval, const struct latency *now,
				const struct latency *before)
{
	struct hist h = {};

	interval->sum = now->sum - before->sum;
	for (int b = 0; b < LOGLIN_BUCKETS; b++)
		interval->bucket[b] = now->bucket[b] - before->bucket[b];
	latency_add(&h, interval);
	return quantiles_of(&h);
}

void row_add(struct qp_row *into, const struct qp_row *from)
{
	into->counted |= from->counted;
	into->requests += from->requests;
	into->cpu += from->cpu;
	for (int way = 0; way < WAYS; way++) {
		into->packets[way] += from->packets[way];
		into->bytes[way] += from->bytes[way];
		into->total_packets[way] += from->total_packets[way];
		into->total_bytes[way] += from->total_bytes[way];
		into->naks[way] += from->naks[way];
		into->rnrs[way] += from->rnrs[way];
	}
	into->total_requests += from->total_requests;
	into->total_task_ns += from->total_task_ns;
	into->not_followed += from->not_followed;
	into->with_error += from->with_error;
	into->retransmits += from->retransmits;
	into->timeouts += from->timeouts;
	into->dropped += from->dropped;
	for (int i = 0; i < DROP_PLACES; i++)
		into->drops[i] += from->drops[i];
}

static __u64 values(const struct latency *l)
{
	__u64 n = 0;

	for (int b = 0; b < LOGLIN_BUCKETS; b++)
		n += l->bucket[b];
	return n;
}

static void name_peer(struct qp_row *row, const struct qp_value *v)
{
	row->net = v->net;
	if (v->net)
		row->peer_qpn = v->peer_qpn;
	if (v->net == RXE_NET_V2_IPV4)
		inet_ntop(AF_INET, v->peer, row->peer, sizeof(row->peer));
	else if (v->net)
		inet_ntop(AF_INET6, v->peer, row->peer, sizeof(row->peer));
}

void row_count(struct qp_row *row, struct qp_interval *interval, const struct qp_value *now,
	       const struct qp_counts *before, double seconds, __u32 one_of)
{
	const struct qp_counts *n = &now->counts;

	name_peer(row, now);
	row->counted = memcmp(n, before, sizeof(*n));
	for (int way = 0; way < WAYS; way++) {
		row->packets[way] = (n->packets[way] - before->packets[way]) * one_of / seconds;
		row->bytes[way] = (n->bytes[way] - before->bytes[way]) * one_of / seconds;
		row->total_packets[way] = n->packets[way] * one_of;
		row->total_bytes[way] = n->bytes[way] * one_of;
		row->naks[way] = n->naks[way];
		row->rnrs[way] = n->rnrs[way];
	}
	row->work = between(&interval->work, &n->work, &before->work);
	row->stage = between(&interval->stage, &n->stage, &before->stage);
	row->requests =
		(row->work.count * one_of + n->not_followed - before->not_followed) / seconds;
	row->total_requests = values(&n->work) * one_of + n->not_followed;
	row->cpu = (n->task_ns - before->task_ns) / 1e9 / seconds;
	row->total_task_ns = n->task_ns;
	row->not_followed = n->not_followed;
	row->with_error = n->with_error;
	row->retransmits = n->retransmits;
	row->timeouts = n->timeouts;
	row->dropped = 0;
	for (int i = 0; i < DROP_PLACES; i++)
		row->dropped += row->drops[i] = n->drops[i];
}
