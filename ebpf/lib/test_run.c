// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "test_run.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <math.h>

#define ROUNDS 10
#define REPEAT 1000

double test_run_ns(const struct bpf_program *program)
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
