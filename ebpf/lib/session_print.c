// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session_print.h"

#include <inttypes.h>

void session_json_place(struct json *j, const struct session *s, const char *schema)
{
	static const char *const kinds[] = {
		[DRIVER_ABSENT] = "absent",
		[DRIVER_STOCK] = "stock",
		[DRIVER_INSTRUMENTED] = "instrumented",
	};
	const struct driver *driver = &s->driver;

	json_string(j, "schema", schema);
	json_string(j, "node", s->node);
	json_string(j, "kernel", driver->kernel);
	json_open_object(j, "driver");
	json_string(j, "kind", kinds[driver->kind]);
	json_string(j, "version", driver->version[0] ? driver->version : NULL);
	json_string(j, "srcversion", driver->srcversion[0] ? driver->srcversion : NULL);
	json_close_object(j);
}

void session_json_time(struct json *j, const struct session *s)
{
	json_string(j, "accelerator", s->accelerator);
	json_u64(j, "start_wall_ns", s->start_wall_ns);
	json_u64(j, "start_ns", s->start_ns);
	json_u64(j, "duration_ns", s->end_ns - s->start_ns);
}

void session_json_programs(struct json *j, const struct session *s)
{
	json_open_array(j, "programs");
	for (int i = 0; i < s->nprograms; i++) {
		const struct program_stats *p = &s->programs[i];

		json_open_object(j, NULL);
		json_string(j, "name", p->name);
		if (s->bpf_stats) {
			json_u64(j, "runs", p->runs);
			json_u64(j, "run_ns", p->run_ns);
		}
		json_u64(j, "missed", p->missed);
		json_close_object(j);
	}
	json_close_array(j);
}

void session_print_programs(FILE *out, const struct session *s)
{
	for (int i = 0; i < s->nprograms && s->bpf_stats; i++) {
		const struct program_stats *p = &s->programs[i];

		if (p->runs)
			fprintf(out, "  %-28s %12" PRIu64 " runs, %8.0f ns each\n", p->name,
				(uint64_t)p->runs, (double)p->run_ns / p->runs);
	}
}
