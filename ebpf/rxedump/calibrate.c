// SPDX-License-Identifier: GPL-2.0-only
#include "calibrate.h"

#include <bpf/libbpf.h>

#include "test_run.h"

#include "rxedump.skel.h"

/* a packet that passes the filters, with stages of everyday length */
static void make_record(const struct config *config, __u32 dev, int stages, __u32 *stage,
			struct packet_id *id)
{
	id->dev = dev;
	id->qpn = config->qpn;
	id->psn = 0; /* every sample has it */
	id->net = RXE_NET_V2_IPV4;
	id->payload = 64;
	while (id->opcode < 255 && !config->all_opcodes && !config->chosen[id->opcode])
		id->opcode++;
	for (int i = 0; i < stages; i++)
		stage[i] = 100 + 200 * i;
}

void calibrate(struct rxedump_bpf *skel, const struct config *config, struct calibration *cost)
{
	struct calibration_records *record = &skel->bss->calibrate_record;
	double empty = test_run_ns(skel->progs.calibrate_empty);
	__u32 dev = skel->rodata->filter_dev;

	cost->clock = (test_run_ns(skel->progs.calibrate_clock) - empty) / TEST_RUN_CLOCK_READS;
	make_record(config, dev, RXE_TX_STAGES, record->tx.stage, &record->tx.id);
	cost->tx = test_run_ns(skel->progs.calibrate_tx) - empty;
	cost->xmit = test_run_ns(skel->progs.calibrate_xmit) - empty;
	make_record(config, dev, RXE_RX_STAGES, record->rx.stage, &record->rx.id);
	cost->rx = test_run_ns(skel->progs.calibrate_rx) - empty;
	make_record(config, dev, RXE_DONE_STAGES, record->done.stage, &record->done.id);
	cost->done = test_run_ns(skel->progs.calibrate_done) - empty;
}
