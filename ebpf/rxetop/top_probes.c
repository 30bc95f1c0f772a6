// SPDX-License-Identifier: GPL-2.0-only
#include "top_probes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "bth.h"
#include "load.h"
#include "map_clear.h"
#include "msg.h"
#include "stamp_clock.h"
#include "text.h"
#include "work_request.h"

#include "rxetop.skel.h"

static const char *const stock_lacks[] = {
	"stages", "retransmissions", "timeouts", "NAKs", "RNR NAKs", "drops", "CPU time of tasks",
};

const char *report_missing(const struct report *report, int number)
{
	int n = sizeof(stock_lacks) / sizeof(stock_lacks[0]);

	return report->session.driver.kind == DRIVER_STOCK && number < n ? stock_lacks[number]
									 : NULL;
}

static bool needs_events(const char *program)
{
	return text_has_prefix(program, "rxe_");
}

static void fill_tables(struct rxetop_bpf *skel)
{
	for (int i = 0; i < LOGLIN_TABLE_LEN; i++)
		skel->rodata->bucket_table[i] = loglin_bucket(i << LOGLIN_UNIT_BITS);
	for (int i = 0; i < 256; i++)
		skel->rodata->overhead[i] = bth_overhead(i);
}

static int find_device(struct rxetop_bpf *skel, const struct config *config)
{
	return config->device ? load_find_device(config->device, &skel->bss->filter_dev) : 0;
}

static int configure(struct probes *p, const struct config *config, struct report *report)
{
	const struct driver *driver = &report->session.driver;
	__u64 mult = 0;
	int status;

	p->skel = rxetop_bpf__open();
	if (!p->skel)
		return load_error(-errno);
	status = load_choose_driver(p->skel->obj, driver, needs_events, NULL, NULL);
	status = status ?: find_device(p->skel, config);
	if (!status && driver->kind == DRIVER_INSTRUMENTED)
		status = stamp_clock_read(&mult);
	if (status)
		return status;
	p->skel->rodata->filter_by_dev = config->device;
	p->skel->rodata->stamp_mult = mult;
	p->skel->rodata->tasks_nest = !driver->has_work;
	p->skel->rodata->work_sample_mask = config->one_of - 1;
	fill_tables(p->skel);
	return 0;
}

static int choose_sample(const struct config *config, struct report *report)
{
	if (report->session.driver.kind == DRIVER_INSTRUMENTED)
		return sample_begin(&report->sample, config->one_of, config->device);
	if (config->one_of == 1)
		return 0;
	return msg_error(EXIT_MISSING, "the stock driver is loaded",
			 "load the instrumented driver: make module",
			 "only the instrumented driver can choose packets");
}

int probes_load(struct probes *p, const struct config *config, struct report *report)
{
	struct session *session = &report->session;
	int err, status;

	memset(p, 0, sizeof(*p));
	status = session_inspect(session, true);
	status = status ?: load_check_driver(&session->driver);
	status = status ?: configure(p, config, report);
	if (status)
		return status;
	err = rxetop_bpf__load(p->skel);
	if (err)
		return load_error(err);
	p->map = bpf_map__fd(p->skel->maps.qps);
	return 0;
}

/* as if nothing had been counted */
static int forget(struct probes *p)
{
	typeof(p->skel->bss) bss = p->skel->bss;
	int err = map_clear_keys(p->skel->maps.qps);

	memset(bss->other_drops, 0, sizeof(bss->other_drops));
	memset(bss->work_posted, 0, sizeof(bss->work_posted));
	memset(bss->work_queues, 0, sizeof(bss->work_queues));
	bss->lost = 0;
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot empty the BPF maps: %s",
			       strerror(-err))
		   : 0;
}

int probes_begin(struct probes *p, const struct config *config, struct report *report)
{
	int status = forget(p);

	probes_choose_stage(p, config->stage);
	status = status ?: find_device(p->skel, config);
	status = status ?: choose_sample(config, report);
	status = status ?: session_attach(&report->session, p->skel->obj, NULL, NULL);
	if (status)
		probes_end(p, report);
	else
		p->skel->bss->work_ready = true;
	return status;
}

void probes_end(struct probes *p, struct report *report)
{
	session_detach(&report->session);
	sample_end(&report->sample);
	if (p->skel)
		p->skel->bss->work_ready = false;
}

void probes_choose_stage(const struct probes *p, struct stage_choice choice)
{
	p->skel->bss->choice = choice;
}

void probes_account(const struct probes *p, struct report *report)
{
	memcpy(report->other_drops, p->skel->bss->other_drops, sizeof(report->other_drops));
	report->lost = p->skel->bss->lost;
	session_account(&report->session, p->skel->obj);
	report->missed = session_missed(&report->session, NULL);
}

int probes_check_clock(const struct probes *p)
{
	return stamp_clock_check(p->skel->rodata->stamp_mult);
}

void probes_close(struct probes *p)
{
	if (p->skel)
		rxetop_bpf__destroy(p->skel);
	p->skel = NULL;
}
