/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command that a probe watches: forked early, released when the probes are attached. */
#ifndef ROCELAB_COMMAND_H
#define ROCELAB_COMMAND_H

#include <signal.h>
#include <sys/types.h>

struct command {
	pid_t pid;
	int go; /* closing it lets the command run */
};

/* Fork; the child waits, with the signal mask given. 0 or a negative errno. */
int command_prepare(struct command *c, char **argv, const sigset_t *mask);
void command_go(struct command *c);
/* End a child that was never released. */
void command_cancel(struct command *c);
/* a wait() status as a shell gives it: the exit status, or 128 + the signal */
int command_exit_status(int wait_status);

#endif /* ROCELAB_COMMAND_H */
