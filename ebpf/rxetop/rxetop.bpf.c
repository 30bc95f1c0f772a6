// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts per queue pair: packets, latencies of work requests and of one stage, losses, CPU time of
 * its tasks. On the stock driver: packets and work requests, from its functions.
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "drop.bpf.h"
#include "loglin.bpf.h"
#include "rxe_record.h"
#include "rxe_types.bpf.h"
#include "rxetop.h"
#include "stage.h"
#include "stamp_clock.h"
#include "work_request.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_QPS);
	__type(key, struct qp_key);
	__type(value, struct qp_value);
} qps SEC(".maps");

const volatile bool filter_by_dev = false;
const volatile __u64 stamp_mult = 0;
/* BTH, extended headers and ICRC, by opcode: lib/bth.c */
const volatile __u8 overhead[256] = {};
/* tasks are tasklets, of which one runs within another */
const volatile bool tasks_nest = false;

const volatile struct qp_value fresh = {};

/* not constant: a device that is made again has another one */
__u32 filter_dev = 0;

struct stage_choice choice = {};
/* packets and requests of queue pairs for which there was no room, and drops of no known one */
__u64 lost = 0;
__u64 other_drops[DROP_PLACES] = {};

struct sched_entity {
	__u64 exec_start, sum_exec_runtime;
} ROCELAB_CORE;

struct task_struct {
	struct sched_entity se;
} ROCELAB_CORE;

struct sk_buff {
	unsigned char *head;
	__u16 network_header;
	char cb[48];
} ROCELAB_CORE;

#define ADD(counter, n) __sync_fetch_and_add(&(counter), n)

static __always_inline struct qp_value *known(__u32 dev, __u32 qpn)
{
	struct qp_key key = {.dev = dev, .qpn = qpn};

	return bpf_map_lookup_elem(&qps, &key);
}

static __noinline int make(__u32 dev, __u32 qpn)
{
	struct qp_key key = {.dev = dev, .qpn = qpn};

	return bpf_map_update_elem(&qps, &key, (const void *)&fresh, BPF_NOEXIST);
}

/* only for numbers that the driver says are its own: a peer can make up any other */
static __always_inline struct qp_value *of_qp(__u32 dev, __u32 qpn)
{
	struct qp_value *v = known(dev, qpn);

	if (v || (filter_by_dev && dev != filter_dev))
		return v;
	make(dev, qpn);
	v = known(dev, qpn);
	if (!v)
		ADD(lost, 1);
	return v;
}

static __always_inline void add_latency(struct latency *l, __u32 ns)
{
	__u32 b = ns >> LOGLIN_TABLE_BITS
			  ? bucket_beyond_table(ns)
			  : bucket_table[bounded(ns >> LOGLIN_UNIT_BITS, LOGLIN_TABLE_LEN - 1)];

	ADD(l->sum, ns);
	ADD(l->bucket[bounded(b, LOGLIN_SLOTS - 1)], 1);
}

static __always_inline void add_stamps(struct latency *l, __u64 stamps)
{
	__u64 ns = stamps * stamp_mult >> STAMP_SHIFT;

	if ((__s64)stamps < 0)
		ns = 0;
	else if (stamps >> 32 || ns >> 32)
		ns = ~0u;
	add_latency(l, ns);
}

static __always_inline void count_packet(struct qp_value *v, int way, __u16 payload)
{
	ADD(v->counts.packets[way], 1);
	ADD(v->counts.bytes[way], payload);
}

/* the destination in the IP header, or in the GRH of RoCE v1 */
static __noinline int find_peer(struct qp_value *v, const struct sk_buff *skb, __u32 net)
{
	const unsigned char *header;

	if (!v)
		return 0;
	header = BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	if (net == RXE_NET_V2_IPV4)
		bpf_probe_read_kernel(v->peer, 4, header + 16);
	else
		bpf_probe_read_kernel(v->peer, ADDRESS_LEN, header + 24);
	v->net = net;
	return 0;
}

SEC("tp_btf/rxe_tx_stamps")
int BPF_PROG(rxe_tx_stamps, const struct rxe_tx_stamps *r, const struct sk_buff *skb)
{
	__u32 chosen = choice.number;
	struct qp_value *v;
	__u64 from, ran = 0;

	/* 6.12 and later: to the verifier, arguments of a module's tracepoint may be NULL */
	if (!r || !skb)
		return 0;
	v = of_qp(r->id.dev, r->id.qpn);
	if (!v)
		return 0;
	count_packet(v, SENT, r->id.payload);
	if (v->peer_qpn != r->id.dqpn || !v->net) {
		find_peer(v, skb, r->id.net);
		v->peer_qpn = r->id.dqpn;
	}
	if (choice.dir != DIR_TX || r->id.flags & RXE_FLAG_SWITCHED)
		return 0;
	from = r->id.begin;
#pragma unroll
	for (__u32 i = 0; i < RXE_TX_STAGES; i++) {
		__u64 end = r->end[i];

		if (i == chosen)
			ran = end - from;
		from = end;
	}
	/* a stage that this packet does not pass takes no time */
	if (ran)
		add_stamps(&v->counts.stage, ran);
	return 0;
}

SEC("tp_btf/rxe_rx_stamps")
int BPF_PROG(rxe_rx_stamps, const struct rxe_rx_stamps *r)
{
	__u32 chosen = choice.number;
	struct qp_value *v;
	__u64 ran = 0;
	__u8 flags;

	if (!r)
		return 0;
	v = of_qp(r->id.dev, r->id.qpn);
	if (!v)
		return 0;
	flags = r->id.flags;
	if (flags & RXE_FLAG_ARRIVED)
		count_packet(v, RECEIVED, r->id.payload);
	if (choice.dir != DIR_RX)
		return 0;
	if (flags & RXE_FLAG_ARRIVED && !(flags & RXE_FLAG_RX_SWITCHED)) {
#pragma unroll
		for (__u32 i = 0; i < RXE_RX_STAGES; i++) {
			if (i == chosen)
				ran = r->arrival[i];
		}
	}
	if (flags & RXE_FLAG_DONE && !(flags & RXE_FLAG_SWITCHED)) {
#pragma unroll
		for (__u32 i = 0; i < RXE_DONE_STAGES; i++) {
			if (RX_DONE + i == chosen)
				ran = r->stage[i];
		}
	}
	if (ran)
		add_stamps(&v->counts.stage, ran);
	return 0;
}

/*
 * now, less the time that this task has been switched out, plus a constant: the scheduler moves
 * exec_start without adding to sum_exec_runtime only when it switches a task in
 */
static __always_inline __u64 task_clock(void)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	return bpf_ktime_get_ns() + task->se.sum_exec_runtime - task->se.exec_start;
}

/* whether another task of the queue pair runs on this CPU: ours runs within it */
static __always_inline bool runs_within(const struct qp_value *v, __u32 kind)
{
	__u32 cpu = bpf_get_smp_processor_id();

#pragma unroll
	for (__u32 i = 0; i < TASKS; i++) {
		if (i != kind && v->task_begin[i] && v->task_cpu[i] == cpu)
			return true;
	}
	return false;
}

SEC("raw_tp/rxe_task_begin")
int BPF_PROG(rxe_task_begin, __u32 dev, __u32 qpn, __u32 task)
{
	struct qp_value *v = of_qp(dev, qpn);

	task = bounded(task, TASKS - 1);
	if (!v || (tasks_nest && runs_within(v, task)))
		return 0;
	v->task_cpu[task] = bpf_get_smp_processor_id();
	v->task_begin[task] = task_clock();
	return 0;
}

SEC("raw_tp/rxe_task_end")
int BPF_PROG(rxe_task_end, __u32 dev, __u32 qpn, __u32 task)
{
	struct qp_value *v = known(dev, qpn);
	__u64 began;
	__s64 ran;

	task = bounded(task, TASKS - 1);
	if (!v)
		return 0;
	began = v->task_begin[task];
	v->task_begin[task] = 0;
	if (!began)
		return 0;
	ran = task_clock() - began;
	if (ran > 0)
		ADD(v->counts.task_ns, ran);
	return 0;
}

SEC("raw_tp/rxe_retransmit")
int BPF_PROG(rxe_retransmit, __u32 dev, __u32 qpn)
{
	struct qp_value *v = of_qp(dev, qpn);

	if (v)
		ADD(v->counts.retransmits, 1);
	return 0;
}

SEC("raw_tp/rxe_timeout")
int BPF_PROG(rxe_timeout, __u32 dev, __u32 qpn)
{
	struct qp_value *v = of_qp(dev, qpn);

	if (v)
		ADD(v->counts.timeouts, 1);
	return 0;
}

/* the driver's enums of NAKs and RNR NAKs begin with sent and received */
SEC("raw_tp/rxe_nak")
int BPF_PROG(rxe_nak, __u32 dev, __u32 qpn, __u32 psn, __u32 syndrome, __u32 dir)
{
	struct qp_value *v = of_qp(dev, qpn);

	if (v && dir < WAYS)
		ADD(v->counts.naks[bounded(dir, WAYS - 1)], 1);
	return 0;
}

SEC("raw_tp/rxe_rnr")
int BPF_PROG(rxe_rnr, __u32 dev, __u32 qpn, __u32 psn, __u32 timer, __u32 step)
{
	struct qp_value *v = of_qp(dev, qpn);

	if (v && step < WAYS)
		ADD(v->counts.rnrs[bounded(step, WAYS - 1)], 1);
	return 0;
}

static __always_inline void count_drop(__u32 dev, __u32 qpn, __u32 reason)
{
	struct qp_value *v = known(dev, qpn);

	reason = bounded(reason < DROP_PLACES ? reason : 0, DROP_PLACES - 1);
	if (v)
		ADD(v->counts.drops[reason], 1);
	else if (!filter_by_dev || dev == filter_dev)
		ADD(other_drops[reason], 1);
}

/* why there are two: lib/drop.bpf.h */
SEC("raw_tp/rxe_drop")
int BPF_PROG(rxe_drop_late, const struct sk_buff *skb, __u32 dev, __u32 qpn, __u32 psn,
	     __u32 opcode, __u32 reason)
{
	if (drop_is_in_task(reason))
		count_drop(dev, qpn, reason);
	return 0;
}

SEC("raw_tp/rxe_drop")
int BPF_PROG(rxe_drop, const struct sk_buff *skb, __u32 dev, __u32 qpn, __u32 psn, __u32 opcode,
	     __u32 reason)
{
	if (!drop_is_in_task(reason))
		count_drop(dev, qpn, reason);
	return 0;
}

SEC("raw_tp/rxe_qp_state")
int BPF_PROG(rxe_qp_state, __u32 dev, __u32 qpn)
{
	of_qp(dev, qpn);
	return 0;
}

static __always_inline void work_completed(const struct work_completion *c)
{
	struct qp_value *v = of_qp(c->dev, c->qpn);

	if (v)
		add_latency(&v->counts.work, c->ns);
}

static __always_inline void work_unseen(__u32 dev, __u32 qpn)
{
	struct qp_value *v = of_qp(dev, qpn);

	if (v)
		ADD(v->counts.not_followed, 1);
}

static __always_inline void work_failed(__u32 dev, __u32 qpn)
{
	struct qp_value *v = of_qp(dev, qpn);

	if (v)
		ADD(v->counts.with_error, 1);
}

/* the stock driver */

static __always_inline struct qp_value *stock_qp(const struct rxe_qp *qp)
{
	return of_qp(BPF_CORE_READ(qp, ibqp.device, index), BPF_CORE_READ(qp, ibqp.qp_num));
}

/* with the pad: nobody says how long it is */
static __always_inline __u16 stock_payload(const struct rxe_pkt_info *pkt)
{
	__u16 paylen = BPF_CORE_READ(pkt, paylen);
	__u8 other = overhead[BPF_CORE_READ(pkt, opcode)];

	return paylen > other ? paylen - other : 0;
}

SEC("fentry/rxe_xmit_packet")
int BPF_PROG(stock_sent, struct rxe_qp *qp, struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	struct qp_value *v = stock_qp(qp);
	__u32 dqpn = 0;
	__u8 version = 0;

	if (!v)
		return 0;
	count_packet(v, SENT, stock_payload(pkt));
	bpf_probe_read_kernel(&dqpn, sizeof(dqpn), BPF_CORE_READ(pkt, hdr) + 4);
	dqpn = bpf_ntohl(dqpn) & 0xffffff;
	if (v->peer_qpn == dqpn && v->net)
		return 0;
	bpf_probe_read_kernel(&version, 1,
			      BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header));
	find_peer(v, skb, version >> 4 == 4 ? RXE_NET_V2_IPV4 : RXE_NET_V2_IPV6);
	v->peer_qpn = dqpn;
	return 0;
}

static __always_inline int stock_received(const struct rxe_qp *qp, const struct sk_buff *skb)
{
	struct qp_value *v = stock_qp(qp);

	if (v)
		count_packet(v, RECEIVED, stock_payload((const void *)skb->cb));
	return 0;
}

SEC("fentry/rxe_resp_queue_pkt")
int BPF_PROG(stock_request, struct rxe_qp *qp, struct sk_buff *skb)
{
	return stock_received(qp, skb);
}

SEC("fentry/rxe_comp_queue_pkt")
int BPF_PROG(stock_response, struct rxe_qp *qp, struct sk_buff *skb)
{
	return stock_received(qp, skb);
}
