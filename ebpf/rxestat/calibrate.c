// SPDX-License-Identifier: GPL-2.0-only
#include "calibrate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <math.h>
#include <string.h>

#include "config.h"
#include "rxestat.skel.h"

#define ROUNDS 10
#define REPEAT 1000

/* ns a run, by the fastest round: others were interrupted. NaN if the kernel will not run it */
static double run(const struct bpf_program *program)
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

/* a packet that passes the filters, with stages of everyday length */
static void make_record(const struct rxestat_bpf *skel, const struct config *config, int stages,
			__u32 *stage, struct rxe_packet_id *id)
{
	id->dev = skel->rodata->filter_dev;
	id->qpn = config->qpn;
	id->net = RXE_NET_V2_IPV4;
	id->payload = 64;
	while (id->opcode < 255 && !config->all_opcodes && !config->chosen[id->opcode])
		id->opcode++;
	for (int i = 0; i < stages; i++)
		stage[i] = 100 + 200 * i;
}

void calibrate(struct rxestat_bpf *skel, const struct config *config, struct calibration *cost)
{
	struct calibration_records *record = &skel->bss->calibrate_record;
	double empty = run(skel->progs.calibrate_empty);

	cost->clock = (run(skel->progs.calibrate_clock) - empty) / CALIBRATE_READS;

	make_record(skel, config, RXE_TX_STAGES, record->tx.stage, &record->tx.id);
	cost->tx = run(skel->progs.calibrate_tx) - empty;
	cost->xmit = run(skel->progs.calibrate_xmit) - empty;
	make_record(skel, config, RXE_RX_STAGES, record->rx.stage, &record->rx.id);
	cost->rx = run(skel->progs.calibrate_rx) - empty;
	make_record(skel, config, RXE_DONE_STAGES, record->done.stage, &record->done.id);
	cost->done = run(skel->progs.calibrate_done) - empty;
}
