#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# A memory window lies within its memory region, and a peer reaches nothing outside of it.
# shellcheck source=rxe_lib.sh
. "$(dirname "$0")/rxe_lib.sh"

run_verbs
