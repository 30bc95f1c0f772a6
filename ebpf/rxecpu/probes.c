// SPDX-License-Identifier: GPL-2.0-only
#include "probes.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "msg.h"
#include "targets.h"
#include "test_run.h"

#include "rxecpu.skel.h"

static void tell_absence(const struct session *session)
{
	if (session->driver.kind == DRIVER_ABSENT)
		msg("rdma_rxe is not loaded: nothing is the driver's");
	for (int i = 0; i < FEATURES; i++) {
		bool of_driver = i == FEATURE_RXE_TASKS || i == FEATURE_RXE_RECEIVE;

		if (!session->features[i] && !(of_driver && session->driver.kind == DRIVER_ABSENT))
			msg("missing here: %s: %s (rxecpu(8), WHAT CAN BE MISSING)",
			    feature_names[i], feature_absence[i]);
	}
}

static int load(struct probes *p, const struct config *config, struct session *session)
{
	int status, err;

	p->skel = rxecpu_bpf__open();
	if (!p->skel)
		return load_error(-errno);
	status = features_choose(p->skel, &session->driver, session->features);
	status = status ?: targets_choose(p->skel, config, &session->driver);
	if (status)
		return status;
	err = rxecpu_bpf__load(p->skel);
	return err ? load_error(err) : 0;
}

static int begin(struct probes *p)
{
	int err = sampler_begin(&p->sampler);

	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot begin on each CPU: %s", strerror(-err))
		   : 0;
}

int probes_start(struct probes *p, const struct config *config, struct session *session,
		 pid_t command)
{
	int status = load_begin(), err;

	if (status)
		return status;
	driver_inspect(&session->driver);
	status = load(p, config, session);
	if (status)
		return status;
	tell_absence(session);
	err = sampler_open(&p->sampler, p->skel);
	if (err)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot list the CPUs: %s", strerror(-err));
	session->ncpus = p->sampler.ncpus;
	session->cpus = calloc(session->ncpus, sizeof(*session->cpus));
	if (!session->cpus)
		return msg_error(EXIT_RUN, NULL, NULL, "cannot start: %s", strerror(ENOMEM));
	session->event_ns = test_run_ns(p->skel->progs.calibrate_event) -
			    test_run_ns(p->skel->progs.calibrate_empty);
	status = targets_add(p->skel, config, command);
	if (!status && config->bpf_stats)
		status = load_enable_stats(&p->stats_fd);
	status = status ?: attach_backwards(&p->attached, p->skel->obj, NULL, NULL);
	return status ?: begin(p);
}

void probes_detach(struct probes *p)
{
	attach_undo(&p->attached);
}

void probes_account(const struct probes *p, struct session *session)
{
	sampler_events(&p->sampler, &session->events, &session->late);
	session->nprograms = load_program_stats(p->skel->obj, session->programs, MAX_PROGRAMS);
}

void probes_close(struct probes *p)
{
	if (p->stats_fd >= 0)
		close(p->stats_fd);
	probes_detach(p);
	sampler_close(&p->sampler);
	if (p->skel)
		rxecpu_bpf__destroy(p->skel);
	p->skel = NULL;
}
