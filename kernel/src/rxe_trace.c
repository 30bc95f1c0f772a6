// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/module.h>

#include "rxe.h"
#define CREATE_TRACE_POINTS
#include "rxe_trace.h"

/* names the patches and files that this module was built from */
#ifdef RXE_BUILD_ID
MODULE_VERSION(RXE_BUILD_ID);
#endif
