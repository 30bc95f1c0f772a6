/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one run of a BPF program takes, by BPF_PROG_TEST_RUN. */
#ifndef ROCELAB_TEST_RUN_H
#define ROCELAB_TEST_RUN_H

struct bpf_program;

/* clock reads in one run of a calibration program that does nothing else */
#define TEST_RUN_CLOCK_READS 64

/*
 * ns a run of a socket program, by the fastest of ten rounds: the others were interrupted. NaN if
 * the kernel will not run it, or it is not loaded.
 */
double test_run_ns(const struct bpf_program *program);

#endif /* ROCELAB_TEST_RUN_H */
