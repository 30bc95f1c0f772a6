// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "stage.h"

#define STAGE(id, stage_name, capsule, passed, stock) \
	{stage_name, RXE_PASSED_##passed, capsule, stock},

const struct stage stages[DIRECTIONS][MAX_STAGES] = {
	[DIR_TX] = {TX_PACKET_STAGES(STAGE) START_XMIT_STAGES(STAGE)},
	[DIR_RX] = {RX_PACKET_STAGES(STAGE) RX_DONE_STAGES(STAGE)},
};
const int stage_count[DIRECTIONS] = {TX_ALL_STAGES, RX_ALL_STAGES};
