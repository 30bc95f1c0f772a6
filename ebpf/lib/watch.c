// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "watch.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "msg.h"

/* a server closes connections that say nothing: look at it this often */
#define SERVE_MS 1000

int watch_open(struct watch *w, char **command)
{
	sigset_t ours, old;
	int err = 0;

	memset(w, 0, sizeof(*w));
	w->command.go = w->timer = w->server = -1;
	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ours, &old);
	w->signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (command)
		err = command_prepare(&w->command, command, &old);
	return err ? msg_error(EXIT_RUN, NULL, NULL, "cannot fork: %s", strerror(-err)) : 0;
}

void watch_go(struct watch *w)
{
	if (w->command.pid > 0)
		command_go(&w->command);
}

void watch_serve(struct watch *w, int fd, int (*serve)(void *context), void *context)
{
	w->server = fd;
	w->serve = serve;
	w->serve_context = context;
}

void watch_input(struct watch *w, void (*on_input)(void *context), void *context)
{
	w->on_input = on_input;
	w->input_context = context;
}

void watch_on_signal(struct watch *w)
{
	struct signalfd_siginfo info;
	int wait_status;

	if (read(w->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGCHLD) {
		/* the command's end is ours; a terminal has signalled it already */
		if (w->command.pid <= 0)
			w->ended = true;
		else if (info.ssi_code != SI_KERNEL)
			kill(w->command.pid, info.ssi_signo);
		return;
	}
	if (w->command.pid > 0 &&
	    waitpid(w->command.pid, &wait_status, WNOHANG) == w->command.pid) {
		w->command.pid = 0;
		w->status = command_exit_status(wait_status);
		w->ended = true;
	}
}

int watch_set_timer(struct watch *w, unsigned long long ns)
{
	struct itimerspec spec = {
		.it_interval = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000},
	};

	spec.it_value = spec.it_interval;
	if (w->timer < 0)
		w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return w->timer < 0 || timerfd_settime(w->timer, 0, &spec, NULL) ? -errno : 0;
}

int watch_loop(struct watch *w, int (*on_tick)(void *context), void *context)
{
	uint64_t expirations;
	int status = 0;

	while (!w->ended && !status) {
		struct pollfd fds[] = {
			{.fd = w->signals, .events = POLLIN},
			{.fd = w->timer, .events = POLLIN},
			{.fd = w->server, .events = POLLIN},
			{.fd = w->on_input ? STDIN_FILENO : -1, .events = POLLIN},
		};

		if (poll(fds, 4, w->serve ? SERVE_MS : -1) < 0 && errno != EINTR)
			return msg_error(EXIT_RUN, NULL, NULL, "cannot wait for signals: %s",
					 strerror(errno));
		if (fds[0].revents)
			watch_on_signal(w);
		if (fds[1].revents &&
		    read(w->timer, &expirations, sizeof(expirations)) == sizeof(expirations))
			status = on_tick(context);
		if (!status && fds[3].revents && !w->ended)
			w->on_input(w->input_context);
		if (!status && w->serve)
			status = w->serve(w->serve_context);
	}
	return status;
}

void watch_close(struct watch *w)
{
	command_cancel(&w->command);
	if (w->signals >= 0)
		close(w->signals);
	if (w->timer >= 0)
		close(w->timer);
	w->signals = w->timer = -1;
}
