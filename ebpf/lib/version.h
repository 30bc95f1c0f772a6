/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ROCELAB_VERSION
#define ROCELAB_VERSION "unknown" /* else the Makefile's */
#endif
