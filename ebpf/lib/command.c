// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "msg.h"

int command_prepare(struct command *c, char **argv, const sigset_t *mask)
{
	int pipe_fds[2];
	char byte;

	if (pipe2(pipe_fds, O_CLOEXEC))
		return -errno;
	c->pid = fork();
	if (c->pid < 0) {
		int err = -errno;

		close(pipe_fds[0]);
		close(pipe_fds[1]);
		return err;
	}
	if (!c->pid) {
		close(pipe_fds[1]);
		/* one byte releases the command; end of file means that the probe has died */
		if (read(pipe_fds[0], &byte, 1) != 1)
			_exit(EXIT_RUN);
		sigprocmask(SIG_SETMASK, mask, NULL);
		execvp(argv[0], argv);
		msg("cannot run '%s': %s", argv[0], strerror(errno));
		_exit(errno == ENOENT ? EXIT_NOCOMMAND : EXIT_NOEXEC);
	}
	close(pipe_fds[0]);
	c->go = pipe_fds[1];
	return 0;
}

void command_go(struct command *c)
{
	/* waitpid() reports a child that has died */
	if (write(c->go, "", 1) != 1)
		msg("the command died before it started");
	close(c->go);
	c->go = -1;
}

void command_cancel(struct command *c)
{
	if (c->go < 0 || c->pid <= 0)
		return;
	close(c->go);
	c->go = -1;
	waitpid(c->pid, NULL, 0);
}

int command_exit_status(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
