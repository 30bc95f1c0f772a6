#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A memory region with on-demand paging is where it was registered, whatever its iova; others are
# not prefetched.
# shellcheck source=rxe_lib.sh
. "$(dirname "$0")/rxe_lib.sh"

run_verbs
