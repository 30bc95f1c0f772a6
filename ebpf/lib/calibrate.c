// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "calibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <math.h>
#include <string.h>

#define ROUNDS 10
#define REPEAT 100

double calibrate_run_ns(const struct bpf_program *program)
{
	double fastest = NAN;

	if (!bpf_program__autoload(program))
		return NAN;
	for (int i = 0; i < ROUNDS; i++) {
		char frame[64] = {};
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
			    .data_size_in = sizeof(frame), .repeat = REPEAT);

		if (bpf_prog_test_run_opts(bpf_program__fd(program), &opts))
			return NAN;
		fastest = fmin(fastest, opts.duration); /* of a number and NaN, the number */
	}
	return fastest;
}

struct packet_id calibrate_packet_id(__u32 dev, const struct packet_filter *filter)
{
	return (struct packet_id){
		.dev = dev,
		.qpn = filter->qpn,
		.payload = 64,
		.opcode = packet_filter_opcode(filter),
		.net = RXE_NET_V2_IPV4,
	};
}

static void make_records(const struct calibration_subject *subject,
			 const struct packet_filter *filter)
{
	struct packet_tx tx = {.id = calibrate_packet_id(subject->dev, filter)};
	struct packet_rx rx = {.id = tx.id};
	struct packet_done done = {.id = tx.id};

	for (int i = 0; i < RXE_TX_STAGES; i++)
		tx.stage[i] = calibrate_stage_ns(i);
	for (int i = 0; i < RXE_RX_STAGES; i++)
		rx.stage[i] = calibrate_stage_ns(i);
	for (int i = 0; i < RXE_DONE_STAGES; i++)
		done.stage[i] = calibrate_stage_ns(i);
	memcpy(subject->tx_record, &tx, sizeof(tx));
	memcpy(subject->rx_record, &rx, sizeof(rx));
	memcpy(subject->done_record, &done, sizeof(done));
}

void calibrate(const struct calibration_subject *subject, const struct packet_filter *filter,
	       struct calibration *cost)
{
	double empty = calibrate_run_ns(subject->empty);

	if (subject->tx_record)
		make_records(subject, filter);
	cost->clock = (calibrate_run_ns(subject->clock) - empty) / CALIBRATE_CLOCK_READS;
	cost->tx = calibrate_run_ns(subject->tx) - empty;
	cost->xmit = calibrate_run_ns(subject->xmit) - empty;
	cost->rx = calibrate_run_ns(subject->rx) - empty;
	cost->done = subject->done ? calibrate_run_ns(subject->done) - empty : NAN;
}
