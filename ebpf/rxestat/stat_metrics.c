// SPDX-License-Identifier: GPL-2.0-only
/* The report as metrics for Prometheus: docs/formats/metrics.md. */
#include "stat_report.h"

#include <math.h>
#include <string.h>

#include "bth.h"
#include "clock.h"
#include "openmetrics.h"
#include "rdma_qp.h"
#include "version.h"

/* a bucket an octave, from 16 ns to 1.07 s: edges that histograms have, too */
#define FIRST_OCTAVE 4
#define LAST_OCTAVE  30
#define MAX_DEVICES  64

/* "RC_RDMA_WRITE"; sizes are added up: they would multiply the series by nine */
struct kind {
	struct label owner; /* no name: packets are not grouped */
	char device[RDMA_DEV_NAME_LEN], opcode[48];
	const char *direction, *net;
};

static void put_info(struct metrics *m, const struct report *r)
{
	static const char *const kinds[] = {
		[DRIVER_ABSENT] = "absent",
		[DRIVER_STOCK] = "stock",
		[DRIVER_INSTRUMENTED] = "instrumented",
	};
	const struct driver *driver = &r->session.driver;
	bool emulated = !strcmp(r->session.accelerator, "tcg");

	metrics_family(m, "rxe", METRIC_INFO, NULL,
		       "What measures here. While clock is \"emulated\", seconds of the other "
		       "metrics stand for emulated work, not for time.");
	metrics_count(m,
		      (struct label[]){{"node", r->session.node},
				       {"kernel", driver->kernel},
				       {"driver", kinds[driver->kind]},
				       {"driver_version", driver->version},
				       {"rxestat_version", ROCELAB_VERSION},
				       {"accelerator", r->session.accelerator},
				       {"clock", emulated ? "emulated" : "real"},
				       {}},
		      1);
}

/* with --group: whose */
static struct label owner_label(const struct report *r, unsigned int owner)
{
	if (!r->owners.by)
		return (struct label){};
	return (struct label){owners_key(&r->owners), owners_name(&r->owners, owner)};
}

/* the first group of each kind has its name; false: there are none of this kind */
static bool name_kind(const struct report *r, const struct groups *groups, unsigned int owner,
		      enum direction dir, __u32 kind, struct kind *k)
{
	__u32 key = kind << KEY_SIZE_BITS;
	bool any = false;

	for (int size = 0; size < SIZE_CLASSES; size++)
		any = any || groups_at(groups, owner, dir, key + size);
	if (!any)
		return false;
	k->owner = owner_label(r, owner);
	dev_name(r, key_dev(key), k->device);
	k->direction = direction_name(dir);
	k->net = net_name(key_net(key));
	snprintf(k->opcode, sizeof(k->opcode), "%s_%s",
		 bth_service_name(r->service[key_class(key)]),
		 bth_class_name(r->class[key_class(key)]));
	return true;
}

typedef void (*put_kind)(struct metrics *m, const struct kind *k, const struct group *sum,
			 bool done);

static void each_kind_of(struct metrics *m, const struct report *r, const struct groups *groups,
			 unsigned int owner, put_kind put)
{
	for (int dir = 0; dir < DIRECTIONS; dir++) {
		for (__u32 kind = 0; kind < KEYS >> KEY_SIZE_BITS; kind++) {
			static struct group sum;
			struct kind k;

			if (!name_kind(r, groups, owner, dir, kind, &k))
				continue;
			memset(&sum, 0, sizeof(sum));
			sum.dir = dir;
			for (int size = 0; size < SIZE_CLASSES; size++) {
				const struct group *g = groups_at(groups, owner, dir,
								  (kind << KEY_SIZE_BITS) + size);

				if (g)
					group_add(&sum, g);
			}
			put(m, &k, &sum, false);
			if (dir == DIR_RX)
				put(m, &k, &sum, true);
		}
	}
}

static void each_kind(struct metrics *m, const struct report *r, const struct groups *groups,
		      put_kind put)
{
	unsigned int number[OWNER_GROUPS];
	int n = owners_sorted(&r->owners, number);

	for (int i = 0; i < n; i++)
		each_kind_of(m, r, groups, number[i], put);
}

static void put_stages(struct metrics *m, const struct kind *k, const struct group *sum, bool done)
{
	for (int i = 0; i < stage_count[sum->dir]; i++) {
		const struct hist *h = &sum->stage[i];
		const struct label labels[] = {{"device", k->device},
					       {"direction", k->direction},
					       {"net", k->net},
					       {"opcode", k->opcode},
					       {"stage", stages[sum->dir][i].name},
					       k->owner,
					       {}};
		__u64 below = 0;
		int bucket = 0;

		if (!h->count || done)
			continue;
		for (int octave = FIRST_OCTAVE; octave <= LAST_OCTAVE; octave++) {
			__u64 edge = 1ull << octave;

			for (; bucket < LOGLIN_BUCKETS && loglin_upper(bucket) <= edge; bucket++)
				below += h->bucket[bucket];
			metrics_bucket(m, labels, edge * 1e-9, below);
		}
		metrics_histogram_end(m, labels, h->count, h->sum);
	}
}

static const struct counts *counts_of(const struct group *sum, bool done)
{
	return done ? &sum->done : &sum->seen;
}

static void put_count(struct metrics *m, const struct kind *k, const struct group *sum, bool done,
		      __u64 count)
{
	const char *event = sum->dir == DIR_TX ? "sent" : done ? "finished" : "arrived";
	const struct label labels[] = {{"device", k->device}, {"event", event}, {"net", k->net},
				       {"opcode", k->opcode}, k->owner,		{}};

	metrics_count(m, labels, count);
}

static void put_packets(struct metrics *m, const struct kind *k, const struct group *sum, bool done)
{
	const struct counts *c = counts_of(sum, done);

	put_count(m, k, sum, done, c->packets + c->switched);
}

static void put_switched(struct metrics *m, const struct kind *k, const struct group *sum,
			 bool done)
{
	put_count(m, k, sum, done, counts_of(sum, done)->switched);
}

static void put_slept(struct metrics *m, const struct kind *k, const struct group *sum, bool done)
{
	put_count(m, k, sum, done, counts_of(sum, done)->slept);
}

/* metrics of rare events, and the label of their reasons */
static const struct {
	enum loss_event event;
	const char *name, *label, *help;
} loss_metrics[] = {
	{LOSS_DROP, "rxe_packets_dropped", "reason", "Packets that the driver dropped."},
	{LOSS_RETRANSMIT, "rxe_retransmissions", "reason",
	 "Times that a requester went back to send again."},
	{LOSS_TIMEOUT, "rxe_timeouts", NULL, "Expiries of retransmission timers."},
	{LOSS_NAK, "rxe_naks", "direction", "Negative acknowledgments."},
	{LOSS_RNR, "rxe_rnr", "step",
	 "Receiver not ready: NAKs sent, NAKs received, waits expired."},
	{LOSS_CQ_ERROR, "rxe_completions_lost", NULL,
	 "Completions that a full completion queue lost."},
};

/* every reason of a device that has had a packet, so that rates begin at 0 */
static void put_loss(struct metrics *m, const struct report *r, unsigned int owner, __u32 tag,
		     const char *device, int metric)
{
	enum loss_event event = loss_metrics[metric].event;

	for (unsigned int reason = 0; reason < losses_reasons(event); reason++) {
		struct label labels[4] = {{"device", device}};
		const char *name = losses_reason(event, reason);

		if (event == LOSS_DROP && !reason)
			continue; /* "none" */
		if (loss_metrics[metric].label)
			labels[1] = (struct label){loss_metrics[metric].label, name};
		labels[loss_metrics[metric].label ? 2 : 1] = owner_label(r, owner);
		metrics_count(m, labels, losses_count(&r->losses, owner, tag, event, reason));
	}
}

struct device {
	__u32 tag; /* index + 1; 0: of packets that belong to none */
	char name[RDMA_DEV_NAME_LEN];
};

/* of the device that has this place of losses, of any owner */
static __u32 loss_tag(const struct report *r, int place)
{
	__u32 tag = 0;

	for (int at = place; at < r->losses.places && !tag; at += LOSS_PLACES)
		tag = r->losses.at[at].tag;
	return tag;
}

/* the devices that have had packets or losses, each once, and none */
static int list_devices(const struct report *r, struct device devices[MAX_DEVICES])
{
	int n = 0;

	strcpy(devices[n].name, "none");
	devices[n++].tag = 0;
	for (int place = 0; place < DEV_PLACES; place++) {
		if (r->dev_index[place]) {
			devices[n].tag = r->dev_index[place];
			dev_name(r, place, devices[n++].name);
		} else if (loss_tag(r, place)) {
			devices[n].tag = loss_tag(r, place);
			rdma_dev_name(devices[n].tag - 1, devices[n].name);
			n++;
		}
	}
	return n;
}

/* whether the owner's packets or losses are of this device */
static bool owner_has(const struct report *r, const struct groups *groups, unsigned int owner,
		      __u32 tag)
{
	if (!r->owners.by || (!tag && owner == OWNER_UNKNOWN))
		return true;
	for (int i = 0; i < DIRECTIONS * KEYS; i++) {
		if (tag && r->dev_index[key_dev(i % KEYS)] == tag &&
		    groups_at(groups, owner, i / KEYS, i % KEYS))
			return true;
	}
	return losses_have(&r->losses, owner, tag);
}

static void put_losses(struct metrics *m, const struct report *r, const struct groups *groups)
{
	struct device devices[MAX_DEVICES];
	unsigned int number[OWNER_GROUPS];
	int n = list_devices(r, devices), owners = owners_sorted(&r->owners, number);
	static bool has[OWNER_GROUPS][MAX_DEVICES];

	if (!r->losses.known)
		return;
	for (int o = 0; o < owners; o++) {
		for (int d = 0; d < n; d++)
			has[o][d] = owner_has(r, groups, number[o], devices[d].tag);
	}
	for (int i = 0; i < (int)(sizeof(loss_metrics) / sizeof(loss_metrics[0])); i++) {
		metrics_family(m, loss_metrics[i].name, METRIC_COUNTER, NULL, loss_metrics[i].help);
		for (int od = 0; od < owners * n; od++) {
			const struct device *d = &devices[od % n];

			/* what belongs to no device can only be dropped */
			if (has[od / n][od % n] && (d->tag || loss_metrics[i].event == LOSS_DROP))
				put_loss(m, r, number[od / n], d->tag, d->name, i);
		}
	}
}

/* the names are apart, because they may change: a query joins them */
static void put_owners(struct metrics *m, const struct report *r)
{
	const struct stat_owners *owners = &r->owners;

	if (owners->by == OWNER_BY_NETNS) {
		metrics_family(m, "rxe_netns", METRIC_INFO, NULL,
			       "Names that `ip netns` gave to network namespaces.");
		for (unsigned int i = OWNER_FIRST; i < OWNER_BEYOND; i++) {
			const struct stat_owner *owner = &owners->at[i];

			if (owners_group(owners, i) == i && owner->netns)
				metrics_count(m,
					      (struct label[]){{"netns", owner->name},
							       {"name", owner->netns},
							       {}},
					      1);
		}
	}
	if (owners->by) {
		metrics_family(m, "rxe_probe_queue_pairs_not_grouped", METRIC_COUNTER, NULL,
			       "Queue pairs in the group (others), for want of a number.");
		metrics_count(m, NULL, owners->beyond);
	}
}

/* queue pairs of a device by type and state */
#define QP_TYPES  16
#define QP_STATES 8
struct qp_counts {
	__u64 at[QP_TYPES][QP_STATES];
};

static void count_qp(void *context, const struct rdma_qp *qp)
{
	struct qp_counts *counts = context;

	if (qp->type < QP_TYPES && qp->state < QP_STATES)
		counts->at[qp->type][qp->state]++;
}

static void put_queue_pairs(struct metrics *m, const struct report *r)
{
	struct rdma_dev devices[MAX_DEVICES];
	int n = rdma_dev_list(devices, MAX_DEVICES);

	metrics_family(m, "rxe_queue_pairs", METRIC_GAUGE, NULL,
		       "Queue pairs of the RDMA devices here, by type and state.");
	for (int i = 0; i < n; i++) {
		struct qp_counts counts = {};

		if ((r->filter->device && strcmp(devices[i].name, r->filter->device) != 0) ||
		    rdma_qp_list(devices[i].index, count_qp, &counts))
			continue;
		for (int type = 0; type < QP_TYPES; type++) {
			for (int state = 0; state < QP_STATES; state++) {
				const struct label labels[] = {{"device", devices[i].name},
							       {"type", rdma_qp_type_name(type)},
							       {"state", rdma_qp_state_name(state)},
							       {}};

				if (counts.at[type][state])
					metrics_count(m, labels, counts.at[type][state]);
			}
		}
	}
}

static void put_probe(struct metrics *m, const struct report *r)
{
	metrics_family(m, "rxe_probe_packets_lost", METRIC_COUNTER, NULL,
		       "Packets that rxestat could not count: no cell was free, or its program was "
		       "already running on that CPU.");
	metrics_count(m, (struct label[]){{"reason", "no_cell"}, {}}, r->lost);
	metrics_count(m, (struct label[]){{"reason", "nested"}, {}}, packets_missed(r));
	if (r->losses.known) {
		metrics_family(m, "rxe_probe_losses_missed", METRIC_COUNTER, NULL,
			       "Rare events, such as drops, that rxestat could not count: its "
			       "program was already running on that CPU.");
		metrics_count(m, NULL, losses_missed(r));
	}
	metrics_family(m, "rxe_probe_sample_ratio", METRIC_GAUGE, "ratio",
		       "Part of the packets that is looked at (rxestat --sample).");
	metrics_number(m, NULL, 1.0 / (r->sample.one_of ?: 1));
	if (isfinite(r->cost.clock)) {
		metrics_family(m, "rxe_probe_clock_read_seconds", METRIC_GAUGE, "seconds",
			       "What a clock read takes; every stage contains one.");
		metrics_number(m, NULL, r->cost.clock * 1e-9);
	}
	metrics_family(m, "process_cpu_seconds", METRIC_COUNTER, "seconds",
		       "CPU time of rxestat itself.");
	metrics_seconds(m, NULL, clock_now(CLOCK_PROCESS_CPUTIME_ID));
	metrics_family(m, "process_start_time_seconds", METRIC_GAUGE, "seconds",
		       "When rxestat began to count, since 1970.");
	metrics_seconds(m, NULL, r->session.start_wall_ns);
}

void print_metrics(FILE *out, const struct report *r, const struct groups *groups, bool openmetrics)
{
	struct metrics m = {.out = out, .openmetrics = openmetrics};

	put_info(&m, r);
	metrics_family(
		&m, "rxe_stage_duration_seconds", METRIC_HISTOGRAM, "seconds",
		"What packets took in a stage of the driver, each with one clock read in it.");
	each_kind(&m, r, groups, put_stages);
	metrics_family(
		&m, "rxe_packets", METRIC_COUNTER, NULL,
		"Packets that were sent, that arrived with a good ICRC, and that were received "
		"and finished.");
	each_kind(&m, r, groups, put_packets);
	metrics_family(
		&m, "rxe_packets_switched", METRIC_COUNTER, NULL,
		"Those of rxe_packets_total that are in no histogram, because their task was "
		"switched out meanwhile.");
	each_kind(&m, r, groups, put_switched);
	metrics_family(&m, "rxe_packets_slept", METRIC_COUNTER, NULL,
		       "Those of rxe_packets_switched_total whose task slept in on-demand paging.");
	each_kind(&m, r, groups, put_slept);
	put_losses(&m, r, groups);
	put_owners(&m, r);
	put_queue_pairs(&m, r);
	put_probe(&m, r);
	metrics_end(&m);
}
