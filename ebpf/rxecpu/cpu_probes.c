// SPDX-License-Identifier: GPL-2.0-only
#include "cpu_probes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate.h"
#include "capability.h"
#include "map_clear.h"
#include "msg.h"
#include "owner_targets.h"

#include "rxecpu.skel.h"

static void tell_absence(const struct report *report)
{
	if (report->session.driver.kind == DRIVER_ABSENT)
		msg("rdma_rxe is not loaded: nothing is the driver's");
	else if (!capability_has(CAP_SYS_ADMIN))
		msg("without cap_sys_admin the kernel does not let us attach to the driver");
	for (int i = 0; i < FEATURES; i++) {
		bool of_driver = i == FEATURE_RXE_TASKS || i == FEATURE_RXE_RECEIVE;

		if (!report->features[i] &&
		    !(of_driver && report->session.driver.kind == DRIVER_ABSENT))
			msg("missing here: %s: %s (rxecpu(8), WHAT CAN BE MISSING)",
			    feature_names[i], feature_absence[i]);
	}
}

static int load(struct probes *p, const struct config *config, struct report *report)
{
	int status = config->stacks ? stacks_check() : 0, err;

	if (status)
		return status;
	p->skel = rxecpu_bpf__open();
	if (!p->skel)
		return load_error(-errno);
	status = features_choose(p->skel, &report->session.driver, report->features);
	status = status ?: targets_choose(p->skel, config, &report->session.driver);
	if (status)
		return status;
	/* a window may have them */
	stacks_choose(p->skel, config->stacks || config->session.control);
	err = rxecpu_bpf__load(p->skel);
	return err ? load_error(err) : 0;
}

static int begin(struct probes *p)
{
	int err = sampler_begin(&p->sampler);

	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot begin on each CPU: %s", strerror(-err))
		   : 0;
}

int probes_load(struct probes *p, const struct config *config, struct report *report)
{
	int status = session_inspect(&report->session, false), err;

	status = status ?: load(p, config, report);
	if (status)
		return status;
	tell_absence(report);
	err = sampler_open(&p->sampler, p->skel);
	if (err)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot list the CPUs: %s", strerror(-err));
	report->cpus = calloc(p->sampler.possible, sizeof(*report->cpus));
	if (!report->cpus)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot start: %s", strerror(ENOMEM));
	report->event_ns = calibrate_run_ns(p->skel->progs.calibrate_event) -
			   calibrate_run_ns(p->skel->progs.calibrate_empty);
	return 0;
}

/* tasks and processes of the window before */
static int forget(struct probes *p)
{
	int err = map_clear_keys(p->skel->maps.switched_out);

	err = err ?: map_clear_keys(p->skel->maps.processes);
	err = err ?: sampler_list(&p->sampler);
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot begin again: %s", strerror(-err)) : 0;
}

static bool is_wanted(const struct bpf_program *program, const void *context)
{
	const struct probes *p = context;

	return program != p->skel->progs.stack_wakeup || p->skel->bss->stacks_wanted;
}

int probes_begin(struct probes *p, const struct config *config, struct report *report,
		 pid_t command)
{
	int status = forget(p);

	report->ncpus = p->sampler.ncpus;
	report->has_stacks = config->stacks;
	status = status ?: targets_find(p->skel, config, &report->session.driver, command);
	status = status ?: stacks_prepare(&p->stacks, p->skel, config->stacks);
	status = status ?: session_attach(&report->session, p->skel->obj, is_wanted, p);
	if (!status && config->stacks)
		status = stacks_begin(&p->stacks, p->sampler.cpu, p->sampler.ncpus);
	status = status ?: begin(p);
	if (status)
		probes_end(p, report);
	return status;
}

void probes_end(struct probes *p, struct report *report)
{
	session_detach(&report->session);
	stacks_detach(&p->stacks);
}

void probes_account(const struct probes *p, struct report *report)
{
	sampler_events(&p->sampler, &report->events, &report->late);
	if (report->has_stacks) {
		stacks_waits(&p->stacks, report->waits, &report->stacks_lost);
		sampler_unsampled(&p->sampler, report->unsampled);
	}
	session_account(&report->session, p->skel->obj);
}

void probes_close(struct probes *p)
{
	stacks_end(&p->stacks);
	sampler_close(&p->sampler);
	if (p->skel)
		rxecpu_bpf__destroy(p->skel);
	p->skel = NULL;
}
